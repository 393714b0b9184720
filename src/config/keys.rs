//! Every key of the configuration files: its aliases, its type and a description.

use super::node::{ConfigKey, ConfigNode};
use crate::util::spelling;

/// A key of a configuration file, with everything that help and schema say about it.
#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    /// The canonical spelling, used in messages.
    pub name: &'static str,
    /// Other spellings that mean the same.
    pub aliases: &'static [&'static str],
    pub schema: &'static str,
    pub description: &'static str,
}

const fn key(name: &'static str, shape: &'static str, about: &'static str) -> KeySpec {
    KeySpec { name, aliases: &[], schema: shape, description: about }
}

const fn key_with_aliases(
    name: &'static str,
    aliases: &'static [&'static str],
    shape: &'static str,
    about: &'static str,
) -> KeySpec {
    KeySpec { name, aliases, schema: shape, description: about }
}

pub fn canonical(table: &'static [KeySpec], text: &str) -> Option<&'static str> {
    table.iter().find(|k| k.name == text || k.aliases.contains(&text)).map(|k| k.name)
}

const TEXT: &str = r#"{"type":"string"}"#;
const TEXTS: &str = r#"{"type":"array","items":{"type":["string","number","boolean"]}}"#;
const ONE_OR_TEXTS: &str =
    r#"{"anyOf":[{"type":"string"},{"type":"array","items":{"type":["string","number"]}}]}"#;
const PATTERNS: &str =
    r#"{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}"#;
const BOOL: &str = r#"{"type":"boolean"}"#;
const COUNT: &str = r#"{"type":"integer","minimum":0}"#;
const DURATION: &str = r#"{"anyOf":[{"type":"number","minimum":0},{"type":"string","pattern":"^[0-9.]+ *(us|ms|s|sec|m|min|h|d)?$"}]}"#;
const SIZE: &str = r#"{"anyOf":[{"type":"integer","minimum":1},{"type":"string","pattern":"^[0-9]+ *[kKMG]?i?B?$"}]}"#;
const SCHEMA: &str = r#"{"type":["object","boolean"]}"#;
const VALUES: &str =
    r#"{"type":"object","additionalProperties":{"type":["string","number","boolean"]}}"#;
const CREDENTIALS: &str =
    r##"{"type":["object","null"],"additionalProperties":{"$ref":"#/$defs/credential"}}"##;
const HANDLES: &str = r#"{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}"#;
const TOOL_LIST: &str = r##"{"type":["array","null"],"items":{"$ref":"#/$defs/tool"}}"##;
const SERVER_MAP: &str =
    r##"{"type":["object","null"],"additionalProperties":{"$ref":"#/$defs/server"}}"##;

pub const TOOLS_FILE: &[KeySpec] = &[
    key("version", r#"{"enum":[1,"1"]}"#, "The version of the file format: 1."),
    key("$schema", TEXT, "The JSON Schema that editors validate this file against."),
    key("defaults", r##"{"$ref":"#/$defs/defaults"}"##, "Default values for entries in this file."),
    key(
        "scopes",
        r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        "Named directories. PROJECT_ROOT and AGENT_DATA_DIR are predefined.",
    ),
    key(
        "schemas",
        r#"{"type":"object","additionalProperties":{"type":["object","boolean"]}}"#,
        "JSON Schemas that param_schema_ref and response_schema_ref refer to by name.",
    ),
    key("credentials", CREDENTIALS, "Named handles for secrets, for use in entries."),
    key("discover", PATTERNS, "Directories with more files like this one."),
    key_with_aliases("tools", &["tools_config"], TOOL_LIST, "The tools."),
    key("toolkits", TOOL_LIST, "Entries that provide several tools each."),
    key("components", TOOL_LIST, "Configured instances whose tools are named {component}-{tool}."),
    key(
        "profiles",
        r##"{"type":"object","additionalProperties":{"$ref":"#/$defs/profile"}}"##,
        "Named views of the catalogue, for example one for each agent.",
    ),
    key("stats", r##"{"$ref":"#/$defs/record"}"##, "Usage statistics."),
    key("audit", r##"{"$ref":"#/$defs/record"}"##, "The audit log."),
    key("history", r##"{"$ref":"#/$defs/record"}"##, "The call history."),
    key(
        "policy",
        r##"{"type":"array","items":{"$ref":"#/$defs/rule"}}"##,
        "Rules for calls; the first match wins.",
    ),
];

/// Keys that every entry of a file of tools may have; its kind adds more.
pub const TOOL: &[KeySpec] = &[
    key_with_aliases(
        "name",
        &["tool_name"],
        r#"{"type":["string","number"]}"#,
        "The tool's name: up to 128 letters, digits, '_', '.' or '-'.",
    ),
    key("title", TEXT, "A human-readable title."),
    key("description", TEXT, "What the tool does, for people and models."),
    key_with_aliases(
        "parameters_schema",
        &["parameters", "inputSchema", "input_schema"],
        SCHEMA,
        "JSON Schema for the arguments.",
    ),
    key_with_aliases(
        "output_schema",
        &["outputSchema"],
        SCHEMA,
        "JSON Schema for the structured result.",
    ),
    key("param_schema_ref", TEXT, "Name of the arguments' schema under 'schemas'."),
    key("response_schema_ref", TEXT, "Name of the result's schema under 'schemas'."),
    key("category", TEXT, "The heading it is listed under."),
    key(
        "speed",
        r#"{"enum":["instant","fast","medium","slow"]}"#,
        "How fast the tool is; sets the default timeout: 1, 5, 30 or 300 seconds.",
    ),
    key(
        "safety",
        r#"{"enum":["native","sandboxed","external"]}"#,
        "How it is isolated while it runs.",
    ),
    key(
        "source",
        r#"{"enum":["internal","mcp"]}"#,
        "Where the tool comes from; in this file: internal.",
    ),
    key("version", r#"{"type":["string","number"]}"#, "The author's version of the definition."),
    key("timeout", DURATION, "Time limit for one attempt."),
    key(
        "max_total",
        DURATION,
        "Time limit for the whole call; can only shorten the built-in 300 s.",
    ),
    key("retries", COUNT, "How often a failed attempt is retried."),
    key(
        "requires_approval",
        r#"{"anyOf":[{"type":"boolean"},{"type":"array","items":{"type":"string"}}]}"#,
        "Require approval before each call; a list limits this to these tools of a toolkit.",
    ),
    key(
        "scope",
        TEXT,
        "global (default) or session; for toolkits and components, the name of a directory.",
    ),
    key(
        "annotations",
        r##"{"$ref":"#/$defs/annotations"}"##,
        "Hints about the tool's effects, as in MCP.",
    ),
    key(
        "context_env",
        r#"{"type":"array","items":{"type":"string","pattern":"^[A-Za-z_][A-Za-z0-9_]*$"}}"#,
        "Environment variables that a call may set with --context NAME=VALUE.",
    ),
    key("credentials", HANDLES, "The handles of the secrets it receives."),
    key_with_aliases(
        "kind",
        &["provider_type", "type"],
        TEXT,
        "The kind of tool, if the other keys do not determine it.",
    ),
    key("disabled", BOOL, "Disable this entry."),
    key("enabled", BOOL, "The opposite of disabled."),
];

/// Keys of `annotations`, the hints of MCP about a tool's effects.
pub const ANNOTATIONS: &[KeySpec] = &[
    key("title", TEXT, "A human-readable title."),
    key("readOnlyHint", BOOL, "It does not change anything."),
    key("destructiveHint", BOOL, "It may be destructive; calls require approval."),
    key("idempotentHint", BOOL, "Repeating a call has no further effect."),
    key("openWorldHint", BOOL, "It interacts with external systems."),
];

/// Keys of `defaults`, which apply to the entries of the same file.
pub const DEFAULTS: &[KeySpec] = &[
    key("timeout", DURATION, "Default time limit for one attempt."),
    key("retries", COUNT, "Default number of retries for a failed attempt."),
    key(
        "keep",
        DURATION,
        "How long a background host keeps an idle server running, unless its entry sets 'keep'.",
    ),
    key("base_url", TEXT, "The base for relative endpoint_url values."),
    key("max_response_bytes", SIZE, "How much of an API tool's response is kept, such as 256KiB."),
];

/// Keys of an entry under `profiles`.
pub const PROFILE: &[KeySpec] = &[
    key("include", PATTERNS, "Only names that match one of these patterns."),
    key("exclude", PATTERNS, "Exclude names that match these patterns."),
    key("servers", PATTERNS, "Only tools from these servers."),
    key("categories", PATTERNS, "Only tools in these categories."),
    key("safety", PATTERNS, "Only tools with these safety levels."),
    key("description", TEXT, "What this profile is for."),
];

/// Keys of `stats`, `audit` and `history`.
pub const RECORD: &[KeySpec] = &[
    key("enabled", BOOL, "Whether to record it."),
    key("path", TEXT, "Where to store it; default: the state directory."),
    key("sync", BOOL, "Whether to sync each line to disk."),
    key("retention", DURATION, "How long to keep records."),
];

pub const RULE: &[KeySpec] = &[
    key("match", TEXT, "A pattern for full tool names."),
    key("action", r#"{"enum":["allow","ask","deny"]}"#, "What to do."),
    key(
        "project",
        TEXT,
        "A project directory: the rule applies to its entries. Without it, 'allow' applies to your own entries.",
    ),
];

pub const SERVERS_FILE: &[KeySpec] = &[
    key("version", r#"{"enum":[1,"1"]}"#, "The version of the file format: 1."),
    key("$schema", TEXT, "The JSON Schema that editors validate this file against."),
    key("defaults", r##"{"$ref":"#/$defs/defaults"}"##, "Default values for entries in this file."),
    key_with_aliases(
        "mcp_servers",
        &["mcpServers", "servers"],
        SERVER_MAP,
        "The servers, by name.",
    ),
    key(
        "clients",
        r##"{"type":"array","items":{"$ref":"#/$defs/server"}}"##,
        "The servers as a list, each with a client_id.",
    ),
    key("credentials", CREDENTIALS, "Named handles for secrets, for use in entries."),
    key("name", TEXT, "A name for the file."),
    key("description", TEXT, "What the file is for."),
    key("inputs", r#"{"type":"array"}"#, "Input prompts of an editor; ignored by toolhost."),
];

pub const SERVER: &[KeySpec] = &[
    key_with_aliases("name", &["client_id"], TEXT, "The server's name, if it is not the key."),
    key("description", TEXT, "What it is for."),
    key("command", ONE_OR_TEXTS, "The program to start; with a list, its arguments too."),
    key("args", TEXTS, "The program's arguments."),
    key("server_path", TEXT, "The program to start; a .py file is run with python3."),
    key("env", VALUES, "Environment variables for the program."),
    key("env_keys", TEXTS, "Names of environment variables to pass through to the program."),
    key(
        "envFile",
        TEXT,
        "A file of NAME=value lines with environment variables for the program; env takes precedence.",
    ),
    key("cwd", TEXT, "The program's working directory; default: the directory of this file."),
    key_with_aliases(
        "url",
        &["baseUrl", "serverUrl", "httpUrl"],
        TEXT,
        "The server's address: http, https, ws, wss or a Unix socket, unix:///path.sock; append :/path for a request path other than /mcp.",
    ),
    key("headers", VALUES, "Headers to send with every request."),
    key_with_aliases(
        "auth",
        &["oauth"],
        r##"{"anyOf":[{"$ref":"#/$defs/auth"},{"enum":["none",false]}]}"##,
        "How to authenticate.",
    ),
    key_with_aliases(
        "transport",
        &["type"],
        r#"{"enum":["stdio","http","streamable-http","streamable_http","streamableHttp","sse","lines","ws","websocket"]}"#,
        "The transport: stdio, http, sse for HTTP+SSE, lines for one message per line on a Unix socket, or websocket. By default, if a server rejects http, sse is tried too.",
    ),
    key(
        "protocol",
        r#"{"enum":["auto","legacy","2026-07-28","modern"]}"#,
        "The protocol lifecycle to use.",
    ),
    key("timeout", DURATION, "Time limit between messages from the server; progress resets it."),
    key(
        "max_total",
        DURATION,
        "Time limit for the whole call; can only shorten the built-in 300 s.",
    ),
    key_with_aliases(
        "start_timeout",
        &["startup_timeout", "startup_timeout_sec"],
        DURATION,
        "Time limit for starting and negotiating the protocol version.",
    ),
    key(
        "keep",
        DURATION,
        "Start a background host on the first call, and keep the server until it has been idle for this long.",
    ),
    key(
        "shared",
        BOOL,
        "Whether all clients of a host use one connection; false gives each client session its own.",
    ),
    key_with_aliases(
        "exclude",
        &["disabledTools", "blockedTools", "excludedTools", "excludeTools"],
        PATTERNS,
        "Tools, prompts and resources to exclude; patterns with *.",
    ),
    key_with_aliases(
        "include",
        &["allowedTools", "includeTools", "available_tools"],
        PATTERNS,
        "Only these tools; patterns with *.",
    ),
    key(
        "roots",
        r##"{"type":"array","items":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/root"}]}}"##,
        "Roots to offer to the server: paths, URIs, or a scheme such as weather://.",
    ),
    key(
        "capabilities",
        r#"{"type":["array","object"]}"#,
        "Capabilities stated for the server; toolhost asks the server itself.",
    ),
    key(
        "routing_weight",
        r#"{"type":"number","minimum":0}"#,
        "Which of several servers that offer the same tool goes first: the greatest weight (1.0 is primary, lower is backup).",
    ),
    key(
        "sandbox",
        r##"{"anyOf":[{"type":"boolean"},{"enum":["none","auto","limits","landlock","bwrap"]},{"$ref":"#/$defs/sandbox"}]}"##,
        "What the program may access: a level, or a mapping with details.",
    ),
    key("credentials", HANDLES, "The handles of the secrets it receives."),
    key(
        "permissions",
        r##"{"anyOf":[{"$ref":"#/$defs/permissions"},{"type":"null"}]}"##,
        "What the server may offer and use; anything not listed is unrestricted.",
    ),
    key(
        "insecure",
        BOOL,
        "Allow credentials over plain http; only in your own configuration directory.",
    ),
    key(
        "dev",
        r#"{"type":["boolean","object"]}"#,
        "Changed definitions do not block calls; a mapping belongs to an editor and is ignored.",
    ),
    key(
        "drift",
        r#"{"enum":["block","warn","allow"]}"#,
        "What to do when the definition of a pinned or listed tool changed; default: block.",
    ),
    key("disabled", BOOL, "Disable this entry."),
    key("enabled", BOOL, "The opposite of disabled."),
    key(
        "provides_tools",
        r##"{"type":"array","items":{"$ref":"#/$defs/declared_tool"}}"##,
        "Tools that the server is expected to offer; listed without connecting.",
    ),
    key(
        "context_env",
        r#"{"type":"array","items":{"type":"string","pattern":"^[A-Za-z_][A-Za-z0-9_]*$"}}"#,
        "Environment variables that a call may set with --context NAME=VALUE.",
    ),
    key(
        "retries",
        COUNT,
        "How often a failed attempt is retried, for tools marked safe to repeat.",
    ),
    key("requires_approval", BOOL, "Require approval before each call."),
];

/// Keys of an entry of `roots`.
pub const ROOT: &[KeySpec] = &[
    key_with_aliases("uri", &["path"], TEXT, "A URI, or a path."),
    key("name", TEXT, "Its name, for people."),
    key("capabilities", TEXTS, "Read from host files, and told to no server."),
];

/// Keys of `auth`, for all of its types.
pub const AUTH: &[KeySpec] = &[
    key(
        "type",
        r#"{"enum":["bearer","none","oauth","client_credentials"]}"#,
        "How to authenticate: bearer with a token, oauth with a login, client_credentials as a program.",
    ),
    key("token_env_var", TEXT, "The variable that holds the bearer token."),
    key("token", TEXT, "The bearer token itself, as a reference such as ${VAR} or ${file:PATH}."),
    key_with_aliases("client_id", &["clientId"], TEXT, "oauth: a pre-registered client."),
    key_with_aliases(
        "client_secret",
        &["clientSecret"],
        TEXT,
        "oauth: the client's secret, as a reference.",
    ),
    key_with_aliases(
        "client_metadata_url",
        &["clientMetadataUrl"],
        TEXT,
        "oauth: the https URL of the client's metadata document.",
    ),
    key_with_aliases(
        "scopes",
        &["scope"],
        PATTERNS,
        "oauth: the scopes to request; default: those the server names.",
    ),
    key("issuer", TEXT, "oauth: the only authorization server to trust; it may be private."),
    key_with_aliases(
        "redirect_port",
        &["callbackPort", "redirectPort"],
        r#"{"type":"integer","minimum":1,"maximum":65535}"#,
        "oauth: the port on 127.0.0.1 for the login redirect; default: any.",
    ),
    key_with_aliases("token_url", &["tokenUrl"], TEXT, "client_credentials: the token endpoint."),
];

/// Keys of a handle under `credentials`; logins also have the keys of `auth`.
pub const CREDENTIAL: &[KeySpec] = &[
    key(
        "type",
        r#"{"enum":["bearer","header","api_key","env","oauth","client_credentials"]}"#,
        "How it is sent: as a bearer token, a header, an environment variable of a program, or a login.",
    ),
    key("value", TEXT, "The secret, as a reference such as ${VAR} or ${file:PATH}."),
    key("header", TEXT, "header, api_key: the name of the header; default for api_key: X-API-Key."),
    key("variable", TEXT, "The environment variable that passes it to a program."),
    key("description", TEXT, "What it is for."),
];

/// Keys of `permissions` of a server.
pub const PERMISSIONS: &[KeySpec] = &[
    key("tools", PATTERNS, "Only these tools can be listed and called; patterns with *."),
    key("prompts", PATTERNS, "Only these prompts can be listed and filled in; patterns with *."),
    key(
        "resources",
        PATTERNS,
        "Only these resources can be listed and read: URIs or names; patterns with *.",
    ),
    key("network", BOOL, "Whether its program may use the network; false needs a sandbox."),
    key(
        "credentials",
        r##"{"anyOf":[{"$ref":"#/$defs/credential_type"},{"type":"array","items":{"$ref":"#/$defs/credential_type"}}]}"##,
        "The types of credentials that the server may receive.",
    ),
];

/// Keys of `sandbox`, for tools and servers alike.
pub const SANDBOX: &[KeySpec] = &[
    key(
        "level",
        r#"{"enum":["none","auto","limits","landlock","bwrap"]}"#,
        "The mechanism: resource limits only, Landlock, or bubblewrap; auto takes bubblewrap where it works, else Landlock. Default: limits if only resource limits are set, else auto.",
    ),
    key("read", PATTERNS, "Paths the program may read, besides the system and the program itself."),
    key("write", PATTERNS, "Paths the program may write, besides its own temporary directory."),
    key("network", BOOL, "Whether the program may use the network."),
    key(
        "metadata",
        BOOL,
        "landlock: whether the program may change permissions, owners, times and attributes of your files.",
    ),
    key("memory", SIZE, "Memory limit for each process, such as 256MiB."),
    key("cpu", DURATION, "CPU time limit for each process, in whole seconds."),
    key("processes", COUNT, "How many processes may be added to those the user already has."),
    key("file_size", SIZE, "The largest file that may be written."),
    key("open_files", COUNT, "The maximum number of open files."),
];

/// The first key of an entry that is not known and was probably meant to be one of `keys`, with
/// what was meant.
pub fn misspelled<'e, 'k>(
    entry: &'e ConfigNode,
    keys: &[&'k str],
    is_known: impl Fn(&str) -> bool,
) -> Option<(&'e ConfigKey, &'k str)> {
    let mut unknown = entry.entries().iter().map(|(key, _)| key).filter(|key| !is_known(&key.text));
    unknown.find_map(|key| Some((key, spelling::nearest(&key.text, keys.iter().copied())?)))
}

pub fn spellings(table: &[KeySpec]) -> impl Iterator<Item = &str> {
    table.iter().flat_map(|k| std::iter::once(k.name).chain(k.aliases.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: [&[KeySpec]; 13] = [
        TOOLS_FILE,
        TOOL,
        ANNOTATIONS,
        DEFAULTS,
        PROFILE,
        RECORD,
        RULE,
        SERVERS_FILE,
        SERVER,
        AUTH,
        CREDENTIAL,
        PERMISSIONS,
        SANDBOX,
    ];

    #[test]
    fn every_shape_is_json_and_no_spelling_means_two_things() {
        for table in TABLES {
            let mut unique_spellings = std::collections::BTreeSet::new();
            for word in spellings(table) {
                assert!(unique_spellings.insert(word), "{word} stands twice");
            }
            for key in table {
                let shape: Result<serde_json::Value, _> = serde_json::from_str(key.schema);
                assert!(shape.is_ok(), "{}", key.name);
                assert!(key.description.ends_with('.'), "{}", key.name);
            }
        }
    }

    #[test]
    fn near_misses_are_suggested_and_far_ones_are_not() {
        let of = |text| crate::util::spelling::nearest(text, spellings(TOOL));
        assert_eq!(of("descripton"), Some("description"));
        assert_eq!(of("time_out"), Some("timeout"));
        assert_eq!(of("inputschema"), Some("inputSchema"));
        assert_eq!(of("colour"), None);
    }
}
