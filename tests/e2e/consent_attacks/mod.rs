//! Ways around consent that once worked, each as a test of what must hold.
//!
//! Everything runs as an ordinary user: what only root can write is trusted differently.

mod code;
mod contact;
mod names;
mod python;
mod runners;
mod values;

use crate::support::{Finished, Run, Sandbox};

/// The value nobody may learn, and the variable that holds it.
const SECRET: &str = "hunter2-and-nobody-else";
const VARIABLE: &str = "CANARY";

/// A run in a room with the secret in its environment.
fn run<'a>(room: &'a Sandbox, words: &[&'a str]) -> Run<'a> {
    room.toolhost(words.iter().copied()).env(VARIABLE, SECRET)
}

/// Trusts the project of a room as a script would.
#[track_caller]
fn trust(room: &Sandbox) -> Finished {
    let finished = run(room, &["trust", "--yes"]).check();
    finished.exits(0);
    finished
}

/// A file in the user's own configuration directory.
fn user_file(room: &Sandbox, name: &str, text: &str) {
    std::fs::write(room.path("config/toolhost").join(name), text).unwrap();
}

/// Fails when the secret is in what was said, or in any file that was written.
#[track_caller]
fn keeps_the_secret(room: &Sandbox, finished: &Finished) {
    let said = finished.out() + &finished.err();
    assert!(!said.contains(SECRET), "the value was shown\n{finished}");
    for (path, bytes) in room.records() {
        let is_there = memchr::memmem::find(&bytes, SECRET.as_bytes()).is_some();
        assert!(!is_there, "the value is in {}\n{finished}", path.display());
    }
}

/// Fails unless a run was refused for want of consent, and says which command gives it.
#[track_caller]
fn asks_for_consent(finished: &Finished) {
    finished.exits(6).says(&["toolhost trust"]);
}
