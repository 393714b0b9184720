//! Resolving expanded trees to specs.
//!
//! Owns: the meaning of each key, defaults, and the checks that configuration alone allows. A bad
//! entry goes out of service with its reason; the rest is unaffected. Never does: start, open or
//! contact anything an entry names (files that a schema refers to are read).

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use super::consent::{Expander, Grant, TrustRequest, kind_of};
use super::credentials::{CredentialTable, CredentialTarget, EntryCredentials};
use super::entries::{self, URL_KEYS};
use super::load::LoadContext;
use super::node::{ConfigNode, NodeValue};
use super::references::{is_name, is_setting};
use super::secrets::LiteralSecrets;
use super::spec::{
    Configuration, DisabledEntry, FileRole, INPUT_SCHEMA_KEYS, KindDescriptor, Layer,
    OUTPUT_SCHEMA_KEYS, ToolSpec, UntrustedEntry,
};
use super::typed::{self, Located, Texts};
use crate::model::{
    Diagnostic, Diagnostics, EntryOrigin, SourceLocation, ToolDefinition, ToolName, ToolSource,
    ToolStatus,
};
use settings::DefaultsKeys;

pub mod auth;
pub mod definition;
pub mod endpoint;
pub mod schemas;
pub mod servers;
pub mod settings;

pub(super) struct FileContext<'a> {
    pub shared: &'a LoadContext<'a>,
    /// The proof that it may act; `None` while it is untrusted.
    pub grant: Option<Grant>,
    pub layer: Layer,
    /// Relative paths are relative to this: the file's directory.
    pub base_dir: PathBuf,
    /// The working directory for a server without `cwd`.
    pub default_cwd: PathBuf,
    /// Whether it belongs to a project, whose entries cannot replace the user's without consent.
    pub is_project: bool,
    /// The file's `schemas`, which its entries refer to by name.
    pub schemas: Option<ConfigNode>,
    pub defaults: Option<ConfigNode>,
    pub scopes: Arc<BTreeMap<String, PathBuf>>,
    /// What is wrong with what is being read: an entry, or something of the file itself.
    pub diagnostics: Diagnostics,
}

impl FileContext<'_> {
    /// Replaces references by values; `None` while the file is untrusted.
    pub fn expander(&self) -> Option<Expander<'_>> {
        self.shared.expander(self.grant.as_ref(), &self.base_dir)
    }

    /// The defaults for entries of the file. What is wrong with them is reported for the file.
    pub fn defaults(&self) -> DefaultsKeys {
        self.defaults.as_ref().and_then(typed::peek).unwrap_or_default()
    }
}

#[derive(Default)]
pub(super) struct ConfigurationBuilder {
    pub configuration: Configuration,
    pub literals: LiteralSecrets,
    pub credentials: CredentialTable,
    tools: NameTable,
    servers: NameTable,
}

impl ConfigurationBuilder {
    /// Reports what is wrong with the file itself.
    pub fn report_file(&mut self, file: &FileContext<'_>) {
        self.configuration.diagnostics.extend(file.diagnostics.take());
    }

    /// From here on, what is wrong is the entry's, and so are the duplicate keys in it.
    fn begin_entry(&mut self, entry: &ConfigNode, file: &FileContext<'_>) {
        self.report_file(file);
        file.diagnostics.extend(entry.repeated_keys());
    }

    /// Reports what is wrong with an entry. Returns it if that puts it out of service.
    fn report_entry(
        &mut self,
        name: &str,
        role: FileRole,
        file: &FileContext<'_>,
    ) -> Option<&mut DisabledEntry> {
        let Configuration { disabled, diagnostics: all, .. } = &mut self.configuration;
        let before = disabled.len();
        for diagnostic in file.diagnostics.take() {
            let diagnostic = diagnostic.with_entry(name);
            if diagnostic.is_error() && disabled.len() == before {
                disabled.push(DisabledEntry::new(name, role, diagnostic.clone()));
            }
            all.push(diagnostic);
        }
        disabled.get_mut(before)
    }

    /// Whether an entry is read: not if its name belongs to the user or to a file with higher precedence.
    /// What is wrong is reported.
    fn admits(
        &mut self,
        (name, role, is_component): (&str, FileRole, bool),
        location: &SourceLocation,
        file: &FileContext<'_>,
    ) -> bool {
        if self.is_users_name((name, is_component), location, file) {
            return false;
        }
        let names = match role {
            FileRole::Tools => &mut self.tools,
            FileRole::Servers => &mut self.servers,
        };
        names.claim(name, location.clone(), file.layer).unwrap_or_else(|diagnostic| {
            file.diagnostics.push(diagnostic);
            self.report_entry(name, role, file);
            false
        })
    }

    /// Whether the user's own files reserve a name that an entry of a project has; if so, warns.
    fn is_users_name(
        &mut self,
        (name, is_component): (&str, bool),
        location: &SourceLocation,
        file: &FileContext<'_>,
    ) -> bool {
        if !file.is_project {
            return false;
        }
        let own = file.shared.consent.user_entry_location(name, is_component);
        let warning = own.map(|own| {
            Diagnostic::warning(format!("ignored: it would replace your own {own}"))
                .with_hint("'toolhost trust' shows what a project would replace, and allows it")
                .with_location(location.clone())
                .with_entry(name)
        });
        let is_reserved = warning.is_some();
        self.configuration.diagnostics.extend(warning);
        is_reserved
    }

    /// Lists an entry that may not act, with what it would do and the command that allows it.
    fn add_untrusted(
        &mut self,
        (name, role, kind): (&str, FileRole, &'static str),
        location: SourceLocation,
        description: Option<String>,
        definitions: Vec<ToolDefinition>,
        file: &FileContext<'_>,
    ) {
        if let Some(disabled) = self.report_entry(name, role, file) {
            disabled.definitions = definitions;
            return;
        }
        let consent = file.shared.consent;
        let request = consent.request.as_ref();
        self.configuration.untrusted.push(UntrustedEntry {
            name: name.to_owned(),
            role,
            kind,
            description,
            definitions,
            effects: request.map(|_| consent.effects_of(name)).unwrap_or_default(),
            trust_command: request
                .map_or_else(|| "toolhost trust".to_owned(), TrustRequest::command),
            reason: request.map_or_else(|| TrustRequest::default().reason(), TrustRequest::reason),
            is_declined: request.is_some_and(|request| request.refused_at.is_some()),
            location,
        });
    }

    /// Puts an entry out of service without reporting a diagnostic.
    fn add_switched_off(
        &mut self,
        name: &str,
        role: FileRole,
        location: SourceLocation,
        definitions: Vec<ToolDefinition>,
    ) {
        let diagnostic =
            Diagnostic::warning("disabled in the file").with_location(location).with_entry(name);
        let entry = DisabledEntry::new(name, role, diagnostic);
        self.configuration.disabled.push(DisabledEntry { definitions, ..entry });
    }
}

#[derive(Default)]
struct NameTable(HashMap<String, (SourceLocation, Layer)>);

impl NameTable {
    /// Whether the name is free: not if a file with higher precedence has it.
    fn claim(
        &mut self,
        name: &str,
        location: SourceLocation,
        layer: Layer,
    ) -> Result<bool, Diagnostic> {
        match self.0.get(name) {
            None => {
                self.0.insert(name.to_owned(), (location, layer));
                Ok(true)
            }
            Some((_, owner)) if *owner != layer => Ok(false),
            Some((first, _)) => {
                let (file, line, column) = (first.file.display(), first.line, first.column);
                let message =
                    format!("duplicate name '{name}': first defined at {file}:{line}:{column}");
                let diagnostic = Diagnostic::error(message).with_hint("rename one of them");
                Err(diagnostic.with_location(location))
            }
        }
    }
}

const ACTION_KEYS: &str = "command args module function class openapi base_url endpoint_url \
    toolkit kind";

/// The identity of an entry of a file of servers, before anything in it is filled in.
pub fn of_server(entry: &ConfigNode, file: &FileContext<'_>) -> Arc<EntryOrigin> {
    let keys = ["command", "server_path", "args"].iter().chain(&URL_KEYS);
    origin(entry, keys.copied(), file)
}

/// The identity of an entry of a file of tools, before anything in it is filled in.
pub fn of_tool(entry: &ConfigNode, file: &FileContext<'_>) -> Arc<EntryOrigin> {
    origin(entry, ACTION_KEYS.split(' '), file)
}

fn origin(
    entry: &ConfigNode,
    keys: impl Iterator<Item = &'static str>,
    file: &FileContext<'_>,
) -> Arc<EntryOrigin> {
    let mut parts = Vec::new();
    keys.filter_map(|key| entry.get(key)).for_each(|node| texts(node, &mut parts));
    let project = file.shared.project.as_ref().filter(|_| file.layer == Layer::Project);
    // The user's own entries are identified by content, regardless of the location of their file.
    let directory = project.map(|root| root.canonicalize().unwrap_or_else(|_| root.clone()));
    let directory: PathBuf = directory.unwrap_or_default();
    Arc::new(EntryOrigin {
        layer: file.layer,
        directory,
        declaration: parts.join(" "),
        command_end: file.shared.command_end.clone(),
    })
}

fn texts(node: &ConfigNode, parts: &mut Vec<String>) {
    match &node.value {
        NodeValue::List(items) => items.iter().for_each(|item| texts(item, parts)),
        _ => parts.extend(node.as_scalar_text()),
    }
}

/// Reads `context_env`: names of variables that a call may set. Only names of
/// settings are accepted.
pub fn context_env(names: Located<Texts>, diagnostics: &Diagnostics) -> Arc<[String]> {
    for name in &names.0 {
        if is_setting(name) {
            continue;
        }
        diagnostics.push(if is_name(name) {
            names.error(format!("'{name}' cannot be set by a call")).with_hint(format!(
                "it may decide which code runs: set it under 'env', or name it APP_{name}"
            ))
        } else {
            names.error(format!("invalid variable name '{name}'"))
        });
    }
    names.value.0.into()
}

const UNKNOWN_KIND: &str = "unknown";

/// Resolves one list of entries: `tools`, `toolkits` or `components`.
pub fn list(
    node: ConfigNode,
    list: &str,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder,
) {
    file.diagnostics.push(match node.value {
        NodeValue::Null => return,
        NodeValue::List(items) => {
            builder.configuration.tools.reserve_exact(items.len());
            for (index, item) in Arc::unwrap_or_clone(items).into_iter().enumerate() {
                tool(item, list, index, file, builder);
            }
            return;
        }
        NodeValue::Map(_) => {
            node.expected("a list of entries").with_hint("start each entry with '- name: …'")
        }
        _ => node.error(format!("'{list}' must be a list of entries")),
    });
}

fn tool(
    entry: ConfigNode,
    list: &str,
    index: usize,
    file: &mut FileContext<'_>,
    builder: &mut ConfigurationBuilder,
) {
    let role = FileRole::Tools;
    builder.begin_entry(&entry, file);
    let location = entry.location();
    let named = entry.get_any(&entries::NAMES).map(|(_, node)| node);
    let Some(name) = file.diagnostics.ok(entries::name(&entry)) else {
        let shown = named.and_then(|name| name.as_scalar_text().ok());
        let shown = shown.filter(|text| !text.trim().is_empty());
        let shown = shown.unwrap_or_else(|| format!("{list}[{index}]"));
        builder.report_entry(&shown, role, file);
        return;
    };
    let claim = (name.as_str(), role, entries::may_be_component(&entry, list));
    let name_location = named.unwrap_or(&entry).location();
    if !builder.admits(claim, &name_location, file) {
        file.diagnostics.take();
        return;
    }
    if entries::is_off(&entry) && file.diagnostics.is_empty() {
        builder.add_switched_off(&name, role, location, Vec::new());
        return;
    }
    builder.literals.inspect(&entry, &file.diagnostics);
    let kind = kind_of(&entry, &file.base_dir, file.shared.kinds);
    let Some(kind) = file.diagnostics.ok(kind) else {
        if let Some(disabled) = builder.report_entry(&name, role, file) {
            disabled.definitions = vec![define(&entry, &name, None, file)];
            // Errors in the other keys are reported once the allowed keys are known.
            file.diagnostics.take();
        }
        return;
    };
    if file.grant.is_none() && !file.shared.consent.is_harmless(role, &name) {
        // If it may provide several tools, only its own name is known.
        let mut definition = define(&entry, &name, Some(kind), file);
        definition.entry = Some(of_tool(&entry, file));
        definition.status = ToolStatus::Untrusted;
        let description = definition.description.clone();
        let listed = (name.as_str(), role, kind.key);
        builder.add_untrusted(listed, location, description, vec![definition], file);
        return;
    }
    let spec = resolve(entry, &name, kind, file, builder);
    match builder.report_entry(&name, role, file) {
        None => builder.configuration.tools.push(spec),
        Some(disabled) => disabled.definitions = vec![spec.definition],
    }
}

/// What the keys say that every kind has.
fn define(
    entry: &ConfigNode,
    name: &str,
    kind: Option<&KindDescriptor>,
    file: &FileContext<'_>,
) -> ToolDefinition {
    let name = ToolName::plain(name);
    let keys: Vec<&str> = kind.into_iter().flat_map(KindDescriptor::spellings).collect();
    let kind = kind.map_or(UNKNOWN_KIND, |kind| kind.key);
    definition::resolve(entry, name, ToolSource::Internal, kind, &keys, file)
}

fn resolve(
    entry: ConfigNode,
    name: &str,
    kind: &KindDescriptor,
    file: &FileContext<'_>,
    builder: &ConfigurationBuilder,
) -> ToolSpec {
    let mut written = entry;
    let mut expanded = None;
    if let Some(expander) = file.expander()
        && Expander::has_references_in(&written, kind.expand)
    {
        let entry = expanded.insert(written.clone());
        expander.entry(entry, kind.expand, &file.diagnostics);
    }
    let mut credentials = Vec::new();
    if written.get("credentials").is_some() {
        let target = if kind.has_key("headers") {
            CredentialTarget::Requests
        } else if kind.has_key("env") {
            CredentialTarget::Program
        } else {
            CredentialTarget::Nothing
        };
        let entry = expanded.get_or_insert_with(|| written.clone());
        let named = EntryCredentials { entry, written: Some(&mut written), target, file };
        credentials = named.apply(&builder.credentials);
    }
    let mut definition = define(expanded.as_ref().unwrap_or(&written), name, Some(kind), file);
    definition.entry = Some(of_tool(&written, file));
    definition.credentials = credentials.into();
    let location = written.location();
    for entry in expanded.iter_mut().chain([&mut written]) {
        drop_schemas(entry);
    }
    let unexpanded = Arc::new(written);
    ToolSpec {
        definition,
        kind: kind.key,
        location,
        entry: expanded.map_or_else(|| Arc::clone(&unexpanded), Arc::new),
        unexpanded,
        base_dir: file.base_dir.clone(),
        defaults: file.defaults.clone(),
        scopes: Arc::clone(&file.scopes),
        grant: file.grant.clone(),
        seal: file.shared.consent.seal(FileRole::Tools, name),
    }
}

/// Puts the schema of anything in place of those that the definition has: they would be the most of a
/// large catalogue.
fn drop_schemas(entry: &mut ConfigNode) {
    let names_schema =
        |key: &str| INPUT_SCHEMA_KEYS.contains(&key) || OUTPUT_SCHEMA_KEYS.contains(&key);
    for (key, value) in entry.entries_mut().into_iter().flatten() {
        if names_schema(&key.text) && !value.entries().is_empty() {
            value.value = NodeValue::Bool(true);
        }
    }
}
