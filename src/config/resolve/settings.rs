//! Resolving everything in a tools file that is not an entry: profiles, policy, records, scopes,
//! defaults.
//!
//! A project's file may only tighten policy, statistics and audit; anything else there is a
//! warning, and what would change trust, limits or directories is an error that names the key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::definition::one_of;
use super::{EntryDiagnostics, FileContext, limit};
use crate::config::environment::Environment;
use crate::config::keys::{DEFAULTS, PROFILE, RECORD, RULE, canonical};
use crate::config::node::ConfigNode;
use crate::config::references::{AllowedReferences, is_literal};
use crate::config::spec::{Layer, PolicyAction, PolicyRule, ProfileSpec, RecordSpec};
use crate::model::{Diagnostic, Safety, SourceLocation};
use crate::util::units;

const USER_ONLY_KEYS: [&str; 11] = [
    "trust",
    "trusted",
    "approve",
    "approved",
    "limits",
    "sandbox",
    "redaction",
    "state_dir",
    "config_dir",
    "cache_dir",
    "env_file",
];

/// The diagnostic for a key that only the user may set, if `key` in this layer is one.
pub fn reserved(key: &str, layer: Layer) -> Option<String> {
    (layer == Layer::Project && USER_ONLY_KEYS.contains(&key))
        .then(|| format!("'{key}' cannot be set by a project's file"))
}

/// Settings collected from all files, before the layers are ordered.
#[derive(Default)]
pub struct SettingsLayers {
    profiles: BTreeMap<String, (Layer, ProfileSpec)>,
    rules: Vec<(Layer, PolicyRule)>,
    records: [Vec<(Layer, RecordOptions)>; 3],
    scopes: Vec<(Layer, String, PathBuf)>,
}

/// The records a file may set, in the order of `SettingsLayers::records`.
const RECORDS: [&str; 3] = ["stats", "audit", "history"];

#[derive(Default)]
struct RecordOptions {
    enabled: Option<bool>,
    path: Option<(PathBuf, SourceLocation)>,
    sync: Option<bool>,
    retention: Option<std::time::Duration>,
    /// What a project's file may not say.
    ignored: Vec<Diagnostic>,
}

pub struct EffectiveSettings {
    pub profiles: BTreeMap<String, ProfileSpec>,
    pub policy: Vec<PolicyRule>,
    pub stats: RecordSpec,
    pub audit: RecordSpec,
    pub history: RecordSpec,
    pub scopes: BTreeMap<String, PathBuf>,
    /// Two records that would be written to the same file.
    pub conflict: Option<Diagnostic>,
}

impl SettingsLayers {
    /// Reads the value of a top-level key if it is a setting; returns whether it was.
    pub fn read(
        &mut self,
        key: &str,
        node: &ConfigNode,
        file: &FileContext<'_>,
        entry_diagnostics: &mut EntryDiagnostics,
    ) -> bool {
        match key {
            _ if node.is_null() => {}
            "profiles" => self.profiles(node, file.layer, entry_diagnostics),
            "policy" => self.policy(node, file, entry_diagnostics),
            "defaults" => defaults(node, entry_diagnostics),
            _ => match RECORDS.iter().position(|name| *name == key) {
                Some(index) => {
                    let record = record(node, file, entry_diagnostics);
                    self.records[index].push((file.layer, record));
                }
                None => return false,
            },
        }
        true
    }

    fn profiles(
        &mut self,
        node: &ConfigNode,
        layer: Layer,
        entry_diagnostics: &mut EntryDiagnostics,
    ) {
        for (name, value) in entry_diagnostics.ok_or_report(node.as_map()).unwrap_or_default() {
            let Some(entries) = entry_diagnostics.ok_or_report(value.as_map()) else { continue };
            let mut profile = ProfileSpec::default();
            for (key, value) in entries {
                let list = match key.text.as_str() {
                    "include" => &mut profile.include,
                    "exclude" => &mut profile.exclude,
                    "servers" => &mut profile.servers,
                    "categories" => &mut profile.categories,
                    "safety" => &mut profile.safety,
                    "description" => continue,
                    _ => {
                        entry_diagnostics.unknown_key(node, key, PROFILE, &[]);
                        continue;
                    }
                };
                *list = entry_diagnostics.ok_or_report(value.as_texts()).unwrap_or_default();
            }
            for word in profile.safety.iter().filter(|word| Safety::parse(word).is_none()) {
                let message =
                    format!("unknown safety '{word}'; expected one of native, sandboxed, external");
                entry_diagnostics.error(value.location(), message);
            }
            // A project cannot replace a profile of the user.
            match self.profiles.get(&name.text) {
                Some((Layer::Project, _)) if layer == Layer::User => {}
                Some(_) => continue,
                None => {}
            }
            self.profiles.insert(name.text.clone(), (layer, profile));
        }
    }

    fn policy(
        &mut self,
        node: &ConfigNode,
        file: &FileContext<'_>,
        entry_diagnostics: &mut EntryDiagnostics,
    ) {
        let layer = file.layer;
        for item in entry_diagnostics.ok_or_report(node.as_list()).unwrap_or_default() {
            for (key, _) in item.entries() {
                if canonical(RULE, &key.text).is_none() {
                    entry_diagnostics.unknown_key(item, key, RULE, &[]);
                }
            }
            match rule(item, file) {
                // A rule that cannot be parsed may have been a 'deny': treat it as one.
                Err(diagnostic) => {
                    entry_diagnostics.diagnostics.push(diagnostic);
                    if let Some(Ok(pattern)) = item.get("match").map(ConfigNode::as_text) {
                        let action = PolicyAction::Deny;
                        let (pattern, location) = (pattern.to_owned(), item.location());
                        let rule = PolicyRule { pattern, action, project: None, location };
                        self.rules.push((layer, rule));
                    }
                }
                Ok(rule) if layer == Layer::Project && rule.action == PolicyAction::Allow => {
                    entry_diagnostics.diagnostics.push(
                        Diagnostic::warning(
                            "a project's file may only tighten the policy: this rule is ignored",
                        )
                        .with_hint("put it in your own configuration directory")
                        .with_location(item.location()),
                    );
                }
                Ok(rule) => self.rules.push((layer, rule)),
            }
        }
    }

    /// Reads the value of `scopes`. Runs before the entries of any file: what an entry may do
    /// depends on the directory its scope names.
    pub fn scopes(
        &mut self,
        node: &ConfigNode,
        file: &FileContext<'_>,
        entry_diagnostics: &mut EntryDiagnostics,
    ) {
        if node.is_null() {
            return;
        }
        for (key, value) in entry_diagnostics.ok_or_report(node.as_map()).unwrap_or_default() {
            let mut value = value.clone();
            let name = format!("scopes.{}", key.text);
            let before = entry_diagnostics.diagnostics.len();
            match file.expander() {
                Some(expander) => {
                    expander.value(
                        &mut value,
                        &name,
                        AllowedReferences::Variables,
                        &mut entry_diagnostics.diagnostics,
                    );
                }
                // Until the user agrees to the file, the scope is not defined.
                None if !is_literal(&value) => continue,
                None => {}
            }
            if entry_diagnostics.diagnostics.len() > before {
                continue;
            }
            if let Some(text) = entry_diagnostics.ok_or_report(value.as_text()) {
                let path: PathBuf = file.base_dir.join(text).components().collect();
                self.scopes.push((file.layer, key.text.clone(), path));
            }
        }
    }

    /// The named directories that entries of this layer may use. What a project's file defines for
    /// a name applies to the project's own entries only: it must not move an entry of the user.
    pub fn scopes_for(
        &self,
        layer: Layer,
        project_root: &Path,
        environment: &dyn Environment,
    ) -> BTreeMap<String, PathBuf> {
        let mut scopes = BTreeMap::new();
        for (from, name, path) in &self.scopes {
            if layer == Layer::Project || *from != Layer::Project {
                scopes.entry(name.clone()).or_insert_with(|| path.clone());
            }
        }
        scopes.entry("PROJECT_ROOT".to_owned()).or_insert_with(|| project_root.to_path_buf());
        let predefined = environment.state_dir().map(|dir| dir.join("agent"));
        let data = scopes
            .get("AGENT_DATA_DIR")
            .or_else(|| scopes.get("AGENT_DATA"))
            .cloned()
            .or(predefined);
        if let Some(data) = data {
            for name in ["AGENT_DATA_DIR", "AGENT_DATA"] {
                scopes.entry(name.to_owned()).or_insert_with(|| data.clone());
            }
        }
        scopes
    }

    /// Orders the layers: for policy and records the user's own file takes precedence.
    pub fn effective(
        self,
        project_root: &Path,
        environment: &dyn Environment,
    ) -> EffectiveSettings {
        let scopes = self.scopes_for(Layer::Project, project_root, environment);
        let records = self.records.map(merge);
        let conflict = shared_file(&records);
        let [stats, audit, history] = records.map(|(record, _)| record);
        EffectiveSettings {
            profiles: self.profiles.into_iter().map(|(name, (_, p))| (name, p)).collect(),
            policy: policy_order(self.rules),
            stats,
            audit,
            history,
            scopes,
            conflict,
        }
    }
}

/// A project's 'deny' rules first, because they only tighten; then all other rules, the user's own
/// before those of named files; last the project's 'ask' rules, for calls that no other rule
/// matches.
fn policy_order(rules: Vec<(Layer, PolicyRule)>) -> Vec<PolicyRule> {
    let rank = |layer: Layer, action: PolicyAction| match (layer, action) {
        (Layer::Project, PolicyAction::Deny) => 0,
        (Layer::User, _) => 1,
        (Layer::Flag, _) => 2,
        (Layer::Variable, _) => 3,
        (Layer::Embedded, _) => 4,
        (Layer::Project, _) => 5,
    };
    let mut rules = rules;
    rules.sort_by_key(|(layer, rule)| rank(*layer, rule.action));
    rules.into_iter().map(|(_, rule)| rule).collect()
}

fn merge(mut options: Vec<(Layer, RecordOptions)>) -> (RecordSpec, Option<SourceLocation>) {
    // The user's own file takes precedence; a project's comes last.
    options.sort_by_key(|(layer, _)| match layer {
        Layer::User => 0,
        Layer::Flag => 1,
        Layer::Variable => 2,
        Layer::Embedded => 3,
        Layer::Project => 4,
    });
    let fallback = RecordSpec::default();
    let first =
        |pick: fn(&RecordOptions) -> Option<bool>| options.iter().find_map(|(_, r)| pick(r));
    let (path, location) = options.iter().find_map(|(_, r)| r.path.clone()).unzip();
    let record = RecordSpec {
        enabled: first(|r| r.enabled).unwrap_or(fallback.enabled),
        path,
        sync: first(|r| r.sync).unwrap_or(fallback.sync),
        retention: options.iter().find_map(|(_, r)| r.retention).unwrap_or(fallback.retention),
        ignored: options.iter().flat_map(|(_, r)| r.ignored.iter().cloned()).collect(),
    };
    (record, location)
}

fn shared_file(records: &[(RecordSpec, Option<SourceLocation>); 3]) -> Option<Diagnostic> {
    let mut files: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for (name, (record, location)) in RECORDS.into_iter().zip(records) {
        let Some(path) = record.path.as_ref().filter(|_| record.enabled) else { continue };
        // The statistics are two files of one name.
        let own = match name {
            "stats" => vec![path.clone(), path.with_extension("spool"), path.with_extension("db")],
            _ => vec![path.clone()],
        };
        for file in own {
            if let Some(other) = files.insert(file, name).filter(|other| *other != name) {
                let message =
                    format!("'{other}' and '{name}' have the same file: {}", path.display());
                let diagnostic = Diagnostic::error(message).with_hint("give each its own 'path'");
                return Some(match location {
                    Some(location) => diagnostic.with_location(location.clone()),
                    None => diagnostic,
                });
            }
        }
    }
    None
}

fn record(
    node: &ConfigNode,
    file: &FileContext<'_>,
    entry_diagnostics: &mut EntryDiagnostics,
) -> RecordOptions {
    let mut record = RecordOptions::default();
    for (key, value) in entry_diagnostics.ok_or_report(node.as_map()).unwrap_or_default() {
        match key.text.as_str() {
            "enabled" => record.enabled = entry_diagnostics.ok_or_report(value.as_bool()),
            "sync" => record.sync = entry_diagnostics.ok_or_report(value.as_bool()),
            "retention" => record.retention = entry_diagnostics.ok_or_report(limit(value)),
            "path" => {
                let mut value = value.clone();
                if let Some(expander) = file.expander() {
                    let diagnostics = &mut entry_diagnostics.diagnostics;
                    expander.value(&mut value, "path", AllowedReferences::Variables, diagnostics);
                }
                let path = entry_diagnostics.ok_or_report(value.as_text());
                let absolute = |text: &str| file.base_dir.join(text).components().collect();
                record.path = path.map(|text| (absolute(text), node.location_of(key)));
            }
            _ => {
                entry_diagnostics.unknown_key(node, key, RECORD, &[]);
                continue;
            }
        }
        let loosens = match key.text.as_str() {
            "enabled" => record.enabled == Some(false),
            "sync" => record.sync == Some(false),
            "path" => true,
            _ => record.retention.is_some_and(|r| r < RecordSpec::default().retention),
        };
        if file.layer == Layer::Project && loosens {
            match key.text.as_str() {
                "enabled" => record.enabled = None,
                "sync" => record.sync = None,
                "path" => record.path = None,
                _ => record.retention = None,
            }
            let text = format!("a project's file may only tighten this: '{}' is ignored", key.text);
            let diagnostic = Diagnostic::warning(text)
                .with_hint("put it in your own configuration directory")
                .with_location(node.location_of(key));
            record.ignored.push(diagnostic.clone());
            entry_diagnostics.diagnostics.push(diagnostic);
        }
    }
    record
}

fn rule(item: &ConfigNode, file: &FileContext<'_>) -> Result<PolicyRule, Diagnostic> {
    item.as_map()?;
    let missing = |key: &str| {
        Diagnostic::error(format!("this rule has no '{key}'")).with_location(item.location())
    };
    let pattern = item.get("match").ok_or_else(|| missing("match"))?.as_text()?.to_owned();
    let action = item.get("action").ok_or_else(|| missing("action"))?;
    let parse = |word: &str| match word {
        "allow" => Some(PolicyAction::Allow),
        "ask" => Some(PolicyAction::Ask),
        "deny" => Some(PolicyAction::Deny),
        _ => None,
    };
    let action = one_of(action, "action", "allow, ask, deny", parse)?;
    let project = item.get("project").map(|node| project(node, file)).transpose()?;
    Ok(PolicyRule { pattern, action, project, location: item.location() })
}

/// The directory a rule is about, links resolved: a project is identified by its real path.
fn project(node: &ConfigNode, file: &FileContext<'_>) -> Result<PathBuf, Diagnostic> {
    let (mut value, mut diagnostics) = (node.clone(), Vec::new());
    if let Some(expander) = file.expander() {
        expander.value(&mut value, "project", AllowedReferences::Variables, &mut diagnostics);
    }
    if let Some(diagnostic) = diagnostics.pop() {
        return Err(diagnostic);
    }
    let path: PathBuf = file.base_dir.join(value.as_text()?).components().collect();
    Ok(path.canonicalize().unwrap_or(path))
}

/// A number of bytes, or text such as `256KiB`.
fn size(node: &ConfigNode) -> Result<u64, Diagnostic> {
    let size = node.as_scalar_text().ok().and_then(|text| units::size(&text));
    size.ok_or_else(|| node.expected("a size such as 256KiB"))
}

fn defaults(node: &ConfigNode, entry_diagnostics: &mut EntryDiagnostics) {
    for (key, value) in entry_diagnostics.ok_or_report(node.as_map()).unwrap_or_default() {
        match canonical(DEFAULTS, &key.text) {
            Some("timeout") => drop(entry_diagnostics.ok_or_report(limit(value))),
            Some("retries") => drop(entry_diagnostics.ok_or_report(super::retries(value))),
            Some("keep") => drop(entry_diagnostics.ok_or_report(value.as_duration())),
            Some("base_url") => drop(entry_diagnostics.ok_or_report(value.as_text())),
            Some("max_response_bytes") => drop(entry_diagnostics.ok_or_report(size(value))),
            _ => entry_diagnostics.unknown_key(node, key, DEFAULTS, &[]),
        }
    }
}
