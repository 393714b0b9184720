//! Writing the history: one JSON line for each dispatched call, when it has ended.

use std::io;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::read::{StoredError, StoredResult};
use crate::model::{CallPlace, CallRecord, RecordedOutcome, ToolResult};
use crate::util::json_line::JsonLineWriter;

pub const FILE: &str = "history.jsonl";

/// How much of a result is kept, in bytes of JSON or text.
pub const RESULT_HEAD: usize = 256 * 1024;

/// Arguments larger than this, as JSON, are not kept: half of them could not be sent again.
const ARGUMENTS_LIMIT: usize = 256 * 1024;

/// Any other text of a row is cut to this many bytes.
const TEXT_LIMIT: usize = 4 * 1024;

const MAX_KINDS: usize = 100;

/// The row of a call that ended at `now`, the time since the Unix epoch; `place` is its project and
/// program, `fingerprint` that of its definition, `result` what the tool returned.
pub fn row(
    now: Duration,
    call: &CallRecord,
    place: &CallPlace,
    fingerprint: &str,
    outcome: &RecordedOutcome,
    result: Option<&ToolResult>,
) -> String {
    let mut line = JsonLineWriter::new();
    let began = now.saturating_sub(outcome.duration + outcome.waited);
    // The identity comes first, so that a line can be recognised by its start.
    line.text("id", &call.id.0).value("unix", &began.as_secs_f64());
    line.text("tool", truncate(&call.tool)).text_if("server", call.server.as_deref().map(truncate));
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
        let message = truncate(outcome.message.as_deref().unwrap_or_default()).to_owned();
        line.value("fault", &StoredError { kind: kind.as_str().to_owned(), message });
    }
    if let Some(result) = result {
        line.value("result", &result_line(result, outcome.result_bytes));
    }
    line.finish()
}

fn result_line(result: &ToolResult, bytes: u64) -> StoredResult<Box<RawValue>> {
    let (output, cut) = head(output(result));
    let kind = |block: &Value| block.get("type").and_then(Value::as_str).unwrap_or("?").into();
    let kinds = result.content.iter().take(MAX_KINDS).map(kind).collect();
    StoredResult { success: result.success, bytes, kinds, cut, output }
}

pub fn stored_result(result: &ToolResult) -> StoredResult {
    let StoredResult { success, bytes, kinds, cut, output } = result_line(result, 0);
    let output = serde_json::from_str(output.get()).unwrap_or_default();
    StoredResult { success, bytes, kinds, cut, output }
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
            breakpoint: None,
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
        let now = Duration::from_millis(1_700_000_000_503);
        let place = CallPlace { project: Some("/p".into()), program: Some("a1".into()) };
        row(now, call, &place, "sha256:00", outcome, result)
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
