//! `credentials` of the files: handles for secrets, which entries name but never contain.
//!
//! Owns: reading the handles, which of them an entry may name, and inserting a value where the
//! entry's transport needs it. A value is read only for an entry that names its handle, with the
//! grant of the file that defines it. Never does: show a value.

mod apply;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;

use super::consent::EnvironmentAccess;
use super::keys::{self, AUTH, CREDENTIAL, canonical};
use super::node::{ConfigNode, NodeValue};
use super::permissions::unknown_kind;
use super::variables;
use crate::model::{CredentialKind, Diagnostic, Layer, check_name};
use crate::util::spelling::did_you_mean;

pub(super) use apply::{CredentialTarget, EntryCredentials};

/// One handle, as its file defines it.
#[derive(Clone)]
struct CredentialEntry<'a> {
    handle: String,
    kind: CredentialKind,
    /// The mapping under the handle, unexpanded.
    node: ConfigNode,
    layer: Layer,
    /// The way from its references to their values.
    access: EnvironmentAccess<'a>,
    /// What `${file:…}` is relative to.
    base_dir: PathBuf,
}

/// The handles of all files, highest precedence first.
#[derive(Default)]
pub(super) struct CredentialTable<'a> {
    entries: Vec<CredentialEntry<'a>>,
    broken: HashMap<(Layer, String), Diagnostic>,
}

impl<'a> CredentialTable<'a> {
    /// Reads the value of `credentials` of one file. Diagnostics are returned; a handle with an
    /// error cannot be used.
    pub fn read(
        &mut self,
        node: &ConfigNode,
        layer: Layer,
        access: &EnvironmentAccess<'a>,
        base_dir: &std::path::Path,
    ) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        let NodeValue::Map(handles) = &node.value else {
            if !node.is_null() {
                diagnostics.push(node.expected("a mapping of handles").with_hint(
                    "write credentials: { github: { type: bearer, value: \"${GITHUB_TOKEN}\" } }",
                ));
            }
            return diagnostics;
        };
        for (key, value) in handles {
            let location = node.location_of(key);
            let handle = key.text.clone();
            if self.entries.iter().any(|entry| entry.layer == layer && entry.handle == handle) {
                let message = format!("duplicate credential '{handle}'");
                diagnostics.push(Diagnostic::error(message).with_location(location));
                continue;
            }
            let before = diagnostics.len();
            if let Err(error) = check_name(&handle) {
                let diagnostic = Diagnostic::error(error.to_string()).with_location(location);
                diagnostics.push(diagnostic);
            }
            let kind = check(&handle, value, &mut diagnostics);
            let added = diagnostics.get(before..).unwrap_or_default();
            match (kind, added.iter().find(|diagnostic| diagnostic.is_error())) {
                (Some(kind), None) => self.entries.push(CredentialEntry {
                    handle,
                    kind,
                    node: value.clone(),
                    layer,
                    access: access.clone(),
                    base_dir: base_dir.to_path_buf(),
                }),
                (_, first) => {
                    let reason = first.cloned().unwrap_or_else(|| value.expected("a credential"));
                    self.broken.insert((layer, handle), reason);
                }
            }
        }
        diagnostics
    }

    /// The handle that an entry of this layer refers to: an entry of a project sees those of its
    /// project before those of the user; any other entry sees none of a project's.
    fn find(&self, handle: &str, layer: Layer) -> Option<&CredentialEntry<'a>> {
        let named = || self.entries.iter().filter(|entry| entry.handle == handle);
        let own = named().find(|entry| entry.layer == layer);
        own.or_else(|| named().find(|entry| entry.layer != Layer::Project))
    }

    fn handles(&self, layer: Layer) -> Vec<&str> {
        let may_name =
            |entry: &&CredentialEntry<'_>| entry.layer == layer || entry.layer != Layer::Project;
        let mut handles: Vec<&str> =
            self.entries.iter().filter(may_name).map(|entry| entry.handle.as_str()).collect();
        handles.sort_unstable();
        handles.dedup();
        handles
    }

    fn missing(&self, handle: &str, layer: Layer, at: &ConfigNode) -> Diagnostic {
        let broken = [layer, Layer::User].into_iter();
        let broken = broken.filter_map(|layer| self.broken.get(&(layer, handle.to_owned())));
        if let Some(reason) = broken.into_iter().next() {
            let message = format!("the credential '{handle}' cannot be used: {}", reason.message);
            return Diagnostic::error(message).with_location(at.location());
        }
        let handles = self.handles(layer);
        let diagnostic = Diagnostic::error(format!("unknown credential '{handle}'"));
        let diagnostic = match did_you_mean(handle, handles.iter().copied()) {
            Some(hint) => diagnostic.with_hint(hint),
            None if handles.is_empty() => diagnostic.with_hint(
                "no file defines one; define them under 'credentials' at the top of a file",
            ),
            None => diagnostic.with_hint(format!("known credentials: {}", handles.join(", "))),
        };
        diagnostic.with_location(at.location())
    }
}

fn check(
    handle: &str,
    node: &ConfigNode,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<CredentialKind> {
    let entries = ok_or_report(node.as_map(), diagnostics)?;
    let Some(word) = node.get("type") else {
        diagnostics.push(
            Diagnostic::error(format!("the credential '{handle}' has no 'type'"))
                .with_hint("add type: bearer, header, api_key, env, oauth or client_credentials")
                .with_location(node.location()),
        );
        return None;
    };
    let text = ok_or_report(word.as_text(), diagnostics)?;
    let Some(kind) = CredentialKind::parse(text) else {
        diagnostics.push(unknown_kind(text, word));
        return None;
    };
    let is_login = matches!(kind, CredentialKind::OAuth | CredentialKind::ClientCredentials);
    for (key, value) in entries {
        if is_login && canonical(AUTH, &key.text).is_some() && key.text != "type" {
            // Read with the entry that names it, as its own 'auth' would be.
            continue;
        }
        let Some(word) = canonical(CREDENTIAL, &key.text) else {
            if !key.text.starts_with("x-") {
                let spellings = keys::spellings(CREDENTIAL);
                diagnostics.push(
                    Diagnostic::warning(format!("unknown key '{}'", key.text))
                        .with_suggestion(&key.text, spellings)
                        .with_location(node.location_of(key)),
                );
            }
            continue;
        };
        let misplaced = match word {
            "header" => !matches!(kind, CredentialKind::Header | CredentialKind::ApiKey),
            "value" | "variable" => is_login,
            _ => false,
        };
        if misplaced {
            let message = format!("'{word}' has no effect with the type {}", kind.as_str());
            diagnostics.push(Diagnostic::error(message).with_location(node.location_of(key)));
        }
        ok_or_report(value.as_scalar_text(), diagnostics);
    }
    let required: &[&str] = match kind {
        CredentialKind::Bearer | CredentialKind::ApiKey => &["value"],
        CredentialKind::Header => &["value", "header"],
        CredentialKind::Env => &["value", "variable"],
        CredentialKind::OAuth | CredentialKind::ClientCredentials => &[],
    };
    for key in required.iter().filter(|key| node.get(key).is_none_or(ConfigNode::is_null)) {
        let message = format!("a credential of the type {} needs '{key}'", kind.as_str());
        diagnostics.push(Diagnostic::error(message).with_location(node.location()));
    }
    let name = |key: &str| node.get(key).and_then(|n| Some((n, n.as_scalar_text().ok()?)));
    if let Some((at, name)) = name("variable") {
        let wrong = if !variables::is_name(&name) {
            Some(Diagnostic::error(format!("'{name}' is not a valid variable name")))
        } else if !variables::is_setting(&name) {
            // The trust question shows every other variable in full, but never a credential.
            let refused = Diagnostic::error(format!("'{name}' cannot be set by a credential"));
            Some(
                refused.with_hint("it may decide which code runs: set it under 'env' of the entry"),
            )
        } else {
            None
        };
        diagnostics.extend(wrong.map(|diagnostic| diagnostic.with_location(at.location())));
    }
    if let Some((at, name)) = name("header") {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(is_token) {
            let message = format!("invalid header name '{name}'");
            diagnostics.push(Diagnostic::error(message).with_location(at.location()));
        }
    }
    Some(kind)
}

fn ok_or_report<T>(result: Result<T, Diagnostic>, diagnostics: &mut Vec<Diagnostic>) -> Option<T> {
    result.map_err(|diagnostic| diagnostics.push(diagnostic)).ok()
}
