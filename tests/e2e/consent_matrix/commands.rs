//! Every command that reads configuration.

/// What a command is given to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Nothing: it is run once for a whole project.
    Nothing,
    /// A tool.
    Tool,
    /// A server.
    Server,
}

/// A command line; `@` is the name.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    pub names: Names,
    pub words: &'static [&'static str],
}

const fn all(words: &'static [&'static str]) -> Command {
    Command { names: Names::Nothing, words }
}

const fn tool(words: &'static [&'static str]) -> Command {
    Command { names: Names::Tool, words }
}

const fn server(words: &'static [&'static str]) -> Command {
    Command { names: Names::Server, words }
}

/// The first word of a completion is no command but the shell that asks.
pub const COMPLETION: &str = "(completion)";

pub const COMMANDS: &[Command] = &[
    all(&["list"]),
    all(&["list", "--json"]),
    all(&["list", "--declared", "-v"]),
    all(&["list", "--tokens", "--json"]),
    all(&["servers"]),
    all(&["servers", "--json"]),
    all(&["resources", "list"]),
    all(&["prompts", "list"]),
    all(&["pin", "--yes"]),
    all(&["verify"]),
    all(&["export", "--format", "openai"]),
    all(&["dispatch", "--format", "openai"]),
    all(&["serve"]),
    all(&["serve", "token", "list"]),
    all(&["serve", "token", "issue", "ci", "--profile", "p"]),
    all(&["up", "--foreground", "--idle", "1ms"]),
    all(&["down"]),
    all(&["ps"]),
    all(&["break", "--list"]),
    all(&["config", "check"]),
    all(&["config", "show"]),
    all(&["config", "show", "--json"]),
    all(&["config", "paths"]),
    all(&["stats"]),
    all(&["trust"]),
    all(&["doctor"]),
    all(&["import"]),
    all(&["run"]),
    all(&["trust", "list"]),
    all(&["auth", "list"]),
    all(&[COMPLETION, "inspect", ""]),
    all(&[COMPLETION, "trace", ""]),
    tool(&["inspect", "@"]),
    tool(&["inspect", "@", "--json"]),
    tool(&["call", "@", "--dry-run"]),
    tool(&["call", "@", "--yes"]),
    tool(&["call", "@", "--yes", "--json", "--trace"]),
    tool(&["bench", "@", "-n", "1", "--allow-writes"]),
    tool(&["test", "@.suite.yaml", "--yes"]),
    server(&["inspect", "@"]),
    server(&["inspect", "@", "--json"]),
    server(&["call", "@-echo", "--yes"]),
    server(&["trace", "@"]),
    server(&["resources", "read", "x://y", "--server", "@"]),
    server(&["complete", "p", "a", "--server", "@"]),
    server(&["auth", "login", "@", "--no-browser"]),
    server(&["record", "@", "--save", "recorded.jsonl"]),
    // What was recorded of the others is read last.
    all(&["history"]),
    all(&["history", "--json"]),
    all(&["audit"]),
    all(&["audit", "--json"]),
    // The files are changed last. Nobody listens there.
    all(&["add", "added", "http://127.0.0.1:9/mcp"]),
    all(&["add", "own", "http://127.0.0.1:9/mcp", "--user"]),
    all(&["remove", "own", "--user"]),
];

/// Commands that read no entry: a recording is replayed without any, and a script is the same for
/// everybody.
pub const READ_NO_ENTRIES: &[&str] =
    &["replay", "completions", "connect", "disconnect", "man", "help", "init"];

/// The words of a run for one name, and the variable that makes it a completion.
pub fn line(command: Command, name: &str) -> (Vec<String>, Option<&'static str>) {
    let words = command.words.iter().map(|word| word.replace('@', name));
    if command.words[0] == COMPLETION {
        let asked = ["--", "toolhost"].into_iter().map(str::to_owned);
        return (asked.chain(words.skip(1)).collect(), Some("fish"));
    }
    (words.collect(), None)
}
