//! The first ten minutes of a stranger: a project with an editor's file, an empty home, the console,
//! and then the shell.

use serde_json::{Value, json};

use crate::support::{Pty, Sandbox};

const F5: &str = "\u{1b}[15~";

/// An entry for the demo server. A program of the system's is not bound by its content, which takes
/// long of one for debugging.
fn demo() -> Value {
    let start = format!("exec '{}' demo-server", env!("CARGO_BIN_EXE_toolhost"));
    json!({ "command": "sh", "args": ["-c", start] })
}

#[test]
fn a_stranger_trusts_calls_searches_measures_saves_and_runs_it_again() {
    for (file, key) in [
        (".mcp.json", "mcpServers"),
        (".cursor/mcp.json", "mcpServers"),
        (".vscode/mcp.json", "servers"),
    ] {
        let room = Sandbox::new();
        room.file(file, &json!({ key: { "demo": demo() } }).to_string());
        let mut pty = Pty::console(&room, &[], 40, 120);

        // Nothing starts before one question was answered, which names the file.
        pty.expect_shown(file).expect_shown("Trust this project? [y/N]").type_keys("y");
        pty.expect_shown("echo").expect_shown("● 1 server");

        // Found, filled in and called.
        pty.type_keys("/echo").expect_shown("❯ demo-echo");
        pty.type_keys("\r").expect_shown("Arguments  demo-echo");
        pty.type_keys("hello there").type_keys(F5).expect_shown(" OK ");
        pty.expect_shown("calls 1  errors 0");
        pty.type_keys(F5).expect_shown("calls 2  errors 0");

        // Saved from the form, under a name that can be used.
        pty.type_keys("\u{13}").expect_shown("Save call  demo-echo").type_keys("my call\r");
        pty.expect_shown("use letters, digits, '_', '.' and '-'");
        pty.type_keys("\u{15}morning").expect_shown("toolhost run morning").type_keys("\r");
        pty.expect_shown("saved: toolhost run morning");

        // Looked at.
        pty.type_keys("\u{1b}").expect_shown("/ filter").type_keys("\t\t").expect_shown("/ search");
        pty.type_keys("/there\r").expect_shown("/there 1 of 1");

        // Measured with the arguments of the call, and seen in the statistics.
        pty.type_keys("\u{1b}1\t").expect_shown("b bench").type_keys("b").expect_shown("Plan");
        pty.expect_shown("hello there").type_keys(F5).expect_shown("Verdict 1");
        pty.type_keys("4").expect_shown("demo-echo").expect_shown("p95").type_keys("q");
        let (code, screen) = pty.finish();
        assert_eq!(code, Some(0), "{file}\n{screen}");

        // The same from the shell, where nothing is asked again.
        let run = room.toolhost(["run", "morning"]).check();
        assert_eq!(run.exits(0).out(), "hello there\n", "{file}");
        let other = room.toolhost(["run", "morning", "message=you"]).check();
        assert_eq!(other.exits(0).out(), "you\n", "{file}");
        let stats = room.toolhost(["stats", "demo-echo", "--json"]).check();
        let stats: Value = serde_json::from_str(&stats.exits(0).out()).unwrap();
        let calls = stats["tools"][0]["calls"].as_u64().unwrap();
        // Two in the console and two from the shell; those of a benchmark are no usage.
        assert_eq!(calls, 4, "{stats}");
    }
}
