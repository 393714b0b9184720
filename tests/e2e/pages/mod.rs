//! The pages say what the program does: their blocks are run, and what they print is compared.
//!
//! The pages are README.md and what stands in `docs/`. A comment above a block says how it is run.
//! `<!-- checked -->` above a `console` block runs each line that starts with `$ ` in a copy of the
//! fresh clone and compares what it prints. After a colon may stand, with commas between them:
//! `in DIRECTORY`, `terminal` (one of 90 columns, without colour), and `typing WORD` (the answer to
//! a question, which counts as a terminal too). A line with nothing but `…` stands for any lines.
//! `<!-- file: PATH -->` above a block of any page makes it a file that the commands find. Each
//! page starts in a home of its own. Times, sizes, process ids and identities may differ.
//!
//! To write all outputs anew: `TOOLHOST_BLESS=1 cargo test --test e2e pages`.

mod json_keys;
mod links;
mod pictures;
mod reference;
mod svg;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use regex::Regex;
use toolhost::{ErrorKind, Signal};

use crate::support::{Pty, Sandbox};

/// Whose home the examples show.
const HOME: &str = "/home/ada";
/// Where the clone stands below that home.
pub const CLONE: &str = "toolhost";

/// A page of the documentation.
pub struct Page {
    /// Where it stands, below the root of the clone.
    pub path: String,
    pub text: String,
}

impl Page {
    pub fn read(path: &str) -> Self {
        let text = std::fs::read_to_string(root().join(path));
        Self { path: path.to_owned(), text: text.unwrap_or_else(|error| panic!("{path}: {error}")) }
    }

    /// Puts these lines in place of `count` lines from `first` on, where outputs are written anew.
    pub fn correct(&self, corrections: Vec<(usize, usize, Vec<String>)>) {
        if !is_blessing() || corrections.is_empty() {
            return;
        }
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        for (first, count, shown) in corrections.into_iter().rev() {
            lines.splice(first..first + count, shown);
        }
        std::fs::write(root().join(&self.path), lines.join("\n") + "\n").unwrap();
    }
}

/// Whether what the pages show is to be written anew.
pub fn is_blessing() -> bool {
    std::env::var_os("TOOLHOST_BLESS").is_some()
}

/// The root of the clone.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// README.md and all pages below `docs/`.
pub fn pages() -> Vec<Page> {
    let mut found = vec!["README.md".to_owned()];
    let mut directories = vec!["docs".to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(root().join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{directory}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                directories.push(path);
            } else if Path::new(&path).extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 10, "{found:?}");
    found.iter().map(|path| Page::read(path)).collect()
}

/// A fenced block, with the lines of its page between its fences.
pub struct Block<'a> {
    /// The page it stands on.
    page: &'a str,
    /// The comment above it, without its marks.
    pub comment: Option<&'a str>,
    language: &'a str,
    /// The heading it stands under.
    section: &'a str,
    /// The number of its first line, from 0.
    pub first: usize,
    pub lines: Vec<&'a str>,
}

impl<'a> Block<'a> {
    /// The commands, each with the lines that follow it and the number of the first of those.
    fn steps(&self) -> Vec<Step<'a>> {
        let mut steps: Vec<Step<'a>> = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => {
                    steps.push(Step { command, first: self.first + at + 1, printed: Vec::new() });
                }
                (None, Some(step)) => step.printed.push(line),
                (None, None) => panic!("{}:{}: no command", self.page, self.first + at + 1),
            }
        }
        steps
    }
}

/// A command and what it prints, by its page.
struct Step<'a> {
    command: &'a str,
    first: usize,
    printed: Vec<&'a str>,
}

/// How a block is run.
#[derive(Default)]
struct Manner<'a> {
    directory: Option<&'a str>,
    terminal: bool,
    typing: Option<&'a str>,
}

impl<'a> Manner<'a> {
    /// The manner a comment asks for, when it asks for the block to be run.
    fn of(comment: &'a str) -> Option<Self> {
        let words = comment.strip_prefix("checked")?.trim_start_matches(':').trim();
        let mut manner = Self::default();
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.split_once(' ') {
                Some(("in", directory)) => manner.directory = Some(directory),
                Some(("typing", answer)) => manner.typing = Some(answer),
                None if word == "terminal" => manner.terminal = true,
                _ => panic!("'{word}' in a comment means nothing"),
            }
        }
        Some(manner)
    }
}

pub fn blocks(page: &Page) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let (mut comment, mut section) = (None, "");
    let mut open: Option<Block<'_>> = None;
    for (at, line) in page.text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.lines.push(line),
            (None, Some(language)) => {
                let (comment, lines) = (comment.take(), Vec::new());
                let page = page.path.as_str();
                open = Some(Block { page, comment, language, section, first: at + 1, lines });
            }
            (None, None) => {
                section = line.strip_prefix("## ").unwrap_or(section);
                let inside = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
                comment = inside.or(comment.filter(|_| line.is_empty()));
            }
        }
    }
    assert!(open.is_none(), "{}: the last block has no end", page.path);
    blocks
}

/// A home that holds what looks like the fresh clone, and the files that the pages show.
pub fn home(pages: &[Page]) -> Sandbox {
    let room = Sandbox::new();
    for block in pages.iter().flat_map(blocks) {
        if let Some(path) = block.comment.and_then(|comment| comment.strip_prefix("file: ")) {
            write(&room, path, &(block.lines.join("\n") + "\n"));
        }
    }
    for name in ["tools.yaml", "mcp.yaml", "README.md", "LICENSE"] {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        write(&room, &format!("{CLONE}/{name}"), &text);
    }
    room
}

fn write(room: &Sandbox, path: &str, text: &str) {
    let path = room.path("home").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Runs one command line; what it printed, and its exit code.
fn run(room: &Sandbox, manner: &Manner<'_>, command: &str) -> (String, Option<i32>) {
    let binary = Path::new(env!("CARGO_BIN_EXE_toolhost"));
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", binary.parent().unwrap().display());
    let directory = manner.directory.unwrap_or(CLONE);
    // The user of the examples has an ordinary home.
    let mut script = format!(
        "unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME\n\
         export PATH='{path}'; cd \"$HOME/{directory}\" || exit 99\n"
    );
    let (text, code) = if manner.terminal || manner.typing.is_some() {
        write!(script, "export TERM=dumb; stty cols 90\n{command}").unwrap();
        let mut pty = Pty::program(room, "sh", &["-c", &script]);
        if let Some(answer) = manner.typing {
            pty.expect("[y/N] ").type_keys(&format!("{answer}\r"));
        }
        let (code, screen) = pty.finish();
        (screen.replace("\r\n", "\n"), code)
    } else {
        script.push_str(command);
        let finished = room.program("sh", ["-c", &script]).check();
        (finished.out() + &finished.err(), finished.code)
    };
    let home = room.path("home").display().to_string();
    let text = text
        .replace(&binary.display().to_string(), &format!("{HOME}/.cargo/bin/toolhost"))
        .replace(&home, HOME);
    (text, code)
}

/// Text without what differs between runs and machines. Widths of columns follow from that, so
/// blanks are counted only where a line begins.
pub fn lasting(text: &str) -> String {
    const DIFFERS: [(&str, &str); 8] = [
        (r"\d+(\.\d+)? (ns|µs|ms)\b|\b\d\.\d\d s\b", "TIME"),
        (r"\d+(\.\d+)? (B|KiB|MiB)\b", "SIZE"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "ID"),
        (r"\b\d{4}-\d{2}-\d{2}T[0-9:.]+Z\b", "MOMENT"),
        (r#""(pid|unix|user|duration_us)":[^,}]+"#, "$1=N"),
        (r"\b(duration_ms|connect_ms): \S+", "$1: N"),
        (r"\bstdio +\d+\b", "stdio PID"),
        (r"\bfound at: /\S*/", "found at: "),
    ];
    let mut text = text.trim_end().to_owned();
    for (pattern, word) in DIFFERS {
        text = Regex::new(pattern).unwrap().replace_all(&text, word).into_owned();
    }
    Regex::new(r"(\S) {2,}").unwrap().replace_all(&text, "$1 ").into_owned()
}

/// Whether a page's lines tell what was printed; `…` stands for any lines.
fn tells(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((&"…", rest)) => (0..=printed.len()).any(|skip| tells(rest, &printed[skip..])),
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, others)| line == first && tells(rest, others)),
    }
}

fn is_told(expected: &[&str], printed: &str) -> bool {
    let (expected, printed) = (lasting(&expected.join("\n")), lasting(printed));
    let expected: Vec<&str> = expected.lines().collect();
    tells(&expected, &printed.lines().collect::<Vec<_>>())
}

#[test]
fn every_checked_block_prints_what_it_says() {
    let pages = pages();
    let mut wrong = String::new();
    let mut runs = 0;
    for page in &pages {
        runs += check(page, &pages, &mut wrong);
    }
    assert!(runs > 40, "only {runs} commands were found");
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Runs the checked blocks of a page, in their order; how many commands there were.
fn check(page: &Page, pages: &[Page], wrong: &mut String) -> usize {
    let blocks = blocks(page);
    let is_checked = |block: &Block<'_>| block.comment.and_then(Manner::of).is_some();
    if !blocks.iter().any(is_checked) {
        return 0;
    }
    let room = home(pages);
    let mut corrections = Vec::new();
    let mut runs = 0;
    for block in &blocks {
        let Some(manner) = block.comment.and_then(Manner::of) else { continue };
        assert_eq!(block.language, "console", "{}:{}", page.path, block.first);
        let mut last = None;
        for step in block.steps() {
            let (printed, code) = match step.command {
                "echo $?" => (format!("{}\n", last.unwrap_or(0)), Some(0)),
                command => run(&room, &manner, command),
            };
            last = code;
            runs += 1;
            if !is_told(&step.printed, &printed) {
                let shown = printed.trim_end();
                let (path, at, command) = (&page.path, step.first, step.command);
                writeln!(wrong, "{path}:{at}: `{command}` prints\n\n{shown}\n").unwrap();
                let shown = shown.lines().map(str::to_owned).collect();
                corrections.push((at, step.printed.len(), shown));
            }
        }
    }
    page.correct(corrections);
    runs
}

#[test]
fn two_commands_set_it_up() {
    let readme = Page::read("README.md");
    let blocks = blocks(&readme);
    let consoles = || blocks.iter().filter(|block| block.language == "console");
    let start: Vec<&str> = consoles()
        .filter(|block| block.section == "Quick start")
        .flat_map(Block::steps)
        .map(|step| step.command)
        .filter(|command| !command.starts_with("toolhost"))
        .collect();
    assert_eq!(start, ["cargo run -- list", "cargo test"]);
    let commands = consoles().flat_map(Block::steps).map(|step| step.command);
    let cargo = commands.filter(|command| command.starts_with("cargo"));
    assert_eq!(cargo.count(), 2, "cargo is needed for more than the start");
}

#[test]
fn the_first_page_is_short() {
    let lines = Page::read("README.md").text.lines().count();
    assert!(lines <= 250, "README.md has {lines} lines");
}

#[test]
fn every_command_is_told_of() {
    let help = Sandbox::new().toolhost(["--help"]).check().out();
    let pages = pages();
    let told = |command: &str| {
        let code = [format!("`{command}`"), format!("`toolhost {command}"), format!("`{command} ")];
        let pages = pages.iter().filter(|page| !page.path.starts_with("docs/reference"));
        pages.into_iter().any(|page| code.iter().any(|code| page.text.contains(code.as_str())))
    };
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands
        .map_while(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|command| !told(command))
        .collect();
    assert!(help.contains("Commands:\n  list "), "{help}");
    assert_eq!(commands, [""; 0], "only the reference tells of them");
}

#[test]
fn the_table_of_exit_codes_is_the_real_one() {
    use ErrorKind::{
        Auth, Check, Config, Denied, Internal, Interrupted, Partial, Protocol, Timeout, Tool,
        Unreachable, Usage,
    };
    let kinds = [
        Internal,
        Usage,
        Tool,
        Unreachable,
        Auth,
        Denied,
        Timeout,
        Check,
        Config,
        Protocol,
        Partial,
    ];
    let codes = Page::read("docs/reference/exit-codes.md").text;
    for kind in kinds {
        let row = format!("\n| {} | `{}` | ", kind.exit_code(), kind.as_str());
        assert!(codes.contains(&row), "no {row}");
    }
    let signals = [Signal::Hangup, Signal::Interrupt, Signal::Terminate];
    let ends = signals.map(|signal| Interrupted(signal).exit_code().to_string()).join(", ");
    assert!(codes.contains(&format!("\n| {ends} | `interrupted` | ")), "no {ends}");
}

#[test]
fn what_differs_between_runs_is_left_out_and_nothing_else() {
    assert!(is_told(&["demo  stdio  17  2.5 MiB  9.1 ms"], "demo  stdio  123  12.5 MiB  11 ms\n"));
    assert!(is_told(&["a", "…", "d"], "a\nb\nc\nd\n"));
    assert!(is_told(&[r#"{"pid":1,"a":2}"#], r#"{"pid":22,"a":2}"#));
    assert!(!is_told(&["a", "…", "d"], "a\nb\nc\n"));
    assert!(!is_told(&["a"], "a\nb\n"));
    assert!(!is_told(&["  indented"], "indented\n"));
    assert!(!is_told(&["8 tools"], "9 tools\n"));
}
