//! The history: one JSON line for each call that was dispatched, written when it has ended.
//!
//! Owns: the shape and the size of a line. Arguments and results arrive here already masked.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::read::StoredResult;
use crate::model::{JsonObject, ToolResult};
use crate::util::append::{AppendError, RecordLocation};
use crate::util::json_line::JsonLineWriter as Line;
use crate::util::segments::{SegmentRetention, SegmentedLog};

/// The file's name in the state directory.
pub const FILE: &str = "history.jsonl";

/// How much of a result is kept, in bytes of JSON or text.
pub const RESULT_HEAD: usize = 256 * 1024;

/// Arguments larger than this, as JSON, are not kept: half of them could not be sent again.
const ARGUMENTS_LIMIT: usize = 256 * 1024;

/// Any other text of a row is cut to this many bytes.
const TEXT_LIMIT: usize = 4 * 1024;

/// The most kinds of content that are named.
const MAX_KINDS: usize = 100;

/// One call and what came of it.
#[derive(Debug, Clone, Copy)]
pub struct HistoryRow<'a> {
    /// The call's identity.
    pub id: &'a str,
    /// The full tool name.
    pub tool: &'a str,
    /// The server, for MCP tools.
    pub server: Option<&'a str>,
    /// `internal` or `mcp`.
    pub source: &'a str,
    /// The session.
    pub session: &'a str,
    /// The call this one was part of.
    pub parent: Option<&'a str>,
    /// The protocol revision, for MCP tools.
    pub protocol: Option<&'a str>,
    /// The fingerprint of the definition that was called.
    pub fingerprint: &'a str,
    /// What was decided and why.
    pub decision: &'a str,
    /// The arguments, secrets replaced.
    pub arguments: &'a JsonObject,
    /// From first attempt to answer.
    pub duration: Duration,
    /// Attempts made.
    pub attempts: u32,
    /// The word of the failure's kind, and the failure in words.
    pub error: Option<(&'a str, &'a str)>,
    /// What the tool gave, when it gave anything.
    pub result: Option<&'a ToolResult>,
    /// Bytes of the result as JSON.
    pub bytes: u64,
}

/// Where rows are appended; opened with the first one.
#[derive(Debug)]
pub struct HistoryLog {
    file: SegmentedLog,
}

impl HistoryLog {
    /// The history at `location`. With `sync` each row is forced to the disk; `keep` says when a
    /// file is set aside and which are removed.
    pub fn new(location: RecordLocation, sync: bool, keep: SegmentRetention) -> Self {
        Self { file: SegmentedLog::new(location, sync, keep) }
    }

    /// Where the rows go.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Appends a row; `now` is the time since the Unix epoch at which the call ended.
    ///
    /// # Errors
    /// When the file is not safe to write to, or the system refuses.
    pub fn append(&self, now: Duration, row: &HistoryRow<'_>) -> Result<(), AppendError> {
        let mut line = Line::new();
        // The identity stands first, so that a line can be told by its beginning.
        line.text("id", row.id).value("unix", &now.saturating_sub(row.duration).as_secs_f64());
        line.text("tool", truncate(row.tool)).text_if("server", row.server.map(truncate));
        line.text("source", row.source).text("session", truncate(row.session));
        line.text_if("parent", row.parent.map(truncate))
            .text_if("protocol", row.protocol.map(truncate));
        line.text("fingerprint", row.fingerprint).text("decision", truncate(row.decision));
        let duration = u64::try_from(row.duration.as_micros()).unwrap_or(u64::MAX);
        line.value("duration_us", &duration).value("attempts", &row.attempts);
        // `null` when they were too large to keep.
        line.value_bounded("arguments", row.arguments, ARGUMENTS_LIMIT, |_| ());
        if let Some((kind, message)) = row.error {
            line.value("fault", &ErrorLine { kind, message: truncate(message) });
        }
        if let Some(result) = row.result {
            line.value("result", &ResultLine::of(result, row.bytes));
        }
        self.file.append(now, &line.finish())
    }

    /// What was put right when the file was opened; each note is handed out once.
    pub fn take_notes(&self) -> Vec<String> {
        self.file.take_notes()
    }
}

#[derive(Serialize)]
struct ErrorLine<'a> {
    kind: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct ResultLine {
    success: bool,
    bytes: u64,
    kinds: Vec<String>,
    /// Whether `output` is only the beginning, as text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    output: Box<RawValue>,
}

impl ResultLine {
    fn of(result: &ToolResult, bytes: u64) -> Self {
        let (output, cut) = head(output(result));
        let kind = |block: &Value| block.get("type").and_then(Value::as_str).unwrap_or("?").into();
        let kinds = result.content.iter().take(MAX_KINDS).map(kind).collect();
        Self { success: result.success, bytes, kinds, cut, output }
    }
}

/// What is kept of a result.
pub fn stored_result(result: &ToolResult) -> StoredResult {
    let line = ResultLine::of(result, 0);
    StoredResult {
        success: line.success,
        bytes: line.bytes,
        kinds: line.kinds,
        cut: line.cut,
        output: serde_json::from_str(line.output.get()).unwrap_or_default(),
    }
}

/// The one value that stands for a result.
fn output(result: &ToolResult) -> &Value {
    result.structured.as_ref().unwrap_or(&result.output)
}

/// A value as JSON, or the beginning of its text as a JSON string, and whether it was cut.
fn head(value: &Value) -> (Box<RawValue>, bool) {
    let whole = match bounded_json(value, RESULT_HEAD) {
        Ok(whole) => return (whole, false),
        Err(written) => written,
    };
    let text = match value {
        Value::String(text) => text.clone(),
        _ => String::from_utf8_lossy(&whole).into_owned(),
    };
    let head = text.get(..text.floor_char_boundary(RESULT_HEAD)).unwrap_or_default();
    // A string has no way to fail to be JSON.
    let raw = serde_json::value::to_raw_value(head).unwrap_or_else(|_| RawValue::NULL.to_owned());
    (raw, true)
}

/// A value as JSON of at most `limit` bytes; of a larger one what fits. No more is written of it.
fn bounded_json(value: &impl Serialize, limit: usize) -> Result<Box<RawValue>, Vec<u8>> {
    struct Room {
        bytes: Vec<u8>,
        limit: usize,
    }
    impl io::Write for Room {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.limit - self.bytes.len();
            self.bytes.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
            if bytes.len() > room {
                Err(io::ErrorKind::FileTooLarge.into())
            } else {
                Ok(bytes.len())
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut room = Room { bytes: Vec::new(), limit };
    if serde_json::to_writer(&mut room, value).is_err() {
        return Err(room.bytes);
    }
    let text = String::from_utf8(room.bytes).map_err(std::string::FromUtf8Error::into_bytes)?;
    RawValue::from_string(text).map_err(|error| error.to_string().into_bytes())
}

fn truncate(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_LIMIT)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row<'a>(arguments: &'a JsonObject, result: Option<&'a ToolResult>) -> HistoryRow<'a> {
        HistoryRow {
            id: "id-1",
            tool: "notes-read",
            server: None,
            source: "internal",
            session: "s",
            parent: None,
            protocol: None,
            fingerprint: "sha256:00",
            decision: "allowed",
            arguments,
            duration: Duration::from_millis(3),
            attempts: 1,
            error: None,
            result,
            bytes: 7,
        }
    }

    fn written(row: &HistoryRow<'_>) -> String {
        let root = tempfile::tempdir().unwrap();
        let log = HistoryLog::new(
            RecordLocation::own(root.path(), FILE),
            false,
            SegmentRetention::default(),
        );
        log.append(Duration::from_millis(1_700_000_000_503), row).unwrap();
        std::fs::read_to_string(log.path()).unwrap()
    }

    #[test]
    fn a_call_is_one_line() {
        let arguments = json!({ "key": "a\nb", "n": 1.10 });
        let result = ToolResult::text("hi");
        insta::assert_snapshot!(written(&row(arguments.as_object().unwrap(), Some(&result))), @r#"{"id":"id-1","unix":1700000000.5,"tool":"notes-read","source":"internal","session":"s","fingerprint":"sha256:00","decision":"allowed","duration_us":3000,"attempts":1,"arguments":{"key":"a\nb","n":1.1},"result":{"success":true,"bytes":7,"kinds":["text"],"output":"hi"}}"#);
        let failed = HistoryRow {
            error: Some(("timeout", "too late")),
            server: Some("s"),
            ..row(arguments.as_object().unwrap(), None)
        };
        insta::assert_snapshot!(written(&failed), @r#"{"id":"id-1","unix":1700000000.5,"tool":"notes-read","server":"s","source":"internal","session":"s","fingerprint":"sha256:00","decision":"allowed","duration_us":3000,"attempts":1,"arguments":{"key":"a\nb","n":1.1},"fault":{"kind":"timeout","message":"too late"}}"#);
    }

    #[test]
    fn a_large_result_is_cut_and_the_line_stays_json() {
        let arguments = JsonObject::new();
        for output in [json!("é\"\n".repeat(200_000)), json!(vec!["x"; 200_000])] {
            let result = ToolResult { output, ..ToolResult::default() };
            let line = written(&row(&arguments, Some(&result)));
            assert!(line.len() < RESULT_HEAD * 3, "{}", line.len());
            let line: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(line["result"]["cut"], true);
            assert!(line["result"]["output"].as_str().unwrap().len() > RESULT_HEAD - 4);
        }
    }

    #[test]
    fn arguments_are_kept_whole_or_not_at_all() {
        let large = json!({ "text": "x".repeat(ARGUMENTS_LIMIT) });
        let line: Value =
            serde_json::from_str(&written(&row(large.as_object().unwrap(), None))).unwrap();
        assert_eq!(line["arguments"], Value::Null);
    }
}
