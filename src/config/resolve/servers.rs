//! Resolving server files, in every common format, to [`ServerSpec`]s.

use std::sync::Arc;

use super::definition::{self, SERVER_KIND, one_of};
use super::endpoint::{self, EntryContext};
use super::{
    ConfigurationBuilder, EntryDiagnostics, FileContext, NameClaim, is_off, limit, origin, retries,
};
use crate::config::credentials::{CredentialTarget, EntryCredentials};
use crate::config::entries;
use crate::config::keys::{ROOT, SERVER, SERVERS_FILE, canonical};
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::permissions::{self, EntryParts};
use crate::config::sandbox::{self, SandboxLevel, SandboxSpec};
use crate::config::spec::{
    DriftPolicy, Endpoint, FileRole, HttpTransport, ProtocolChoice, ServerSpec, UntrustedEntry,
};
use crate::model::{
    Diagnostic, EntryOrigin, Origin, Root, Safety, SourceLocation, ToolDefinition, ToolName,
    ToolSource, ToolStatus,
};

pub fn file(root: ConfigNode, file: &mut FileContext<'_>, builder: &mut ConfigurationBuilder<'_>) {
    if root.is_null() {
        return;
    }
    if root.as_map().is_err() {
        let diagnostic = root.expected("a mapping with 'mcp_servers'");
        builder.configuration.diagnostics.push(diagnostic);
        return;
    }
    if entries::is_bare(&root) {
        entries(root, file, builder);
        return;
    }
    let NodeValue::Map(pairs) = root.value else { return };
    let owner = ConfigNode { value: NodeValue::Null, position: root.position, source: root.source };
    let mut entry_diagnostics = EntryDiagnostics::default();
    for (key, value) in pairs {
        match canonical(SERVERS_FILE, &key.text) {
            Some("mcp_servers") if !value.is_null() => entries(value, file, builder),
            Some("clients") => clients(value, file, builder),
            Some(_) => {}
            None => entry_diagnostics.unknown_key(&owner, &key, SERVERS_FILE, &[]),
        }
    }
    builder.configuration.diagnostics.extend(entry_diagnostics.diagnostics);
}

fn entries(node: ConfigNode, file: &mut FileContext<'_>, builder: &mut ConfigurationBuilder<'_>) {
    if let NodeValue::Map(pairs) = node.value {
        for (key, value) in pairs {
            // A duplicate name is reported as such, not as a duplicate key.
            file.duplicates.retain(|duplicate| duplicate.position != key.position);
            let at = value.location_of(&key);
            server(&key.text, at, value, file, builder);
        }
    } else {
        let diagnostic = node.expected("a mapping of servers by name");
        builder.configuration.diagnostics.push(diagnostic);
    }
}

/// The documents' own form: a list in which each server carries its `client_id`.
fn clients(node: ConfigNode, file: &mut FileContext<'_>, builder: &mut ConfigurationBuilder<'_>) {
    let NodeValue::List(items) = node.value else {
        builder.configuration.diagnostics.push(node.expected("a list of clients"));
        return;
    };
    for (index, item) in items.into_iter().enumerate() {
        let named =
            match item.get_any(&["client_id", "name"]) {
                Some((_, node)) => node.as_scalar_text().map(|name| (name, node.location())),
                None => Err(Diagnostic::error("this client has no 'client_id'")
                    .with_location(item.location())),
            };
        match named {
            Ok((name, location)) => server(&name, location, item, file, builder),
            Err(diagnostic) => {
                let diagnostics = EntryDiagnostics { diagnostics: vec![diagnostic] };
                let client = format!("clients[{index}]");
                builder.report_entry(&client, FileRole::Servers, diagnostics);
            }
        }
    }
}

fn server(
    name: &str,
    location: SourceLocation,
    mut entry: ConfigNode,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
) {
    let mut entry_diagnostics = EntryDiagnostics::default();
    entry_diagnostics.duplicates(&entry, &mut file.duplicates);
    if let Err(error) = crate::model::check_name(name) {
        entry_diagnostics.error(location.clone(), error.to_string());
        builder.report_entry(name, FileRole::Servers, entry_diagnostics);
        return;
    }
    if builder.is_users_name((name, true), &location, file) {
        return;
    }
    match builder.servers.claim(name, location.clone(), file.layer) {
        NameClaim::Claimed => {}
        NameClaim::Shadowed => return,
        NameClaim::Taken(diagnostic) => {
            entry_diagnostics.diagnostics.push(diagnostic);
            builder.report_entry(name, FileRole::Servers, entry_diagnostics);
            return;
        }
    }
    if entry_diagnostics.ok_or_report(entry.as_map()).is_none() {
        builder.report_entry(name, FileRole::Servers, entry_diagnostics);
        return;
    }
    if is_off(&entry, &mut entry_diagnostics) && entry_diagnostics.diagnostics.is_empty() {
        builder.add_switched_off(name, FileRole::Servers, location);
        builder.record_definitions(named_tools(name, &entry));
        return;
    }
    builder.literals.inspect(&entry, &mut entry_diagnostics.diagnostics);
    let origin = origin::of_server(&entry, file);
    let Some(expander) = file.expander() else {
        untrusted(name, &entry, (location, origin), file, builder, entry_diagnostics);
        return;
    };
    expander.entry(&mut entry, &[], &mut entry_diagnostics.diagnostics);
    let target = match entry.get_any(&["command", "server_path"]) {
        Some(_) => CredentialTarget::Program,
        None => CredentialTarget::Server,
    };
    let named = EntryCredentials { entry: &mut entry, written: None, target, layer: file.layer };
    let credentials = named.apply(&builder.credentials, &mut entry_diagnostics.diagnostics);
    let context =
        EntryContext { file, expander: &expander, origin: &origin, credentials: &credentials };
    let spec = resolve(name, &entry, location, &context, builder, &mut entry_diagnostics);
    let declared = match &spec {
        Some(spec) => spec.provides_tools.clone(),
        None => declared_tools(name, &entry, &origin, file, builder, &mut entry_diagnostics),
    };
    if builder.report_entry(name, FileRole::Servers, entry_diagnostics) {
        builder.configuration.servers.extend(spec);
    } else {
        builder.record_definitions(declared);
    }
}

/// Lists an untrusted entry: its name, and the tools that it declares.
fn untrusted(
    name: &str,
    entry: &ConfigNode,
    (location, origin): (SourceLocation, Arc<EntryOrigin>),
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
    mut entry_diagnostics: EntryDiagnostics,
) {
    let description = entry.get("description").and_then(|node| node.as_scalar_text().ok());
    let mut definitions =
        declared_tools(name, entry, &origin, file, builder, &mut entry_diagnostics);
    for tool in &mut definitions {
        tool.status = ToolStatus::Untrusted;
    }
    if builder.report_entry(name, FileRole::Servers, entry_diagnostics) {
        let (effects, trust_command, reason, is_declined) = builder.refusal_details(name);
        builder.add_untrusted(UntrustedEntry {
            name: name.to_owned(),
            role: FileRole::Servers,
            kind: SERVER_KIND,
            description,
            definitions,
            effects,
            trust_command,
            reason,
            is_declined,
            location,
        });
    } else {
        builder.record_definitions(definitions);
    }
}

fn declared_tools(
    name: &str,
    entry: &ConfigNode,
    origin: &Arc<EntryOrigin>,
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Vec<ToolDefinition> {
    let Some(node) = entry.get("provides_tools").filter(|node| !node.is_null()) else {
        return Vec::new();
    };
    let shared = DeclaredToolDefaults {
        timeout: None,
        retries: 0,
        requires_approval: false,
        context_env: Arc::default(),
        origin: Arc::clone(origin),
    };
    provides_tools(node, name, &shared, file, builder, entry_diagnostics)
}

struct DeclaredToolDefaults {
    timeout: Option<std::time::Duration>,
    retries: u32,
    requires_approval: bool,
    context_env: Arc<[String]>,
    origin: Arc<EntryOrigin>,
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
    builder: &mut ConfigurationBuilder<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Option<ServerSpec> {
    let file = context.file;
    let endpoint = endpoint::resolve(entry, context, entry_diagnostics);
    let mut spec = ServerSpec::new(name, endpoint?, Arc::clone(context.origin), location);
    spec.credentials = context.credentials.to_vec();
    spec.seal = builder.consent.seal(FileRole::Servers, name);
    let mut declared = None;
    for (key, value) in entry.entries() {
        let Some(word) = canonical(SERVER, &key.text) else {
            entry_diagnostics.unknown_key(entry, key, SERVER, &[]);
            continue;
        };
        if value.is_null() {
            continue;
        }
        match word {
            "description" => {
                spec.description = entry_diagnostics.ok_or_report(value.as_scalar_text());
            }
            "protocol" => {
                let choices = "auto, legacy, 2026-07-28";
                let choice =
                    entry_diagnostics.ok_or_report(one_of(value, "protocol", choices, protocol));
                spec.protocol = choice.unwrap_or_default();
                let sse = HttpTransport::Sse;
                if spec.protocol == ProtocolChoice::Modern
                    && matches!(&spec.endpoint, Endpoint::Http { transport, .. } if *transport == sse)
                {
                    let message =
                        "the sse transport is legacy only; this protocol does not have it";
                    entry_diagnostics.error(value.location(), message);
                }
            }
            "timeout" => spec.timeout = entry_diagnostics.ok_or_report(limit(value)),
            "max_total" => spec.max_total = entry_diagnostics.ok_or_report(limit(value)),
            "start_timeout" => spec.start_timeout = entry_diagnostics.ok_or_report(limit(value)),
            "keep" => {
                let time = entry_diagnostics.ok_or_report(value.as_duration());
                spec.keep = time.filter(|time| !time.is_zero());
            }
            "shared" => {
                spec.is_shared = entry_diagnostics.ok_or_report(value.as_bool()).unwrap_or(true);
            }
            "exclude" => spec
                .exclude
                .extend(entry_diagnostics.ok_or_report(value.as_texts()).unwrap_or_default()),
            "include" => {
                let patterns = entry_diagnostics.ok_or_report(value.as_texts()).unwrap_or_default();
                spec.include.get_or_insert_default().extend(patterns);
            }
            "roots" => spec.roots = roots(value, file, entry_diagnostics),
            "routing_weight" => spec.routing_weight = entry_diagnostics.ok_or_report(weight(value)),
            // An editor's setting for developing the server.
            "dev" if value.as_map().is_ok() => {}
            "dev" => {
                spec.is_dev = entry_diagnostics.ok_or_report(value.as_bool()).unwrap_or_default();
            }
            "drift" => {
                spec.drift = entry_diagnostics.ok_or_report(one_of(
                    value,
                    "drift",
                    "block, warn, allow",
                    DriftPolicy::parse,
                ));
            }
            "retries" => {
                spec.retries = entry_diagnostics.ok_or_report(retries(value)).unwrap_or_default();
            }
            "requires_approval" => {
                spec.requires_approval =
                    entry_diagnostics.ok_or_report(value.as_bool()).unwrap_or(true);
            }
            "sandbox" => spec.sandbox = sandbox(value, &spec.endpoint, file, entry_diagnostics),
            "permissions" => {
                spec.permissions = permissions::read(value, &mut entry_diagnostics.diagnostics);
            }
            "context_env" => spec.context_env = origin::context_env(value, entry_diagnostics),
            "provides_tools" => declared = Some(value),
            _ => {}
        }
    }
    if let Some(node) = entry.get("permissions").filter(|node| node.as_map().is_ok()) {
        let parts = EntryParts {
            exclude: &spec.exclude,
            include: spec.include.as_deref(),
            is_program: matches!(spec.endpoint, Endpoint::Stdio { .. }),
            sandbox: spec.sandbox.as_ref(),
            names_sandbox: entry.get("sandbox").is_some_and(|node| !node.is_null()),
            credentials: &spec.credentials,
        };
        let contradictions = permissions::contradictions(node, &spec.permissions, &parts);
        entry_diagnostics.diagnostics.extend(contradictions);
    }
    if let Some(defaults) = &file.defaults {
        if let (None, Some(node)) = (spec.timeout, defaults.get("timeout")) {
            spec.timeout = limit(node).ok();
        }
        if let (None, Some(node)) = (entry.get("retries"), defaults.get("retries")) {
            spec.retries = retries(node).unwrap_or_default();
        }
        // An entry opts out with `keep: 0s`.
        if let (None, Some(node)) = (entry.get("keep"), defaults.get("keep")) {
            spec.keep = node.as_duration().ok().filter(|time| !time.is_zero());
        }
    }
    if let Some(node) = declared {
        let shared = DeclaredToolDefaults {
            timeout: spec.timeout,
            retries: spec.retries,
            requires_approval: spec.requires_approval,
            context_env: Arc::clone(&spec.context_env),
            origin: Arc::clone(&spec.origin),
        };
        spec.provides_tools = provides_tools(node, name, &shared, file, builder, entry_diagnostics);
    }
    Some(spec)
}

/// The sandbox of the program. A remote server cannot be confined: requesting it is an error,
/// so that nothing relies on it.
fn sandbox(
    node: &ConfigNode,
    endpoint: &Endpoint,
    file: &FileContext<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Option<SandboxSpec> {
    let spec = sandbox::read(node, &file.base_dir, false, &mut entry_diagnostics.diagnostics)?;
    if spec.level == SandboxLevel::None {
        return None;
    }
    if matches!(endpoint, Endpoint::Http { .. }) {
        entry_diagnostics
            .error(node.location(), "'sandbox' needs a server with a 'command', not a 'url'");
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

fn weight(node: &ConfigNode) -> Result<f64, Diagnostic> {
    let value = match &node.value {
        NodeValue::Number(number) => number.as_f64(),
        _ => None,
    };
    value.filter(|w| w.is_finite() && *w >= 0.0).ok_or_else(|| node.expected("a number, 0 or more"))
}

/// Roots as normalised URIs; a path becomes a file URI.
fn roots(
    node: &ConfigNode,
    file: &FileContext<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Vec<Root> {
    let mut roots = Vec::new();
    for item in entry_diagnostics.ok_or_report(node.as_list()).unwrap_or_default() {
        let (mut place, mut name) = (item, None);
        for (key, value) in item.entries() {
            match canonical(ROOT, &key.text) {
                Some("uri") => place = value,
                Some("name") => name = entry_diagnostics.ok_or_report(value.as_scalar_text()),
                Some(_) => {}
                None => entry_diagnostics.unknown_key(item, key, ROOT, &[]),
            }
        }
        if item.as_map().is_ok() && std::ptr::eq(place, item) {
            entry_diagnostics.error(item.location(), "this root has no 'uri'");
            continue;
        }
        let Some(text) = entry_diagnostics.ok_or_report(place.as_text()) else { continue };
        let uri = if has_scheme(text) {
            url::Url::parse(text).map_err(|why| why.to_string())
        } else {
            url::Url::from_directory_path(file.base_dir.join(text))
                .map_err(|()| "not an absolute path".to_owned())
        };
        match uri {
            Ok(uri) => roots.push(Root { uri: without_final_slash(&uri).to_owned(), name }),
            Err(why) => {
                entry_diagnostics.error(place.location(), format!("invalid root '{text}': {why}"));
            }
        }
    }
    roots
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

/// The tools a server is expected to offer. A bad one is dropped without affecting its server.
fn provides_tools(
    node: &ConfigNode,
    server: &str,
    shared: &DeclaredToolDefaults,
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Vec<ToolDefinition> {
    let mut tools = Vec::new();
    for item in entry_diagnostics.ok_or_report(node.as_list()).unwrap_or_default() {
        let mut own = EntryDiagnostics::default();
        let tool = declared_tool(item, server, shared, file, builder, &mut own);
        let failed = own.diagnostics.iter().any(Diagnostic::is_error);
        for diagnostic in own.diagnostics {
            builder.configuration.diagnostics.push(diagnostic.with_entry(server));
        }
        tools.extend(tool.filter(|_| !failed));
    }
    tools
}

fn declared_tool(
    item: &ConfigNode,
    server: &str,
    shared: &DeclaredToolDefaults,
    file: &FileContext<'_>,
    builder: &mut ConfigurationBuilder<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> Option<ToolDefinition> {
    entry_diagnostics.ok_or_report(item.as_map())?;
    let Some((_, name)) = item.get_any(&["name", "tool_name"]) else {
        entry_diagnostics.error(item.location(), "this declared tool has no name");
        return None;
    };
    // A server may use names that a file may not: MCP also allows '/'.
    let tool = entry_diagnostics.ok_or_report(name.as_scalar_text())?;
    if tool.is_empty() || tool.len() > 128 {
        entry_diagnostics.error(name.location(), "a tool name must have 1 to 128 characters");
        return None;
    }
    let full = ToolName::of(server, tool);
    if builder.is_users_name((&full.to_string(), false), &name.location(), file) {
        return None;
    }
    match builder.tools.claim(&full.to_string(), name.location(), file.layer) {
        NameClaim::Claimed => {}
        // A plain tool in a file with higher precedence has the same name.
        NameClaim::Shadowed => {
            let owner =
                builder.tools.owner(&full.to_string()).map(|p| p.file.display().to_string());
            let owner = owner.unwrap_or_default();
            entry_diagnostics
                .warn(name.location(), format!("hidden by the tool '{full}' of {owner}"));
            return None;
        }
        NameClaim::Taken(diagnostic) => {
            entry_diagnostics.diagnostics.push(diagnostic);
            return None;
        }
    }
    let mut tool = definition::resolve(
        item,
        full,
        ToolSource::Mcp,
        SERVER_KIND,
        &["mcp_server_name"],
        file,
        entry_diagnostics,
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
