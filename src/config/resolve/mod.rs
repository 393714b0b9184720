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
use std::path::PathBuf;
use std::sync::Arc;

use super::consent::{Expander, Grant, TrustRequest};
use super::credentials::CredentialTable;
use super::load::LoadContext;
use super::node::{ConfigNode, NodeValue};
use super::parse::DuplicateKey;
use super::secrets::LiteralSecrets;
use super::spec::{Configuration, DisabledEntry, FileRole, Layer, UntrustedEntry};
use super::typed;
use crate::model::{Diagnostic, Diagnostics, SourceLocation, ToolDefinition};
use settings::DefaultsKeys;

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
    pub duplicates: Vec<DuplicateKey>,
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
    fn begin_entry(&mut self, entry: &ConfigNode, file: &mut FileContext<'_>) {
        self.report_file(file);
        let own = file.duplicates.extract_if(.., |duplicate| contains_duplicate(entry, duplicate));
        file.diagnostics.extend(own.map(|duplicate| duplicate.diagnostic));
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

fn contains_duplicate(node: &ConfigNode, duplicate: &DuplicateKey) -> bool {
    match &node.value {
        NodeValue::Map(entries) => entries
            .iter()
            .any(|(k, v)| k.position == duplicate.position || contains_duplicate(v, duplicate)),
        NodeValue::List(items) => items.iter().any(|item| contains_duplicate(item, duplicate)),
        _ => false,
    }
}
