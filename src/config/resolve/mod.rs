//! Resolving expanded trees to specs.
//!
//! Owns: the meaning of each key, defaults, and the checks that configuration alone allows. A bad
//! entry goes out of service with its reason; the rest is unaffected. Never does: start, open or
//! contact anything an entry names (files that a schema refers to are read).

pub mod auth;
pub mod definition;
pub mod endpoint;
pub mod origin;
mod schema_types;
pub mod schemas;
pub mod servers;
pub mod settings;
mod tls;
pub mod tools;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::consent::{Consent, EnvironmentAccess, Expander, TrustRequest};
use super::credentials::CredentialTable;
use super::node::ConfigNode;
use super::parse::DuplicateKey;
use super::secrets::LiteralSecrets;
use super::spec::{Configuration, DisabledEntry, FileRole, KindDescriptor, Layer, UntrustedEntry};
use super::typed;
use crate::model::{Diagnostic, SourceLocation, ToolDefinition};
use settings::DefaultsKeys;

pub(super) struct FileContext<'a> {
    pub access: EnvironmentAccess<'a>,
    pub kinds: &'a [KindDescriptor],
    pub layer: Layer,
    /// Relative paths are relative to this: the file's directory.
    pub base_dir: PathBuf,
    pub project_root: Option<PathBuf>,
    /// The working directory for a server without `cwd`.
    pub default_cwd: PathBuf,
    /// Whether it belongs to a project, whose entries cannot replace the user's without consent.
    pub is_project: bool,
    pub root: &'a Path,
    /// For an ad-hoc server: the command-line arguments that name it again.
    pub command_end: Option<String>,
    pub duplicates: Vec<DuplicateKey>,
    /// The file's `schemas`, which its entries refer to by name.
    pub schemas: Option<ConfigNode>,
    pub defaults: Option<ConfigNode>,
    pub scopes: Arc<BTreeMap<String, PathBuf>>,
}

impl FileContext<'_> {
    /// Replaces references by values; `None` while the file is untrusted.
    pub fn expander(&self) -> Option<Expander<'_>> {
        self.access.expander(&self.base_dir)
    }

    /// The defaults for entries of the file. What is wrong with them is reported for the file.
    pub fn defaults(&self) -> DefaultsKeys {
        self.defaults.as_ref().and_then(typed::peek).unwrap_or_default()
    }
}

pub(super) struct ConfigurationBuilder<'a> {
    pub configuration: Configuration,
    pub consent: &'a Consent,
    pub literals: LiteralSecrets,
    pub credentials: CredentialTable<'a>,
    tools: NameTable,
    servers: NameTable,
}

impl<'a> ConfigurationBuilder<'a> {
    pub fn new(consent: &'a Consent) -> Self {
        Self {
            configuration: Configuration::default(),
            consent,
            literals: LiteralSecrets::default(),
            credentials: CredentialTable::default(),
            tools: NameTable::default(),
            servers: NameTable::default(),
        }
    }

    /// Reports the diagnostics of an entry, and puts it out of service if there is an error.
    /// Returns whether it stays in service.
    fn report_entry(&mut self, name: &str, role: FileRole, diagnostics: Vec<Diagnostic>) -> bool {
        let mut first = None;
        for diagnostic in diagnostics {
            let diagnostic = diagnostic.with_entry(name);
            if diagnostic.is_error() && first.is_none() {
                first = Some(diagnostic.clone());
            }
            self.configuration.diagnostics.push(diagnostic);
        }
        let in_service = first.is_none();
        if let Some(diagnostic) = first {
            self.configuration.disabled.push(DisabledEntry::new(name, role, diagnostic));
        }
        in_service
    }

    fn record_definitions(&mut self, definitions: Vec<ToolDefinition>) {
        if let Some(entry) = self.configuration.disabled.last_mut() {
            entry.definitions = definitions;
        }
    }

    /// Whether the user's own files reserve a name that an entry of a project has; if so, warns.
    fn is_users_name(
        &mut self,
        (name, is_component): (&str, bool),
        location: &SourceLocation,
        file: &FileContext<'_>,
    ) -> bool {
        let users_entry = if file.is_project {
            self.consent.user_entry_location(name, is_component)
        } else {
            None
        };
        let Some(own) = users_entry else { return false };
        let diagnostic = Diagnostic::warning(format!("ignored: it would replace your own {own}"))
            .with_hint("'toolhost trust' shows what a project would replace, and allows it");
        self.configuration
            .diagnostics
            .push(diagnostic.with_location(location.clone()).with_entry(name));
        true
    }

    /// Lists an entry that may not act, with what it would do and the command that allows it.
    fn add_untrusted(
        &mut self,
        (name, role, kind): (&str, FileRole, &'static str),
        location: SourceLocation,
        description: Option<String>,
        definitions: Vec<ToolDefinition>,
        diagnostics: Vec<Diagnostic>,
    ) {
        if !self.report_entry(name, role, diagnostics) {
            return self.record_definitions(definitions);
        }
        let request = self.consent.request.as_ref();
        self.configuration.untrusted.push(UntrustedEntry {
            name: name.to_owned(),
            role,
            kind,
            description,
            definitions,
            effects: request.map(|_| self.consent.effects_of(name)).unwrap_or_default(),
            trust_command: request
                .map_or_else(|| "toolhost trust".to_owned(), TrustRequest::command),
            reason: request.map_or_else(|| TrustRequest::default().reason(), TrustRequest::reason),
            is_declined: request.is_some_and(|request| request.refused_at.is_some()),
            location,
        });
    }

    /// Puts an entry out of service without reporting a diagnostic.
    fn add_switched_off(&mut self, name: &str, role: FileRole, location: SourceLocation) {
        let diagnostic =
            Diagnostic::warning("disabled in the file").with_location(location).with_entry(name);
        self.configuration.disabled.push(DisabledEntry::new(name, role, diagnostic));
    }
}

#[derive(Default)]
struct NameTable(HashMap<String, (SourceLocation, Layer)>);

enum NameClaim {
    Claimed,
    Shadowed,
    Taken(Diagnostic),
}

impl NameTable {
    fn claim(&mut self, name: &str, location: SourceLocation, layer: Layer) -> NameClaim {
        match self.0.get(name) {
            None => {
                self.0.insert(name.to_owned(), (location, layer));
                NameClaim::Claimed
            }
            Some((_, owner)) if *owner != layer => NameClaim::Shadowed,
            Some((first, _)) => NameClaim::Taken(
                Diagnostic::error(format!(
                    "duplicate name '{name}': first defined at {}:{}:{}",
                    first.file.display(),
                    first.line,
                    first.column
                ))
                .with_hint("rename one of them")
                .with_location(location),
            ),
        }
    }

    fn owner(&self, name: &str) -> Option<&SourceLocation> {
        self.0.get(name).map(|(location, _)| location)
    }
}

/// The value, or `None` and a diagnostic.
pub(super) fn ok_or_report<T>(
    diagnostics: &mut Vec<Diagnostic>,
    result: Result<T, Diagnostic>,
) -> Option<T> {
    result.map_err(|diagnostic| diagnostics.push(diagnostic)).ok()
}

/// Moves the duplicate keys of an entry from the file's list to the diagnostics of the entry.
fn take_duplicates(
    entry: &ConfigNode,
    duplicates: &mut Vec<DuplicateKey>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    duplicates.retain(|duplicate| {
        let mine = contains_duplicate(entry, duplicate);
        if mine {
            diagnostics.push(duplicate.diagnostic.clone());
        }
        !mine
    });
}

fn contains_duplicate(node: &ConfigNode, duplicate: &DuplicateKey) -> bool {
    use super::node::NodeValue;
    match &node.value {
        NodeValue::Map(entries) => entries
            .iter()
            .any(|(k, v)| k.position == duplicate.position || contains_duplicate(v, duplicate)),
        NodeValue::List(items) => items.iter().any(|item| contains_duplicate(item, duplicate)),
        _ => false,
    }
}
