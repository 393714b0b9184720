//! `${VAR}` and `~` in the places where they mean something.
//!
//! Owns: the syntax of references and where each is allowed. A value is expanded once and never
//! again: what a variable holds is never looked at. Every value that is put in is recorded in the
//! [`ExpandedValues`] that an expander cannot be made without. Never does: write an expanded value
//! into a message.
//!
//! | form | means |
//! |---|---|
//! | `${VAR}`, `${env:VAR}` | the variable; missing is an error of the entry |
//! | `${VAR:-default}` | the default when the variable is unset or empty |
//! | `${TOOLHOST}` | the running binary |
//! | `${file:PATH}` | the content of a file, without the last line break; headers, auth, env only |
//! | `$${` | a literal `${` |
//! | a leading `~` or `~/` | the home directory |

use std::path::Path;

use super::consent::Grant;
use super::environment::Environment;
use super::expanded::ExpandedValues;
use super::node::{ConfigNode, NodeValue};
use crate::model::Diagnostic;
use crate::util::regular_file;

/// The most bytes a `${file:…}` may hold.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// Which references a value may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedReferences {
    /// Variables and `~`.
    Variables,
    /// Those and `${file:…}`: values that are secrets.
    Secrets,
}

/// What a key's children may hold, from the list that holds for every entry.
pub fn allowed_in(key: &str) -> Option<AllowedReferences> {
    match key {
        "headers" | "auth" | "oauth" | "env" => Some(AllowedReferences::Secrets),
        "command" | "args" | "cwd" | "url" | "baseUrl" | "serverUrl" | "httpUrl"
        | "endpoint_url" | "base_url" | "root_dir" | "scopes" | "path" | "paths" | "discover"
        | "server_path" | "roots" | "sandbox" => Some(AllowedReferences::Variables),
        _ => None,
    }
}

/// The only way from a reference to its value. A [`Grant`] makes it, so there is none for a file
/// that nobody agreed to.
#[derive(Clone, Copy)]
pub struct Expander<'a> {
    environment: &'a dyn Environment,
    base_dir: &'a Path,
    expanded: &'a ExpandedValues,
}

impl<'a> Expander<'a> {
    /// An expander for a file in `base_dir`, which `${file:…}` is relative to. Whatever it puts in
    /// is recorded in `expanded`.
    pub(super) fn with_grant(
        _proof: &Grant,
        environment: &'a dyn Environment,
        base_dir: &'a Path,
        expanded: &'a ExpandedValues,
    ) -> Self {
        Self { environment, base_dir, expanded }
    }

    /// The value of a variable that an entry names without `${}`.
    pub fn variable(&self, name: &str) -> Option<String> {
        self.environment.expand(name, self.expanded)
    }

    /// Expands the values of a mapping in place, under the keys of the common list and those in
    /// `more`. All diagnostics are appended, so that an entry names all its missing variables at once.
    pub fn entry(&self, entry: &mut ConfigNode, more: &[&str], diagnostics: &mut Vec<Diagnostic>) {
        let NodeValue::Map(pairs) = &mut entry.value else { return };
        for (key, value) in pairs {
            let allowed = allowed_in(&key.text).or_else(|| {
                more.contains(&key.text.as_str()).then_some(AllowedReferences::Variables)
            });
            if let Some(allowed) = allowed {
                self.value(value, &key.text, allowed, diagnostics);
            }
        }
    }

    /// Whether [`Expander::entry`] would change anything, or have something to say.
    pub fn has_references_in(entry: &ConfigNode, more: &[&str]) -> bool {
        let NodeValue::Map(pairs) = &entry.value else { return false };
        let concerned = |key: &str| allowed_in(key).is_some() || more.contains(&key);
        pairs.iter().any(|(key, value)| concerned(&key.text) && holds_references(value))
    }

    /// Expands every text at or below `node`; `path` names it in messages.
    pub fn value(
        &self,
        node: &mut ConfigNode,
        path: &str,
        allowed: AllowedReferences,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        match &mut node.value {
            NodeValue::Text(text) if needs_expansion(text) => match self.text(text, allowed) {
                Ok(expanded) => *text = expanded,
                Err(why) => {
                    let message = format!("in '{path}': {}", why.message);
                    let mut diagnostic = Diagnostic::error(message).with_location(node.location());
                    diagnostic.hint = why.hint;
                    diagnostics.push(diagnostic);
                }
            },
            NodeValue::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, &format!("{path}[{index}]"), allowed, diagnostics);
                }
            }
            NodeValue::Map(pairs) => {
                for (key, value) in pairs {
                    self.value(value, &format!("{path}.{}", key.text), allowed, diagnostics);
                }
            }
            _ => {}
        }
    }

    /// Expands one text.
    ///
    /// # Errors
    /// A missing variable, a reference that is not allowed here, a form that does not exist.
    pub fn text(&self, text: &str, allowed: AllowedReferences) -> Result<String, ExpandError> {
        let mut out = String::with_capacity(text.len());
        let rest = self.tilde(text, &mut out)?;
        for piece in pieces(rest) {
            match piece {
                ReferencePiece::Text(text) => out.push_str(text),
                ReferencePiece::Escaped => out.push_str("${"),
                ReferencePiece::Reference(reference) => {
                    self.reference(reference, allowed, &mut out)?
                }
                ReferencePiece::Unclosed => {
                    return Err(ExpandError::new("a '${' without its '}'")
                        .hint("write '$${' for a literal '${'"));
                }
            }
        }
        Ok(out)
    }

    /// Writes the home directory for a leading `~`, and gives the rest of the text.
    fn tilde<'t>(&self, text: &'t str, out: &mut String) -> Result<&'t str, ExpandError> {
        match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = self.environment.home().ok_or_else(|| {
                    ExpandError::new("'~' cannot be expanded: there is no home directory")
                })?;
                out.push_str(&home.to_string_lossy());
                Ok(rest)
            }
            _ => Ok(text),
        }
    }

    fn reference(
        &self,
        reference: &str,
        allowed: AllowedReferences,
        out: &mut String,
    ) -> Result<(), ExpandError> {
        if let Some(path) = reference.strip_prefix("file:") {
            if allowed != AllowedReferences::Secrets {
                return Err(ExpandError::new("${file:…} is allowed in headers, auth and env only"));
            }
            out.push_str(&self.file(path)?);
            return Ok(());
        }
        if reference.starts_with("keyring:") {
            return Err(ExpandError::new(
                "${keyring:…} needs a keychain, which this build does not have",
            )
            .hint("use ${VAR} or ${file:PATH}"));
        }
        let named = reference.strip_prefix("env:").unwrap_or(reference);
        let (name, default) = match named.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (named, None),
        };
        let well_formed = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !well_formed {
            return Err(ExpandError::new(format!("'${{{reference}}}' is no reference")).hint(
                "use ${VAR}, ${VAR:-default}, ${env:VAR} or ${file:PATH}; '$${' is a literal '${'",
            ));
        }
        let value = match name {
            "TOOLHOST" => self.environment.executable().map(|p| p.to_string_lossy().into_owned()),
            _ => self.environment.expand(name, self.expanded),
        };
        match (value, default) {
            (Some(value), None) => out.push_str(&value),
            (Some(value), Some(_)) if !value.is_empty() => out.push_str(&value),
            (_, Some(default)) => {
                if default.contains("${") {
                    return Err(ExpandError::new("a default cannot hold another '${…}'"));
                }
                let rest = if out.is_empty() { self.tilde(default, out)? } else { default };
                out.push_str(rest);
            }
            (None, None) => {
                return Err(ExpandError::new(format!("the variable {name} is not set"))
                    .hint(format!("set {name}, or write ${{{name}:-default}}")));
            }
        }
        Ok(())
    }

    fn file(&self, written: &str) -> Result<String, ExpandError> {
        let mut expanded = String::new();
        let rest = self.tilde(written, &mut expanded)?;
        expanded.push_str(rest);
        let path = self.base_dir.join(expanded);
        let shown = path.display();
        let content = regular_file::text(&path, MAX_SECRET_BYTES)
            .map_err(|why| ExpandError::new(format!("cannot read {shown}: {why}")))?;
        let content = content.strip_suffix('\n').unwrap_or(&content);
        let content = content.strip_suffix('\r').unwrap_or(content).to_owned();
        self.expanded.file(written, &content);
        Ok(content)
    }
}

/// Whether a text at or below `node` would be expanded.
fn holds_references(node: &ConfigNode) -> bool {
    match &node.value {
        NodeValue::Text(text) => needs_expansion(text),
        NodeValue::List(items) => items.iter().any(holds_references),
        NodeValue::Map(pairs) => pairs.iter().any(|(_, value)| holds_references(value)),
        _ => false,
    }
}

/// Why a text could not be expanded. Never holds a value.
#[derive(Debug, PartialEq, Eq)]
pub struct ExpandError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl ExpandError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A piece of a text that may hold references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferencePiece<'t> {
    /// Text that stands for itself.
    Text(&'t str),
    /// `$${`, which stands for `${`.
    Escaped,
    /// What stands between `${` and `}`.
    Reference(&'t str),
    /// A `${` without its `}`; nothing comes after it.
    Unclosed,
}

/// The pieces of a text, in order.
pub fn pieces(text: &str) -> Vec<ReferencePiece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (before, escaped) = match before.strip_suffix('$') {
            Some(before) => (before, true),
            None => (before, false),
        };
        if !before.is_empty() {
            pieces.push(ReferencePiece::Text(before));
        }
        if escaped {
            pieces.push(ReferencePiece::Escaped);
            rest = after;
        } else if let Some((reference, tail)) = after.split_once('}') {
            pieces.push(ReferencePiece::Reference(reference));
            rest = tail;
        } else {
            pieces.push(ReferencePiece::Unclosed);
            return pieces;
        }
    }
    if !rest.is_empty() {
        pieces.push(ReferencePiece::Text(rest));
    }
    pieces
}

/// The variable that a reference names, if it names one.
pub fn variable(reference: &str) -> Option<&str> {
    let named = reference.strip_prefix("env:").unwrap_or(reference);
    let name = named.split_once(":-").map_or(named, |(name, _)| name);
    (!name.contains(':')).then_some(name)
}

/// Whether a text holds a reference: it depends on where it is loaded.
pub fn has_reference(text: &str) -> bool {
    text.contains("${")
}

fn needs_expansion(text: &str) -> bool {
    has_reference(text) || text.starts_with('~')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::environment::FixedEnvironment;

    fn expand(
        text: &str,
        vars: &[(&str, &str)],
        allowed: AllowedReferences,
    ) -> Result<String, ExpandError> {
        let environment = FixedEnvironment {
            vars: vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            root: Some("/r".into()),
            ..FixedEnvironment::default()
        };
        let expanded = ExpandedValues::default();
        let expander = Grant::own().expander(&environment, Path::new("/nowhere"), &expanded);
        expander.text(text, allowed)
    }

    #[test]
    fn every_form_is_expanded() {
        let vars = [("A", "one"), ("EMPTY", "")];
        for (text, expected) in [
            ("x${A}y${env:A}", "xoneyone"),
            ("${MISSING:-d}/${A:-d}/${EMPTY:-d}/${EMPTY}", "d/one/d/"),
            ("$${A} $A $$ $", "${A} $A $$ $"),
            ("~/x", "/r/home/x"),
            ("~", "/r/home"),
            ("~user/x", "~user/x"),
            ("a~", "a~"),
            ("${MISSING:-~/.local}/agent", "/r/home/.local/agent"),
            ("x${MISSING:-~/y}", "x~/y"),
            ("${TOOLHOST}", "/usr/bin/toolhost"),
            ("${MISSING:-}", ""),
        ] {
            assert_eq!(
                expand(text, &vars, AllowedReferences::Variables).as_deref(),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_expanded_says_why() {
        let why = |text| expand(text, &[], AllowedReferences::Variables).unwrap_err().message;
        assert_eq!(why("${NOPE}"), "the variable NOPE is not set");
        assert_eq!(why("${NOPE"), "a '${' without its '}'");
        assert_eq!(why("${input:id}"), "'${input:id}' is no reference");
        assert_eq!(
            why("${file:/etc/hostname}"),
            "${file:…} is allowed in headers, auth and env only"
        );
        assert!(why("${keyring:x}").contains("does not have"));
        assert_eq!(why("${A:-${B}}"), "a default cannot hold another '${…}'");
    }

    #[test]
    fn a_file_is_read_without_its_last_line_break() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("token"), "t0p ${A}\n").unwrap();
        let environment = FixedEnvironment::default();
        let expanded = ExpandedValues::default();
        let expander = Grant::own().expander(&environment, dir.path(), &expanded);
        let text = expander.text("Bearer ${file:token}", AllowedReferences::Secrets);
        assert_eq!(text.as_deref(), Ok("Bearer t0p ${A}"));
    }

    proptest! {
        #[test]
        fn a_value_cannot_inject_another_expansion(
            value in "([$~{}]|\\$\\{SECRET\\}|\\$\\$\\{|[a-z:/-]){0,12}",
            before in "[a-z/]{0,4}",
        ) {
            let text = format!("{before}${{A}}${{A:-x}}");
            let vars = [("A", value.as_str()), ("SECRET", "leaked")];
            let expanded = expand(&text, &vars, AllowedReferences::Variables).unwrap();
            let second = if value.is_empty() { "x" } else { &value };
            prop_assert_eq!(expanded, format!("{before}{value}{second}"));
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            drop(expand(&text, &[], AllowedReferences::Secrets));
        }
    }
}
