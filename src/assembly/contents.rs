//! From the entries of a configuration to the providers of a host.
//!
//! Entries that list an MCP server's tools under their own name: the server takes that name.

use std::sync::Arc;

use super::{disabled_entries, kinds, secrets};
use crate::audit::Masker;
use crate::catalogue::pins::Pins;
use crate::config::node::ConfigNode;
use crate::config::spec::{
    Configuration, DisabledEntry, FileRole, ProfileSpec, ServerSpec, ToolSpec,
};
use crate::host::HostContents;
use crate::model::{Diagnostic, EntryOrigin, SourceLocation, ToolName};
use crate::provider::{ProviderDeps, ToolProvider};
use crate::providers::mcp::{self, McpSetup};
use crate::providers::storage::{self, ServerAlias};

#[derive(Clone)]
pub struct ProviderSources {
    pub(super) deps: ProviderDeps,
    pub(super) setup: McpSetup,
    pub(super) groups: Vec<ProviderGroup>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProviderOwner {
    Kind(&'static str),
    Server(String),
}

#[derive(Clone)]
pub(super) struct ProviderGroup {
    pub(super) owner: ProviderOwner,
    pub(super) providers: Vec<Arc<dyn ToolProvider>>,
    diagnostics: Vec<Diagnostic>,
}

impl ProviderSources {
    pub(super) fn new(deps: ProviderDeps, setup: McpSetup) -> Self {
        Self { deps, setup, groups: Vec::new() }
    }

    /// Builds the providers of all entries, but reuses those of `kept`. What a kind refuses
    /// is added to the diagnostics. Starts nothing.
    pub(super) fn build(
        &self,
        configuration: &mut Configuration,
        unchanged: &[ProviderGroup],
        masker: &Masker,
    ) -> Self {
        let deps = ProviderDeps { expanded: configuration.expanded.clone(), ..self.deps.clone() };
        let setup = McpSetup { expanded: configuration.expanded.clone(), ..self.setup.clone() };
        let unchanged_group =
            |owner: &ProviderOwner| unchanged.iter().find(|group| group.owner == *owner).cloned();
        let mut groups = Vec::new();
        for kind in kinds() {
            let of_kind = configuration.tools.iter().filter(|t| t.kind == kind.words.key);
            let specs: Vec<&ToolSpec> = of_kind.collect();
            if specs.is_empty() {
                continue;
            }
            let owner = ProviderOwner::Kind(kind.words.key);
            let group = unchanged_group(&owner).unwrap_or_else(|| {
                let built = (kind.build)(&specs, &deps);
                let (providers, diagnostics) = (built.providers, built.diagnostics);
                ProviderGroup { owner, providers, diagnostics }
            });
            note_refused(configuration, &group.diagnostics);
            groups.push(group);
        }
        secrets::mask_problems(configuration, masker);
        for spec in &configuration.servers {
            let owner = ProviderOwner::Server(spec.name.clone());
            groups.push(unchanged_group(&owner).unwrap_or_else(|| {
                let provider = mcp::provider(spec.clone(), setup.clone());
                ProviderGroup { owner, providers: vec![provider], diagnostics: Vec::new() }
            }));
        }
        Self { deps, setup, groups }
    }

    pub(super) fn contents(
        &self,
        configuration: &Configuration,
        pins: Pins,
        profile: Option<ProfileSpec>,
    ) -> HostContents {
        let built = self.groups.iter().flat_map(|group| group.providers.iter().cloned());
        HostContents {
            providers: built.chain(super::untrusted(configuration)).collect(),
            superseded: Vec::new(),
            policy: configuration.policy.clone(),
            disabled: disabled_entries(configuration),
            pins,
            profile,
            profiles: configuration.profiles.clone(),
        }
    }
}

fn note_refused(configuration: &mut Configuration, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics.iter().filter(|diagnostic| diagnostic.is_error()) {
        let Some(name) = diagnostic.entry.clone() else { continue };
        // An entry may have several diagnostics; lists show only the first.
        let is_listed = |entry: &DisabledEntry| entry.role == FileRole::Tools && entry.name == name;
        if !configuration.disabled.iter().any(is_listed) {
            let mut own = configuration.tools.iter().map(|spec| &spec.definition);
            let definition = own.find(|definition| definition.name.full() == name);
            let definitions = definition.cloned().into_iter().collect();
            let entry = DisabledEntry::new(name, FileRole::Tools, diagnostic.clone());
            configuration.disabled.push(DisabledEntry { definitions, ..entry });
        }
    }
    configuration.diagnostics.extend_from_slice(diagnostics);
}

/// Removes such entries from the tools and gives their names to the servers.
pub(super) fn apply(configuration: &mut Configuration) {
    let mut aliases: Vec<(ServerAlias, SourceLocation)> = Vec::new();
    let entries = configuration.tools.extract_if(.., |spec| storage::server_alias(spec).is_some());
    for spec in entries.collect::<Vec<_>>() {
        let outcome = match storage::server_alias(&spec) {
            None => continue,
            Some(Err(diagnostic)) => Err(diagnostic),
            Some(Ok(alias)) => assign_alias(configuration, &spec, &alias, &aliases)
                .map(|()| aliases.push((alias, spec.location.clone()))),
        };
        if let Err(diagnostic) = outcome {
            let name = spec.definition.name.full();
            let diagnostic = diagnostic.with_entry(name.clone());
            let entry = DisabledEntry::new(name, FileRole::Tools, diagnostic.clone());
            let definitions = vec![spec.definition];
            configuration.disabled.push(DisabledEntry { definitions, ..entry });
            configuration.diagnostics.push(diagnostic);
        }
    }
}

fn assign_alias(
    configuration: &mut Configuration,
    spec: &ToolSpec,
    alias: &ServerAlias,
    aliases: &[(ServerAlias, SourceLocation)],
) -> Result<(), Diagnostic> {
    let spot =
        spec.entry.get("mcp_server").map_or_else(|| spec.location.clone(), ConfigNode::location);
    let refused = |message: String, hint: &str, at: &SourceLocation| {
        Err(Diagnostic::error(message).with_hint(hint).with_location(at.clone()))
    };
    let ServerAlias { component, server } = alias;
    if let Some((before, place)) = aliases.iter().find(|(before, _)| before.server == *server) {
        let (name, at) = (&before.component, show(place));
        let message = format!("the tools of '{server}' are already listed under '{name}' ({at})");
        return refused(message, "a server can have only one component: use that one", &spot);
    }
    let servers = &mut configuration.servers;
    if let Some(other) = servers.iter().find(|s| s.name == *component && s.name != *server) {
        let at = show(&other.location);
        let message = format!("the name '{component}' is taken by a server ({at})");
        return refused(message, "give this component another name", &spec.location);
    }
    let Some(target) = servers.iter_mut().find(|server_spec| server_spec.name == *server) else {
        return Err(unknown(configuration, server, &spot));
    };
    let is_projects = |entry: &EntryOrigin| entry.project().is_some();
    if spec.definition.entry.as_deref().is_some_and(is_projects) && !is_projects(&target.origin) {
        // The user's rules refer to servers by name.
        let message = format!("the server '{server}' is not part of this project");
        return refused(message, "only your own files can give its tools another name", &spot);
    }
    rename(target, component, spec);
    Ok(())
}

fn show(place: &SourceLocation) -> String {
    format!("{}:{}", place.file.display(), place.line)
}

fn rename(server: &mut ServerSpec, component: &str, spec: &ToolSpec) {
    component.clone_into(&mut server.name);
    for tool in &mut server.provides_tools {
        tool.name = ToolName::of(component, tool.name.tool());
    }
    if spec.definition.description.is_some() {
        server.description.clone_from(&spec.definition.description);
    }
    // An entry may add an approval requirement, but never remove one.
    server.requires_approval |= spec.definition.requires_approval;
}

fn unknown(configuration: &Configuration, server: &str, place: &SourceLocation) -> Diagnostic {
    let mut disabled = configuration.disabled.iter();
    let broken = disabled.find(|entry| entry.role == FileRole::Servers && entry.name == server);
    let names: Vec<&str> = configuration.servers.iter().map(|s| s.name.as_str()).collect();
    let diagnostic = match broken.map(|entry| &entry.diagnostic.message) {
        Some(why) => {
            Diagnostic::error(format!("the MCP server '{server}' is out of service: {why}"))
        }
        None => Diagnostic::error(format!("there is no MCP server '{server}'")).with_hint(
            match names.as_slice() {
                [] => "servers are defined in mcp.yaml".to_owned(),
                names => format!("known servers: {}", names.join(", ")),
            },
        ),
    };
    diagnostic.with_location(place.clone())
}
