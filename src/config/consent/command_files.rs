//! Which files a command line would execute.
//!
//! Owns: telling code from data among the arguments of a command. A program named by a path, the
//! script passed to an interpreter, and every argument that is executable, starts with `#!` or is
//! named like code. What a program loads beyond that is not covered.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::util::regular_file;

/// Programs whose first file argument is a script, whatever it is called.
const INTERPRETERS: [&str; 28] = [
    "python",
    "pypy",
    "node",
    "nodejs",
    "deno",
    "bun",
    "tsx",
    "ts-node",
    "ruby",
    "perl",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "ash",
    "osascript",
    "java",
    "groovy",
    "julia",
    "tclsh",
    "awk",
    "guile",
];

/// Extensions of files that contain code.
const EXTENSIONS: [&str; 45] = [
    "py", "pyw", "pyz", "pyc", "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx", "rb", "pl",
    "pm", "php", "phar", "lua", "sh", "bash", "zsh", "fish", "ksh", "ps1", "r", "jl", "jar",
    "class", "wasm", "so", "dylib", "dll", "exe", "awk", "tcl", "groovy", "kts", "scala", "clj",
    "ex", "exs", "go", "rs", "swift", "dart",
];

/// Files that an interpreter runs when its argument is a directory.
const ENTRY_POINTS: [&str; 5] =
    ["__main__.py", "__init__.py", "package.json", "index.js", "index.ts"];

/// The files among the arguments of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommandFiles {
    /// Files that would be run, as named.
    pub code: Vec<PathBuf>,
    /// Other files, which are shown to the user but not bound.
    pub data: Vec<PathBuf>,
}

/// Classifies the files named in the arguments of a command; relative ones are relative to `cwd`.
pub(super) fn command_files(argv: &[Option<String>], cwd: &Path) -> CommandFiles {
    let mut given = CommandFiles::default();
    let word = |index: usize| argv.get(index).and_then(Option::as_deref);
    let name = word(0).map(program_name).unwrap_or_default();
    let is_interpreter = is_interpreter(&name);
    let mut takes_script = is_interpreter;
    let mut index = 1;
    while index < argv.len() {
        let Some(text) = word(index) else {
            // Determined by a variable: its value may be the script.
            takes_script = false;
            index += 1;
            continue;
        };
        if is_interpreter && text == "-m" && name.starts_with("py") {
            if let Some(module) = word(index + 1) {
                given.code.extend(module_files(module, cwd));
            }
            takes_script = false;
            index += 2;
            continue;
        }
        if text.starts_with('-') {
            // An option may carry its file behind a '='.
            if let Some((_, value)) = text.split_once('=') {
                classify_argument(value, cwd, false, &mut given);
            }
            index += 1;
            continue;
        }
        let found = classify_argument(text, cwd, takes_script, &mut given);
        takes_script &= !found;
        index += 1;
    }
    given
}

/// The last part of a program's path, without a version.
fn program_name(program: &str) -> String {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned()
}

/// Whether a program of this name runs the file it is given.
pub(super) fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.contains(&name)
}

/// Classifies one argument; returns whether it names an existing file.
fn classify_argument(word: &str, cwd: &Path, is_script: bool, given: &mut CommandFiles) -> bool {
    if word.is_empty() || word.len() > 4096 || word.contains('\0') {
        return false;
    }
    let path: PathBuf = cwd.join(word).components().collect();
    let Ok(meta) = std::fs::metadata(&path) else { return false };
    if meta.is_dir() {
        if is_script {
            given.code.extend(entry_points(&path));
        }
        return is_script;
    }
    if !meta.is_file() {
        return false;
    }
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let is_code = is_script
        || EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
        || meta.permissions().mode() & 0o111 != 0
        || starts_like_a_script(&path);
    let list = if is_code { &mut given.code } else { &mut given.data };
    if !list.contains(&path) {
        list.push(path);
    }
    true
}

fn starts_like_a_script(path: &Path) -> bool {
    let Ok((mut file, _)) = regular_file::open(path) else { return false };
    let mut start = [0; 2];
    file.read_exact(&mut start).is_ok() && start == *b"#!"
}

/// What an interpreter would run from a directory.
fn entry_points(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ENTRY_POINTS
        .iter()
        .map(|name| directory.join(name))
        .filter(|path| path.is_file())
        .collect();
    if let Some(main) = main_of_package(&directory.join("package.json")) {
        let main: PathBuf = directory.join(main).components().collect();
        if main.is_file() && !found.contains(&main) {
            found.push(main);
        }
    }
    found
}

fn main_of_package(path: &Path) -> Option<String> {
    const MOST: u64 = 1 << 20;
    let text = regular_file::text(path, MOST).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(value.get("main")?.as_str()?.to_owned())
}

/// The files of a Python module that is run with `-m` from `cwd`.
fn module_files(module: &str, cwd: &Path) -> Vec<PathBuf> {
    let mut path = cwd.to_path_buf();
    let mut found = Vec::new();
    for part in module.split('.') {
        found.push(path.join(part).join("__init__.py"));
        path.push(part);
    }
    found.push(path.join("__main__.py"));
    found.push(path.with_extension("py"));
    found.retain(|file| file.is_file());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(files: &[(&str, u32, &str)], argv: &[&str]) -> (Vec<String>, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode, content) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode)).unwrap();
        }
        let argv: Vec<Option<String>> = argv.iter().map(|word| Some((*word).to_owned())).collect();
        let given = command_files(&argv, dir.path());
        let names = |paths: Vec<PathBuf>| {
            let name = |p: PathBuf| p.strip_prefix(dir.path()).unwrap().display().to_string();
            let mut names: Vec<String> = paths.into_iter().map(name).collect();
            names.sort_unstable();
            names
        };
        (names(given.code), names(given.data))
    }

    #[test]
    fn code_and_data_are_told_apart() {
        let files: &[(&str, u32, &str)] = &[
            ("plain", 0o644, "x"),
            ("data.json", 0o644, "{}"),
            ("tool.py", 0o644, "x"),
            ("go", 0o755, "x"),
            ("script", 0o644, "#!/bin/sh\n"),
            ("pkg/__init__.py", 0o644, ""),
            ("pkg/__main__.py", 0o644, ""),
            ("web/package.json", 0o644, r#"{"main":"lib/start.js"}"#),
            ("web/lib/start.js", 0o644, ""),
        ];
        for (argv, code, data) in [
            (&["python3.11", "plain", "data.json"][..], &["plain"][..], &["data.json"][..]),
            (&["python3", "-u", "tool.py", "plain"], &["tool.py"], &["plain"]),
            (&["uv", "run", "tool.py"], &["tool.py"], &[]),
            (
                &["python3", "-m", "pkg", "plain"],
                &["pkg/__init__.py", "pkg/__main__.py"],
                &["plain"],
            ),
            (
                &["node", "--import=./tool.py", "web"],
                &["tool.py", "web/lib/start.js", "web/package.json"],
                &[],
            ),
            (&["env", "A=b", "go"], &["go"], &[]),
            (&["cat", "script", "data.json"], &["script"], &["data.json"]),
            (&["bash", "-c", "plain"], &["plain"], &[]),
            (&["npx", "-y", "server@1"], &[], &[]),
        ] {
            let (found, rest) = sorted(files, argv);
            assert_eq!(
                (&found[..], &rest[..]),
                (
                    &code.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..],
                    &data.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..]
                ),
                "{argv:?}"
            );
        }
    }
}
