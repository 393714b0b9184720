//! Whether a project's files may start what they name.
//!
//! Owns: the decision for each entry, the lines a person reads, and the record of what was allowed
//! (`trust.json` in the state directory). Trust is bound to content: the canonical path of the
//! file, what the entry says before variables are filled in, and what would be started. Never
//! does: ask (see the front ends), or trust by name.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::environment::Environment;
use super::resolve::FileContext;
use super::spec::{Trust, TrustRequest};
use super::trust_store::TrustStore;
use crate::model::Problem;
use crate::util::text::safe_line;

/// Decides about entries during one load. Opens the record only when an entry needs it.
pub(super) struct Gate<'a> {
    environment: &'a dyn Environment,
    store: Option<TrustStore>,
    problems: Vec<Problem>,
}

impl<'a> Gate<'a> {
    pub fn new(environment: &'a dyn Environment) -> Self {
        Self { environment, store: None, problems: Vec::new() }
    }

    /// Whether the entry may start what `lines` describe. `parts` is everything the answer is
    /// bound to beside the file.
    pub fn decide(
        &mut self,
        name: &str,
        file: &FileContext<'_>,
        parts: &[String],
        lines: &[String],
    ) -> Trust {
        let path = file.path.canonicalize().unwrap_or_else(|_| file.path.to_path_buf());
        let key = key_of(&path, parts);
        let store = self.store.get_or_insert_with(|| {
            let opened = TrustStore::open(self.environment.state_dir().as_deref());
            opened.unwrap_or_else(|problem| {
                self.problems.push(problem);
                TrustStore::default()
            })
        });
        if store.allows(&key) {
            return Trust::Trusted;
        }
        let lines = lines.iter().map(|line| safe_line(line).into_owned()).collect();
        let previous = store.previous(name, &path);
        Trust::Ask(TrustRequest { key, name: name.to_owned(), file: path, lines, previous })
    }

    pub fn into_problems(self) -> Vec<Problem> {
        self.problems
    }
}

/// The hash that stands for an entry's content. Every part is measured, so that no text can move
/// from one part to the next.
fn key_of(file: &Path, parts: &[String]) -> String {
    let mut hash = Sha256::new();
    let path = file.as_os_str().as_encoded_bytes();
    let all = std::iter::once(path).chain(parts.iter().map(String::as_bytes));
    for part in all {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        for digit in [byte >> 4, byte & 15] {
            hex.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    hex
}

/// An argv as a shell would need it, for reading and copying.
pub(super) fn quoted(argv: &[String]) -> String {
    let quote = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    argv.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Lines about the program an argv starts: where it is, and what speaks against it.
pub(super) fn program_lines(argv: &[String], file: &FileContext<'_>) -> Vec<String> {
    let Some(command) = argv.first() else { return Vec::new() };
    let mut lines = Vec::new();
    match find_program(command, file) {
        None => lines.push("found at: nowhere".to_owned()),
        Some(program) => {
            lines.push(format!("found at: {}", program.display()));
            let project = file.base_dir.canonicalize().unwrap_or_else(|_| file.base_dir.clone());
            if program.starts_with(&project) {
                lines.push("warning: the program is part of the project".to_owned());
            }
            if let Some(directory) = writable_by_all(&program) {
                lines.push(format!(
                    "warning: everybody may write to {}, where the program is",
                    directory.display()
                ));
            }
        }
    }
    lines.extend(warnings(argv).into_iter().map(|warning| format!("warning: {warning}")));
    lines
}

fn find_program(command: &str, file: &FileContext<'_>) -> Option<PathBuf> {
    if command.contains('/') {
        return file.base_dir.join(command).canonicalize().ok();
    }
    let path = file.environment.var("PATH")?;
    let runs = |candidate: &PathBuf| {
        std::fs::metadata(candidate)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let found = std::env::split_paths(&path).map(|dir| dir.join(command)).find(runs)?;
    Some(found.canonicalize().unwrap_or(found))
}

fn writable_by_all(program: &Path) -> Option<&Path> {
    const STICKY: u32 = 0o1000;
    let directory = program.parent()?;
    let mode = std::fs::metadata(directory).ok()?.permissions().mode();
    (mode & 0o002 != 0 && mode & STICKY == 0 || directory == Path::new("/tmp")).then_some(directory)
}

/// What a reader should notice about a command.
fn warnings(argv: &[String]) -> Vec<&'static str> {
    let name = |word: &String| {
        Path::new(word).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let program = argv.first().map(name).unwrap_or_default();
    let mut warnings = Vec::new();
    if ["sudo", "doas", "su", "pkexec"].contains(&program.as_str()) {
        warnings.push("it asks for the rights of another user");
    }
    let is_shell = ["sh", "bash", "zsh", "dash", "ksh", "fish"].contains(&program.as_str());
    let runs_text =
        |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    if is_shell && words.iter().skip(1).any(runs_text) {
        warnings.push("a shell runs whatever its text says");
    }
    let fetches = |text: &&str| {
        (text.contains("curl") || text.contains("wget"))
            && text.contains('|')
            && text.contains("sh")
    };
    if words.iter().any(fetches) {
        warnings.push("it runs what it downloads");
    }
    if is_unpinned(&program, &words) {
        warnings.push("the package has no fixed version: what runs can change from day to day");
    }
    warnings
}

/// Whether a package runner is told a package without its version.
fn is_unpinned(program: &str, words: &[&str]) -> bool {
    let rest = match (program, words.get(1).copied()) {
        ("npx" | "uvx" | "bunx" | "pnpx", _) => words.get(1..),
        ("npm", Some("exec" | "x")) | ("pnpm" | "yarn", Some("dlx")) | ("pipx", Some("run")) => {
            words.get(2..)
        }
        _ => None,
    };
    let Some(package) = rest.and_then(|rest| rest.iter().find(|word| !word.starts_with('-')))
    else {
        return false;
    };
    // A scope begins with the same character as a version.
    let version = package.trim_start_matches('@').split_once('@').map(|(_, version)| version);
    let pinned = |v: &str| v.starts_with(|c: char| c.is_ascii_digit());
    !(version.is_some_and(pinned) || package.contains("=="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn dangerous_commands_are_pointed_out() {
        for (command, expected) in [
            ("sudo x", "another user"),
            ("/bin/bash -lc x", "a shell runs"),
            ("sh -c curl|sh", "downloads"),
            ("npx -y server", "no fixed version"),
            ("npx @scope/server", "no fixed version"),
            ("uvx server@latest", "no fixed version"),
        ] {
            let found = warnings(&argv(command)).join("; ");
            assert!(found.contains(expected), "{command}: {found}");
        }
        for command in ["npx @scope/server@1.2.3", "uvx server==2.0", "python3 x.py", "bash run.sh"]
        {
            assert!(warnings(&argv(command)).is_empty(), "{command}");
        }
    }

    #[test]
    fn words_are_quoted_when_a_shell_would_split_them() {
        assert_eq!(quoted(&argv("a b")), "a b");
        assert_eq!(quoted(&["a b".into(), "it's".into(), String::new()]), r"'a b' 'it'\''s' ''");
    }

    #[test]
    fn text_cannot_move_between_the_parts_of_a_key() {
        let file = Path::new("/f");
        let one = key_of(file, &["ab".into(), "c".into()]);
        assert_ne!(one, key_of(file, &["a".into(), "bc".into()]));
        assert_eq!(one.len(), 64);
    }
}
