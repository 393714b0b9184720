//! Expanding `${VAR}` and `~` where the syntax allows them.
//!
//! | form | means |
//! |---|---|
//! | `${VAR}`, `${env:VAR}` | the variable; missing is an error of the entry |
//! | `${VAR:-default}` | the default when the variable is unset or empty |
//! | `${TOOLHOST}` | the running binary |
//! | `${workspaceFolder}`, `${userHome}` | the directory of the file, the home directory |
//! | `${input:NAME}` | what an editor asks for: the variable `TOOLHOST_INPUT_NAME` |
//! | `${file:PATH}` | the content of a file, without the last line break; headers, auth, env only |
//! | `$${` | a literal `${` |
//! | a leading `~` or `~/` | the home directory |
//!
//! The few references that are resolved before consent, so that a question can name the program:
//! `~`, `HOME`, `PATH`, the running binary and the project's directory. Nothing else of the
//! environment is read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::decision::Grant;
use super::keyring;
use crate::config::env_file;
use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::node::{ConfigNode, NodeValue};
use crate::config::references::{
    self, AllowedReferences, ReferencePiece, allowed_in, is_literal, needs_expansion, pieces,
    variable,
};
use crate::model::{Diagnostic, Diagnostics};
use crate::util::regular_file;

/// Maximum size of a `${file:…}` in bytes.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// The only way from a reference to its value. Only a [`Grant`] creates it, so there is none for an
/// untrusted file.
#[derive(Clone, Copy)]
pub struct Expander<'a> {
    environment: &'a dyn Environment,
    base_dir: &'a Path,
    expanded: &'a ExpandedValues,
}

impl<'a> Expander<'a> {
    /// An expander for a file in `base_dir`, which `${file:…}` is relative to. Every value it
    /// inserts is recorded in `expanded`.
    pub fn new(
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

    /// The variables in a file of `NAME=value` lines, whose path is already expanded.
    pub fn env_file(&self, written: &str) -> Result<Vec<(String, String)>, Diagnostic> {
        let path = self.base_dir.join(written);
        let shown = path.display();
        let content = regular_file::text(&path, env_file::MAX_BYTES)
            .map_err(|why| Diagnostic::error(format!("cannot read {shown}: {why}")))?;
        let variables = env_file::parse(&content)
            .map_err(|why| Diagnostic::error(format!("cannot read {shown}: {why}")))?;
        for (name, value) in &variables {
            if !references::is_setting(name) {
                let what = format!("{shown} sets {name}, which may decide what code runs");
                return Err(Diagnostic::error(what)
                    .with_hint(format!("set {name} in 'env', or give it a name like APP_{name}")));
            }
            self.expanded.file_variable(written, name, value);
        }
        Ok(variables)
    }

    /// Expands the values of a mapping in place, under the keys of the common list and those in
    /// `more`. All diagnostics are appended, so that an entry reports all missing variables at
    /// once.
    pub fn entry(&self, entry: &mut ConfigNode, more: &[&str], diagnostics: &Diagnostics) {
        for (key, value) in entry.entries_mut().into_iter().flatten() {
            let allowed = allowed_in(&key.text)
                .or_else(|| more.contains(&&*key.text).then_some(AllowedReferences::Variables));
            if let Some(allowed) = allowed {
                self.value(value, &key.text, allowed, diagnostics);
            }
        }
    }

    /// Whether [`Expander::entry`] would change or report anything.
    pub fn has_references_in(entry: &ConfigNode, more: &[&str]) -> bool {
        let NodeValue::Map(pairs) = &entry.value else { return false };
        let concerned = |key: &str| allowed_in(key).is_some() || more.contains(&key);
        pairs.iter().any(|(key, value)| concerned(&key.text) && !is_literal(value))
    }

    /// Expands every text at or below `node`; `path` names it in messages.
    pub fn value(
        &self,
        node: &mut ConfigNode,
        path: &str,
        allowed: AllowedReferences,
        diagnostics: &Diagnostics,
    ) {
        match &mut node.value {
            NodeValue::Text(text) if needs_expansion(text) => match self.text(text, allowed) {
                Ok(expanded) => *text = expanded,
                Err(why) => {
                    let message = format!("in '{path}': {}", why.message);
                    diagnostics.push(Diagnostic { message, ..why }.with_location(node.location()));
                }
            },
            NodeValue::List(items) => {
                for (index, item) in Arc::make_mut(items).iter_mut().enumerate() {
                    self.value(item, &format!("{path}[{index}]"), allowed, diagnostics);
                }
            }
            NodeValue::Map(pairs) => {
                for (key, value) in Arc::make_mut(pairs) {
                    self.value(value, &format!("{path}.{}", key.text), allowed, diagnostics);
                }
            }
            _ => {}
        }
    }

    pub fn text(&self, text: &str, allowed: AllowedReferences) -> Result<String, Diagnostic> {
        let mut out = String::with_capacity(text.len());
        let rest = self.tilde(text, &mut out)?;
        for piece in pieces(rest) {
            match piece {
                ReferencePiece::Text(text) => out.push_str(text),
                ReferencePiece::Escaped => out.push_str("${"),
                ReferencePiece::Reference(reference) => {
                    self.reference(reference, allowed, &mut out)?;
                }
                ReferencePiece::Unclosed => {
                    return Err(Diagnostic::error("unclosed '${'")
                        .with_hint("write '$${' for a literal '${'"));
                }
            }
        }
        Ok(out)
    }

    /// Writes the home directory for a leading `~`, and returns the rest of the text.
    fn tilde<'t>(&self, text: &'t str, out: &mut String) -> Result<&'t str, Diagnostic> {
        match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let home = self.environment.home().ok_or_else(|| {
                    Diagnostic::error("'~' cannot be expanded: there is no home directory")
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
    ) -> Result<(), Diagnostic> {
        let (source, name) = reference.split_once(':').unwrap_or_default();
        if matches!(source, "file" | "keyring") {
            if allowed != AllowedReferences::Secrets {
                let message = format!("${{{source}:…}} is only allowed in headers, auth and env");
                return Err(Diagnostic::error(message));
            }
            let read = |service: &str, account: &str| self.environment.keychain(service, account);
            out.push_str(&match source {
                "file" => self.file(name)?,
                _ => keyring::secret(name, read, self.expanded)?,
            });
            return Ok(());
        }
        if let Some(place) = references::place(reference, self.base_dir, self.environment) {
            out.push_str(&place);
            return Ok(());
        }
        if source == "input" {
            let variable = references::input_variable(name);
            let value = self.environment.expand(&variable, self.expanded).ok_or_else(|| {
                Diagnostic::error(format!("an editor would ask for '{name}' here"))
                    .with_hint(format!("set {variable}, or write a variable instead: ${{VAR}}"))
            })?;
            out.push_str(&value);
            return Ok(());
        }
        let named = reference.strip_prefix("env:").unwrap_or(reference);
        let (name, default) = match named.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (named, None),
        };
        if !references::is_name(name) {
            return Err(Diagnostic::error(format!("unsupported variable '${{{reference}}}'")).with_hint(
                "use ${VAR}, ${VAR:-default}, ${env:VAR} or ${file:PATH}; '$${' is a literal '${'",
            ));
        }
        let value = match name {
            "TOOLHOST" => self.environment.executable().map(|p| p.to_string_lossy().into_owned()),
            _ => self.environment.expand(name, self.expanded),
        };
        match (value, default) {
            (Some(value), default) if default.is_none() || !value.is_empty() => {
                out.push_str(&value);
            }
            (_, Some(default)) if default.contains("${") => {
                return Err(Diagnostic::error("a default cannot contain another '${…}'"));
            }
            (_, Some(default)) => {
                let rest = if out.is_empty() { self.tilde(default, out)? } else { default };
                out.push_str(rest);
            }
            (_, None) => {
                return Err(Diagnostic::error(format!("the variable {name} is not set"))
                    .with_hint(format!("set {name}, or write ${{{name}:-default}}")));
            }
        }
        Ok(())
    }

    fn file(&self, written: &str) -> Result<String, Diagnostic> {
        let mut expanded = String::new();
        let rest = self.tilde(written, &mut expanded)?;
        expanded.push_str(rest);
        let path = self.base_dir.join(expanded);
        let shown = path.display();
        let content = regular_file::text(&path, MAX_SECRET_BYTES)
            .map_err(|why| Diagnostic::error(format!("cannot read {shown}: {why}")))?;
        let content = content.strip_suffix('\n').unwrap_or(&content);
        let content = content.strip_suffix('\r').unwrap_or(content).to_owned();
        self.expanded.file(written, &content);
        Ok(content)
    }
}

/// Resolves what may be resolved before consent, in a text of a file in `base`. Fails with the references
/// that are not resolved, as written.
pub(super) fn resolve(
    text: &str,
    base: &Path,
    environment: &dyn Environment,
) -> Result<String, Vec<String>> {
    let mut out = String::with_capacity(text.len());
    let mut undecided = Vec::new();
    let home = || environment.home().map(|home| home.to_string_lossy().into_owned());
    let rest = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => match home() {
            Some(home) => {
                out.push_str(&home);
                rest
            }
            None => return Err(vec!["~".to_owned()]),
        },
        _ => text,
    };
    for piece in pieces(rest) {
        match piece {
            ReferencePiece::Text(text) => out.push_str(text),
            ReferencePiece::Escaped => out.push_str("${"),
            ReferencePiece::Unclosed => undecided.push("${".to_owned()),
            ReferencePiece::Reference(reference) => {
                let place = references::place(reference, base, environment);
                let value = match variable(reference) {
                    _ if place.is_some() => place,
                    Some("HOME") => environment.var("HOME"),
                    Some("PATH") => environment.var("PATH"),
                    Some("TOOLHOST") => {
                        environment.executable().map(|path| path.to_string_lossy().into_owned())
                    }
                    _ => None,
                };
                match value {
                    Some(value) => out.push_str(&value),
                    None => undecided.push(format!("${{{reference}}}")),
                }
            }
        }
    }
    if undecided.is_empty() { Ok(out) } else { Err(undecided) }
}

/// A path as returned by [`resolve`], below `base` if it is relative.
pub(super) fn path(text: &str, base: &Path, environment: &dyn Environment) -> Option<PathBuf> {
    let resolved = resolve(text, base, environment).ok()?;
    Some(base.join(resolved).components().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::environment::FixedEnvironment;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    fn expand(
        text: &str,
        vars: &[(&str, &str)],
        allowed: AllowedReferences,
    ) -> Result<String, Diagnostic> {
        let environment = FixedEnvironment {
            vars: vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            root: Some("/r".into()),
            ..FixedEnvironment::default()
        };
        let expanded = ExpandedValues::default();
        let expander = Expander::new(&Grant::own(), &environment, Path::new("/nowhere"), &expanded);
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
        assert_eq!(why("${NOPE"), "unclosed '${'");
        assert_eq!(why("${input:api-key}"), "an editor would ask for 'api-key' here");
        assert_eq!(why("${pathSeparator:x}"), "unsupported variable '${pathSeparator:x}'");
        assert_eq!(
            why("${file:/etc/hostname}"),
            "${file:…} is only allowed in headers, auth and env"
        );
        assert!(why("${keyring:x}").contains("only allowed in headers, auth and env"));
        assert_eq!(why("${A:-${B}}"), "a default cannot contain another '${…}'");
    }

    #[test]
    fn a_file_is_read_without_its_last_line_break() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("token"), "t0p ${A}\n").unwrap();
        let environment = FixedEnvironment::default();
        let expanded = ExpandedValues::default();
        let expander = Expander::new(&Grant::own(), &environment, dir.path(), &expanded);
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

    #[test]
    fn a_file_of_variables_sets_settings_and_nothing_that_decides_what_runs() {
        let dir = tempfile::tempdir().unwrap();
        let (environment, expanded) = (FixedEnvironment::default(), ExpandedValues::default());
        let expander = Expander::new(&Grant::own(), &environment, dir.path(), &expanded);
        let read = |content: &str| {
            std::fs::write(dir.path().join("vars"), content).unwrap();
            expander.env_file("vars")
        };
        assert_eq!(read("API_TOKEN=x\n").unwrap(), [("API_TOKEN".to_owned(), "x".to_owned())]);
        let refused = read("API_TOKEN=x\nLD_PRELOAD=y\n").unwrap_err();
        assert!(refused.message.contains("sets LD_PRELOAD"), "{}", refused.message);
    }

    #[test]
    fn an_entry_has_references_where_they_are_expanded() {
        for (text, more, expected) in [
            ("command: [a, '${X}']", &[][..], true),
            ("command: [a, b]", &[], false),
            ("description: '${X}'", &[], false),
            ("description: '${X}'", &["description"], true),
            ("description: x", &["description"], false),
            ("'${X}'", &["description"], false),
        ] {
            let entry = parse(&SourceText::new("f", text), text).unwrap();
            assert_eq!(Expander::has_references_in(&entry, more), expected, "{text} {more:?}");
        }
    }

    #[test]
    fn only_places_are_resolved_before_consent() {
        let mut environment =
            FixedEnvironment { root: Some("/r".into()), ..FixedEnvironment::default() };
        environment.vars.insert("PATH".into(), "/bin".into());
        environment.vars.insert("TOKEN".into(), "hunter2".into());
        let base = Path::new("/project");
        let resolved = |text: &str| resolve(text, base, &environment).ok();
        assert_eq!(resolved("~/x").as_deref(), Some("/r/home/x"));
        assert_eq!(resolved("${workspaceFolder}/x").as_deref(), Some("/project/x"));
        assert_eq!(resolved("${userHome}/x").as_deref(), Some("/r/home/x"));
        assert_eq!(resolved("./bin:${PATH}").as_deref(), Some("./bin:/bin"));
        assert_eq!(resolved("$${TOKEN}").as_deref(), Some("${TOKEN}"));
        for (text, decided_by) in [
            ("${TOKEN}", "${TOKEN}"),
            ("x${env:TOKEN}y", "${env:TOKEN}"),
            ("${TOKEN:-x}", "${TOKEN:-x}"),
            ("${file:/etc/passwd}", "${file:/etc/passwd}"),
            ("${keyring:x}", "${keyring:x}"),
            ("${input:x}", "${input:x}"),
        ] {
            let unresolved = Err(vec![decided_by.to_owned()]);
            assert_eq!(resolve(text, base, &environment), unresolved, "{text}");
        }
    }
}
