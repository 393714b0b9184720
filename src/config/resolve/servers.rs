//! Files of servers, in every shape the field uses → [`ServerSpec`]s.

use std::sync::Arc;

use super::definition::{self, SERVER_KIND, one_of};
use super::endpoint::{self, EntryContext, URL_KEYS};
use super::{Claim, FileContext, Findings, Gathered, is_off, limit, origin, retries};
use crate::config::keys::{SERVER, SERVERS_FILE, canonical};
use crate::config::node::{Node, NodeValue};
use crate::config::sandbox::{self, SandboxLevel, SandboxSpec};
use crate::config::spec::{
    Drift, Endpoint, FileRole, HttpTransport, ProtocolChoice, ServerSpec, UntrustedEntry,
};
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
    if gathered.keeps_own((name, true), &place, file) {
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
    let origin = origin::of_server(&entry, file);
    let Some(expander) = file.expander() else {
        untrusted(name, &entry, (place, origin), file, gathered, findings);
        return;
    };
    expander.entry(&mut entry, &[], &mut findings.problems);
    let context = EntryContext { file, expander: &expander, origin: &origin };
    let spec = resolve(name, &entry, place, &context, gathered, &mut findings);
    if gathered.settle(name, FileRole::Servers, findings) {
        gathered.configuration.servers.extend(spec);
    } else {
        gathered.declared(declared_names(&entry));
    }
}

/// Lists an entry that nobody agreed to yet: its name, and the tools that it declares.
fn untrusted(
    name: &str,
    entry: &Node,
    (place, origin): (Place, Arc<EntryOrigin>),
    file: &FileContext<'_>,
    gathered: &mut Gathered<'_>,
    mut findings: Findings,
) {
    let description = entry.get("description").and_then(|node| node.as_scalar_text().ok());
    let shared = SharedByTools {
        timeout: None,
        retries: 0,
        requires_approval: false,
        context_env: Arc::default(),
        origin,
    };
    let mut definitions = match entry.get("provides_tools").filter(|node| !node.is_null()) {
        Some(node) => provides_tools(node, name, &shared, file, gathered, &mut findings),
        None => Vec::new(),
    };
    for tool in &mut definitions {
        tool.status = ToolStatus::Untrusted;
    }
    if gathered.settle(name, FileRole::Servers, findings) {
        let (effects, allowed_by, has_changed) = gathered.refusal_words(name);
        gathered.untrusted(UntrustedEntry {
            name: name.to_owned(),
            role: FileRole::Servers,
            kind: SERVER_KIND,
            description,
            definitions,
            effects,
            allowed_by,
            has_changed,
            place,
        });
    } else {
        gathered.declared(declared_names(entry));
    }
}

/// What a server's entry says for all tools that it declares.
struct SharedByTools {
    timeout: Option<std::time::Duration>,
    retries: u32,
    requires_approval: bool,
    context_env: Arc<[String]>,
    origin: Arc<EntryOrigin>,
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
    place: Place,
    context: &EntryContext<'_>,
    gathered: &mut Gathered<'_>,
    findings: &mut Findings,
) -> Option<ServerSpec> {
    let file = context.file;
    let endpoint = endpoint::resolve(entry, context, findings);
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
        origin: Arc::clone(context.origin),
        place,
        seal: gathered.consent.seal(FileRole::Servers, name),
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
        let shared = SharedByTools {
            timeout: spec.timeout,
            retries: spec.retries,
            requires_approval: spec.requires_approval,
            context_env: Arc::clone(&spec.context_env),
            origin: Arc::clone(&spec.origin),
        };
        spec.provides_tools = provides_tools(node, name, &shared, file, gathered, findings);
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
    server: &str,
    shared: &SharedByTools,
    file: &FileContext<'_>,
    gathered: &mut Gathered<'_>,
    findings: &mut Findings,
) -> Vec<ToolDefinition> {
    let mut tools = Vec::new();
    for item in findings.take(node.as_list()).unwrap_or_default() {
        let mut own = Findings::default();
        let tool = declared_tool(item, server, shared, file, gathered, &mut own);
        let failed = own.problems.iter().any(Problem::is_error);
        for problem in own.problems {
            gathered.configuration.problems.push(problem.entry(server));
        }
        tools.extend(tool.filter(|_| !failed));
    }
    tools
}

fn declared_tool(
    item: &Node,
    server: &str,
    shared: &SharedByTools,
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
    let full = ToolName::of(server, tool);
    if gathered.keeps_own((&full.to_string(), false), &name.place(), file) {
        return None;
    }
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
    tool.entry = Some(Arc::clone(&shared.origin));
    tool.context_env = Arc::clone(&shared.context_env);
    tool.timeout = match item.get("timeout") {
        Some(_) => tool.timeout,
        None => shared.timeout,
    };
    tool.requires_approval |= shared.requires_approval;
    if item.get("retries").is_none() {
        tool.retries = shared.retries;
    }
    Some(tool)
}

/// Every entry of a file with its name, as [`file()`] would find them.
pub fn written(root: &Node) -> Vec<(String, Place, &Node)> {
    let of_map = |node: &'_ Node| -> Vec<(String, Place)> {
        node.entries().iter().map(|(key, _)| (key.text.clone(), node.place_of(key))).collect()
    };
    let pairs = |node| {
        let names = of_map(node);
        names
            .into_iter()
            .zip(node.entries())
            .map(|((name, place), (_, value))| (name, place, value))
    };
    if is_bare(root) {
        return pairs(root).collect();
    }
    let mut found = Vec::new();
    for (key, value) in root.entries() {
        match (canonical(SERVERS_FILE, &key.text), &value.value) {
            (Some("mcp_servers"), NodeValue::Map(_)) => found.extend(pairs(value)),
            (Some("clients"), NodeValue::List(items)) => {
                for item in items {
                    let named = item.get_any(&["client_id", "name"]);
                    if let Some((_, Ok(name))) = named.map(|(k, n)| (k, n.as_scalar_text())) {
                        found.push((name, item.place(), item));
                    }
                }
            }
            _ => {}
        }
    }
    found
}
