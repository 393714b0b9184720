//! README.md says what the program does: its blocks are run, and what they print is compared.
//!
//! A comment above a block says how. `<!-- checked -->` above a `console` block runs each line that
//! starts with `$ ` in a copy of the fresh clone and compares what it prints. After a colon may
//! stand, with commas between them: `in DIRECTORY`, `terminal` (one of 90 columns, without colour),
//! and `typing WORD` (the answer to a question, which counts as a terminal too). A line with
//! nothing but `…` stands for any lines. `<!-- file: PATH -->` above a block makes it a file that
//! the commands find. Times, sizes, process ids and identities may differ.
//!
//! To write the outputs anew: `TOOLHOST_BLESS=1 cargo test --test e2e readme`.

use std::fmt::Write as _;
use std::path::Path;

use regex::Regex;
use toolhost::model::{ErrorKind, Signal};

use crate::support::{Pty, Sandbox};

pub const README: &str = include_str!("../../README.md");
/// Whose home the examples show.
const HOME: &str = "/home/ada";
/// Where the clone stands below that home.
pub const CLONE: &str = "toolhost";

/// A fenced block, with the lines of the README it occupies between its fences.
pub struct Block<'a> {
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
                (None, None) => panic!("README.md:{}: no command", self.first + at + 1),
            }
        }
        steps
    }
}

/// A command and what it prints, by the README.
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
                _ => panic!("README.md: '{word}' in a comment means nothing"),
            }
        }
        Some(manner)
    }
}

pub fn blocks() -> Vec<Block<'static>> {
    let mut blocks = Vec::new();
    let (mut comment, mut section) = (None, "");
    let mut open: Option<Block<'static>> = None;
    for (at, line) in README.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => block.lines.push(line),
            (None, Some(language)) => {
                let (comment, lines) = (comment.take(), Vec::new());
                open = Some(Block { comment, language, section, first: at + 1, lines });
            }
            (None, None) => {
                section = line.strip_prefix("## ").unwrap_or(section);
                let inside = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
                comment = inside.or(comment.filter(|_| line.is_empty()));
            }
        }
    }
    assert!(open.is_none(), "README.md: the last block has no end");
    blocks
}

/// A room whose home holds what looks like the fresh clone, and the files of the README.
pub fn house(blocks: &[Block<'_>]) -> Sandbox {
    let room = Sandbox::new();
    for block in blocks {
        if let Some(path) = block.comment.and_then(|comment| comment.strip_prefix("file: ")) {
            write(&room, path, &(block.lines.join("\n") + "\n"));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["tools.yaml", "mcp.yaml", "README.md", "LICENSE"] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
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
        let mut pty = Pty::program(room, "bash", &["-c", &script]);
        if let Some(answer) = manner.typing {
            pty.expect("[y/N] ").type_keys(&format!("{answer}\r"));
        }
        let (code, screen) = pty.finish();
        (screen.replace("\r\n", "\n"), code)
    } else {
        script.push_str(command);
        let finished = room.program("bash", ["-c", &script]).check();
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

/// Whether the README's lines tell what was printed; `…` stands for any lines.
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
    let blocks = blocks();
    let room = house(&blocks);
    let mut wrong = String::new();
    let mut lines: Vec<String> = README.lines().map(str::to_owned).collect();
    let mut corrections: Vec<(usize, usize, String)> = Vec::new();
    let mut runs = 0;
    for block in &blocks {
        let Some(manner) = block.comment.and_then(Manner::of) else { continue };
        assert_eq!(block.language, "console", "README.md:{}", block.first);
        let mut last = None;
        for step in block.steps() {
            let (printed, code) = match step.command {
                "echo $?" => (format!("{}\n", last.unwrap_or(0)), Some(0)),
                command => run(&room, &manner, command),
            };
            last = code;
            runs += 1;
            if !is_told(&step.printed, &printed) {
                let shown = printed.trim_end().to_owned();
                let (at, command) = (step.first, step.command);
                writeln!(wrong, "README.md:{at}: `{command}` prints\n\n{shown}\n").unwrap();
                corrections.push((at, step.printed.len(), shown));
            }
        }
    }
    assert!(runs > 20, "only {runs} commands were found");
    if std::env::var_os("TOOLHOST_BLESS").is_some() {
        for (at, count, shown) in corrections.into_iter().rev() {
            lines.splice(at..at + count, shown.lines().map(str::to_owned));
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
        std::fs::write(path, lines.join("\n") + "\n").unwrap();
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn two_commands_set_it_up() {
    let blocks = blocks();
    let consoles = || blocks.iter().filter(|block| block.language == "console");
    let commands = |block: &Block<'static>| block.steps().into_iter().map(|step| step.command);
    let start: Vec<&str> = consoles()
        .filter(|block| block.section == "Quick start")
        .flat_map(commands)
        .filter(|command| !command.starts_with("toolhost"))
        .collect();
    assert_eq!(start, ["cargo run -- list", "cargo test"]);
    let cargo = consoles().flat_map(commands).filter(|command| command.starts_with("cargo"));
    assert_eq!(cargo.count(), 2, "cargo is needed for more than the start");
}

#[test]
fn every_command_is_told_of() {
    let help = Sandbox::new().toolhost(["--help"]).check().out();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands
        .map_while(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .filter(|command| !README.contains(&format!("`{command}`")))
        .collect();
    assert!(help.contains("Commands:\n  list "), "{help}");
    assert_eq!(commands, [""; 0], "not in README.md");
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
    for kind in kinds {
        let row = format!("\n| {} | `{}` | ", kind.exit_code(), kind.as_str());
        assert!(README.contains(&row), "no {row}");
    }
    let signals = [Signal::Hangup, Signal::Interrupt, Signal::Terminate];
    let codes = signals.map(|signal| Interrupted(signal).exit_code().to_string()).join(", ");
    assert!(README.contains(&format!("\n| {codes} | `interrupted` | ")), "no {codes}");
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
