//! Which programs and files a command line would run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::config::references::is_name;
use crate::util::process::resolve;
use crate::util::regular_file;
use crate::util::text::is_one_of;

/// Programs whose first file argument is a script, whatever it is called.
const INTERPRETERS: &str = "python pypy node nodejs deno bun tsx ts-node ruby perl php lua luajit \
    Rscript sh bash dash zsh ksh fish ash busybox osascript java groovy julia tclsh expect awk \
    gawk mawk guile pwsh elixir escript qjs source";

const EXTENSIONS: [&str; 45] = [
    "py", "pyw", "pyz", "pyc", "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx", "rb", "pl",
    "pm", "php", "phar", "lua", "sh", "bash", "zsh", "fish", "ksh", "ps1", "r", "jl", "jar",
    "class", "wasm", "so", "dylib", "dll", "exe", "awk", "tcl", "groovy", "kts", "scala", "clj",
    "ex", "exs", "go", "rs", "swift", "dart",
];

/// Extensions that an interpreter adds to the name of a script or module.
const ADDED: [&str; 12] =
    ["js", "cjs", "mjs", "json", "node", "ts", "mts", "tsx", "jsx", "class", "rb", "lua"];

const ENTRY_POINTS: [&str; 5] =
    ["__main__.py", "__init__.py", "package.json", "index.js", "index.ts"];

/// Options whose value is code, or decides which code runs.
const LOADS: &str = "-r -f -I -cp -jar -classpath --class-path --require --import --loader \
    --experimental-loader --preload --env-file --env-file-if-exists --init-file --rcfile --config \
    --config-file --userconfig --globalconfig --import-map --lock --script --file --makefile \
    --requirements --with-requirements --constraints --from --with-editable --tsconfig --package";

/// Programs that fetch or choose the code they run, and the files that decide about it, in the
/// working directory and above.
const RUNNERS: [(&[&str], &[&str]); 12] = [
    (&NODE_RUNNERS, &[".npmrc", "package.json"]),
    (&["yarn", "corepack"], &[".yarnrc", ".yarnrc.yml", ".pnp.cjs"]),
    (&["pnpm", "pnpx"], &["pnpm-workspace.yaml", ".pnpmfile.cjs"]),
    (&["bun", "bunx"], &["bunfig.toml", ".env", ".env.local"]),
    (&["deno"], &["deno.json", "deno.jsonc", "deno.lock", "package.json", ".npmrc"]),
    (
        &["uv", "uvx", "pip", "pipx", "poetry", "pdm", "hatch", "rye", "pixi"],
        &["uv.toml", "uv.lock", "pyproject.toml", ".python-version", "pip.conf", "poetry.toml"],
    ),
    (&["go"], &["go.mod", "go.sum", "go.work"]),
    (&["cargo"], &[".cargo/config.toml", ".cargo/config", "Cargo.toml", "rust-toolchain.toml"]),
    (
        &["docker", "podman", "docker-compose"],
        &["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", ".env"],
    ),
    (&["bundle"], &["Gemfile", "Gemfile.lock", ".bundle/config"]),
    (&["dotnet", "dnx"], &["nuget.config", "NuGet.Config", "NuGet.config", "global.json"]),
    (
        &["make", "gmake", "just", "rake"],
        &["GNUmakefile", "makefile", "Makefile", "justfile", ".justfile", "Justfile", "Rakefile"],
    ),
];

/// Those that run a package below `node_modules` instead, if it is there.
const NODE_RUNNERS: [&str; 8] = ["npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun", "corepack"];

/// How deep `#!` lines and texts of several words are followed; the kernel follows five.
const MAX_DEPTH: usize = 6;
const MAX_WORDS: usize = 4_096;
/// The most bytes of a `#!` line that are read; the kernel reads 256.
const MAX_LINE: u64 = 512;
/// The most directories that relative names are tried in, and packages that are looked for.
const MAX_NAMED: usize = 8;

/// A command line, as far as it is known before the user's variables are read.
#[derive(Debug, Clone, Default)]
pub(super) struct CommandLine {
    /// The program and its arguments; `None` for what a variable decides.
    pub argv: Vec<Option<String>>,
    pub cwd: Option<PathBuf>,
    pub found_from: Option<PathBuf>,
    pub path: Option<String>,
    /// The `PYTHONPATH` that the entry sets.
    pub python_path: Option<String>,
    /// The user's home directory: what is there and above is the user's own.
    pub home: Option<PathBuf>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommandFiles {
    pub programs: BTreeMap<String, PathBuf>,
    pub code: Vec<PathBuf>,
    /// Files that decide which code a runner fetches, whether they exist or not.
    pub settings: BTreeSet<PathBuf>,
    /// Other files, which are shown to the user but not bound.
    pub data: Vec<PathBuf>,
}

impl CommandLine {
    /// The programs and files of this command line, as things stand now. `root` is that of the
    /// project.
    pub fn files(&self, root: &Path) -> CommandFiles {
        let mut reading = Reading {
            line: self,
            root,
            path: self.path.clone(),
            bases: self.cwd.iter().cloned().collect(),
            modules: self.python_path.clone().unwrap_or_default(),
            runners: Vec::new(),
            packages: Vec::new(),
            words_left: MAX_WORDS,
            files: CommandFiles::default(),
        };
        let script = match (self.argv.first(), &self.found_from) {
            (Some(Some(program)), Some(from)) => reading.program(program, from, 0),
            // A variable decides it: it may be any interpreter.
            _ => Some("python".to_owned()),
        };
        reading.words(self.argv.get(1..).unwrap_or_default(), script, 0);
        reading.settings();
        reading.files
    }
}

struct Reading<'l> {
    line: &'l CommandLine,
    root: &'l Path,
    /// The directories searched for programs, as the words so far leave them.
    path: Option<String>,
    /// The working directory, and every directory named so far: a word may be relative to each.
    bases: Vec<PathBuf>,
    modules: String,
    runners: Vec<String>,
    packages: Vec<String>,
    words_left: usize,
    files: CommandFiles,
}

/// What the word before says about a word.
#[derive(PartialEq, Eq)]
enum Next {
    Any,
    Code,
    /// It is code in the language of the interpreter.
    Text,
    Module,
}

impl Reading<'_> {
    /// Reads the words behind a program; `script` is the interpreter that has not got its script yet.
    fn words(&mut self, words: &[Option<String>], mut script: Option<String>, depth: usize) {
        let Some(cwd) = self.bases.first().cloned() else { return };
        let mut next = Next::Any;
        for word in words {
            let before = std::mem::replace(&mut next, Next::Any);
            // A variable decides it: it may be an option as well as the script.
            let Some(text) = word else { continue };
            if self.words_left == 0 {
                return;
            }
            self.words_left -= 1;
            if before == Next::Module {
                self.module(text, depth);
                script = None;
            } else if text.len() > 1 && text.starts_with('-') {
                let python = script.as_deref().is_some_and(|name| name.starts_with("py"));
                match module_option(text).filter(|_| python) {
                    Some("") => next = Next::Module,
                    Some(module) => {
                        self.module(module, depth);
                        script = None;
                    }
                    None => next = self.option(text, script.as_deref(), depth),
                }
            } else {
                match text.split_once('=').filter(|(name, _)| is_name(name)) {
                    Some((name, value)) => self.assignment(name, value, depth),
                    None if text.contains(char::is_whitespace) => self.text(text, depth),
                    None => {}
                }
                let is_value = before == Next::Code;
                let is_file = self.file(text, script.is_some() || is_value, depth);
                if !is_value {
                    script = script.filter(|_| !is_file && before != Next::Text);
                    script = self.program(text, &cwd, depth).or(script);
                }
            }
        }
    }

    /// A word that may name a program; returns its name if it runs the file it is given.
    fn program(&mut self, word: &str, from: &Path, depth: usize) -> Option<String> {
        self.package(word);
        let name = program_name(word);
        if RUNNERS.iter().any(|(runners, _)| runners.contains(&name.as_str())) {
            self.runners.push(name.clone());
        }
        let interpreter = is_one_of(&name, INTERPRETERS).then_some(name);
        let is_path = word.contains('/');
        if word.len() > 4096 || (!is_path && self.path.is_none()) {
            return interpreter;
        }
        let Ok(program_path) = resolve(word, self.path.as_deref(), from) else {
            return interpreter;
        };
        let resolved = program_path.canonicalize().unwrap_or_else(|_| program_path.clone());
        let is_listed = self.files.programs.is_empty() || !is_path;
        let is_new =
            !is_listed || self.files.programs.insert(word.to_owned(), resolved.clone()).is_none();
        if is_path {
            let path: PathBuf = from.join(word).components().collect();
            self.code(&path, depth);
        } else if resolved.starts_with(self.root) {
            // Found by its name, but still code of the project.
            self.code(&resolved, depth);
        } else if is_new {
            self.first_line(&program_path, depth);
        }
        interpreter
    }

    /// An option and what is attached to it; returns what this says about the next word.
    fn option(&mut self, text: &str, script: Option<&str>, depth: usize) -> Next {
        let (option, value) = match text.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (text, None),
        };
        let loads = is_one_of(option, LOADS);
        let short = (!text.starts_with("--")).then(|| text.get(2..)).flatten();
        let behind_colon = text.split_once(':').map(|(_, value)| value);
        let pieces = [value, short, behind_colon].into_iter().flatten();
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            if piece.contains(char::is_whitespace) {
                self.text(piece, depth);
            }
            self.file(piece, loads, depth);
        }
        match value {
            None if loads => Next::Code,
            None if script.is_some_and(|name| takes_text(name, text)) => Next::Text,
            _ => Next::Any,
        }
    }

    /// A text of several words, which may hold commands: quotes only separate its words.
    fn text(&mut self, text: &str, depth: usize) {
        if depth >= MAX_DEPTH {
            return;
        }
        let separates = |c: char| c.is_whitespace() || "<>`\"'\\".contains(c);
        for command in text.split([';', '|', '&', '(', ')', '{', '}', '\n']) {
            let words = command.split(separates).filter(|word| !word.is_empty());
            // A dot is a shell's word for 'source' where a command begins.
            let mut begins = true;
            let words = words.map(|word| {
                let word = if begins && word == "." { "source" } else { word };
                begins = ["then", "do", "else", "!"].contains(&word);
                word
            });
            let words: Vec<Option<String>> =
                words.take(self.words_left).map(|word| Some(word.to_owned())).collect();
            self.words(&words, None, depth + 1);
        }
    }

    fn assignment(&mut self, name: &str, value: &str, depth: usize) {
        match name {
            "PATH" => {
                let before = self.path.clone().unwrap_or_default();
                let value = value.replace("${PATH}", "$PATH").replace("$PATH", &before);
                self.path = Some(value);
            }
            "PYTHONPATH" => value.clone_into(&mut self.modules),
            _ if depth < MAX_DEPTH => self.words(&[Some(value.to_owned())], None, depth + 1),
            _ => {}
        }
    }

    /// Classifies a word that may name a file or directory; returns whether it does.
    fn file(&mut self, word: &str, is_code: bool, depth: usize) -> bool {
        // An empty word is the working directory, as `python ""` takes it.
        if word.len() > 4096 {
            return false;
        }
        let word = match url::Url::parse(word).map(|url| url.to_file_path()) {
            Ok(Ok(path)) if word.starts_with("file:/") => path,
            _ => PathBuf::from(word.strip_prefix("file:").unwrap_or(word)),
        };
        let mut added = false;
        for (index, base) in self.bases.clone().into_iter().enumerate() {
            let path: PathBuf = base.join(&word).components().collect();
            if is_code {
                for extension in ADDED {
                    let mut name = path.clone().into_os_string();
                    name.push(format!(".{extension}"));
                    let path = PathBuf::from(name);
                    if path.is_file() {
                        self.code(&path, depth);
                        added = true;
                    }
                }
            }
            let Ok(meta) = std::fs::metadata(&path) else { continue };
            if meta.is_dir() {
                if is_code {
                    let files = entry_points(&path);
                    added |= !files.is_empty();
                    for file in &files {
                        self.code(file, depth);
                    }
                }
                if self.bases.len() < MAX_NAMED && !self.bases.contains(&path) {
                    self.bases.push(path);
                }
            } else if meta.is_file() {
                let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
                if is_code
                    || EXTENSIONS
                        .iter()
                        .any(|code_extension| extension.eq_ignore_ascii_case(code_extension))
                    || meta.permissions().mode() & 0o111 != 0
                    || first_line(&path).is_some()
                {
                    self.code(&path, depth);
                } else if index == 0 && !self.files.data.contains(&path) {
                    self.files.data.push(path);
                }
                added = true;
            }
        }
        added
    }

    fn code(&mut self, path: &Path, depth: usize) {
        if !self.files.code.iter().any(|code| code == path) {
            self.files.data.retain(|data| data != path);
            self.files.code.push(path.to_owned());
            self.first_line(path, depth);
        }
    }

    fn first_line(&mut self, path: &Path, depth: usize) {
        let Some(cwd) = self.bases.first().cloned() else { return };
        let Some(line) = first_line(path).filter(|_| depth < MAX_DEPTH) else { return };
        let line = line.trim();
        let (interpreter, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let script = self.program(interpreter, &cwd, depth + 1);
        let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
        let words = argument.into_iter().map(str::to_owned);
        let words: Vec<Option<String>> =
            words.chain([path.to_string_lossy().into_owned()]).map(Some).collect();
        self.words(&words, script, depth + 1);
    }

    fn module(&mut self, module: &str, depth: usize) {
        let cwd = self.bases.first().cloned().unwrap_or_default();
        let more: Vec<PathBuf> = self.modules.split(':').map(|dir| cwd.join(dir)).collect();
        for base in self.bases.clone().into_iter().chain(more) {
            for file in module_files(module, &base) {
                self.code(&file, depth);
            }
        }
    }

    fn package(&mut self, word: &str) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "@/._-".contains(c);
        let runs = self.runners.iter().any(|name| NODE_RUNNERS.contains(&name.as_str()));
        let is_package = word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '@');
        if runs && is_package && word.chars().all(plain) && self.packages.len() < MAX_NAMED {
            // A scope starts with the same character as a version.
            let end = word.get(1..).and_then(|rest| rest.find('@')).map_or(word.len(), |at| at + 1);
            self.packages.push(word.get(..end).unwrap_or(word).to_owned());
        }
    }

    /// The files that decide what the runners of this command line run.
    fn settings(&mut self) {
        let mut names: BTreeSet<String> = BTreeSet::new();
        for runner in &self.runners {
            for (runners, files) in RUNNERS {
                if runners.contains(&runner.as_str()) {
                    names.extend(files.iter().map(|&file| file.to_owned()));
                }
            }
        }
        for package in &self.packages {
            let program = package.rsplit('/').next().unwrap_or_default();
            names.insert(format!("node_modules/{package}/package.json"));
            names.insert(format!("node_modules/.bin/{program}"));
        }
        let is_users = |directory: &Path| {
            self.line.home.as_ref().is_some_and(|home| home.starts_with(directory))
        };
        for base in self.bases.iter().filter(|_| !names.is_empty()) {
            let above = base.ancestors().skip(1).take_while(|directory| !is_users(directory));
            for directory in std::iter::once(base.as_path()).chain(above) {
                self.files.settings.extend(names.iter().map(|name| directory.join(name)));
            }
        }
    }
}

fn takes_text(interpreter: &str, option: &str) -> bool {
    let letter = match interpreter {
        "python" | "pypy" | "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish" => 'c',
        "node" | "nodejs" | "ruby" | "perl" => 'e',
        _ => return false,
    };
    let letters = option.trim_start_matches('-');
    letters.ends_with(letter)
        && letters.bytes().all(|byte| byte.is_ascii_lowercase())
        && !option.starts_with("--")
}

/// The last part of a program's path, without a version.
fn program_name(program: &str) -> String {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned()
}

/// What follows the `m` of Python's `-m`, which may stand behind other letters.
fn module_option(option: &str) -> Option<&str> {
    let letters = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
    let (before, module) = letters.split_once('m')?;
    before.chars().all(|c| c.is_ascii_alphabetic() && !"cWX".contains(c)).then_some(module)
}

fn first_line(path: &Path) -> Option<String> {
    let (file, _) = regular_file::open(path).ok()?;
    let mut start = Vec::new();
    file.take(MAX_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

fn entry_points(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = ENTRY_POINTS
        .iter()
        .map(|name| directory.join(name))
        .filter(|path| path.is_file())
        .collect();
    if let Some(main) = main_of_package(&directory.join("package.json")) {
        let added = ADDED.iter().map(|extension| format!("{main}.{extension}"));
        let inside = ["index.js".to_owned()].map(|index| format!("{main}/{index}"));
        for main in std::iter::once(main.clone()).chain(added).chain(inside) {
            let main: PathBuf = directory.join(main).components().collect();
            if main.is_file() && !paths.contains(&main) {
                paths.push(main);
            }
        }
    }
    paths
}

fn main_of_package(path: &Path) -> Option<String> {
    const MOST: u64 = 1 << 20;
    let text = regular_file::text(path, MOST).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(value.get("main")?.as_str()?.to_owned())
}

fn module_files(module: &str, cwd: &Path) -> Vec<PathBuf> {
    let mut path = cwd.to_path_buf();
    let mut files = Vec::new();
    for part in module.split('.') {
        files.push(path.join(part).join("__init__.py"));
        path.push(part);
    }
    files.push(path.join("__main__.py"));
    files.push(path.with_extension("py"));
    files.retain(|file| file.is_file());
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project in the user's home directory.
    struct Room {
        dir: tempfile::TempDir,
        root: PathBuf,
    }

    impl Room {
        fn new(files: &[(&str, u32, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let root = dir.path().canonicalize().unwrap().join("project");
            std::fs::create_dir(&root).unwrap();
            for (name, mode, content) in files {
                let path = root.join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, content).unwrap();
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(*mode)).unwrap();
            }
            Self { dir, root }
        }

        fn line(&self, argv: &[&str]) -> CommandLine {
            CommandLine {
                argv: argv.iter().map(|word| Some((*word).to_owned())).collect(),
                cwd: Some(self.root.clone()),
                found_from: Some(self.root.clone()),
                path: Some("bin:/usr/bin:/bin".to_owned()),
                home: Some(self.dir.path().canonicalize().unwrap()),
                ..CommandLine::default()
            }
        }

        /// The names of code and of data in the project.
        fn sorted(&self, argv: &[&str]) -> [String; 2] {
            let files = self.line(argv).files(&self.root);
            [files.code, files.data].map(|paths| {
                let name =
                    |p: &PathBuf| Some(p.strip_prefix(&self.root).ok()?.display().to_string());
                let mut names: Vec<String> = paths.iter().filter_map(name).collect();
                names.sort_unstable();
                names.join(" ")
            })
        }
    }

    #[test]
    fn a_program_that_a_variable_decides_may_be_any_interpreter() {
        let room = Room::new(&[("server", 0o644, "x"), ("mod.py", 0o644, "x")]);
        for (words, code) in [(&["", "server"][..], "server"), (&["", "-m", "mod"], "mod.py")] {
            let mut line = room.line(words);
            line.argv[0] = None;
            assert_eq!(line.files(&room.root).code, [room.root.join(code)]);
        }
    }

    #[test]
    fn code_and_data_are_told_apart() {
        let room = Room::new(&[
            ("plain", 0o644, "x"),
            ("data.json", 0o644, "{}"),
            ("tool.py", 0o644, "x"),
            ("mod", 0o644, "x"),
            ("mod.py", 0o644, "x"),
            ("__main__.py", 0o644, "x"),
            ("go", 0o755, "x"),
            ("script", 0o644, "#!/bin/sh\n"),
            ("lib/inner.py", 0o644, "x"),
            ("lib/notes", 0o644, "x"),
            ("pkg/__init__.py", 0o644, ""),
            ("pkg/__main__.py", 0o644, ""),
            ("web/package.json", 0o644, r#"{"main":"lib/start.js"}"#),
            ("web/lib/start.js", 0o644, ""),
        ]);
        for (argv, code, data) in [
            (&["python3.11", "plain", "data.json"][..], "plain", "data.json"),
            (&["python3", "-u", "tool.py", "plain"], "tool.py", "plain"),
            (&["uv", "run", "tool.py"], "tool.py", ""),
            (&["env", "A=b", "go"], "go", ""),
            (&["cat", "script", "data.json"], "script", "data.json"),
            (&["npx", "-y", "server@1"], "", ""),
            (&["cat", "plain", "data.json", "sh", "plain"], "plain", "data.json"),
            // Modules.
            (&["python3", "-m", "pkg", "plain"], "pkg/__init__.py pkg/__main__.py", "plain"),
            (&["python3", "-um", "mod", "plain"], "mod.py", "plain"),
            (&["python3", "-cm", "mod"], "mod", ""),
            // Directories.
            (
                &["node", "--import=./tool.py", "web"],
                "tool.py web/lib/start.js web/package.json",
                "",
            ),
            (&["node", "web", "plain"], "web/lib/start.js web/package.json", "plain"),
            (&["python3", "", "plain"], "__main__.py", "plain"),
            (&["python3", "lib", "plain"], "plain", ""),
            (&["cat", "lib", "inner.py"], "lib/inner.py", ""),
            (&["cat", "lib", "notes", "plain", "plain"], "", "plain"),
            // Options with a value.
            (&["node", "-r", "./tool.py", "plain"], "plain tool.py", ""),
            (&["prog", "-xtool.py"], "tool.py", ""),
            (&["prog", "--tool.py"], "", ""),
            (&["python3", "-W", "error", "plain"], "plain", ""),
            (&["bash", "-o", "pipefail", "plain"], "plain", ""),
            // Options whose value is the code.
            (&["python3", "-c", "print", "plain"], "", "plain"),
            (&["python3", "-c", "-", "plain"], "", "plain"),
            (&["bash", "-c", "plain"], "plain", ""),
            (&["bash", "-c", "cat data.json; python3 plain"], "plain", "data.json"),
            (&["sh", "-c", "cat plain"], "", "plain"),
            (&["sh", "-c", ". plain"], "plain", ""),
            (&["sh", "-c", "find . plain"], "", "plain"),
        ] {
            assert_eq!(room.sorted(argv), [code, data], "{argv:?}");
        }
    }

    #[test]
    fn first_lines_are_followed_as_far_as_the_kernel_does() {
        let mut files: Vec<(String, u32, String)> = Vec::new();
        for number in 0..8 {
            files.push((format!("s{number}"), 0o755, format!("#!./s{}\n", number + 1)));
            files.push((format!("t{number}"), 0o755, format!("#!./t{}\n", number + 1)));
        }
        files[11].2 = "#!/usr/bin/env -S ./deep x\n".to_owned();
        files.push(("run".to_owned(), 0o755, "#!/usr/bin/env ./deep\nx\n".to_owned()));
        files.push(("deep".to_owned(), 0o755, "x".to_owned()));
        let files: Vec<(&str, u32, &str)> =
            files.iter().map(|(name, mode, text)| (name.as_str(), *mode, text.as_str())).collect();
        let room = Room::new(&files);
        for (program, code) in [
            ("./run", "deep run"),
            ("./s0", "s0 s1 s2 s3 s4 s5 s6"),
            ("./t0", "t0 t1 t2 t3 t4 t5"),
            ("./t1", "deep t1 t2 t3 t4 t5"),
        ] {
            assert_eq!(room.sorted(&[program]), [code, ""], "{program}");
        }
    }

    #[test]
    fn names_are_relative_to_eight_directories_at_most() {
        let files: Vec<String> = (1..9).map(|number| format!("d{number}/tool.py")).collect();
        let files: Vec<(&str, u32, &str)> =
            files.iter().map(|name| (name.as_str(), 0o644, "x")).collect();
        let room = Room::new(&files[..]);
        let argv = ["cat", "d1", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "d8", "tool.py"];
        let [code, _] = room.sorted(&argv);
        let expected: Vec<&str> = files[..7].iter().map(|(name, ..)| *name).collect();
        assert_eq!(code, expected.join(" "));
    }

    #[test]
    fn names_are_not_looked_up_where_a_variable_decides() {
        let room = Room::new(&[("go", 0o755, "x")]);
        let go = room.root.join("go");
        let found = |line: &CommandLine| {
            let files = line.files(&room.root);
            (files.programs.into_keys().collect::<Vec<_>>().join(" "), files.code)
        };
        let unknown = CommandLine { path: None, ..room.line(&["./go", "sh"]) };
        assert_eq!(found(&unknown), ("./go".to_owned(), vec![go.clone()]));
        // Behind the first word, a path is code and a name has to be found.
        assert_eq!(found(&room.line(&["env", "./go", "sh"])), ("env sh".to_owned(), vec![go]));
    }

    #[test]
    fn what_decides_about_a_package_is_looked_for_up_to_the_users_home() {
        let room = Room::new(&[("bin/npx", 0o755, "x")]);
        let settings = |argv: &[&str]| {
            let cwd = Some(room.root.join("sub"));
            CommandLine { cwd, ..room.line(argv) }.files(&room.root).settings
        };
        let of_package = "node_modules/@scope/server/package.json";
        let names = [".npmrc", "package.json", of_package, "node_modules/.bin/server"];
        let expected: BTreeSet<PathBuf> = [room.root.clone(), room.root.join("sub")]
            .iter()
            .flat_map(|directory| names.map(|name| directory.join(name)))
            .collect();
        assert_eq!(settings(&["npx", "-y", "@scope/server@1.2"]), expected);
        assert_eq!(settings(&["npx", "@scope/server", "./it", "a+b"]), expected);
        assert_eq!(settings(&["cat", "server"]), BTreeSet::new());

        let many: Vec<String> = (1..10).map(|number| format!("p{number}")).collect();
        let words: Vec<&str> =
            std::iter::once("npx").chain(many.iter().map(String::as_str)).collect();
        let settings = settings(&words);
        let is_there = |name: &&str| {
            settings.contains(&room.root.join(format!("node_modules/{name}/package.json")))
        };
        let found: Vec<&str> = words.iter().copied().filter(|name| is_there(name)).collect();
        assert_eq!(found, words[1..9], "no more than eight");
    }
}
