//! Determines whether an entry is unchanged since it was last read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};

use super::{ProviderOwner, ReloadReport};
use crate::assembly::pins::PinFile;
use crate::config::environment::Environment;
use crate::config::spec::{Configuration, Endpoint, ServerSpec, ToolSpec};
use crate::model::{Origin, SourceLocation, ToolDefinition};
use crate::util::part_digest::PartDigest;

pub(super) type Fingerprint = [u8; 32];

fn debug(digest: &mut PartDigest, value: &impl Debug) {
    digest.text(&format!("{value:?}"));
}

/// The entries of each provider in file order, with their names.
pub(super) struct EntryFingerprints(BTreeMap<ProviderOwner, Vec<(String, Fingerprint)>>);

impl EntryFingerprints {
    pub(super) fn of(configuration: &Configuration) -> Self {
        let servers = configuration.servers.iter().map(|spec| {
            (ProviderOwner::Server(spec.name.clone()), spec.name.clone(), of_server(spec))
        });
        let tools = configuration.tools.iter().map(|spec| {
            let name = spec.definition.name.full();
            (ProviderOwner::Kind(spec.kind), name, of_tool(spec, configuration))
        });
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (owner, name, fingerprint) in servers.chain(tools) {
            all.entry(owner).or_default().push((name, fingerprint));
        }
        Self(all)
    }

    fn of_owner(&self, owner: &ProviderOwner) -> &[(String, Fingerprint)] {
        self.0.get(owner).map_or(&[], Vec::as_slice)
    }

    pub(super) fn is_same_for(&self, owner: &ProviderOwner, before: &Self) -> bool {
        self.of_owner(owner) == before.of_owner(owner)
    }

    /// Whether an owner of internal tools still has every entry, changed or not. A changed server
    /// is a different one.
    pub(super) fn has_all_of(&self, owner: &ProviderOwner, before: &Self) -> bool {
        let names: BTreeSet<&String> = self.of_owner(owner).iter().map(|(name, _)| name).collect();
        matches!(owner, ProviderOwner::Kind(_))
            && before.of_owner(owner).iter().all(|(name, _)| names.contains(name))
    }

    pub(super) fn compare(&self, before: &Self) -> ReloadReport {
        let (now, before) = (self.by_name(), before.by_name());
        let mut report = ReloadReport::default();
        for (name, fingerprint) in &now {
            match before.get(name) {
                None => report.added.push((*name).to_owned()),
                Some(earlier) if earlier != fingerprint => report.changed.push((*name).to_owned()),
                Some(_) => {}
            }
        }
        let removed = before.keys().filter(|name| !now.contains_key(*name));
        report.removed = removed.map(|name| (*name).to_owned()).collect();
        report
    }

    fn by_name(&self) -> BTreeMap<&str, Vec<&Fingerprint>> {
        let mut all: BTreeMap<&str, Vec<&Fingerprint>> = BTreeMap::new();
        for (name, fingerprint) in self.0.values().flatten() {
            all.entry(name).or_default().push(fingerprint);
        }
        all
    }
}

/// The digest of the rules about what is offered, apart from the entries.
pub(super) fn of_rules(
    configuration: &Configuration,
    environment: &dyn Environment,
) -> Fingerprint {
    let mut all = PartDigest::default();
    for rule in &configuration.policy {
        debug(&mut all, &(&rule.pattern, &rule.action, &rule.project));
    }
    debug(&mut all, &configuration.profiles);
    for entry in &configuration.disabled {
        debug(&mut all, &(&entry.name, entry.role, &entry.diagnostic.message));
    }
    for entry in &configuration.untrusted {
        debug(&mut all, &(&entry.name, entry.role, &entry.reason));
    }
    if let Some(file) = PinFile::own(environment) {
        debug(&mut all, &file.read().ok());
    }
    all.finish()
}

/// The digest of the settings that a host takes when it is built.
pub(super) fn of_records(configuration: &Configuration) -> Fingerprint {
    let mut all = PartDigest::default();
    debug(&mut all, &(&configuration.audit, &configuration.history, &configuration.stats));
    all.finish()
}

fn of_server(spec: &ServerSpec) -> Fingerprint {
    let mut all = PartDigest::default();
    let mut spec = spec.clone();
    spec.location = nowhere();
    spec.provides_tools.iter_mut().for_each(forget_position);
    debug(&mut all, &spec);
    for secret in secrets(&spec.endpoint) {
        all.text(secret.expose_secret());
    }
    all.finish()
}

/// The values that a server's entry does not print.
fn secrets(endpoint: &Endpoint) -> Vec<&SecretString> {
    match endpoint {
        Endpoint::Stdio { env, .. } => env.values().collect(),
        Endpoint::Http { headers, auth, tls, .. } => {
            let auth = auth.secret().map(|(_, secret)| secret);
            headers.iter().map(|(_, value)| value).chain(auth).chain(&tls.identity).collect()
        }
    }
}

fn of_tool(spec: &ToolSpec, configuration: &Configuration) -> Fingerprint {
    let ToolSpec { definition, kind, entry, unexpanded, base_dir, defaults, scopes, seal, .. } =
        spec;
    let mut all = PartDigest::default();
    let mut definition = definition.clone();
    forget_position(&mut definition);
    debug(&mut all, &(definition, kind, base_dir, scopes, seal, spec.grant.is_some()));
    debug(&mut all, &configuration.scopes);
    all.text(&entry.to_json().to_string());
    all.text(&unexpanded.to_json().to_string());
    if let Some(defaults) = defaults {
        all.text(&defaults.to_json().to_string());
    }
    all.finish()
}

fn forget_position(tool: &mut ToolDefinition) {
    if let Origin::File(place) = &mut tool.origin {
        *place = SourceLocation { file: Arc::clone(&place.file), ..nowhere() };
    }
}

fn nowhere() -> SourceLocation {
    SourceLocation { file: Arc::default(), line: 0, column: 0, text: Arc::from("") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::kind_words;
    use crate::config::discover::LoadRequest;
    use crate::config::environment::FixedEnvironment;
    use crate::config::load::load;

    fn read(servers: &str, tools: &str) -> EntryFingerprints {
        let request = LoadRequest {
            inline_servers: vec![("mcp.yaml".into(), servers.to_owned())],
            inline_tools: vec![("tools.yaml".into(), tools.to_owned())],
            ..LoadRequest::default()
        };
        let environment = FixedEnvironment { cwd: "/nowhere".into(), ..Default::default() };
        let configuration = load(&request, &kind_words(), &environment);
        assert!(configuration.diagnostics.is_empty(), "{:?}", configuration.diagnostics);
        EntryFingerprints::of(&configuration)
    }

    const SERVERS: &str = "mcp_servers:\n  s: { command: sh, env: { KEY: one } }\n  \
                           h: { url: 'https://h.example/mcp', headers: { X-Key: two } }\n";
    const TOOLS: &str = "tools:\n  - { name: a, module: builtin.echo }\n";

    #[test]
    fn an_entry_is_the_same_wherever_it_stands_and_another_when_anything_in_it_changes() {
        let before = read(SERVERS, TOOLS);
        let moved = SERVERS.replace("mcp_servers:", "# a remark\n\nmcp_servers:");
        let same = read(&moved, &format!("# another\n{TOOLS}"));
        assert_eq!(same.compare(&before), ReloadReport::default());
        // Values that are printed nowhere count as well.
        for (from, to, name) in [("one", "1", "s"), ("two", "2", "h"), ("/mcp'", "/x'", "h")] {
            let report = read(&SERVERS.replace(from, to), TOOLS).compare(&before);
            assert_eq!(report.changed, [name], "{from}");
            assert!(report.added.is_empty() && report.removed.is_empty());
        }
        let more = read(SERVERS, &TOOLS.replace("name: a", "name: b"));
        let report = more.compare(&before);
        assert_eq!((report.added, report.removed), (vec!["b".to_owned()], vec!["a".to_owned()]));
        let owner = ProviderOwner::Server("s".to_owned());
        assert!(more.is_same_for(&owner, &before));
        assert!(!more.is_same_for(&ProviderOwner::Kind("builtin"), &before));
    }
}
