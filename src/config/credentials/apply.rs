//! Puts the values of the handles that an entry names where its transport needs them.

use super::{CredentialEntry, CredentialKeys, CredentialTable};
use crate::config::load::LoadContext;
use crate::config::node::{ConfigKey, ConfigNode, NodeValue};
use crate::config::references::AllowedReferences;
use crate::config::resolve::FileContext;
use crate::config::spec::CredentialSection;
use crate::config::typed::names;
use crate::model::{CredentialKind, CredentialUse, Diagnostic};

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
    pub file: &'e FileContext<'e>,
}

impl EntryCredentials<'_> {
    /// Inserts the value of each handle that the entry names.
    pub fn apply(mut self, table: &CredentialTable) -> Vec<CredentialUse> {
        let file = self.file;
        let diagnostics = &file.diagnostics;
        let mut uses: Vec<CredentialUse> = Vec::new();
        let node = self.entry.get("credentials").filter(|node| !node.is_null()).cloned();
        let Some(node) = node else { return uses };
        let handles = diagnostics.ok(node.as_texts()).unwrap_or_default();
        let items = match &node.value {
            NodeValue::List(items) => items.as_slice(),
            _ => std::slice::from_ref(&node),
        };
        for (handle, at) in handles.into_iter().zip(items) {
            if uses.iter().any(|used| used.handle == handle) {
                diagnostics.push(at.warning(format!("'{handle}' is listed twice")));
                continue;
            }
            let Some(credential) = table.find(&handle, file.layer) else {
                diagnostics.push(table.missing(&handle, file.layer, at));
                continue;
            };
            if diagnostics.ok(self.put(credential, at)).is_some() {
                uses.push(CredentialUse { handle, kind: credential.kind });
            }
        }
        uses
    }

    fn put(&mut self, credential: &CredentialEntry, at: &ConfigNode) -> Result<(), Diagnostic> {
        use CredentialKind::{ApiKey, Bearer, ClientCredentials, Env, Header, OAuth};
        use CredentialTarget::{Nothing, Program, Requests, Server};
        let shared = self.file.shared;
        let CredentialKeys { header, variable, .. } = &credential.keys;
        let header = || header.as_ref().map_or(API_KEY_HEADER, |name| name).to_owned();
        match (self.target, credential.kind) {
            (Program, Bearer | Header | ApiKey | Env) => {
                let Some(variable) = variable else {
                    return Err(unsuitable(credential, "a program gets variables", at)
                        .with_hint("set 'variable' of the credential to a variable's name"));
                };
                self.insert("env", variable, credential.value(shared, at)?, at)
            }
            (Server | Requests, Bearer) => {
                let token = credential.value(shared, at)?;
                self.login(&[("type", "bearer".to_owned()), ("token", token)], at)
            }
            (Server, Header | ApiKey) => {
                self.insert("headers", &header(), credential.value(shared, at)?, at)
            }
            (Server, OAuth | ClientCredentials) => {
                self.set_auth(credential.settings(self.file), at)
            }
            (Requests, Header | ApiKey) => {
                let value = credential.value(shared, at)?;
                let parts = [("type", "header".to_owned()), ("name", header()), ("value", value)];
                self.login(&parts, at)
            }
            (Server | Requests, _) => {
                Err(unsuitable(credential, "it cannot be sent with a request", at))
            }
            (Program, _) => Err(unsuitable(credential, "a program gets variables", at)),
            (Nothing, _) => Err(unsuitable(credential, "this kind of entry takes none", at)),
        }
    }

    /// Sets `auth`, unless the entry or another credential already does. The last part is the secret.
    fn login(&mut self, parts: &[(&str, String)], at: &ConfigNode) -> Result<(), Diagnostic> {
        let text = |text: String| at.with_value(NodeValue::Text(text));
        let pairs = parts.iter().map(|(key, value)| (key_at(key, at), text(value.clone())));
        let mut pairs: Vec<_> = pairs.collect();
        self.set_auth(at.with_value(NodeValue::map(pairs.clone())), at)?;
        if let Some(written) = self.written.as_mut().and_then(|node| node.entries_mut()) {
            if let Some((_, secret)) = pairs.last_mut() {
                let handle = at.as_scalar_text().unwrap_or_default();
                *secret = text(format!("${{credential:{handle}}}"));
            }
            written.push((key_at("auth", at), at.with_value(NodeValue::map(pairs))));
        }
        Ok(())
    }

    fn set_auth(&mut self, value: ConfigNode, at: &ConfigNode) -> Result<(), Diagnostic> {
        let existing = self.entry.get_any(&["auth", "oauth"]).filter(|(_, node)| !node.is_null());
        if let Some((key, _)) = existing {
            let message = format!("'{key}' and 'credentials' set the authentication twice");
            let hint = format!("remove '{key}', or name only one credential");
            return Err(at.error(message).with_hint(hint));
        }
        if let Some(pairs) = self.entry.entries_mut() {
            pairs.push((key_at("auth", at), value));
        }
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
        pairs.retain(|(key, node)| *key.text != *mapping || !node.is_null());
        if !pairs.iter().any(|(key, _)| *key.text == *mapping) {
            pairs.push((key_at(mapping, at), at.with_value(NodeValue::map(Vec::new()))));
        }
        let existing = pairs.iter_mut().find(|(key, _)| *key.text == *mapping);
        // If it is not a mapping, the code that reads the key reports it.
        let Some(own) = existing.and_then(|(_, node)| node.entries_mut()) else {
            return Ok(());
        };
        let is_header = mapping == "headers";
        let same = |key: &str| if is_header { key.eq_ignore_ascii_case(name) } else { key == name };
        if own.iter().any(|(key, _)| same(&key.text)) {
            return Err(at
                .error(format!("'{mapping}.{name}' is set twice"))
                .with_hint("remove it from the entry, or do not name the credential"));
        }
        own.push((key_at(name, at), at.with_value(NodeValue::Text(value))));
        Ok(())
    }
}

impl CredentialEntry {
    fn value(&self, shared: &LoadContext<'_>, at: &ConfigNode) -> Result<String, Diagnostic> {
        let Self { handle, section, .. } = self;
        let failed =
            |why: &str| at.error(format!("the credential '{handle}' cannot be used: {why}"));
        let written = self.keys.value.as_ref().map_or("", |value| value);
        let Some(expander) = shared.expander(section.grant.as_ref(), &section.base_dir) else {
            return Err(failed("its file is not trusted"));
        };
        let value = expander
            .text(written, AllowedReferences::Secrets)
            .map_err(|why| Diagnostic { hint: why.hint, ..failed(&why.message) })?;
        let value = value.trim();
        if value.is_empty() {
            return Err(failed("its value is empty"));
        }
        if value.chars().any(char::is_control) {
            return Err(failed("its value contains a control character"));
        }
        shared.expanded.credential(handle, value);
        Ok(value.to_owned())
    }

    /// The settings of a login, in the form of an entry's `auth`.
    fn settings(&self, file: &FileContext<'_>) -> ConfigNode {
        let mut settings = self.node.clone();
        let own = names::<CredentialKeys>();
        settings.entries_mut().into_iter().for_each(|pairs| {
            pairs.retain(|(key, _)| {
                let key = &*key.text;
                key == "type" || (!own.contains(&key) && !key.starts_with("x-"))
            });
        });
        let path = format!("credentials.{}", self.handle);
        let CredentialSection { grant, base_dir, .. } = &self.section;
        if let Some(expander) = file.shared.expander(grant.as_ref(), base_dir) {
            let allowed = AllowedReferences::Secrets;
            expander.value(&mut settings, &path, allowed, &file.diagnostics);
        }
        settings
    }
}

fn unsuitable(credential: &CredentialEntry, why: &str, at: &ConfigNode) -> Diagnostic {
    let CredentialEntry { handle, kind, .. } = credential;
    let message = format!("the credential '{handle}' ({}) does not fit: {why}", kind.as_str());
    at.error(message)
}

fn key_at(text: &str, at: &ConfigNode) -> ConfigKey {
    ConfigKey { text: text.into(), position: at.position }
}
