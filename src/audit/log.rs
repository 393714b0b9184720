//! The audit log: JSON lines, an *intent* before a call is dispatched and an *outcome* after it,
//! so that a crash between the two leaves its evidence.
//!
//! Owns: the shape and the size of a line. Arguments arrive here already masked.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::model::JsonObject;
use crate::util::append::{AppendError, RecordLocation};
use crate::util::json_line::JsonLineWriter;
use crate::util::segments::{SegmentRetention, SegmentedLog};

/// The file's name in the state directory.
pub const FILE: &str = "audit.jsonl";

/// Arguments larger than this, as JSON, are cut.
const ARGUMENTS_LIMIT: usize = 16 * 1024;

/// How much of cut arguments is kept.
const ARGUMENTS_HEAD: usize = 4 * 1024;

/// Any other text of a row is cut to this many bytes.
const TEXT_LIMIT: usize = 2 * 1024;

/// A call is about to be dispatched.
#[derive(Debug, Clone, Copy)]
pub struct IntentRow<'a> {
    /// The call's identity.
    pub call: &'a str,
    /// The call it is part of, when it is nested in one.
    pub parent: Option<&'a str>,
    /// The process that makes the call.
    pub pid: u32,
    /// The user it runs as.
    pub user: Option<&'a str>,
    /// The session.
    pub session: &'a str,
    /// The full tool name.
    pub tool: &'a str,
    /// The server, for MCP tools.
    pub server: Option<&'a str>,
    /// `internal` or `mcp`.
    pub source: &'a str,
    /// What was decided and why.
    pub decision: &'a str,
    /// The arguments, secrets masked.
    pub arguments: &'a JsonObject,
}

/// A call ended, or was refused.
#[derive(Debug, Clone, Copy)]
pub struct OutcomeRow<'a> {
    /// The call's identity.
    pub call: &'a str,
    /// The call it is part of, when it is nested in one.
    pub parent: Option<&'a str>,
    /// The process that made the call.
    pub pid: u32,
    /// The user it runs as.
    pub user: Option<&'a str>,
    /// The full tool name.
    pub tool: &'a str,
    /// The server, for MCP tools.
    pub server: Option<&'a str>,
    /// `ok`, or the word of the failure's kind.
    pub result: &'a str,
    /// The failure in words.
    pub message: Option<&'a str>,
    /// From first attempt to answer.
    pub duration: Duration,
    /// Attempts made; 0 when refused.
    pub attempts: u32,
    /// Bytes of the result as JSON.
    pub bytes: u64,
    /// What was asked on the way; never what was said.
    pub questions: &'a [QuestionRow],
    /// What was refused: such a call has no intent that would tell it.
    pub refused: Option<RefusedRow<'a>>,
}

/// A question that came up during a call.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct QuestionRow {
    /// `form`, `url` or `sampling`.
    pub kind: &'static str,
    /// `accepted`, `declined`, `cancelled`, or `nobody` was there.
    pub verdict: &'static str,
}

/// A call that was refused before it began.
#[derive(Debug, Clone, Copy)]
pub struct RefusedRow<'a> {
    /// `internal` or `mcp`.
    pub source: &'a str,
    /// The session.
    pub session: &'a str,
    /// The arguments, secrets masked.
    pub arguments: &'a JsonObject,
}

/// Where rows are appended; opened with the first one.
#[derive(Debug)]
pub struct AuditLog {
    file: SegmentedLog,
}

impl AuditLog {
    /// The log at `location`. With `sync` each row is forced to the disk; `keep` says when a file
    /// is set aside and which are removed.
    pub fn new(location: RecordLocation, sync: bool, keep: SegmentRetention) -> Self {
        Self { file: SegmentedLog::new(location, sync, keep) }
    }

    /// Where the rows go.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Appends an intent; `now` is the time since the Unix epoch.
    ///
    /// # Errors
    /// When the file is not safe to write to, or the system refuses.
    pub fn append_intent(&self, now: Duration, row: &IntentRow<'_>) -> Result<(), AppendError> {
        let mut line = start_row("intent", now);
        line.text("call", row.call).text_if("parent", row.parent).value("pid", &row.pid);
        line.text_or_null("user", row.user).text("session", &truncate(row.session));
        line.text("tool", &truncate(row.tool))
            .text_or_null("server", row.server.map(truncate).as_deref());
        line.text("source", row.source).text("decision", &truncate(row.decision));
        arguments(&mut line, row.arguments);
        self.file.append(now, &line.finish())
    }

    /// Appends an outcome; `now` is the time since the Unix epoch.
    ///
    /// # Errors
    /// When the file is not safe to write to, or the system refuses.
    pub fn append_outcome(&self, now: Duration, row: &OutcomeRow<'_>) -> Result<(), AppendError> {
        let mut line = start_row("outcome", now);
        line.text("call", row.call).text_if("parent", row.parent).value("pid", &row.pid);
        line.text_or_null("user", row.user).text("tool", &truncate(row.tool));
        line.text_or_null("server", row.server.map(truncate).as_deref()).text("result", row.result);
        line.text_or_null("message", row.message.map(truncate).as_deref());
        let duration = u64::try_from(row.duration.as_micros()).unwrap_or(u64::MAX);
        line.value("duration_us", &duration).value("attempts", &row.attempts);
        line.value("bytes", &row.bytes);
        if !row.questions.is_empty() {
            line.value("questions", &row.questions);
        }
        if let Some(refused) = row.refused {
            line.text("source", refused.source).text("session", &truncate(refused.session));
            arguments(&mut line, refused.arguments);
        }
        self.file.append(now, &line.finish())
    }

    /// What was put right when the file was opened; each note is handed out once.
    pub fn take_notes(&self) -> Vec<String> {
        self.file.take_notes()
    }
}

/// A row with its event and time: seconds since the Unix epoch for programs, RFC 3339 with
/// microseconds for people.
fn start_row(event: &'static str, now: Duration) -> JsonLineWriter {
    let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_microsecond(micros)
        .map(|time| format!("{time:.6}"))
        .unwrap_or_default();
    let mut line = JsonLineWriter::new();
    line.text("event", event).value("unix", &now.as_secs_f64()).text("time", &time);
    line
}

/// The arguments, or what fits of them inside a marker that is valid JSON too.
fn arguments(line: &mut JsonLineWriter, arguments: &JsonObject) {
    line.value_bounded("arguments", arguments, ARGUMENTS_LIMIT, |whole| {
        let head = whole.get(..whole.floor_char_boundary(ARGUMENTS_HEAD)).unwrap_or_default();
        serde_json::json!({ "_cut": true, "_bytes": whole.len(), "_head": head })
    });
}

fn truncate(text: &str) -> Cow<'_, str> {
    if text.len() <= TEXT_LIMIT {
        return Cow::Borrowed(text);
    }
    let head = text.get(..text.floor_char_boundary(TEXT_LIMIT)).unwrap_or_default();
    Cow::Owned(format!("{head}…"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn intent(arguments: &JsonObject) -> IntentRow<'_> {
        IntentRow {
            call: "id-1",
            parent: None,
            pid: 7,
            user: Some("ada"),
            session: "s",
            tool: "notes-read",
            server: None,
            source: "internal",
            decision: "allowed",
            arguments,
        }
    }

    fn object(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    fn lines(log: &AuditLog) -> Vec<String> {
        std::fs::read_to_string(log.path()).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn an_intent_and_an_outcome_are_one_line_each() {
        let root = tempfile::tempdir().unwrap();
        let log = AuditLog::new(
            RecordLocation::own(root.path(), FILE),
            false,
            SegmentRetention::default(),
        );
        let now = Duration::from_millis(1_700_000_000_500);
        log.append_intent(now, &intent(&object(&json!({"key": "a\nb"})))).unwrap();
        log.append_outcome(
            now,
            &OutcomeRow {
                call: "id-1",
                parent: Some("id-0"),
                pid: 7,
                user: Some("ada"),
                tool: "notes-read",
                server: None,
                result: "timeout",
                message: Some("too late"),
                duration: Duration::from_millis(3),
                attempts: 2,
                bytes: 0,
                questions: &[QuestionRow { kind: "form", verdict: "declined" }],
                refused: None,
            },
        )
        .unwrap();
        insta::assert_snapshot!(lines(&log).join("\n"), @r#"
        {"event":"intent","unix":1700000000.5,"time":"2023-11-14T22:13:20.500000Z","call":"id-1","pid":7,"user":"ada","session":"s","tool":"notes-read","server":null,"source":"internal","decision":"allowed","arguments":{"key":"a\nb"}}
        {"event":"outcome","unix":1700000000.5,"time":"2023-11-14T22:13:20.500000Z","call":"id-1","parent":"id-0","pid":7,"user":"ada","tool":"notes-read","server":null,"result":"timeout","message":"too late","duration_us":3000,"attempts":2,"bytes":0,"questions":[{"kind":"form","verdict":"declined"}]}
        "#);
    }

    #[test]
    fn a_row_is_bounded_and_stays_json() {
        let root = tempfile::tempdir().unwrap();
        let log = AuditLog::new(
            RecordLocation::own(root.path(), FILE),
            false,
            SegmentRetention::default(),
        );
        let large = object(&json!({ "text": "é\"\n".repeat(100_000) }));
        let tool = "é".repeat(50_000);
        log.append_intent(Duration::ZERO, &IntentRow { tool: &tool, ..intent(&large) }).unwrap();
        let lines = lines(&log);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() < 32 * 1024);
        let row: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(row["arguments"]["_cut"], true);
        assert!(row["arguments"]["_bytes"].as_u64().unwrap() > 400_000);
    }
}
