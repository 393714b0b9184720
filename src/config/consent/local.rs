//! The few references that are resolved before anybody agreed, so that a question can name the
//! program: `~`, `HOME`, `PATH` and the running binary. Nothing else of the environment is read.

use std::path::PathBuf;

use crate::config::environment::Environment;
use crate::config::expand::{Piece, pieces, variable};

/// A text without references, or the references that decide it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Local {
    /// The text as it will be.
    Known(String),
    /// The references in it that are not resolved before consent, as written.
    DecidedBy(Vec<String>),
}

impl Local {
    /// The text, when it is known.
    pub(super) fn known(self) -> Option<String> {
        match self {
            Self::Known(text) => Some(text),
            Self::DecidedBy(_) => None,
        }
    }
}

/// Resolves what may be resolved before consent.
pub(super) fn resolve(text: &str, environment: &dyn Environment) -> Local {
    let mut out = String::with_capacity(text.len());
    let mut undecided = Vec::new();
    let home = || environment.home().map(|home| home.to_string_lossy().into_owned());
    let rest = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => match home() {
            Some(home) => {
                out.push_str(&home);
                rest
            }
            None => return Local::DecidedBy(vec!["~".to_owned()]),
        },
        _ => text,
    };
    for piece in pieces(rest) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Escaped => out.push_str("${"),
            Piece::Unclosed => undecided.push("${".to_owned()),
            Piece::Reference(reference) => {
                let value = match variable(reference) {
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
    if undecided.is_empty() { Local::Known(out) } else { Local::DecidedBy(undecided) }
}

/// A path as [`resolve`] gives it, below `base` when it is relative.
pub(super) fn path(
    text: &str,
    base: &std::path::Path,
    environment: &dyn Environment,
) -> Option<PathBuf> {
    let known = resolve(text, environment).known()?;
    Some(base.join(known).components().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::environment::FixedEnvironment;

    #[test]
    fn only_places_are_resolved_before_consent() {
        let mut environment =
            FixedEnvironment { root: Some("/r".into()), ..FixedEnvironment::default() };
        environment.vars.insert("PATH".into(), "/bin".into());
        environment.vars.insert("TOKEN".into(), "hunter2".into());
        let known = |text: &str| resolve(text, &environment).known();
        assert_eq!(known("~/x").as_deref(), Some("/r/home/x"));
        assert_eq!(known("./bin:${PATH}").as_deref(), Some("./bin:/bin"));
        assert_eq!(known("$${TOKEN}").as_deref(), Some("${TOKEN}"));
        for (text, decided_by) in [
            ("${TOKEN}", "${TOKEN}"),
            ("x${env:TOKEN}y", "${env:TOKEN}"),
            ("${TOKEN:-x}", "${TOKEN:-x}"),
            ("${file:/etc/passwd}", "${file:/etc/passwd}"),
            ("${keyring:x}", "${keyring:x}"),
        ] {
            assert_eq!(
                resolve(text, &environment),
                Local::DecidedBy(vec![decided_by.to_owned()]),
                "{text}"
            );
        }
    }
}
