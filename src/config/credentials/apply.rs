//! Puts the values of the handles that an entry names where its transport needs them.

use super::{CredentialEntry, CredentialKeys, CredentialTable};
use crate::config::node::{ConfigKey, ConfigNode, NodeValue};
use crate::config::references::AllowedReferences;
use crate::config::typed::names;
use crate::model::{CredentialKind, CredentialUse, Diagnostic, Layer};

const API_KEY_HEADER: &str = "X-API-Key";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum CredentialTarget {
    Program,
    /// An MCP server reached over HTTP: headers and logins.
    Server,
    /// A tool that sends requests: one header.
    Requests,
    Nothing,
}

pub(in crate::config) struct EntryCredentials<'e> {
    /// The entry, expanded; values are put into it.
    pub entry: &'e mut ConfigNode,
    pub written: Option<&'e mut ConfigNode>,
    pub target: CredentialTarget,
    pub layer: Layer,
}

impl EntryCredentials<'_> {
    /// Inserts the value of each handle that the entry names.
    pub fn apply(
        mut self,
        table: &CredentialTable<'_>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<CredentialUse> {
        let Some(node) = self.entry.get("credentials").filter(|node| !node.is_null()).cloned()
        else {
            return Vec::new();
        };
        let handles = match node.as_texts() {
            Ok(handles) => handles,
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                return Vec::new();
            }
        };
        let items = match &node.value {
            NodeValue::List(items) => items.as_slice(),
            _ => std::slice::from_ref(&node),
        };
        let mut uses: Vec<CredentialUse> = Vec::new();
        for (handle, at) in handles.into_iter().zip(items) {
            if uses.iter().any(|used| used.handle == handle) {
                let diagnostic = Diagnostic::warning(format!("'{handle}' is listed twice"));
                diagnostics.push(diagnostic.with_location(at.location()));
                continue;
            }
            let Some(credential) = table.find(&handle, self.layer) else {
                diagnostics.push(table.missing(&handle, self.layer, at));
                continue;
            };
            match self.put(credential, at, diagnostics) {
                Ok(()) => uses.push(CredentialUse { handle, kind: credential.kind }),
                Err(diagnostic) => diagnostics.push(diagnostic),
            }
        }
        uses
    }

    fn put(
        &mut self,
        credential: &CredentialEntry<'_>,
        at: &ConfigNode,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Result<(), Diagnostic> {
        use CredentialKind::{ApiKey, Bearer, ClientCredentials, Env, Header, OAuth};
        let CredentialKeys { header, variable, .. } = &credential.keys;
        let header = || header.as_ref().map_or(API_KEY_HEADER, |name| name).to_owned();
        match (self.target, credential.kind) {
            (CredentialTarget::Program, Bearer | Header | ApiKey | Env) => {
                let Some(variable) = variable else {
                    return Err(unsuitable(credential, "a program gets variables", at)
                        .with_hint("set 'variable' of the credential to a variable's name"));
                };
                let value = credential.value(at)?;
                self.insert("env", variable, value, at)
            }
            (CredentialTarget::Server | CredentialTarget::Requests, Bearer) => {
                let token = credential.value(at)?;
                self.login(&[("type", "bearer".to_owned()), ("token", token)], at)
            }
            (CredentialTarget::Server, Header | ApiKey) => {
                let value = credential.value(at)?;
                self.insert("headers", &header(), value, at)
            }
            (CredentialTarget::Server, OAuth | ClientCredentials) => {
                let settings = credential.settings(diagnostics);
                self.set_auth(settings, at)
            }
            (CredentialTarget::Requests, Header | ApiKey) => {
                let value = credential.value(at)?;
                let parts = [("type", "header".to_owned()), ("name", header()), ("value", value)];
                self.login(&parts, at)
            }
            (CredentialTarget::Server | CredentialTarget::Requests, _) => {
                Err(unsuitable(credential, "it cannot be sent with a request", at))
            }
            (CredentialTarget::Program, OAuth | ClientCredentials) => {
                Err(unsuitable(credential, "a program gets variables", at))
            }
            (CredentialTarget::Nothing, _) => {
                Err(unsuitable(credential, "this kind of entry takes none", at))
            }
        }
    }

    /// Sets `auth`, unless the entry or another credential already does.
    fn login(
        &mut self,
        parts: &[(&'static str, String)],
        at: &ConfigNode,
    ) -> Result<(), Diagnostic> {
        let secret = parts.last().map(|(key, _)| *key).unwrap_or_default();
        let handle = at.as_scalar_text().unwrap_or_default();
        let mapping = |shown: bool| {
            let pairs = parts.iter().map(|(key, value)| {
                let value = if shown && *key == secret {
                    format!("${{credential:{handle}}}")
                } else {
                    value.clone()
                };
                (key_at(key, at), node_at(NodeValue::Text(value), at))
            });
            node_at(NodeValue::map(pairs.collect()), at)
        };
        let (value, shown) = (mapping(false), mapping(true));
        self.set_auth(value, at)?;
        if let Some(written) = self.written.as_mut().and_then(|node| node.entries_mut()) {
            written.push((key_at("auth", at), shown));
        }
        Ok(())
    }

    fn set_auth(&mut self, value: ConfigNode, at: &ConfigNode) -> Result<(), Diagnostic> {
        if let Some((key, _)) =
            self.entry.get_any(&["auth", "oauth"]).filter(|(_, node)| !node.is_null())
        {
            return Err(Diagnostic::error(format!(
                "'{key}' and 'credentials' set the authentication twice"
            ))
            .with_hint(format!("remove '{key}', or name only one credential"))
            .with_location(at.location()));
        }
        let Some(pairs) = self.entry.entries_mut() else { return Ok(()) };
        pairs.push((key_at("auth", at), value));
        Ok(())
    }

    /// Adds a key to a mapping of the entry, which must not have it yet.
    fn insert(
        &mut self,
        mapping: &str,
        name: &str,
        value: String,
        at: &ConfigNode,
    ) -> Result<(), Diagnostic> {
        let Some(pairs) = self.entry.entries_mut() else { return Ok(()) };
        pairs.retain(|(key, node)| key.text != mapping || !node.is_null());
        if !pairs.iter().any(|(key, _)| key.text == mapping) {
            pairs.push((key_at(mapping, at), node_at(NodeValue::map(Vec::new()), at)));
        }
        let existing = pairs.iter_mut().find(|(key, _)| key.text == mapping);
        // If it is not a mapping, the code that reads the key reports it.
        let Some(own) = existing.and_then(|(_, node)| node.entries_mut()) else {
            return Ok(());
        };
        let is_header = mapping == "headers";
        let same = |key: &str| if is_header { key.eq_ignore_ascii_case(name) } else { key == name };
        if own.iter().any(|(key, _)| same(&key.text)) {
            return Err(Diagnostic::error(format!("'{mapping}.{name}' is set twice"))
                .with_hint("remove it from the entry, or do not name the credential")
                .with_location(at.location()));
        }
        own.push((key_at(name, at), node_at(NodeValue::Text(value), at)));
        Ok(())
    }
}

impl CredentialEntry<'_> {
    fn value(&self, at: &ConfigNode) -> Result<String, Diagnostic> {
        let Self { handle, .. } = self;
        let failed = |message: String| {
            Diagnostic::error(format!("the credential '{handle}' cannot be used: {message}"))
                .with_location(at.location())
        };
        let written = self.keys.value.as_ref().map_or("", |value| value);
        let Some(expander) = self.access.expander(&self.base_dir) else {
            return Err(failed("its file is not trusted".to_owned()));
        };
        let value = expander.text(written, AllowedReferences::Secrets).map_err(|why| {
            let diagnostic = failed(why.message);
            match why.hint {
                Some(hint) => diagnostic.with_hint(hint),
                None => diagnostic,
            }
        })?;
        let value = value.trim();
        if value.is_empty() {
            return Err(failed("its value is empty".to_owned()));
        }
        if value.chars().any(char::is_control) {
            return Err(failed("its value contains a control character".to_owned()));
        }
        self.access.record_credential(handle, value);
        Ok(value.to_owned())
    }

    /// The settings of a login, in the form of an entry's `auth`.
    fn settings(&self, diagnostics: &mut Vec<Diagnostic>) -> ConfigNode {
        let mut settings = self.node.clone();
        if let Some(pairs) = settings.entries_mut() {
            pairs.retain(|(key, _)| {
                let own = names::<CredentialKeys>();
                key.text == "type"
                    || (!own.contains(&key.text.as_str()) && !key.text.starts_with("x-"))
            });
        }
        let path = format!("credentials.{}", self.handle);
        if let Some(expander) = self.access.expander(&self.base_dir) {
            expander.value(&mut settings, &path, AllowedReferences::Secrets, diagnostics);
        }
        settings
    }
}

fn unsuitable(credential: &CredentialEntry<'_>, why: &str, at: &ConfigNode) -> Diagnostic {
    let CredentialEntry { handle, kind, .. } = credential;
    let message = format!("the credential '{handle}' ({}) does not fit: {why}", kind.as_str());
    Diagnostic::error(message).with_location(at.location())
}

fn node_at(value: NodeValue, at: &ConfigNode) -> ConfigNode {
    ConfigNode { value, position: at.position, source: std::sync::Arc::clone(&at.source) }
}

fn key_at(text: &str, at: &ConfigNode) -> ConfigKey {
    ConfigKey { text: text.into(), position: at.position }
}
