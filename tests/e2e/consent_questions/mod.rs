//! The question about a project: what it shows, what an answer covers, and for how long.

mod answers;
mod changes;
mod examples;
mod hostile;
mod stored;

use crate::support::{Finished, Pty, Recorder, Run, Sandbox, script};

/// The question itself.
const QUESTION: &str = "Trust this project? [y/N]";
/// The command that allows what was refused.
const ALLOWS: &str = "toolhost trust";
/// Shows a question that is longer than the screen, part by part.
const VIEW: &str = "v\r";
/// Shows the next part.
const NEXT_PAGE: &str = "\r";
const YES: &str = "y\r";
const NO: &str = "n\r";
/// Trusts the project, and later changes of code below its root.
const AUTHOR: &str = "a\r";
const INTERRUPT: &str = "\u{3}";

/// A terminal of the usual size with a command on it.
fn terminal(room: &Sandbox, words: &[&str]) -> Pty {
    Pty::console(room, words, 40, 120)
}

/// Answers the one question of a command; its exit code and all that was on the screen.
#[track_caller]
fn answer(room: &Sandbox, words: &[&str], keys: &str) -> (Option<i32>, String) {
    let mut pty = terminal(room, words);
    pty.expect(QUESTION).type_keys(keys);
    pty.finish()
}

fn run<'a>(room: &'a Sandbox, words: &[&'a str]) -> Run<'a> {
    room.toolhost(words.iter().copied())
}

/// Fails unless a run without a terminal was refused, with the command that allows it.
#[track_caller]
fn refused(room: &Sandbox, words: &[&str]) -> Finished {
    let finished = run(room, words).check();
    finished.exits(6).says(&[ALLOWS]);
    finished
}

/// A project of a tool with a script, another tool and a server, all of which leave a trace.
struct Project {
    room: Sandbox,
    recorder: Recorder,
}

impl Project {
    fn new() -> Self {
        let room = Sandbox::ordinary();
        let recorder = Recorder::new(&room);
        let project = Self { room, recorder };
        project.write("first");
        let program = project.recorder.program.display();
        project.room.file(
            "mcp.yaml",
            &format!(
                "mcp_servers: {{ server: {{ command: '{program}', args: [serve], start_timeout: 2s }} }}\n"
            ),
        );
        project.code("as-shown");
        project
    }

    /// Writes the tools; the second one is started with this word.
    fn write(&self, word: &str) {
        let program = self.recorder.program.display();
        self.room.file(
            "tools.yaml",
            &format!(
                "tools:
  - {{ name: scripted, command: [./code.sh] }}
  - {{ name: plain, command: ['{program}', {word}] }}
  - {{ name: sum, module: builtin.calculator, function: calculate }}
"
            ),
        );
    }

    /// Writes the script; it says this word.
    fn code(&self, word: &str) {
        script(&self.room.path("work/code.sh"), &format!("#!/bin/sh\necho {word}\n"));
    }
}
