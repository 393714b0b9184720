//! Every key of the configuration files: its aliases, its type and a description.
//!
//! Owns: the vocabulary, once for the resolver, for suggestions and for the JSON Schema of the
//! files. Never does: give a key a meaning (see `resolve`).

use super::node::{ConfigKey, ConfigNode};
use crate::util::spelling;

/// A key of a configuration file, with everything said about it in help and schema.
#[derive(Debug, Clone, Copy)]
pub struct KeySpec {
    /// The spelling used in messages.
    pub name: &'static str,
    /// Other spellings that mean the same.
    pub aliases: &'static [&'static str],
    /// The JSON Schema of its value, as JSON text.
    pub schema: &'static str,
    /// A description of the key, for editors and documentation.
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

/// The canonical name of `text` in `table`.
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

/// Top-level keys of a file of tools.
pub const TOOLS_FILE: &[KeySpec] = &[
    key("version", r#"{"enum":[1,"1"]}"#, "The version of this file's form: 1."),
    key("$schema", TEXT, "The schema an editor checks this file against."),
    key("defaults", r##"{"$ref":"#/$defs/defaults"}"##, "Values for entries that name none."),
    key(
        "scopes",
        r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        "Names for directories. PROJECT_ROOT and AGENT_DATA_DIR are predefined.",
    ),
    key(
        "schemas",
        r#"{"type":"object","additionalProperties":{"type":["object","boolean"]}}"#,
        "JSON Schemas that param_schema_ref and response_schema_ref name.",
    ),
    key("credentials", CREDENTIALS, "Handles for secrets, which entries name."),
    key("discover", PATTERNS, "Directories of more files like this one."),
    key_with_aliases("tools", &["tools_config"], TOOL_LIST, "The tools."),
    key("toolkits", TOOL_LIST, "Entries that give several tools each."),
    key("components", TOOL_LIST, "Configured instances whose tools are named {component}-{tool}."),
    key(
        "profiles",
        r##"{"type":"object","additionalProperties":{"$ref":"#/$defs/profile"}}"##,
        "Named views: what one agent sees.",
    ),
    key("stats", r##"{"$ref":"#/$defs/record"}"##, "The usage statistics."),
    key("audit", r##"{"$ref":"#/$defs/record"}"##, "The audit log."),
    key("history", r##"{"$ref":"#/$defs/record"}"##, "The history of calls."),
    key(
        "policy",
        r##"{"type":"array","items":{"$ref":"#/$defs/rule"}}"##,
        "Rules about calls; the first match wins.",
    ),
];

/// Keys every entry of a file of tools may have; its kind adds its own.
pub const TOOL: &[KeySpec] = &[
    key_with_aliases(
        "name",
        &["tool_name"],
        r#"{"type":["string","number"]}"#,
        "The tool's name: letters, digits, '_', '.', '-', at most 128.",
    ),
    key("title", TEXT, "A title for people."),
    key("description", TEXT, "What it does, for people and models."),
    key_with_aliases(
        "parameters_schema",
        &["parameters", "inputSchema", "input_schema"],
        SCHEMA,
        "JSON Schema of the arguments.",
    ),
    key_with_aliases(
        "output_schema",
        &["outputSchema"],
        SCHEMA,
        "JSON Schema of the structured result.",
    ),
    key("param_schema_ref", TEXT, "The name of the arguments' schema under 'schemas'."),
    key("response_schema_ref", TEXT, "The name of the result's schema under 'schemas'."),
    key("category", TEXT, "The heading it is listed under."),
    key(
        "speed",
        r#"{"enum":["instant","fast","medium","slow"]}"#,
        "How fast it is; sets the timeout when none is named: 1, 5, 30 or 300 seconds.",
    ),
    key(
        "safety",
        r#"{"enum":["native","sandboxed","external"]}"#,
        "What surrounds it while it runs.",
    ),
    key("source", r#"{"enum":["internal","mcp"]}"#, "Where it comes from; in this file: internal."),
    key("version", r#"{"type":["string","number"]}"#, "The author's version of the definition."),
    key("timeout", DURATION, "The limit of one attempt."),
    key("max_total", DURATION, "Bound on a whole call; shortens the built-in 300 s."),
    key("retries", COUNT, "How often a failed attempt is repeated."),
    key(
        "requires_approval",
        r#"{"anyOf":[{"type":"boolean"},{"type":"array","items":{"type":"string"}}]}"#,
        "Ask a person before each call; a list names tools of a toolkit.",
    ),
    key(
        "scope",
        TEXT,
        "global (default) or session; for toolkits and components the name of a directory.",
    ),
    key("annotations", r##"{"$ref":"#/$defs/annotations"}"##, "Claims about effects, as in MCP."),
    key(
        "context_env",
        r#"{"type":"array","items":{"type":"string","pattern":"^[A-Za-z_][A-Za-z0-9_]*$"}}"#,
        "Names of variables that a call may set with --context NAME=VALUE.",
    ),
    key("credentials", HANDLES, "The handles of the secrets that it is given."),
    key_with_aliases(
        "kind",
        &["provider_type", "type"],
        TEXT,
        "Which kind of tool it is, when the other keys do not say.",
    ),
    key("disabled", BOOL, "Leave it out."),
    key("enabled", BOOL, "The opposite of disabled."),
];

/// Keys of `annotations`, the hints of MCP about a tool's effects.
pub const ANNOTATIONS: &[KeySpec] = &[
    key("title", TEXT, "A title for people."),
    key("readOnlyHint", BOOL, "It changes nothing."),
    key("destructiveHint", BOOL, "It may destroy something; a call asks first."),
    key("idempotentHint", BOOL, "Calling it twice is the same as calling it once."),
    key("openWorldHint", BOOL, "It reaches out of its own closed world."),
];

/// Keys of `defaults`, which hold for the entries of the same file.
pub const DEFAULTS: &[KeySpec] = &[
    key("timeout", DURATION, "The limit of one attempt, for entries that name none."),
    key("retries", COUNT, "How often a failed attempt is repeated, for entries that name none."),
    key(
        "keep",
        DURATION,
        "How long a background host keeps servers without a call, for entries of servers that do not say.",
    ),
    key("base_url", TEXT, "What a relative endpoint_url is joined to."),
    key(
        "max_response_bytes",
        SIZE,
        "How much of a response of an API tool is kept, such as 256KiB.",
    ),
];

/// Keys of an entry under `profiles`.
pub const PROFILE: &[KeySpec] = &[
    key("include", PATTERNS, "Only names that match one of these patterns."),
    key("exclude", PATTERNS, "Not these."),
    key("servers", PATTERNS, "Only tools of these servers."),
    key("categories", PATTERNS, "Only tools of these categories."),
    key("safety", PATTERNS, "Only tools of these safety levels."),
    key("description", TEXT, "What this view is for."),
];

/// Keys of `stats`, `audit` and `history`.
pub const RECORD: &[KeySpec] = &[
    key("enabled", BOOL, "Whether it is kept."),
    key("path", TEXT, "Where it is kept, when not in the state directory."),
    key("sync", BOOL, "Whether each line is forced to the disk."),
    key("retention", DURATION, "How long rows are kept."),
];

/// Keys of a policy rule.
pub const RULE: &[KeySpec] = &[
    key("match", TEXT, "A pattern over full names."),
    key("action", r#"{"enum":["allow","ask","deny"]}"#, "What to do."),
    key(
        "project",
        TEXT,
        "The directory of a project: the rule is about its entries. Without it allow is about your own.",
    ),
];

/// Top-level keys of a file of servers.
pub const SERVERS_FILE: &[KeySpec] = &[
    key("version", r#"{"enum":[1,"1"]}"#, "The version of this file's form: 1."),
    key("$schema", TEXT, "The schema an editor checks this file against."),
    key("defaults", r##"{"$ref":"#/$defs/defaults"}"##, "Values for entries that name none."),
    key_with_aliases(
        "mcp_servers",
        &["mcpServers", "servers"],
        SERVER_MAP,
        "The servers, by name.",
    ),
    key(
        "clients",
        r##"{"type":"array","items":{"$ref":"#/$defs/server"}}"##,
        "The servers as a list, each with its client_id.",
    ),
    key("credentials", CREDENTIALS, "Handles for secrets, which entries name."),
    key("name", TEXT, "A name for the file."),
    key("description", TEXT, "What the file is for."),
    key("inputs", r#"{"type":"array"}"#, "Questions of another editor; not asked here."),
];

/// Keys of a server's entry in a file of servers.
pub const SERVER: &[KeySpec] = &[
    key_with_aliases("name", &["client_id"], TEXT, "The server's name, where it is not the key."),
    key("description", TEXT, "What it is for."),
    key("command", ONE_OR_TEXTS, "The program to start; with a list, its arguments too."),
    key("args", TEXTS, "The program's arguments."),
    key("server_path", TEXT, "A program to start; a .py file is run by python3."),
    key("env", VALUES, "Variables for the program."),
    key("env_keys", TEXTS, "Names of variables passed through from this environment."),
    key("envFile", TEXT, "A file of NAME=value lines, variables for the program; env wins."),
    key("cwd", TEXT, "The program's working directory; default: this file's."),
    key_with_aliases(
        "url",
        &["baseUrl", "serverUrl", "httpUrl"],
        TEXT,
        "Where the server listens: http, https, or a socket: unix:///path.sock, with :/path behind it for another path than /mcp.",
    ),
    key("headers", VALUES, "Headers of every request."),
    key_with_aliases(
        "auth",
        &["oauth"],
        r##"{"anyOf":[{"$ref":"#/$defs/auth"},{"enum":["none",false]}]}"##,
        "How to authenticate.",
    ),
    key_with_aliases(
        "transport",
        &["type"],
        r#"{"enum":["stdio","http","streamable-http","streamable_http","streamableHttp","sse"]}"#,
        "How to talk to it: stdio, http, or sse for HTTP+SSE. Without it an http server that refuses is tried as sse too.",
    ),
    key(
        "protocol",
        r#"{"enum":["auto","legacy","2026-07-28","modern"]}"#,
        "Which lifecycle to speak.",
    ),
    key("timeout", DURATION, "Silence that ends a call."),
    key("max_total", DURATION, "Bound on a whole call; shortens the built-in 300 s."),
    key_with_aliases(
        "start_timeout",
        &["startup_timeout", "startup_timeout_sec"],
        DURATION,
        "Bound on starting and agreeing on a version.",
    ),
    key(
        "keep",
        DURATION,
        "Start a background host with the first call, and keep the server until no call came for this time.",
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
        "Tools, prompts and resources to leave out; patterns with *.",
    ),
    key_with_aliases(
        "include",
        &["allowedTools", "includeTools", "available_tools"],
        PATTERNS,
        "Only these tools; patterns with *.",
    ),
    key(
        "roots",
        r#"{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object"}]}}"#,
        "Roots offered to the server: file URIs or paths.",
    ),
    key(
        "capabilities",
        r#"{"type":["array","object"]}"#,
        "What the server is said to offer; asked from the server itself.",
    ),
    key(
        "routing_weight",
        r#"{"type":"number","minimum":0}"#,
        "1.0 is primary, below is backup, when several servers offer one tool.",
    ),
    key(
        "sandbox",
        r##"{"anyOf":[{"type":"boolean"},{"enum":["none","auto","limits","landlock","namespaces","bwrap"]},{"$ref":"#/$defs/sandbox"}]}"##,
        "What the program may reach: a level, or a mapping that says more.",
    ),
    key("credentials", HANDLES, "The handles of the secrets that it is given."),
    key(
        "permissions",
        r##"{"anyOf":[{"$ref":"#/$defs/permissions"},{"type":"null"}]}"##,
        "What it may offer and use; what is not named is not restricted.",
    ),
    key(
        "insecure",
        BOOL,
        "Send credentials over plain http; only in your own configuration directory.",
    ),
    key(
        "dev",
        r#"{"type":["boolean","object"]}"#,
        "Definition changes never block; a mapping is an editor's, and ignored.",
    ),
    key(
        "drift",
        r#"{"enum":["block","warn","allow"]}"#,
        "What a changed definition of a pinned or listed tool means; default: block.",
    ),
    key("disabled", BOOL, "Leave it out."),
    key("enabled", BOOL, "The opposite of disabled."),
    key(
        "provides_tools",
        r##"{"type":"array","items":{"$ref":"#/$defs/declared_tool"}}"##,
        "Tools the server is expected to offer, listed without connecting.",
    ),
    key(
        "context_env",
        r#"{"type":"array","items":{"type":"string","pattern":"^[A-Za-z_][A-Za-z0-9_]*$"}}"#,
        "Names of variables that a call may set with --context NAME=VALUE.",
    ),
    key("retries", COUNT, "How often a failed attempt of a repeatable tool is repeated."),
    key("requires_approval", BOOL, "Ask a person before each call."),
];

/// Keys of `auth`, for all of its types.
pub const AUTH: &[KeySpec] = &[
    key(
        "type",
        r#"{"enum":["bearer","none","oauth","client_credentials"]}"#,
        "The way: bearer with a token, oauth with a login, client_credentials as a program.",
    ),
    key("token_env_var", TEXT, "The variable that holds the bearer token."),
    key("token", TEXT, "The bearer token itself, as a reference such as ${VAR} or ${file:PATH}."),
    key_with_aliases("client_id", &["clientId"], TEXT, "oauth: a client registered beforehand."),
    key_with_aliases(
        "client_secret",
        &["clientSecret"],
        TEXT,
        "oauth: its secret, as a reference.",
    ),
    key_with_aliases(
        "client_metadata_url",
        &["clientMetadataUrl"],
        TEXT,
        "oauth: the https address of a document that describes the client.",
    ),
    key_with_aliases(
        "scopes",
        &["scope"],
        PATTERNS,
        "oauth: what to ask for; default: what the server says.",
    ),
    key("issuer", TEXT, "oauth: the only authorization server to trust; it may be private."),
    key_with_aliases(
        "redirect_port",
        &["callbackPort", "redirectPort"],
        r#"{"type":"integer","minimum":1,"maximum":65535}"#,
        "oauth: the port of 127.0.0.1 a login ends at; default: any.",
    ),
    key("dpop", BOOL, "oauth: take only tokens that are bound to a key (DPoP)."),
    key("private_key", TEXT, "client_credentials: a key in PEM, as ${file:PATH}."),
    key(
        "algorithm",
        r#"{"enum":["ES256","RS256","EdDSA"]}"#,
        "client_credentials: how the key signs; default: by its kind.",
    ),
    key_with_aliases(
        "token_url",
        &["tokenUrl"],
        TEXT,
        "client_credentials: where tokens are given.",
    ),
];

/// Keys of a handle under `credentials`; those of logins have the keys of `auth` too.
pub const CREDENTIAL: &[KeySpec] = &[
    key(
        "type",
        r#"{"enum":["bearer","header","api_key","env","oauth","client_credentials"]}"#,
        "How it reaches the wire: a bearer token, a header, a variable of a program, or a login.",
    ),
    key("value", TEXT, "The secret, as a reference such as ${VAR} or ${file:PATH}."),
    key("header", TEXT, "header, api_key: the name of the header; X-API-Key for an API key."),
    key("variable", TEXT, "The variable in which a program gets it."),
    key("description", TEXT, "What it is for."),
];

/// Keys of `permissions` of a server.
pub const PERMISSIONS: &[KeySpec] = &[
    key("tools", PATTERNS, "Only these tools are listed and called; patterns with *."),
    key("prompts", PATTERNS, "Only these prompts are listed and filled in; patterns with *."),
    key(
        "resources",
        PATTERNS,
        "Only these resources are listed and read: addresses or names; patterns with *.",
    ),
    key("network", BOOL, "Whether its program may use the network; false needs a sandbox."),
    key(
        "credentials",
        r##"{"anyOf":[{"$ref":"#/$defs/credential_type"},{"type":"array","items":{"$ref":"#/$defs/credential_type"}}]}"##,
        "The types of the credentials that it may be given.",
    ),
];

/// Keys of `sandbox`, for tools and servers alike.
pub const SANDBOX: &[KeySpec] = &[
    key(
        "level",
        r#"{"enum":["none","auto","limits","landlock","namespaces","bwrap"]}"#,
        "By what: resource limits only, Landlock, Landlock in namespaces, or bubblewrap; auto takes the most that works. Without it limits alone mean limits, and anything else auto.",
    ),
    key("read", PATTERNS, "What can be read beside the system and the program itself."),
    key("write", PATTERNS, "What can be written beside a temporary directory of its own."),
    key("network", BOOL, "Whether the network can be used."),
    key(
        "metadata",
        BOOL,
        "landlock: whether permissions, owners, times and attributes of your files can be changed.",
    ),
    key("memory", SIZE, "Memory of each process, such as 256MiB."),
    key("cpu", DURATION, "Processor time of each process, in whole seconds."),
    key("processes", COUNT, "How many processes may be added to those the user has."),
    key("file_size", SIZE, "The largest file that may be written."),
    key("open_files", COUNT, "How many files may be open at once."),
];

/// The key of an entry that is not `known` and probably was meant to be one of `wanted`, with what was
/// meant.
pub fn misspelled<'e, 'k>(
    entry: &'e ConfigNode,
    wanted: &[&'k str],
    known: impl Fn(&str) -> bool,
) -> Option<(&'e ConfigKey, &'k str)> {
    let mut unknown = entry.entries().iter().map(|(key, _)| key).filter(|key| !known(&key.text));
    unknown.find_map(|key| Some((key, spelling::nearest(&key.text, wanted.iter().copied())?)))
}

/// All spellings of a table.
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
            let mut seen = std::collections::BTreeSet::new();
            for word in spellings(table) {
                assert!(seen.insert(word), "{word} stands twice");
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
