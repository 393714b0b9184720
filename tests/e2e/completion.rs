//! Completion in real shells: names that a shell would act on are not offered, and nothing else
//! happens.

use std::path::Path;

use crate::support::{Fixture, Place, Pty, Sandbox, log_events};

/// Names that are not offered, by their first letter. The fixture knows the same ones.
const WORDS: [&str; 13] = [
    "a$(touch pwned)a",
    "b`touch pwned`b",
    "c;touch pwned;c",
    "d&touch pwned&d",
    "e'$(touch pwned)'e",
    "f\"$(touch pwned)\"f",
    "n*?[n]",
    "h!!h",
    "i<pwned>pwned",
    "j{j,j}(touch pwned)",
    "k\\$(touch pwned)k",
    "l#|touch pwned",
    "m~$HOME%m",
];

/// A shell, how it is started, and the lines that make it ready.
struct Shell {
    name: &'static str,
    arguments: &'static [&'static str],
    setup: &'static [&'static str],
    /// Defines `show`, which prints each of its arguments between `<` and `>`.
    show: &'static str,
}

const BASH: Shell = Shell {
    name: "bash",
    arguments: &["--norc", "--noprofile", "-i"],
    setup: &["PS1='$ '", "source <(toolhost completions bash)"],
    show: "show() { printf '<%s>' \"$@\"; echo; }",
};
const ZSH: Shell = Shell {
    name: "zsh",
    arguments: &["-f", "-i"],
    setup: &[
        "PS1='$ '; unsetopt prompt_sp",
        "autoload -Uz compinit && compinit -D -u",
        "source <(toolhost completions zsh)",
    ],
    show: "show() { printf '<%s>' \"$@\"; echo; }",
};
const FISH: Shell = Shell {
    name: "fish",
    arguments: &["--no-config", "-i"],
    setup: &[
        "function fish_prompt; echo -n '$ '; end; set -g fish_autosuggestion_enabled 0",
        "toolhost completions fish | source",
    ],
    show: "function show; printf '<%s>' $argv; echo; end",
};

#[test]
fn bash_gets_harmless_words() {
    complete_everything(&BASH);
}

#[test]
fn zsh_gets_harmless_words() {
    complete_everything(&ZSH);
}

#[test]
fn fish_gets_harmless_words() {
    complete_everything(&FISH);
}

#[test]
fn bash_completes_values() {
    complete_values(&BASH);
}

#[test]
fn zsh_completes_values() {
    complete_values(&ZSH);
}

#[test]
fn fish_completes_values() {
    complete_values(&FISH);
}

/// Choices, yes or no, defaults, addresses, arguments of prompts and saved calls.
fn complete_values(shell: &Shell) {
    if !is_installed(shell.name) {
        return crate::support::left_out(&format!("{} is not installed", shell.name));
    }
    let room = Sandbox::new();
    let toolhost = env!("CARGO_BIN_EXE_toolhost");
    room.file(
        "mcp.yaml",
        &format!("mcp_servers:\n  demo: {{ command: {toolhost}, args: [demo-server] }}\n"),
    );
    room.file("tools.yaml", PICK);
    for command in [
        &["list"][..],
        &["prompts", "list"],
        &["resources", "list"],
        &["call", "pick", "size=small", "--save-as", "tiny"],
    ] {
        let named = ["--mcp", "mcp.yaml", "--tools", "tools.yaml"].iter().chain(command);
        room.toolhost(named.copied()).check().exits(0);
    }
    let mut line = Line::start(&room, shell);
    for (before, typed, word) in [
        ("call pick ", "si", "size="),
        ("call pick ", "size=s", "size=small"),
        ("call pick size=small ", "loud=t", "loud=true"),
        ("bench pick ", "level=", "level=12"),
        ("run tiny ", "size=l", "size=large"),
        ("run ", "ti", "tiny"),
        ("call demo-weather_report ", "ci", "city="),
        ("resources read ", "demo://r", "demo://readme"),
        ("resources watch ", "demo://u", "demo://uptime"),
        ("prompts get demo-greet name=Ada ", "la", "language="),
    ] {
        line.completes(before, typed, word);
    }
    line.end();
}

const PICK: &str = "\
tools:
  - name: pick
    command: [echo, '{size}']
    parameters_schema:
      type: object
      properties:
        size: { enum: [small, large] }
        loud: { type: boolean }
        level: { type: integer, default: 12 }
";

#[test]
fn options_are_offered_where_one_is_begun_and_not_among_names() {
    let room = Sandbox::new();
    room.file("tools.yaml", PICK);
    let offered = |words: &[&str]| -> Vec<String> {
        let line = ["--", "toolhost", "--tools", "tools.yaml"].iter().chain(words).copied();
        let finished = room.toolhost(line).env("COMPLETE", "fish").check();
        let word = |line: &str| line.split('\t').next().unwrap().to_owned();
        finished.exits(0).out().lines().map(word).collect()
    };
    assert_eq!(offered(&["call", ""]), ["pick"]);
    assert_eq!(offered(&["call", "pick", ""]), ["level=", "loud=", "size="]);
    assert_eq!(offered(&["call", "pick", "size="]), ["size=small", "size=large"]);
    assert!(offered(&["call", "--dry"]).contains(&"--dry-run".to_owned()));
    // Where nothing has a name there are only options to offer.
    assert!(offered(&["stats", "--since", "1h", ""]).iter().all(|word| !word.is_empty()));
}

fn is_installed(shell: &str) -> bool {
    std::env::split_paths("/usr/local/bin:/usr/bin:/bin").any(|dir| dir.join(shell).exists())
}

fn complete_everything(shell: &Shell) {
    if !is_installed(shell.name) {
        crate::support::left_out(&format!("{} is not installed", shell.name));
        return;
    }
    let room = Sandbox::new();
    let fixture = Fixture::fault(Place::Stdio, "offers-shell-words", "legacy", &room.log("srv"));
    room.server("srv", &fixture);
    room.file("tools.yaml", &profiles());
    // What only the server knows is offered once it was listed.
    for command in [&["list"][..], &["prompts", "list"]] {
        let named = ["--mcp", "mcp.yaml", "--tools", "tools.yaml"].iter().chain(command);
        room.toolhost(named.copied()).go();
    }
    let starts = || log_events(&room.log("srv"), "start").len();
    let before = starts();
    // Words that the shell would find by itself, and a file that fits a pattern among them.
    room.file("files/srv-nX_n", "").file("files/nX_n", "").file("files/o$(touch pwned)o", "");
    let mut line = Line::start(&room, shell);
    for word in WORDS {
        let letter = &word[..1];
        line.leaves_out("call srv-words ", letter, word);
        line.leaves_out("prompts get ", &format!("srv-{letter}"), word);
        line.leaves_out("--profile ", letter, word);
    }
    // Names of tools with white space are not listed at all.
    for word in WORDS.iter().filter(|word| !word.contains(' ')) {
        let tool = format!("srv-{word}");
        line.leaves_out("inspect ", &tool[..5], word);
    }
    line.completes("inspect ", "srv-wo", "srv-words");
    line.completes("--profile ", "har", "harmless");
    // Nothing of these is offered; a tab does nothing with them either.
    for (before, typed) in [("call srv-words a=", "a"), ("resources read ", "memo://a")] {
        line.offers_nothing(before, typed);
    }
    line.end();
    assert_eq!(starts(), before, "no server is started to complete a word");
    assert_eq!(found(&room.path("work"), "pwned"), Vec::<String>::new());
}

/// A file of tools with a profile for each word.
fn profiles() -> String {
    let entries: Vec<String> = WORDS
        .iter()
        .map(|word| format!("  {}: {{ include: [\"*\"] }}\n", serde_json::json!(word)))
        .collect();
    format!("tools: []\nprofiles:\n  harmless: {{ include: [\"*\"] }}\n{}", entries.concat())
}

/// Files below a directory that are called so.
fn found(directory: &Path, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(self::found(&path, name));
        } else if path.file_name().unwrap() == name {
            found.push(path.display().to_string());
        }
    }
    found
}

/// A shell on a terminal that is asked to complete.
struct Line {
    pty: Pty,
    count: usize,
    shell: &'static str,
}

impl Line {
    fn start(room: &Sandbox, shell: &Shell) -> Self {
        let mut pty = Pty::sized(room, shell.name, shell.arguments, 24, 250);
        let directory = Path::new(env!("CARGO_BIN_EXE_toolhost")).parent().unwrap();
        let path = if shell.name == "fish" {
            format!("set -x PATH {} $PATH", directory.display())
        } else {
            format!("export PATH={}:$PATH", directory.display())
        };
        let setup = shell.setup.iter().copied();
        for line in [path.as_str(), shell.show].into_iter().chain(setup) {
            pty.type_keys(line).type_keys("\r");
        }
        pty.type_keys("show re ady\r").expect("<re><ady>");
        Self { pty, count: 0, shell: shell.name }
    }

    /// Types the beginning of a word and a tab, and expects the whole word on the line.
    #[track_caller]
    fn completes(&mut self, before: &str, typed: &str, word: &str) {
        let all = self.after_tab(before, typed);
        assert!(all.contains(&format!("<{word}>")), "{}: {before}{typed}: {all}", self.shell);
    }

    /// The same where the word is not offered; the shell may find a file of its own.
    #[track_caller]
    fn leaves_out(&mut self, before: &str, typed: &str, word: &str) {
        let all = self.after_tab(before, typed);
        assert!(!all.contains(&word[1..]), "{}: {before}{typed}: {all}", self.shell);
    }

    /// The same where no value is known: the word stays as it was typed.
    #[track_caller]
    fn offers_nothing(&mut self, before: &str, typed: &str) {
        let all = self.after_tab(before, typed);
        let last = before.rsplit(' ').next().unwrap();
        assert!(all.contains(&format!("<{last}{typed}>")), "{}: {before}: {all}", self.shell);
    }

    /// The words of the line after a tab, as the shell reads them.
    fn after_tab(&mut self, before: &str, typed: &str) -> String {
        self.count += 1;
        let mark = format!("done{}", self.count);
        let line = format!("toolhost --mcp mcp.yaml --tools tools.yaml {before}{typed}\t");
        // A shell takes the next key when it is through with the tab. The line is shown, not run.
        self.pty.cleared().type_keys(&line).type_keys("\u{5} ").type_keys(&mark);
        self.pty.type_keys("\u{1}show \r").expect(&format!("<{mark}>"));
        let screen = self.pty.screen();
        let from = screen.rfind("<toolhost>").unwrap_or_default();
        screen[from..].to_owned()
    }

    fn end(mut self) {
        self.pty.type_keys("exit\r");
        self.pty.finish();
    }
}
