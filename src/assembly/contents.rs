//! From the entries of a configuration to the providers of a host.

use std::sync::Arc;

use super::{disabled_entries, kinds, secrets, untrusted};
use crate::audit::Masker;
use crate::catalogue::pins::Pins;
use crate::config::spec::{Configuration, DisabledEntry, FileRole, ProfileSpec, ToolSpec};
use crate::host::HostContents;
use crate::model::Diagnostic;
use crate::provider::{ProviderDeps, ToolProvider};
use crate::providers::mcp::{self, McpSetup};

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
            providers: built.chain(untrusted(configuration)).collect(),
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
