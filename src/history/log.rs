//! Writing the history: one JSON line for each dispatched call, when it has ended.

use std::io;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::read::StoredResult;
use crate::model::{CallPlace, CallRecord, RecordedOutcome, ToolResult};
use crate::util::append::{AppendError, RecordLocation};
use crate::util::json_line::JsonLineWriter;
use crate::util::segments::{SegmentRetention, SegmentedLog};

pub const FILE: &str = "history.jsonl";

/// How much of a result is kept, in bytes of JSON or text.
pub const RESULT_HEAD: usize = 256 * 1024;

/// Arguments larger than this, as JSON, are not kept: half of them could not be sent again.
const ARGUMENTS_LIMIT: usize = 256 * 1024;

/// Any other text of a row is cut to this many bytes.
const TEXT_LIMIT: usize = 4 * 1024;

/// Maximum number of kinds of content named.
const MAX_KINDS: usize = 100;

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

    /// Appends a call that ended at `now`, the time since the Unix epoch; `place` is its project and
    /// program, `fingerprint` that of its definition, `result` what the tool returned.
    pub fn append(
        &self,
        now: Duration,
        call: &CallRecord,
        place: &CallPlace,
        fingerprint: &str,
        outcome: &RecordedOutcome,
        result: Option<&ToolResult>,
    ) -> Result<(), AppendError> {
        let mut line = JsonLineWriter::new();
        let began = now.saturating_sub(outcome.duration + outcome.waited);
        // The identity comes first, so that a line can be recognised by its start.
        line.text("id", &call.id.0).value("unix", &began.as_secs_f64());
        line.text("tool", truncate(&call.tool))
            .text_if("server", call.server.as_deref().map(truncate));
        line.text_if("project", place.project.as_deref().map(truncate))
            .text_if("program", place.program.as_deref());
        line.text_if("source", call.source()).text("session", truncate(&call.caller.session));
        line.text_if("command_end", call.command_end().map(truncate));
        line.value("caller", &call.caller);
        line.text_if("parent", call.parent().map(truncate))
            .text_if("protocol", call.protocol.as_deref().map(truncate));
        line.text("fingerprint", fingerprint);
        line.text("decision", truncate(call.decision.as_deref().unwrap_or_default()));
        line.value("duration_us", &outcome.micros()).value("attempts", &outcome.attempts);
        if let Some(waited) = outcome.waited_micros() {
            line.value("waited_us", &waited);
        }
        // `null` when they were too large to keep.
        line.value_bounded("arguments", &call.arguments, ARGUMENTS_LIMIT, |_| ());
        if let Some(kind) = outcome.failure {
            let message = truncate(outcome.message.as_deref().unwrap_or_default());
            line.value("fault", &ErrorLine { kind: kind.as_str(), message });
        }
        if let Some(result) = result {
            line.value("result", &ResultLine::of(result, outcome.result_bytes));
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

fn output(result: &ToolResult) -> &Value {
    result.structured.as_ref().unwrap_or(&result.output)
}

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
    use crate::model::{CallId, CallerRecord, ErrorKind, ToolName, ToolSource};

    fn call(arguments: &Value, name: &ToolName, source: ToolSource) -> CallRecord {
        CallRecord {
            id: CallId("id-1".into()),
            parent: None,
            tool: "notes-read".into(),
            server: name.component().filter(|_| source == ToolSource::Mcp).map(str::to_owned),
            source: Some(source),
            definition: None,
            caller: CallerRecord {
                session: "s".into(),
                cwd: "/work".into(),
                ..CallerRecord::default()
            },
            protocol: None,
            arguments: arguments.as_object().cloned().unwrap(),
            decision: Some("allowed".into()),
        }
    }

    fn own_call(arguments: &Value) -> CallRecord {
        call(arguments, &ToolName::of("notes", "read"), ToolSource::Internal)
    }

    fn ended() -> RecordedOutcome {
        RecordedOutcome {
            duration: Duration::from_millis(3),
            attempts: 1,
            result_bytes: 7,
            ..RecordedOutcome::default()
        }
    }

    fn written(
        call: &CallRecord,
        outcome: &RecordedOutcome,
        result: Option<&ToolResult>,
    ) -> String {
        let root = tempfile::tempdir().unwrap();
        let log = HistoryLog::new(
            RecordLocation::own(root.path(), FILE),
            false,
            SegmentRetention::default(),
        );
        let now = Duration::from_millis(1_700_000_000_503);
        let place = CallPlace { project: Some("/p".into()), program: Some("a1".into()) };
        log.append(now, call, &place, "sha256:00", outcome, result).unwrap();
        std::fs::read_to_string(log.file.path()).unwrap()
    }

    #[test]
    fn a_call_is_one_line() {
        let arguments = json!({ "key": "a\nb", "n": 1.10 });
        let result = ToolResult::text("hi");
        insta::assert_snapshot!(written(&own_call(&arguments), &ended(), Some(&result)), @r#"{"id":"id-1","unix":1700000000.5,"tool":"notes-read","project":"/p","program":"a1","source":"internal","session":"s","caller":{"cwd":"/work"},"fingerprint":"sha256:00","decision":"allowed","duration_us":3000,"attempts":1,"arguments":{"key":"a\nb","n":1.1},"result":{"success":true,"bytes":7,"kinds":["text"],"output":"hi"}}"#);
        let of_server = call(&arguments, &ToolName::of("s", "read"), ToolSource::Mcp);
        let failed = RecordedOutcome {
            failure: Some(ErrorKind::Timeout),
            message: Some("too late".into()),
            ..ended()
        };
        insta::assert_snapshot!(written(&of_server, &failed, None), @r#"{"id":"id-1","unix":1700000000.5,"tool":"notes-read","server":"s","project":"/p","program":"a1","source":"mcp","session":"s","caller":{"cwd":"/work"},"fingerprint":"sha256:00","decision":"allowed","duration_us":3000,"attempts":1,"arguments":{"key":"a\nb","n":1.1},"fault":{"kind":"timeout","message":"too late"}}"#);
    }

    #[test]
    fn a_large_result_is_cut_and_the_line_stays_json() {
        for output in [json!("é\"\n".repeat(200_000)), json!(vec!["x"; 200_000])] {
            let result = ToolResult { output, ..ToolResult::default() };
            let line = written(&own_call(&json!({})), &ended(), Some(&result));
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
            serde_json::from_str(&written(&own_call(&large), &ended(), None)).unwrap();
        assert_eq!(line["arguments"], Value::Null);
    }
}
