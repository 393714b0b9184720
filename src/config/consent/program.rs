//! Resolving the program an entry would start, and warnings about it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::command_files::{CommandFiles, CommandLine};
use super::effect::{EntrySite, ProgramEffect};
use super::expander;
use crate::config::environment::Environment;
use crate::util::process::DEFAULT_PATH;

/// What is known about a program before it may be started.
#[derive(Debug)]
pub(super) struct ProgramInfo {
    /// Where it was found; `None` if it was not found or depends on a variable.
    pub program: Option<PathBuf>,
    pub decided_by: Vec<String>,
    pub files: CommandFiles,
}

/// Inspects what a program effect would start, as far as that is known without the user's
/// variables. Returns the command line too, which is inspected again before a start.
pub(super) fn inspect(
    effect: &ProgramEffect,
    (base_dir, root): (&Path, &Path),
    environment: &dyn Environment,
) -> (ProgramInfo, CommandLine) {
    let mut decided_by = Vec::new();
    let mut resolve_text = |text: &str| {
        let resolved = expander::resolve(text, base_dir, environment);
        resolved.map_err(|references| decided_by.extend(references)).ok()
    };
    let word = effect.argv.first().and_then(|word| resolve_text(word));
    let cwd = match &effect.cwd {
        Some(written) => resolve_text(written).map(|cwd| base_dir.join(cwd).components().collect()),
        None => Some(effect.usual_cwd.clone()),
    };
    let variable = |name| effect.env.iter().find(|(own, _)| own == name).map(|(_, value)| value);
    let path = match variable("PATH") {
        // Names are not looked up if a variable determines the directories.
        Some(written) => resolve_text(written),
        None => Some(environment.var("PATH").unwrap_or_else(|| DEFAULT_PATH.to_owned())),
    };
    let local = |text: &String| expander::resolve(text, base_dir, environment).ok();
    let line = CommandLine {
        argv: effect.argv.iter().map(local).collect(),
        found_from: effect.found_from.clone().or_else(|| cwd.clone()),
        cwd,
        path,
        python_path: variable("PYTHONPATH").and_then(local),
        home: environment.home(),
    };
    let files = line.files(root);
    let program = word.and_then(|word| files.programs.get(&word).cloned());
    decided_by.sort_unstable();
    decided_by.dedup();
    (ProgramInfo { program, decided_by, files }, line)
}

pub(super) fn warnings(argv: &[String], program: Option<&Path>) -> Vec<String> {
    let mut warnings: Vec<String> =
        argument_warnings(argv).into_iter().map(str::to_owned).collect();
    if let Some(directory) = program.and_then(writable_by_all) {
        warnings.push(format!("anyone can write to {}", directory.display()));
    }
    warnings
}

fn writable_by_all(program: &Path) -> Option<&Path> {
    const STICKY: u32 = 0o1000;
    let directory = program.parent()?;
    let mode = std::fs::metadata(directory).ok()?.permissions().mode();
    (mode & 0o002 != 0 && mode & STICKY == 0 || directory == Path::new("/tmp")).then_some(directory)
}

fn argument_warnings(argv: &[String]) -> Vec<&'static str> {
    let name = |word: &String| {
        Path::new(word).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let program = argv.first().map(name).unwrap_or_default();
    let mut warnings = Vec::new();
    if ["sudo", "doas", "su", "pkexec"].contains(&program.as_str()) {
        warnings.push("asks for another user's privileges");
    }
    let is_shell = ["sh", "bash", "zsh", "dash", "ksh", "fish"].contains(&program.as_str());
    let runs_text =
        |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    if is_shell && words.iter().skip(1).any(runs_text) {
        warnings.push("runs shell code");
    }
    let fetches = |text: &&str| {
        (text.contains("curl") || text.contains("wget"))
            && text.contains('|')
            && text.contains("sh")
    };
    if words.iter().any(fetches) {
        warnings.push("runs code that it downloads");
    }
    if is_unpinned(&program, &words) {
        warnings.push("no fixed version: the package can change at any time");
    }
    warnings
}

/// Whether a package runner gets a package without a version.
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
    // A scope starts with the same character as a version.
    let version = package.trim_start_matches('@').split_once('@').map(|(_, version)| version);
    let pinned = |v: &str| v.starts_with(|c: char| c.is_ascii_digit());
    !(version.is_some_and(pinned) || package.contains("=="))
}

/// The working directory of a program, if it is not the default and worth showing.
pub(super) fn unusual_cwd(effect: &ProgramEffect, site: &EntrySite<'_>) -> Option<String> {
    let written = effect.cwd.as_ref()?;
    let is_root = site.path(written).is_some_and(|path| path == site.base_dir);
    (!is_root).then(|| written.clone())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::environment::FixedEnvironment;

    fn argv(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn dangerous_commands_are_pointed_out() {
        for (command, expected) in [
            ("sudo x", "another user"),
            ("/bin/bash -lc x", "shell code"),
            ("sh -c curl|sh", "downloads"),
            ("npx -y server", "no fixed version"),
            ("npx @scope/server", "no fixed version"),
            ("uvx server@latest", "no fixed version"),
        ] {
            let text = warnings(&argv(command), None).join("; ");
            assert!(text.contains(expected), "{command}: {text}");
        }
        for command in [
            "npx @scope/server@1.2.3",
            "uvx server==2.0",
            "python3 x.py",
            "bash run.sh",
            "bash check.sh",
            "bash -x run.sh",
            "bash --rcfile x",
            "cat curl.sh",
        ] {
            assert!(warnings(&argv(command), None).is_empty(), "{command}");
        }
    }

    #[test]
    fn a_directory_that_anyone_can_write_to_is_pointed_out() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        for (mode, is_said) in [(0o777, true), (0o703, true), (0o1777, false), (0o755, false)] {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let text = format!("anyone can write to {}", dir.path().display());
            let expected: Vec<String> = is_said.then_some(text).into_iter().collect();
            assert_eq!(warnings(&argv("x"), Some(&program)), expected, "{mode:o}");
        }
        let known = warnings(&argv("x"), Some(Path::new("/tmp/program")));
        assert_eq!(known, ["anyone can write to /tmp"], "sticky or not");
    }

    #[test]
    fn a_program_is_found_in_the_directories_that_its_entry_sets() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("bin")).unwrap();
        let program = root.join("bin/own");
        std::fs::write(&program, "x").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut effect = ProgramEffect {
            argv: argv("own"),
            usual_cwd: root.clone(),
            ..ProgramEffect::default()
        };
        let found = |effect: &ProgramEffect| {
            inspect(effect, (&root, &root), &FixedEnvironment::default()).0.program
        };
        assert_eq!(found(&effect), None);
        effect.env = [("OTHER", "/bin"), ("PATH", "${workspaceFolder}/bin")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        assert_eq!(found(&effect), Some(program));
    }

    #[test]
    fn a_working_directory_is_shown_unless_it_is_that_of_the_file() {
        let (base, scopes) = (Path::new("/p"), BTreeMap::new());
        let environment = FixedEnvironment::default();
        let site = EntrySite::new(base, base, &scopes, None, &environment);
        for (written, expected) in [
            (None, None),
            (Some("."), None),
            (Some("/p"), None),
            (Some("sub"), Some("sub")),
            (Some("${ELSEWHERE}"), Some("${ELSEWHERE}")),
        ] {
            let cwd = written.map(str::to_owned);
            let effect = ProgramEffect { cwd, ..ProgramEffect::default() };
            assert_eq!(unusual_cwd(&effect, &site).as_deref(), expected, "{written:?}");
        }
    }
}
