//! The few references that are resolved before consent, so that a question can name the program:
//! `~`, `HOME`, `PATH`, the running binary and the project's directory. Nothing else of the
//! environment is read.

use std::path::{Path, PathBuf};

use crate::config::editor_references;
use crate::config::environment::Environment;
use crate::config::references::{ReferencePiece, pieces, variable};

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
                let place = editor_references::place(reference, base, environment);
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
    use super::*;
    use crate::config::environment::FixedEnvironment;

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
