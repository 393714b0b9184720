//! Resolving server files, in every common format, to [`ServerSpec`]s.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::auth::AuthKeys;
use super::definition::{self, SERVER_KIND, ToolKeys};
use super::endpoint::{self, EntryContext, TlsKeys};
use super::settings::DefaultsKeys;
use super::{ConfigurationBuilder, FileContext};
use crate::config::credentials::{self, CredentialTarget, EntryCredentials};
use crate::config::entries::{self, Top, WrittenEntry};
use crate::config::node::ConfigNode;
use crate::config::permissions::{self, PermissionKeys};
use crate::config::sandbox::{self, SandboxLevel, SandboxSpec, SandboxValue};
use crate::config::spec::{DriftPolicy, Endpoint, FileRole, ProtocolChoice, ServerSpec, Transport};
use crate::config::typed::{self, Either, Limit, Located, Retries, Scalar, Texts, Timespan};
use crate::config::watched_files::CodePatterns;
use crate::model::{
    Diagnostic, Diagnostics, EntryOrigin, Origin, Root, Safety, ServerPermissions, SourceLocation,
    ToolDefinition, ToolName, ToolSource, ToolStatus, safe_name,
};

/// A file of MCP servers.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
#[expect(dead_code, reason = "each key is read where it acts")]
pub struct ServersFile {
    /// The version of the file format: 1.
    #[schemars(extend("enum" = [1, "1"]))]
    version: Option<Scalar>,
    /// The JSON Schema that editors validate this file against.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// Default values for entries in this file.
    defaults: Option<DefaultsKeys>,
    /// The servers, by name.
    #[serde(alias = "mcpServers", alias = "servers")]
    mcp_servers: Option<BTreeMap<String, ServerKeys>>,
    /// The servers as a list, each with a client_id.
    clients: Option<Vec<ServerKeys>>,
    /// Named handles for secrets, for use in entries.
    #[serde(default)]
    #[schemars(schema_with = "credentials::handles")]
    credentials: Option<ConfigNode>,
    /// A name for the file.
    name: Option<String>,
    /// What the file is for.
    description: Option<String>,
    /// Input prompts of an editor; ignored by toolhost.
    inputs: Option<Vec<ConfigNode>>,
}

/// An MCP server.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "server", transform = typed::object::<Self>)]
pub struct ServerKeys {
    /// The server's name, if it is not the key.
    #[serde(alias = "client_id")]
    #[expect(dead_code, reason = "the name of an entry is read first")]
    name: Option<Scalar>,
    /// What it is for.
    description: Option<String>,
    /// The program to start; with a list, its arguments too.
    pub command: Option<Located<Texts>>,
    /// The program's arguments.
    pub args: Option<Texts>,
    /// The program to start; a .py file is run with python3.
    pub server_path: Option<Located<Texts>>,
    /// Environment variables for the program.
    pub env: Option<BTreeMap<String, Located<Scalar>>>,
    /// Names of environment variables to pass through to the program.
    pub env_keys: Option<Texts>,
    /// A file of NAME=value lines with environment variables for the program; env takes precedence.
    #[serde(rename = "envFile")]
    pub env_file: Option<Located<String>>,
    /// The program's working directory; default: the directory of this file.
    pub cwd: Option<String>,
    /// The server's address: http, https, ws, wss or a Unix socket, unix:///path.sock; append :/path
    /// for a request path other than /mcp.
    #[serde(alias = "baseUrl", alias = "serverUrl", alias = "httpUrl")]
    pub url: Option<Located<String>>,
    /// Headers to send with every request.
    pub headers: Option<BTreeMap<String, Located<Scalar>>>,
    /// How to authenticate.
    pub auth: Option<Located<Either<Scalar, AuthKeys>>>,
    /// How to log in, as editors write it.
    pub oauth: Option<Located<Either<Scalar, AuthKeys>>>,
    /// The transport: stdio, http, sse for HTTP+SSE, lines for one message per line on a Unix socket,
    /// or websocket. By default, if a server rejects http, sse is tried too.
    #[serde(alias = "type")]
    pub transport: Option<Transport>,
    /// The protocol lifecycle to use.
    protocol: Option<Located<ProtocolChoice>>,
    /// Time limit between messages from the server; progress resets it.
    timeout: Option<Limit>,
    /// Time limit for the whole call; can only shorten the built-in 300 s.
    max_total: Option<Limit>,
    /// Time limit for starting and negotiating the protocol version.
    #[serde(alias = "startup_timeout", alias = "startup_timeout_sec")]
    start_timeout: Option<Limit>,
    /// Start a background host on the first call, and keep the server until it has been idle for this
    /// long.
    keep: Option<Timespan>,
    /// Whether all clients of a host use one connection; false gives each client session its own.
    shared: Option<bool>,
    /// Tools, prompts and resources to exclude; patterns with *.
    #[serde(
        alias = "disabledTools",
        alias = "blockedTools",
        alias = "excludedTools",
        alias = "excludeTools"
    )]
    exclude: Option<Texts>,
    /// Only these tools; patterns with *.
    #[serde(alias = "allowedTools", alias = "includeTools", alias = "available_tools")]
    include: Option<Texts>,
    /// Roots to offer to the server: paths, URIs, or a scheme such as weather://.
    #[serde(default)]
    roots: Vec<Located<Either<String, RootKeys>>>,
    /// Capabilities stated for the server; toolhost asks the server itself.
    #[expect(dead_code, reason = "read and not used")]
    capabilities: Option<ConfigNode>,
    /// Which of several servers that offer the same tool goes first: the greatest weight (1.0 is
    /// primary, lower is backup).
    #[schemars(range(min = 0.0))]
    pub routing_weight: Option<Located<f64>>,
    /// What the program may access: a level, or a mapping with details.
    #[schemars(with = "Option<SandboxValue>")]
    sandbox: Option<ConfigNode>,
    /// The handles of the secrets it receives.
    #[schemars(with = "Option<Texts>")]
    #[expect(dead_code, reason = "they are replaced by their values first")]
    credentials: Option<ConfigNode>,
    /// What the server may offer and use; anything not listed is unrestricted.
    pub permissions: Option<Located<PermissionKeys>>,
    /// The certificates to use for https.
    pub tls: Option<Located<TlsKeys>>,
    /// Allow credentials over plain http; only in your own configuration directory.
    pub insecure: Option<Located<bool>>,
    /// Changed definitions do not block calls; of an editor's mapping only watch is used.
    pub dev: Option<Either<bool, DevKeys>>,
    /// Restart the program when files change that match these patterns, such as src/**/*.py, relative to
    /// its working directory.
    watch: Option<Located<Texts>>,
    /// What to do when the definition of a pinned or listed tool changed; default: block.
    pub drift: Option<DriftPolicy>,
    /// Disable this entry.
    #[expect(dead_code, reason = "read first")]
    disabled: Option<bool>,
    /// The opposite of disabled.
    #[expect(dead_code, reason = "read first")]
    enabled: Option<bool>,
    /// Tools that the server is expected to offer; listed without connecting.
    #[schemars(with = "Option<Vec<ToolKeys>>")]
    #[expect(dead_code, reason = "each tool is read on its own")]
    provides_tools: Option<ConfigNode>,
    /// Environment variables that a call may set with --context NAME=VALUE.
    context_env: Option<Located<Texts>>,
    /// How often a failed attempt is retried, for tools marked safe to repeat.
    retries: Option<Retries>,
    /// Require approval before each call.
    requires_approval: Option<bool>,
}

/// The interpreter for a file of this type if the entry names only the file.
fn interpreter_of(path: &Path) -> Option<&'static str> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("py") => Some("python3"),
        Some("js" | "mjs" | "cjs") => Some("node"),
        _ => None,
    }
}

/// What an editor does while a server is developed.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub struct DevKeys {
    /// The same as watch of the entry.
    watch: Option<Located<Texts>>,
    /// Of the editor; ignored.
    #[expect(dead_code, reason = "read and not used")]
    debug: Option<ConfigNode>,
}

impl ServerKeys {
    pub fn program(&self) -> Option<&Located<Texts>> {
        self.command.as_ref().or(self.server_path.as_ref())
    }

    /// The program and its arguments; `place` says where a `server_path` is.
    pub fn argv(&self, place: impl FnOnce(&str) -> Option<PathBuf>) -> Vec<String> {
        let mut argv = self.program().map(|program| program.0.clone()).unwrap_or_default();
        if self.command.is_none()
            && let Some(first) = argv.first_mut()
            && let Some(path) = place(first)
        {
            *first = path.to_string_lossy().into_owned();
            if let Some(interpreter) = interpreter_of(&path) {
                argv.insert(0, interpreter.to_owned());
            }
        }
        argv.extend(self.args.iter().flat_map(|args| args.0.iter().cloned()));
        argv
    }

    /// The patterns of the files whose changes restart it.
    pub fn watched(&self) -> Option<&Located<Texts>> {
        self.watch.as_ref().or(match &self.dev {
            Some(Either::Nested(keys)) => keys.watch.as_ref(),
            _ => None,
        })
    }
}

/// A root to offer to the server.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
struct RootKeys {
    /// A URI, or a path.
    #[serde(alias = "path")]
    uri: Option<String>,
    /// Its name, for people.
    name: Option<String>,
    /// Read from host files, and told to no server.
    #[expect(dead_code, reason = "read and not used")]
    capabilities: Option<Texts>,
}

pub fn file(root: &ConfigNode, file: &mut FileContext<'_>, builder: &mut ConfigurationBuilder) {
    if root.is_null() {
        return;
    }
    if root.as_map().is_err() {
        file.diagnostics.push(root.expected("a mapping with 'mcp_servers'"));
    }
    for part in entries::top(root, FileRole::Servers) {
        match part {
            Top::Entry(entry) => server(entry, file, builder),
            Top::Other(Some("mcp_servers"), _, value) if !value.is_null() => {
                file.diagnostics.push(value.expected("a mapping of servers by name"));
            }
            Top::Other(Some("clients"), _, value) => {
                file.diagnostics.push(value.expected("a list of clients"));
            }
            Top::Other(Some(_), ..) => {}
            Top::Other(None, key, _) => {
                file.diagnostics.extend(entries::unknown_key(root, key, FileRole::Servers));
            }
        }
    }
}

fn server(entry: WrittenEntry<'_>, file: &mut FileContext<'_>, builder: &mut ConfigurationBuilder) {
    let role = FileRole::Servers;
    builder.begin_entry(entry.node, file);
    let Some((written, location)) = file.diagnostics.ok(entry.name()) else {
        builder.report_entry(&entry.place(), role, file);
        return;
    };
    let entry = entry.node;
    let name = &safe_name(&written);
    if let Err(error) = crate::model::check_name(name) {
        file.diagnostics.push(Diagnostic::error(error.to_string()).with_location(location));
        builder.report_entry(name, role, file);
        return;
    }
    if !builder.admits((name, role, true), &location, file) {
        file.diagnostics.take();
        return;
    }
    if file.diagnostics.ok(entry.as_map()).is_none() {
        builder.report_entry(name, role, file);
        return;
    }
    if entries::is_off(entry) && file.diagnostics.is_empty() {
        builder.add_switched_off(name, role, location, named_tools(name, entry));
        return;
    }
    if *name != written {
        let message = format!("the server '{written}' is called '{name}' here");
        let diagnostic = Diagnostic::warning(message)
            .with_hint("names of tools have letters, digits, '_', '.' and '-'");
        file.diagnostics.push(diagnostic.with_location(location.clone()));
    }
    builder.literals.inspect(entry, &file.diagnostics);
    let origin = super::of_server(entry, file);
    let Some(expander) = file.expander() else {
        let description = entry.get("description").and_then(|node| node.as_scalar_text().ok());
        let mut tools = declared_tools(name, entry, &origin, None, file, builder);
        for tool in &mut tools {
            tool.status = ToolStatus::Untrusted;
        }
        let listed = (name.as_str(), role, SERVER_KIND);
        builder.add_untrusted(listed, location, description, tools, file);
        return;
    };
    let mut entry = entry.clone();
    expander.entry(&mut entry, &[], &file.diagnostics);
    let target = match entry.get_any(&["command", "server_path"]) {
        Some(_) => CredentialTarget::Program,
        None => CredentialTarget::Server,
    };
    let named = EntryCredentials { entry: &mut entry, written: None, target, file };
    let credentials = named.apply(&builder.credentials);
    let context =
        EntryContext { file, expander: &expander, origin: &origin, credentials: &credentials };
    let spec = resolve(name, &entry, location, &context, builder);
    let declared = match &spec {
        Some(spec) => spec.provides_tools.clone(),
        None => declared_tools(name, &entry, &origin, None, file, builder),
    };
    match builder.report_entry(name, role, file) {
        None => builder.configuration.servers.extend(spec),
        Some(disabled) => disabled.definitions = declared,
    }
}

/// The tools a server is expected to offer, with what its entry says about all of them.
fn declared_tools(
    name: &str,
    entry: &ConfigNode,
    origin: &Arc<EntryOrigin>,
    spec: Option<&ServerSpec>,
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder,
) -> Vec<ToolDefinition> {
    let node = entry.get("provides_tools").filter(|node| !node.is_null());
    let items = node.and_then(|node| file.diagnostics.ok(node.as_list()));
    let mut tools = Vec::new();
    for item in items.unwrap_or_default() {
        let (tool, own) =
            file.diagnostics.apart(|| declared_tool(item, name, origin, spec, file, builder));
        // A bad one is dropped without affecting its server.
        let failed = own.iter().any(Diagnostic::is_error);
        for diagnostic in own {
            builder.configuration.diagnostics.push(diagnostic.with_entry(name));
        }
        tools.extend(tool.filter(|_| !failed));
    }
    tools
}

/// The tools under `provides_tools` by name only; other entries may still use these names.
fn named_tools(server: &str, entry: &ConfigNode) -> Vec<ToolDefinition> {
    let items = entry.get("provides_tools").and_then(|node| node.as_list().ok());
    let named = items.into_iter().flatten().filter_map(|item| item.get_any(&["name", "tool_name"]));
    let tool = |(_, node): (_, &ConfigNode)| {
        let name = ToolName::of(server, &node.as_scalar_text().ok()?);
        let origin = Origin::File(node.location());
        Some(ToolDefinition::new(name, ToolSource::Mcp, SERVER_KIND, origin))
    };
    named.filter_map(tool).collect()
}

fn resolve(
    name: &str,
    entry: &ConfigNode,
    location: SourceLocation,
    context: &EntryContext<'_>,
    builder: &mut ConfigurationBuilder,
) -> Option<ServerSpec> {
    let file = context.file;
    let diagnostics = &file.diagnostics;
    let keys: ServerKeys = typed::read(entry, diagnostics)?;
    let endpoint = diagnostics.ok(endpoint::resolve(entry, &keys, context))??;
    let is_program = matches!(endpoint, Endpoint::Stdio { .. });
    let protocol = keys.protocol.as_ref().map_or_else(ProtocolChoice::default, |named| named.value);
    if let (Some(named), ProtocolChoice::Modern) = (&keys.protocol, protocol)
        && matches!(&endpoint, Endpoint::Http { transport: Transport::Sse, .. })
    {
        let message = "the sse transport is legacy only; this protocol does not have it";
        diagnostics.push(named.error(message));
    }
    let watch = keys.watched().and_then(|patterns| watch(patterns, is_program, diagnostics));
    let routing_weight = keys.routing_weight.filter(|weight| {
        let is_weight = weight.is_finite() && weight.value >= 0.0;
        if !is_weight {
            diagnostics.push(weight.error("expected a number, 0 or more"));
        }
        is_weight
    });
    let defaults = file.defaults();
    let mut spec = ServerSpec {
        name: name.to_owned(),
        endpoint,
        origin: Arc::clone(context.origin),
        location,
        permissions: ServerPermissions::default(),
        provides_tools: Vec::new(),
        watch,
        description: keys.description,
        credentials: context.credentials.to_vec(),
        seal: file.shared.consent.seal(FileRole::Servers, name),
        protocol,
        timeout: keys.timeout.or(defaults.timeout).map(|limit| limit.0),
        max_total: keys.max_total.map(|limit| limit.0),
        start_timeout: keys.start_timeout.map(|limit| limit.0),
        // An entry opts out with `keep: 0s`.
        keep: keys.keep.or(defaults.keep).map(|time| time.0).filter(|time| !time.is_zero()),
        is_shared: keys.shared.unwrap_or(true),
        exclude: keys.exclude.unwrap_or_default().0,
        include: keys.include.map(|patterns| patterns.0),
        roots: keys.roots.iter().filter_map(|item| root(item, file)).collect(),
        routing_weight: routing_weight.map(|weight| weight.value),
        is_dev: matches!(keys.dev, Some(Either::Short(true))),
        drift: keys.drift,
        retries: keys.retries.or(defaults.retries).unwrap_or_default().0,
        requires_approval: keys.requires_approval.unwrap_or(false),
        sandbox: keys.sandbox.as_ref().and_then(|node| sandbox(node, is_program, file)),
        context_env: keys
            .context_env
            .map(|names| super::context_env(names, diagnostics))
            .unwrap_or_default(),
    };
    if let Some(permissions) = keys.permissions {
        spec.permissions = permissions.value.permissions();
        if let Some(node) = entry.get("permissions") {
            permissions::contradictions(node, &spec, keys.sandbox.is_some(), diagnostics);
        }
    }
    spec.provides_tools = declared_tools(name, entry, context.origin, Some(&spec), file, builder);
    Some(spec)
}

/// The sandbox of the program. A remote server cannot be confined: requesting it is an error,
/// so that nothing relies on it.
fn sandbox(node: &ConfigNode, is_program: bool, file: &FileContext<'_>) -> Option<SandboxSpec> {
    let spec = sandbox::read(node, &file.base_dir, false, &file.diagnostics)?;
    if spec.level == SandboxLevel::None {
        return None;
    }
    if !is_program {
        let message = "'sandbox' needs a server with a 'command', not a 'url'";
        file.diagnostics.push(node.error(message));
        return None;
    }
    Some(spec)
}

fn watch(
    patterns: &Located<Texts>,
    is_program: bool,
    diagnostics: &Diagnostics,
) -> Option<CodePatterns> {
    let read = if is_program {
        CodePatterns::read(&patterns.0)
    } else {
        Err("'watch' needs a server with a 'command', not a 'url'".to_owned())
    };
    diagnostics.ok(read.map_err(|why| patterns.error(why)))
}

/// A root as a normalised URI; a path becomes a file URI.
fn root(item: &Located<Either<String, RootKeys>>, file: &FileContext<'_>) -> Option<Root> {
    let (text, name) = match &item.value {
        Either::Short(text) => (Some(text), None),
        Either::Nested(keys) => (keys.uri.as_ref(), keys.name.clone()),
    };
    let Some(text) = text else {
        file.diagnostics.push(item.error("this root has no 'uri'"));
        return None;
    };
    let uri = if has_scheme(text) {
        url::Url::parse(text).map_err(|why| why.to_string())
    } else {
        url::Url::from_directory_path(file.base_dir.join(text))
            .map_err(|()| "not an absolute path".to_owned())
    };
    let uri = uri.map_err(|why| item.error(format!("invalid root '{text}': {why}")));
    let uri = without_final_slash(&file.diagnostics.ok(uri)?).to_owned();
    Some(Root { uri, name })
}

/// Whether a root is a URI rather than a path. A path may have a drive letter, or a colon after a slash.
fn has_scheme(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    })
}

/// The URI without the slash that ends a directory; `file:///` and `weather://` keep theirs.
fn without_final_slash(uri: &url::Url) -> &str {
    let is_whole_scheme = uri.host_str().is_none_or(str::is_empty) && uri.path().len() < 2;
    if is_whole_scheme { uri.as_str() } else { uri.as_str().trim_end_matches('/') }
}

fn declared_tool(
    item: &ConfigNode,
    server: &str,
    origin: &Arc<EntryOrigin>,
    spec: Option<&ServerSpec>,
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder,
) -> Option<ToolDefinition> {
    let diagnostics = &file.diagnostics;
    diagnostics.ok(item.as_map())?;
    let Some((_, name)) = item.get_any(&["name", "tool_name"]) else {
        diagnostics.push(item.error("this declared tool has no name"));
        return None;
    };
    // A server may use names that a file may not: MCP also allows '/'.
    let tool = diagnostics.ok(name.as_scalar_text())?;
    if tool.is_empty() || tool.len() > 128 {
        diagnostics.push(name.error("a tool name must have 1 to 128 characters"));
        return None;
    }
    let full = ToolName::of(server, tool);
    let text = full.to_string();
    if builder.is_users_name((&text, false), &name.location(), file) {
        return None;
    }
    let claimed = builder.tools.claim(&text, name.location(), file.layer);
    if !diagnostics.ok(claimed)? {
        // A plain tool in a file with higher precedence has the same name.
        let owner = builder.tools.0.get(&text).map(|(owner, _)| owner.file.display().to_string());
        let owner = owner.unwrap_or_default();
        diagnostics.push(name.warning(format!("hidden by the tool '{full}' of {owner}")));
        return None;
    }
    let keys = &["mcp_server_name"];
    let mut tool = definition::resolve(item, full, ToolSource::Mcp, SERVER_KIND, keys, file);
    if item.get("safety").is_none() {
        tool.safety = Safety::External;
    }
    tool.status = ToolStatus::Declared;
    tool.entry = Some(Arc::clone(origin));
    if item.get("timeout").is_none() {
        tool.timeout = spec.and_then(|spec| spec.timeout);
    }
    if item.get("retries").is_none() {
        tool.retries = spec.map_or(0, |spec| spec.retries);
    }
    tool.context_env = spec.map(|spec| Arc::clone(&spec.context_env)).unwrap_or_default();
    tool.requires_approval |= spec.is_some_and(|spec| spec.requires_approval);
    Some(tool)
}
