//! `credentials` of the files: handles for secrets, which entries name but never contain.
//!
//! Owns: reading the handles, which of them an entry may name, and inserting a value where the
//! entry's transport needs it. A value is read only for an entry that names its handle, with the
//! grant of the file that defines it. Never does: show a value.

mod apply;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Map;

use super::node::ConfigNode;
use super::references;
use super::resolve::auth::AuthKeys;
use super::spec::CredentialSection;
use super::typed::{self, Keys, Located};
use crate::model::{CredentialKind, Diagnostic, Diagnostics, Layer, check_name};
use crate::util::spelling::did_you_mean;

pub(super) use apply::{CredentialTarget, EntryCredentials};

/// One handle, as its file defines it.
struct CredentialEntry {
    handle: String,
    kind: CredentialKind,
    /// Its keys, unexpanded.
    keys: CredentialKeys,
    /// The mapping under the handle, unexpanded.
    node: ConfigNode,
    section: CredentialSection,
}

/// The handles of all files, highest precedence first.
#[derive(Default)]
pub(super) struct CredentialTable {
    entries: Vec<CredentialEntry>,
    broken: HashMap<(Layer, String), Diagnostic>,
}

impl CredentialTable {
    /// Reads the `credentials` of one file. Diagnostics are returned; a handle with an error cannot be
    /// used.
    pub fn read(&mut self, section: &CredentialSection) -> Vec<Diagnostic> {
        let CredentialSection { node, layer, .. } = section;
        let diagnostics = Diagnostics::default();
        if !node.is_null() && node.as_map().is_err() {
            diagnostics.push(node.expected("a mapping of handles").with_hint(
                "write credentials: { github: { type: bearer, value: \"${GITHUB_TOKEN}\" } }",
            ));
        }
        for (key, value) in node.entries() {
            let location = node.location_of(key);
            let handle = key.text.to_string();
            let is_same =
                |entry: &CredentialEntry| entry.section.layer == *layer && entry.handle == handle;
            if self.entries.iter().any(is_same) {
                let message = format!("duplicate credential '{handle}'");
                diagnostics.push(Diagnostic::error(message).with_location(location));
                continue;
            }
            let own = Diagnostics::default();
            if let Err(error) = check_name(&handle) {
                own.push(Diagnostic::error(error.to_string()).with_location(location));
            }
            let (checked, own) = (check(&handle, value, &own), own.take());
            match (checked, own.iter().find(|diagnostic| diagnostic.is_error())) {
                (Some((kind, keys)), None) => {
                    let (node, section) = (value.clone(), section.clone());
                    self.entries.push(CredentialEntry { handle, kind, keys, node, section });
                }
                (_, first) => {
                    let reason = first.cloned().unwrap_or_else(|| value.expected("a credential"));
                    self.broken.insert((*layer, handle), reason);
                }
            }
            diagnostics.extend(own);
        }
        diagnostics.take()
    }

    /// The handle that an entry of this layer refers to: an entry of a project sees those of its
    /// project before those of the user; any other entry sees none of a project's.
    fn find(&self, handle: &str, layer: Layer) -> Option<&CredentialEntry> {
        let named = || self.entries.iter().filter(|entry| entry.handle == handle);
        let own = named().find(|entry| entry.section.layer == layer);
        own.or_else(|| named().find(|entry| entry.section.layer != Layer::Project))
    }

    fn missing(&self, handle: &str, layer: Layer, at: &ConfigNode) -> Diagnostic {
        let broken = [layer, Layer::User].map(|layer| self.broken.get(&(layer, handle.to_owned())));
        if let Some(reason) = broken.into_iter().flatten().next() {
            let message = format!("the credential '{handle}' cannot be used: {}", reason.message);
            return at.error(message);
        }
        let visible = self.entries.iter().filter(|entry| {
            let owner = entry.section.layer;
            owner == layer || owner != Layer::Project
        });
        let handles: BTreeSet<&str> = visible.map(|entry| entry.handle.as_str()).collect();
        let hint = match did_you_mean(handle, handles.iter().copied()) {
            Some(hint) => hint,
            None if handles.is_empty() => {
                "no file defines one; define them under 'credentials' at the top of a file".into()
            }
            None => format!("known credentials: {}", Vec::from_iter(handles).join(", ")),
        };
        at.error(format!("unknown credential '{handle}'")).with_hint(hint)
    }
}

/// A handle for a secret. A login also has the keys of `auth`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct CredentialKeys {
    /// How it is sent: as a bearer token, a header, an environment variable of a program, or a login.
    #[serde(rename = "type")]
    kind: Option<CredentialKind>,
    /// The secret, as a reference such as ${VAR} or ${file:PATH}.
    value: Option<Located<String>>,
    /// header, api_key: the name of the header; default for api_key: X-API-Key.
    header: Option<Located<String>>,
    /// The environment variable that passes it to a program.
    variable: Option<Located<String>>,
    /// What it is for.
    #[expect(dead_code, reason = "for people")]
    description: Option<String>,
}

pub(super) fn is_header_name(name: &str) -> bool {
    http::HeaderName::try_from(name).is_ok()
}

/// The schema of `credentials`.
pub(super) fn handles(generator: &mut SchemaGenerator) -> Schema {
    let mut handle = Map::new();
    for keys in [Keys::of::<AuthKeys>(), Keys::of::<CredentialKeys>()] {
        handle.extend(keys.properties(generator));
    }
    json_schema!({
        "type": ["object", "null"],
        "additionalProperties": {
            "type": "object",
            "properties": handle,
            "required": ["type"],
            "patternProperties": { "^x-": true },
            "additionalProperties": false,
        },
    })
}

fn check(
    handle: &str,
    node: &ConfigNode,
    diagnostics: &Diagnostics,
) -> Option<(CredentialKind, CredentialKeys)> {
    let keys: CredentialKeys = typed::read_part(node, diagnostics)?;
    let Some(kind) = keys.kind else {
        if node.get("type").is_none_or(ConfigNode::is_null) {
            let diagnostic = node.error(format!("the credential '{handle}' has no 'type'"));
            let types = "add type: bearer, header, api_key, env, oauth or client_credentials";
            diagnostics.push(diagnostic.with_hint(types));
        }
        return None;
    };
    let is_login = matches!(kind, CredentialKind::OAuth | CredentialKind::ClientCredentials);
    let mut known = typed::names::<CredentialKeys>().to_vec();
    if is_login {
        // Read with the entry that names it, as its own 'auth' would be.
        known.extend(typed::names::<AuthKeys>());
    }
    diagnostics.extend(typed::unknown_keys(node, &known));
    let takes_header = matches!(kind, CredentialKind::Header | CredentialKind::ApiKey);
    let named = [
        ("value", &keys.value, !is_login, !is_login),
        ("header", &keys.header, takes_header, kind == CredentialKind::Header),
        ("variable", &keys.variable, !is_login, kind == CredentialKind::Env),
    ];
    for (key, written, has_effect, is_required) in named {
        match written {
            Some(written) if !has_effect => {
                let message = format!("'{key}' has no effect with the type {}", kind.as_str());
                diagnostics.push(written.error(message));
            }
            None if is_required && node.get(key).is_none_or(ConfigNode::is_null) => {
                let message = format!("a credential of the type {} needs '{key}'", kind.as_str());
                diagnostics.push(node.error(message));
            }
            _ => {}
        }
    }
    if let Some(name) = &keys.variable {
        if !references::is_name(name) {
            diagnostics.push(name.error(format!("'{}' is not a valid variable name", name.value)));
        } else if !references::is_setting(name) {
            // The trust question shows every other variable in full, but never a credential.
            let diagnostic = name.error(format!("'{}' cannot be set by a credential", name.value));
            let hint = "it may decide which code runs: set it under 'env' of the entry";
            diagnostics.push(diagnostic.with_hint(hint));
        }
    }
    if let Some(name) = keys.header.as_ref().filter(|name| !is_header_name(name)) {
        diagnostics.push(name.error(format!("invalid header name '{}'", name.value)));
    }
    Some((kind, keys))
}
