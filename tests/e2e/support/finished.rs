//! What a run left, and the invariants every run is held to.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Sandbox;

/// The documented exit codes.
const EXIT_CODES: [i32; 15] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 129, 130, 143];

/// How long killed processes may take to disappear after toolhost has exited.
const SETTLE: Duration = Duration::from_secs(2);

/// A run that has ended.
pub struct Finished {
    /// The command line, for messages.
    pub command: String,
    /// The exit code; `None` after a signal.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// Whether both pipes were closed soon after the exit.
    pub pipes_closed: bool,
    /// Whether it ended by itself.
    pub in_time: bool,
    /// Wall time.
    pub took: Duration,
    /// Peak resident size in KiB, sampled.
    pub peak_rss: u64,
    /// The room it ran in.
    pub room: PathBuf,
}

impl Finished {
    /// Everything that is not as it must be, whatever the run was about.
    pub fn violations(&self, room: &Sandbox) -> Vec<String> {
        let mut found = Vec::new();
        if !self.in_time {
            found.push(format!("I1: still running after {:?}", self.took));
        }
        for (name, bytes) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            found.extend(forbidden(bytes).map(|what| format!("I3: {name} holds {what}")));
        }
        if self.in_time {
            match self.code {
                Some(code) if EXIT_CODES.contains(&code) => found.extend(self.wrong_report(code)),
                Some(code) => found.push(format!("I4: exit code {code} is not documented")),
                None => found.push(format!("I10: killed by signal {:?}", self.signal)),
            }
        }
        if !self.pipes_closed {
            found.push("I6: somebody still holds stdout or stderr".to_owned());
        }
        let left = settled(room);
        if !left.is_empty() {
            found.push(format!("I6: left behind: {}", left.join(", ")));
        }
        found
    }

    /// Fails the test when an invariant is broken.
    #[track_caller]
    pub fn hold(&self, room: &Sandbox) {
        let found = self.violations(room);
        assert!(found.is_empty(), "{}\n{self}", found.join("\n"));
    }

    /// A failure has exactly one `error:` line (or one JSON object in its place), with details
    /// indented below it; a success and a signal have none or one.
    fn wrong_report(&self, code: i32) -> Option<String> {
        let stderr = self.err();
        let json = |line: &&str| {
            serde_json::from_str::<Value>(line).is_ok_and(|line| line["error"]["exit"] == code)
        };
        let errors = stderr.lines().filter(|line| line.starts_with("error:")).count()
            + stderr.lines().filter(json).count();
        match (code, errors) {
            (0, 0) | (129 | 130 | 143, 0 | 1) => None,
            (0, _) => Some(format!("I4: success with {errors} error lines")),
            (_, 1) => None,
            (_, count) => Some(format!("I4: {count} error lines for exit code {code}")),
        }
    }

    /// Fails the test unless the exit code is this one.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Self {
        self.exits_one_of(&[code])
    }

    /// Fails the test unless the exit code is one of these.
    #[track_caller]
    pub fn exits_one_of(&self, codes: &[i32]) -> &Self {
        assert!(self.code.is_some_and(|code| codes.contains(&code)), "expected {codes:?}\n{self}");
        self
    }

    /// Fails the test unless stderr holds all of these.
    #[track_caller]
    pub fn says(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.err().contains(word), "stderr lacks {word:?}\n{self}");
        }
        self
    }

    /// Stdout as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Stderr as text.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Stdout as one JSON value.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let room = self.room.display().to_string();
        let show = |text: String| text.replace(&room, "ROOM/").escape_debug().to_string();
        let show = |text| show(text).replace("\\n", "\n    ");
        writeln!(f, "$ {}", self.command)?;
        writeln!(f, "  code {:?}, signal {:?}, {:?}", self.code, self.signal, self.took)?;
        writeln!(f, "  stdout:\n    {}", show(self.out()))?;
        write!(f, "  stderr:\n    {}", show(self.err()))
    }
}

/// The processes left in a room, once killed ones had time to go.
fn settled(room: &Sandbox) -> Vec<String> {
    let deadline = Instant::now() + SETTLE;
    loop {
        let left = room.inhabitants();
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::yield_now();
    }
}

/// What a terminal might obey, or a reader might not see, in some output; `None` when there is
/// nothing of the kind.
pub fn forbidden(bytes: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Some(format!("bytes that are not UTF-8 at {}", error.valid_up_to())),
    };
    let bad = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
            || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{180b}'..='\u{180f}')
            || matches!(c, '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}')
            || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fffe}'..='\u{ffff}' | '\u{e0000}'..)
    };
    let (at, c) = text.char_indices().find(|(_, c)| bad(*c))?;
    let around: String =
        text.chars().skip(text[..at].chars().count().saturating_sub(20)).take(40).collect();
    Some(format!("U+{:04X} at byte {at}: {around:?}", c as u32))
}

#[test]
fn forbidden_characters_are_found() {
    assert_eq!(forbidden("plain\n\ttext é 日本 ␛[31m".as_bytes()), None);
    for evil in
        ["\x1b[31m", "a\u{9b}b", "\u{7f}", "\r", "\u{202e}", "\u{200b}", "\u{e0069}", "\u{fe0f}"]
    {
        assert!(forbidden(evil.as_bytes()).is_some(), "{evil:?}");
    }
    assert!(forbidden(b"\xff").is_some());
}
