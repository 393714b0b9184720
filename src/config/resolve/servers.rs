//! Files of servers, in every shape the field uses → [`ServerSpec`]s.

use std::sync::Arc;

use super::definition::{self, SERVER_KIND, one_of};
use super::endpoint::{self, URL_KEYS};
use super::{Claim, FileContext, Findings, Gathered, is_off, limit, origin, retries};
use crate::config::expand::has_reference;
use crate::config::keys::{SERVER, SERVERS_FILE, canonical};
use crate::config::node::{Node, NodeValue};
use crate::config::sandbox::{self, SandboxLevel, SandboxSpec};
use crate::config::spec::{
    AuthSpec, Drift, Endpoint, FileRole, HttpTransport, ProtocolChoice, ServerSpec, Trust,
};
use crate::config::{socket, trust};
use crate::model::{
    EntryOrigin, Place, Problem, Safety, Source, ToolDefinition, ToolName, ToolStatus,
};

/// Resolves a whole file of servers.
pub fn file(root: Node, file: &mut FileContext<'_>, gathered: &mut Gathered<'_>) {
    if root.is_null() {
        return;
    }
    if root.as_map().is_err() {
        let problem = root.expected("a mapping with 'mcp_servers'");
        gathered.configuration.problems.push(problem);
        return;
    }
    if is_bare(&root) {
        entries(root, file, gathered);
        return;
    }
    let NodeValue::Map(pairs) = root.value else { return };
    let owner = Node { value: NodeValue::Null, position: root.position, source: root.source };
    let mut findings = Findings::default();
    for (key, value) in pairs {
        match canonical(SERVERS_FILE, &key.text) {
            Some("mcp_servers") if !value.is_null() => entries(value, file, gathered),
            Some("clients") => clients(value, file, gathered),
            Some(_) => {}
            None => findings.unknown_key(&owner, &key, SERVERS_FILE, &[]),
        }
    }
    gathered.configuration.problems.extend(findings.problems);
}

/// Whether the file is a map of servers without a key around it.
fn is_bare(root: &Node) -> bool {
    let entries = root.entries();
    let describes_a_server = |node: &Node| {
        ["command", "server_path"].iter().chain(&URL_KEYS).any(|key| node.get(key).is_some())
    };
    !entries.is_empty()
        && !entries.iter().any(|(key, _)| canonical(SERVERS_FILE, &key.text).is_some())
        && entries.iter().all(|(_, value)| describes_a_server(value))
}

fn entries(node: Node, file: &mut FileContext<'_>, gathered: &mut Gathered<'_>) {
    if let NodeValue::Map(pairs) = node.value {
        for (key, value) in pairs {
            // A repeated name is told as such, not as a repeated key.
            file.duplicates.retain(|duplicate| duplicate.position != key.position);
            let at = value.place_of(&key);
            server(&key.text, at, value, file, gathered);
        }
    } else {
        let problem = node.expected("a mapping of servers by name");
        gathered.configuration.problems.push(problem);
    }
}

/// The documents' own form: a list in which each server carries its `client_id`.
fn clients(node: Node, file: &mut FileContext<'_>, gathered: &mut Gathered<'_>) {
    let NodeValue::List(items) = node.value else {
        gathered.configuration.problems.push(node.expected("a list of clients"));
        return;
    };
    for (index, item) in items.into_iter().enumerate() {
        let named =
            item.get_any(&["client_id", "name"]).map(|(_, n)| (n.as_scalar_text(), n.place()));
        match named {
            Some((Ok(name), place)) => server(&name, place, item, file, gathered),
            Some((Err(problem), _)) => {
                let findings = Findings { problems: vec![problem] };
                gathered.settle(&format!("clients[{index}]"), FileRole::Servers, findings);
            }
            None => {
                let problem = Problem::error("this client has no 'client_id'").at(item.place());
                let findings = Findings { problems: vec![problem] };
                gathered.settle(&format!("clients[{index}]"), FileRole::Servers, findings);
            }
        }
    }
}

fn server(
    name: &str,
    place: Place,
    mut entry: Node,
    file: &mut FileContext<'_>,
    gathered: &mut Gathered<'_>,
) {
    let mut findings = Findings::default();
    findings.duplicates(&entry, &mut file.duplicates);
    if let Err(why) = crate::model::check_name(name) {
        findings.error(place.clone(), why);
        gathered.settle(name, FileRole::Servers, findings);
        return;
    }
    match gathered.servers.claim(name, place.clone(), file.layer) {
        Claim::Granted => {}
        Claim::Shadowed => return,
        Claim::Taken(problem) => {
            findings.problems.push(problem);
            gathered.settle(name, FileRole::Servers, findings);
            return;
        }
    }
    if findings.take(entry.as_map()).is_none() {
        gathered.settle(name, FileRole::Servers, findings);
        return;
    }
    if is_off(&entry, &mut findings) && findings.problems.is_empty() {
        gathered.switched_off(name, FileRole::Servers, place);
        gathered.declared(declared_names(&entry));
        return;
    }
    gathered.literals.inspect(&entry, &mut findings.problems);
    let said = (!file.trusted).then(|| Said::by(&entry));
    let origin = origin::of_server(&entry, file);
    file.expander().entry(&mut entry, &[], &mut findings.problems);
    let expanded = !findings.problems.iter().any(Problem::is_error);
    let spec = resolve(name, &entry, (place, origin), file, gathered, &mut findings);
    // Looking up a program makes sense only for a command that is known.
    let spec = spec.filter(|_| expanded).map(|mut spec| {
        if let Some(said) = said {
            spec.trust = decide(&spec, &said, file, gathered);
        }
        spec
    });
    if gathered.settle(name, FileRole::Servers, findings) {
        gathered.configuration.servers.extend(spec);
    } else {
        gathered.declared(declared_names(&entry));
    }
}

/// The names under `provides_tools`, as far as they can be read.
fn declared_names(entry: &Node) -> Vec<String> {
    let items = entry.get("provides_tools").and_then(|node| node.as_list().ok());
    let names = items.into_iter().flatten().filter_map(|item| item.get_any(&["name", "tool_name"]));
    names.filter_map(|(_, name)| name.as_scalar_text().ok()).collect()
}

fn resolve(
    name: &str,
    entry: &Node,
    (place, origin): (Place, Arc<EntryOrigin>),
    file: &FileContext<'_>,
    gathered: &mut Gathered<'_>,
    findings: &mut Findings,
) -> Option<ServerSpec> {
    let endpoint = endpoint::resolve(entry, &origin, file, findings);
    let mut spec = ServerSpec {
        name: name.to_owned(),
        description: None,
        endpoint: endpoint?,
        protocol: ProtocolChoice::Auto,
        timeout: None,
        max_total: None,
        start_timeout: None,
        exclude: Vec::new(),
        include: None,
        roots: Vec::new(),
        routing_weight: None,
        dev: false,
        drift: None,
        provides_tools: Vec::new(),
        retries: 0,
        requires_approval: false,
        sandbox: None,
        context_env: Arc::default(),
        origin,
        place,
        trust: Trust::Trusted,
    };
    let mut declared = None;
    for (key, value) in entry.entries() {
        let Some(word) = canonical(SERVER, &key.text) else {
            findings.unknown_key(entry, key, SERVER, &[]);
            continue;
        };
        if value.is_null() {
            continue;
        }
        match word {
            "description" => spec.description = findings.take(value.as_scalar_text()),
            "protocol" => {
                let words = "auto, legacy, 2026-07-28";
                let choice = findings.take(one_of(value, "protocol", words, protocol));
                spec.protocol = choice.unwrap_or_default();
                let sse = HttpTransport::Sse;
                if spec.protocol == ProtocolChoice::Modern
                    && matches!(&spec.endpoint, Endpoint::Http { transport, .. } if *transport == sse)
                {
                    let message = "the transport sse ended before this protocol; it is legacy";
                    findings.error(value.place(), message);
                }
            }
            "timeout" => spec.timeout = findings.take(limit(value)),
            "max_total" => spec.max_total = findings.take(limit(value)),
            "start_timeout" => spec.start_timeout = findings.take(limit(value)),
            "exclude" => spec.exclude.extend(findings.take(value.as_texts()).unwrap_or_default()),
            "include" => {
                let patterns = findings.take(value.as_texts()).unwrap_or_default();
                spec.include.get_or_insert_default().extend(patterns);
            }
            "roots" => spec.roots = roots(value, file, findings),
            "routing_weight" => spec.routing_weight = findings.take(weight(value)),
            "dev" => spec.dev = findings.take(value.as_bool()).unwrap_or_default(),
            "drift" => {
                spec.drift =
                    findings.take(one_of(value, "drift", "block, warn, allow", Drift::parse));
            }
            "retries" => spec.retries = findings.take(retries(value)).unwrap_or_default(),
            "requires_approval" => {
                spec.requires_approval = findings.take(value.as_bool()).unwrap_or(true);
            }
            "sandbox" => spec.sandbox = sandbox(value, &spec.endpoint, file, findings),
            "context_env" => spec.context_env = origin::context_env(value, findings),
            "provides_tools" => declared = Some(value),
            _ => {}
        }
    }
    if let Some(defaults) = &file.defaults {
        if let (None, Some(node)) = (spec.timeout, defaults.get("timeout")) {
            spec.timeout = limit(node).ok();
        }
        if let (None, Some(node)) = (entry.get("retries"), defaults.get("retries")) {
            spec.retries = retries(node).unwrap_or_default();
        }
    }
    if let Some(node) = declared {
        spec.provides_tools = provides_tools(node, &spec, file, gathered, findings);
    }
    Some(spec)
}

/// What the program is confined to. A server elsewhere is not ours to confine: asking for it is
/// refused, so that nobody relies on it.
fn sandbox(
    node: &Node,
    endpoint: &Endpoint,
    file: &FileContext<'_>,
    findings: &mut Findings,
) -> Option<SandboxSpec> {
    let spec = sandbox::read(node, &file.base_dir, &mut findings.problems)?;
    if spec.level == SandboxLevel::None {
        return None;
    }
    if matches!(endpoint, Endpoint::Http { .. }) {
        findings.error(node.place(), "only a program started here can be confined, not a 'url'");
        return None;
    }
    Some(spec)
}

fn protocol(word: &str) -> Option<ProtocolChoice> {
    match word {
        "auto" => Some(ProtocolChoice::Auto),
        "legacy" => Some(ProtocolChoice::Legacy),
        "2026-07-28" | "modern" => Some(ProtocolChoice::Modern),
        _ => None,
    }
}

fn weight(node: &Node) -> Result<f64, Problem> {
    let value = match &node.value {
        NodeValue::Number(number) => number.as_f64(),
        _ => None,
    };
    value.filter(|w| w.is_finite() && *w >= 0.0).ok_or_else(|| node.expected("a number, 0 or more"))
}

/// Roots as normalised URIs; a path becomes a file URI.
fn roots(node: &Node, file: &FileContext<'_>, findings: &mut Findings) -> Vec<String> {
    let mut roots = Vec::new();
    for item in findings.take(node.as_list()).unwrap_or_default() {
        let named = item.get_any(&["uri", "path"]).map_or(item, |(_, node)| node);
        let Some(text) = findings.take(named.as_text()) else { continue };
        let uri = if text.contains("://") {
            url::Url::parse(text).map_err(|why| why.to_string())
        } else {
            url::Url::from_directory_path(file.base_dir.join(text))
                .map_err(|()| "not an absolute path".to_owned())
        };
        match uri {
            Ok(uri) => roots.push(uri.as_str().trim_end_matches('/').to_owned()),
            Err(why) => findings.error(named.place(), format!("'{text}' is no root: {why}")),
        }
    }
    roots
}

/// The tools a server is expected to offer. A bad one costs itself, not its server.
fn provides_tools(
    node: &Node,
    server: &ServerSpec,
    file: &FileContext<'_>,
    gathered: &mut Gathered<'_>,
    findings: &mut Findings,
) -> Vec<ToolDefinition> {
    let mut tools = Vec::new();
    for item in findings.take(node.as_list()).unwrap_or_default() {
        let mut own = Findings::default();
        let tool = declared_tool(item, server, file, gathered, &mut own);
        let failed = own.problems.iter().any(Problem::is_error);
        for problem in own.problems {
            gathered.configuration.problems.push(problem.entry(server.name.clone()));
        }
        tools.extend(tool.filter(|_| !failed));
    }
    tools
}

fn declared_tool(
    item: &Node,
    server: &ServerSpec,
    file: &FileContext<'_>,
    gathered: &mut Gathered<'_>,
    findings: &mut Findings,
) -> Option<ToolDefinition> {
    findings.take(item.as_map())?;
    let Some((_, name)) = item.get_any(&["name", "tool_name"]) else {
        findings.error(item.place(), "this declared tool has no name");
        return None;
    };
    // A server may use names that a file may not: MCP allows '/' too.
    let tool = findings.take(name.as_scalar_text())?;
    if tool.is_empty() || tool.len() > 128 {
        findings.error(name.place(), "a tool's name has 1 to 128 characters");
        return None;
    }
    let full = ToolName::of(&*server.name, tool);
    match gathered.tools.claim(&full.to_string(), name.place(), file.layer) {
        Claim::Granted => {}
        // A plain tool of a file that wins has this very name.
        Claim::Shadowed => {
            let owner =
                gathered.tools.owner(&full.to_string()).map(|p| p.file.display().to_string());
            let owner = owner.unwrap_or_default();
            findings.warn(name.place(), format!("hidden by the tool '{full}' of {owner}"));
            return None;
        }
        Claim::Taken(problem) => {
            findings.problems.push(problem);
            return None;
        }
    }
    let mut tool = definition::resolve(
        item,
        full,
        Source::Mcp,
        SERVER_KIND,
        &["mcp_server_name"],
        file,
        findings,
    );
    if item.get("safety").is_none() {
        tool.safety = Safety::External;
    }
    tool.status = ToolStatus::Declared;
    tool.entry = Some(Arc::clone(&server.origin));
    tool.context_env = Arc::clone(&server.context_env);
    tool.timeout = match item.get("timeout") {
        Some(_) => tool.timeout,
        None => server.timeout,
    };
    tool.requires_approval |= server.requires_approval;
    if item.get("retries").is_none() {
        tool.retries = server.retries;
    }
    Some(tool)
}

/// What an entry says before expansion: trust is bound to that.
struct Said {
    /// The endpoint's keys, as text.
    text: String,
    /// The address as written, when it holds a variable, which would be sent there.
    address: Option<String>,
}

impl Said {
    fn by(entry: &Node) -> Self {
        const KEYS: [&str; 12] = [
            "command",
            "args",
            "server_path",
            "env",
            "env_keys",
            "cwd",
            "headers",
            "auth",
            "oauth",
            "sandbox",
            "dev",
            "drift",
        ];
        let own: serde_json::Map<_, _> = entry
            .entries()
            .iter()
            .filter(|(key, _)| {
                KEYS.contains(&key.text.as_str()) || URL_KEYS.contains(&key.text.as_str())
            })
            .map(|(key, value)| (key.text.clone(), value.to_json()))
            .collect();
        let address = entry
            .get_any(&URL_KEYS)
            .and_then(|(_, node)| node.as_text().ok())
            .filter(|text| has_reference(text))
            .map(str::to_owned);
        Self { text: serde_json::Value::Object(own).to_string(), address }
    }
}

/// What an entry sends to the server, or to the authorization server that it names. A login is made
/// by a person who sees where it leads, so that it needs no word here.
fn secrets_shown(auth: &AuthSpec) -> Option<String> {
    match auth {
        AuthSpec::Unset | AuthSpec::None | AuthSpec::OAuth { client_secret: None, .. } => None,
        AuthSpec::Bearer { variable, .. } => {
            let from = variable.as_deref().unwrap_or("the file");
            Some(format!("sends a bearer token from {from}"))
        }
        AuthSpec::OAuth { client_id, .. } => {
            let client = client_id.as_deref().unwrap_or_default();
            Some(format!("sends the secret of the client {client} to its authorization server"))
        }
        AuthSpec::ClientCredentials { client_id, token_url, .. } => Some(match token_url {
            Some(url) => format!("proves to be the client {client_id} at {url}"),
            None => format!("proves to be the client {client_id} at its authorization server"),
        }),
    }
}

/// A program is asked about, and so is an address that would receive credentials, and a socket:
/// who listens there knows the user by it, and may do whatever the user may ask for.
fn decide(
    spec: &ServerSpec,
    said: &Said,
    file: &FileContext<'_>,
    gathered: &mut Gathered<'_>,
) -> Trust {
    let lines = match &spec.endpoint {
        Endpoint::Stdio { command, args, env, env_keys, cwd } => {
            let argv = [std::slice::from_ref(command), &args[..]].concat();
            let mut lines = vec![format!("command: {}", trust::quoted(&argv))];
            lines.push(format!("directory: {}", cwd.display()));
            if !env.is_empty() {
                let names: Vec<String> = env.keys().map(|key| format!("{key}=***")).collect();
                lines.push(format!("environment: {}", names.join(" ")));
            }
            if !env_keys.is_empty() {
                lines.push(format!("passed through: {}", env_keys.join(" ")));
            }
            lines.extend(spec.sandbox.iter().flat_map(SandboxSpec::lines));
            lines.extend(trust::program_lines(&argv, file));
            lines
        }
        Endpoint::Http { url, socket, headers, auth, .. } => {
            let shown = secrets_shown(auth);
            let nothing = headers.is_empty() && shown.is_none() && socket.is_none();
            if nothing && said.address.is_none() {
                return Trust::Trusted;
            }
            // What the variable holds is not shown and not kept.
            let mut lines = vec![match (&said.address, socket) {
                (Some(written), _) => format!("address: {written}"),
                (None, Some(socket)) => format!("address: {}", socket::show(socket, url)),
                (None, None) => format!("address: {url}"),
            }];
            if socket.is_some() {
                lines.push("speaks over a local socket, with your rights".to_owned());
            }
            if !headers.is_empty() {
                let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
                lines.push(format!("sends headers: {}", names.join(", ")));
            }
            lines.extend(shown);
            if said.address.is_some() {
                lines.push("sends variables in the address".to_owned());
            }
            lines
        }
    };
    let mut lines = lines;
    if spec.drift() != Drift::Block {
        lines.push("changes of its pinned tools do not block calls".to_owned());
    }
    let parts = [&["server".to_owned(), said.text.clone()], &lines[..]].concat();
    gathered.gate.decide(&spec.name, file, &parts, &lines)
}
