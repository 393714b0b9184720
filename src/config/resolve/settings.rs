//! Resolving everything in a tools file that is not an entry: profiles, policy, records, scopes,
//! defaults.
//!
//! A project's file may only tighten policy, statistics and audit; anything else there is a
//! warning, and what would change trust, limits or directories is an error that names the key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::FileContext;
use super::definition::JsonSchemaKeys;
use crate::config::credentials;
use crate::config::environment::Environment;
use crate::config::node::ConfigNode;
use crate::config::references::{AllowedReferences, is_literal};
use crate::config::spec::{
    Configuration, Layer, PolicyAction, PolicyRule, ProfileSpec, RecordSpec,
};
use crate::config::typed::{
    self, ByteSize, Limit, Located, Retries, Scalar, Texts, Timespan, UNBOUNDED,
};
use crate::model::{Diagnostic, Safety, SourceLocation};
use crate::util::text::is_one_of;

const USER_ONLY_KEYS: &str = "trust trusted approve approved limits sandbox redaction state_dir \
    config_dir cache_dir env_file";

/// The diagnostic for a key that only the user may set, if `key` in this layer is one.
pub fn reserved(key: &str, layer: Layer) -> Option<String> {
    (layer == Layer::Project && is_one_of(key, USER_ONLY_KEYS))
        .then(|| format!("'{key}' cannot be set by a project's file"))
}

/// Settings collected from all files, before the layers are ordered.
#[derive(Default)]
pub struct SettingsLayers {
    profiles: BTreeMap<String, (Layer, ProfileSpec)>,
    rules: Vec<(Layer, PolicyRule)>,
    records: [Vec<(Layer, RecordLayer)>; 3],
    scopes: Vec<(Layer, String, PathBuf)>,
}

/// The records a file may set, in the order of `SettingsLayers::records`.
const RECORDS: [&str; 3] = ["stats", "audit", "history"];

/// A file of tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
#[expect(dead_code, reason = "each key is read where it acts")]
pub struct ToolsFile {
    /// The version of the file format: 1.
    #[schemars(extend("enum" = [1, "1"]))]
    version: Option<Scalar>,
    /// The JSON Schema that editors validate this file against.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// Default values for entries in this file.
    defaults: Option<DefaultsKeys>,
    /// Named directories. PROJECT_ROOT and AGENT_DATA_DIR are predefined.
    scopes: Option<BTreeMap<String, String>>,
    /// JSON Schemas that param_schema_ref and response_schema_ref refer to by name.
    schemas: Option<BTreeMap<String, JsonSchemaKeys>>,
    /// Named handles for secrets, for use in entries.
    #[serde(default)]
    #[schemars(schema_with = "credentials::handles")]
    credentials: Option<ConfigNode>,
    /// Directories with more files like this one.
    discover: Option<Texts>,
    /// The tools.
    #[serde(alias = "tools_config")]
    #[schemars(with = "Option<Vec<AnyTool>>")]
    tools: Option<ConfigNode>,
    /// Entries that provide several tools each.
    #[schemars(with = "Option<Vec<AnyTool>>")]
    toolkits: Option<ConfigNode>,
    /// Configured instances whose tools are named {component}-{tool}.
    #[schemars(with = "Option<Vec<AnyTool>>")]
    components: Option<ConfigNode>,
    /// Named views of the catalogue, for example one for each agent.
    profiles: Option<BTreeMap<String, ProfileKeys>>,
    /// Usage statistics.
    stats: Option<RecordKeys>,
    /// The audit log.
    audit: Option<RecordKeys>,
    /// The call history.
    history: Option<RecordKeys>,
    /// Rules for calls; the first match wins.
    policy: Option<Vec<RuleKeys>>,
}

/// An entry of a file of tools, of any kind: its definition is completed from those of the kinds.
#[derive(JsonSchema)]
#[schemars(rename = "tool")]
struct AnyTool {}

/// Default values for entries in this file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub struct DefaultsKeys {
    /// Default time limit for one attempt.
    pub timeout: Option<Limit>,
    /// Default number of retries for a failed attempt.
    pub retries: Option<Retries>,
    /// How long a background host keeps an idle server running, unless its entry sets 'keep'.
    pub keep: Option<Timespan>,
    /// The base for relative endpoint_url values.
    pub base_url: Option<String>,
    /// How much of an API tool's response is kept, such as 256KiB.
    pub max_response_bytes: Option<ByteSize<UNBOUNDED>>,
}

/// A named view of the catalogue.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = typed::object::<Self>)]
pub struct ProfileKeys {
    /// Only names that match one of these patterns.
    include: Texts,
    /// Exclude names that match these patterns.
    exclude: Texts,
    /// Only tools from these servers.
    servers: Texts,
    /// Only tools in these categories.
    categories: Texts,
    /// Only tools with these safety levels.
    safety: Texts,
    /// What this profile is for.
    description: Option<String>,
}

/// Whether and where something is recorded.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub struct RecordKeys {
    /// Whether to record it.
    enabled: Option<Located<bool>>,
    /// Where to store it; default: the state directory.
    path: Option<Located<String>>,
    /// Whether to sync each line to disk.
    sync: Option<Located<bool>>,
    /// How long to keep records.
    retention: Option<Located<Limit>>,
}

/// A rule for calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>, extend("required" = ["match", "action"]))]
pub struct RuleKeys {
    /// A pattern for full tool names.
    #[serde(rename = "match")]
    pattern: Option<String>,
    /// What to do.
    action: Option<PolicyAction>,
    /// A project directory: the rule applies to its entries. Without it, 'allow' applies to your own
    /// entries.
    project: Option<String>,
}

/// What one file says about a record.
#[derive(Default)]
struct RecordLayer {
    keys: RecordKeys,
    /// What its path is relative to.
    base_dir: PathBuf,
    /// What a project's file may not say.
    ignored: Vec<Diagnostic>,
}

impl SettingsLayers {
    /// Reads the value of a top-level key if it is a setting; returns whether it was.
    pub fn read(&mut self, key: &str, node: &ConfigNode, file: &FileContext<'_>) -> bool {
        match key {
            _ if node.is_null() => {}
            "profiles" => self.profiles(node, file),
            "policy" => self.policy(node, file),
            "defaults" => {
                drop(typed::read::<DefaultsKeys>(node, &file.diagnostics));
            }
            _ => match RECORDS.iter().position(|name| *name == key) {
                Some(index) => {
                    self.records[index].push((file.layer, record(node, file)));
                }
                None => return false,
            },
        }
        true
    }

    fn profiles(&mut self, node: &ConfigNode, file: &FileContext<'_>) {
        let (layer, diagnostics) = (file.layer, &file.diagnostics);
        let profiles = typed::read::<BTreeMap<String, Located<ProfileKeys>>>(node, diagnostics);
        for (name, Located { value, location }) in profiles.unwrap_or_default() {
            for word in value.safety.0.iter().filter(|word| Safety::parse(word).is_none()) {
                let message =
                    format!("unknown safety '{word}'; expected one of native, sandboxed, external");
                diagnostics.push(Diagnostic::error(message).with_location(location.clone()));
            }
            // A project cannot replace a profile of the user.
            match self.profiles.get(&name) {
                Some((Layer::Project, _)) if layer == Layer::User => {}
                Some(_) => continue,
                None => {}
            }
            let profile = ProfileSpec {
                include: value.include.0,
                exclude: value.exclude.0,
                servers: value.servers.0,
                categories: value.categories.0,
                safety: value.safety.0,
            };
            self.profiles.insert(name, (layer, profile));
        }
    }

    fn policy(&mut self, node: &ConfigNode, file: &FileContext<'_>) {
        let (layer, diagnostics) = (file.layer, &file.diagnostics);
        for item in diagnostics.ok(node.as_list()).unwrap_or_default() {
            let Some(rule) = rule(item, file) else { continue };
            if layer == Layer::Project && rule.action == PolicyAction::Allow {
                let message = "a project's file may only tighten the policy: this rule is ignored";
                let hint = "put it in your own configuration directory";
                diagnostics.push(item.warning(message).with_hint(hint));
            } else {
                self.rules.push((layer, rule));
            }
        }
    }

    /// Reads the value of `scopes`. Runs before the entries of any file: what an entry may do
    /// depends on the directory its scope names.
    pub fn scopes(&mut self, node: &ConfigNode, file: &FileContext<'_>) {
        let diagnostics = &file.diagnostics;
        if node.is_null() {
            return;
        }
        for (key, value) in diagnostics.ok(node.as_map()).unwrap_or_default() {
            let mut value = value.clone();
            let name = format!("scopes.{}", key.text);
            let before = diagnostics.errors();
            match file.expander() {
                Some(expander) => {
                    expander.value(&mut value, &name, AllowedReferences::Variables, diagnostics);
                }
                // Until the user agrees to the file, the scope is not defined.
                None if !is_literal(&value) => continue,
                None => {}
            }
            if diagnostics.errors() > before {
                continue;
            }
            if let Some(text) = diagnostics.ok(value.as_text()) {
                let path: PathBuf = file.base_dir.join(text).components().collect();
                self.scopes.push((file.layer, key.text.to_string(), path));
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
    pub fn apply(
        self,
        configuration: &mut Configuration,
        project_root: &Path,
        environment: &dyn Environment,
    ) {
        configuration.scopes = self.scopes_for(Layer::Project, project_root, environment);
        let records = self.records.map(merge);
        if let Some(conflict) = shared_file(&records) {
            configuration.diagnostics.push(conflict.clone());
            configuration.unusable.get_or_insert(conflict);
        }
        let [stats, audit, history] = records.map(|(record, _)| record);
        (configuration.stats, configuration.audit) = (stats, audit);
        configuration.history = history;
        configuration.profiles =
            self.profiles.into_iter().map(|(name, (_, p))| (name, p)).collect();
        configuration.policy = policy_order(self.rules);
    }
}

/// A project's 'deny' rules first, because they only tighten; then all other rules, the user's own
/// before those of named files; last the project's 'ask' rules, for calls that no other rule
/// matches.
fn policy_order(mut rules: Vec<(Layer, PolicyRule)>) -> Vec<PolicyRule> {
    rules.sort_by_key(|(layer, rule)| match (layer, rule.action) {
        (Layer::Project, PolicyAction::Deny) => 0,
        (layer, _) => 1 + rank(*layer),
    });
    rules.into_iter().map(|(_, rule)| rule).collect()
}

/// The user's own file takes precedence; a project's comes last.
fn rank(layer: Layer) -> u8 {
    match layer {
        Layer::User => 0,
        Layer::Flag => 1,
        Layer::Variable => 2,
        Layer::Embedded => 3,
        Layer::Project => 4,
    }
}

fn merge(mut layers: Vec<(Layer, RecordLayer)>) -> (RecordSpec, Option<SourceLocation>) {
    layers.sort_by_key(|(layer, _)| rank(*layer));
    let keys = || layers.iter().map(|(_, record)| &record.keys);
    let path = layers.iter().find_map(|(_, record)| {
        let path = record.keys.path.as_ref()?;
        let absolute = record.base_dir.join(&path.value).components().collect();
        Some((absolute, path.location.clone()))
    });
    let (path, location) = path.unzip();
    let usual = RecordSpec::default();
    let record = RecordSpec {
        enabled: keys().find_map(|keys| keys.enabled.as_deref()).copied().unwrap_or(usual.enabled),
        path,
        sync: keys().find_map(|keys| keys.sync.as_deref()).copied().unwrap_or(usual.sync),
        retention: keys()
            .find_map(|keys| keys.retention.as_ref())
            .map_or(usual.retention, |time| time.0),
        ignored: layers.iter().flat_map(|(_, record)| record.ignored.iter().cloned()).collect(),
    };
    (record, location)
}

fn shared_file(records: &[(RecordSpec, Option<SourceLocation>); 3]) -> Option<Diagnostic> {
    let mut files: BTreeMap<PathBuf, &str> = BTreeMap::new();
    for (name, (record, location)) in RECORDS.into_iter().zip(records) {
        let Some(path) = record.path.as_ref().filter(|_| record.enabled) else { continue };
        // What the statistics write has this name with an ending of their own.
        let written = path.with_extension("spool");
        let own = if name == "stats" { vec![path, &written] } else { vec![path] };
        let taken = own.iter().find_map(|&file| files.get(file).copied());
        files.extend(own.into_iter().map(|file| (file.clone(), name)));
        if let Some(other) = taken {
            let message = format!("'{other}' and '{name}' have the same file: {}", path.display());
            let diagnostic = Diagnostic::error(message).with_hint("give each its own 'path'");
            return Some(Diagnostic { location: location.clone(), ..diagnostic });
        }
    }
    None
}

fn record(node: &ConfigNode, file: &FileContext<'_>) -> RecordLayer {
    let diagnostics = &file.diagnostics;
    let mut node = node.clone();
    if let Some(expander) = file.expander() {
        expander.entry(&mut node, &[], diagnostics);
    }
    let mut keys: RecordKeys = typed::read(&node, diagnostics).unwrap_or_default();
    let mut ignored = Vec::new();
    if file.layer == Layer::Project {
        let shortest = RecordSpec::default().retention;
        let loosening = [
            ("enabled", keys.enabled.take_if(|on| !on.value).map(|on| on.location)),
            ("path", keys.path.take().map(|path| path.location)),
            ("sync", keys.sync.take_if(|on| !on.value).map(|on| on.location)),
            (
                "retention",
                keys.retention.take_if(|time| time.0 < shortest).map(|time| time.location),
            ),
        ];
        for (key, location) in loosening {
            let Some(location) = location else { continue };
            let text = format!("a project's file may only tighten this: '{key}' is ignored");
            let diagnostic = Diagnostic::warning(text).with_location(location);
            ignored.push(diagnostic.with_hint("put it in your own configuration directory"));
        }
        diagnostics.extend(ignored.iter().cloned());
    }
    RecordLayer { keys, base_dir: file.base_dir.clone(), ignored }
}

/// One rule. A rule that cannot be read may have been a 'deny': it is treated as one.
fn rule(item: &ConfigNode, file: &FileContext<'_>) -> Option<PolicyRule> {
    let diagnostics = &file.diagnostics;
    let before = diagnostics.errors();
    let mut expanded = item.clone();
    if let Some(expander) = file.expander() {
        expander.entry(&mut expanded, &["project"], diagnostics);
    }
    let location = item.location();
    let keys = typed::read::<RuleKeys>(&expanded, diagnostics)?;
    for (key, is_missing) in [("match", keys.pattern.is_none()), ("action", keys.action.is_none())]
    {
        if is_missing && item.get(key).is_none_or(ConfigNode::is_null) {
            diagnostics.push(item.error(format!("this rule has no '{key}'")));
        }
    }
    let pattern = keys.pattern?;
    let is_wrong = diagnostics.errors() > before;
    let Some(action) = keys.action.filter(|_| !is_wrong) else {
        return Some(PolicyRule { pattern, action: PolicyAction::Deny, project: None, location });
    };
    // A project is identified by its real path.
    let project = keys.project.map(|text| {
        let path: PathBuf = file.base_dir.join(text).components().collect();
        path.canonicalize().unwrap_or(path)
    });
    Some(PolicyRule { pattern, action, project, location })
}
