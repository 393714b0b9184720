//! The audit log: JSON lines, an *intent* before a call is dispatched and an *outcome* after it,
//! so that a crash between the two leaves its evidence.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use crate::model::{BreakpointRecord, CallRecord, JsonObject, RecordedOutcome};
use crate::util::json_line::JsonLineWriter;

pub const FILE: &str = "audit.jsonl";

/// Arguments larger than this, as JSON, are cut.
const ARGUMENTS_LIMIT: usize = 16 * 1024;

const ARGUMENTS_HEAD: usize = 4 * 1024;

/// Any other text of a row is cut to this many bytes.
const TEXT_LIMIT: usize = 2 * 1024;

#[derive(Debug, Clone)]
pub struct AuditedProcess {
    pub pid: u32,
    /// The name of the user it runs as, if the environment has it.
    pub user: Option<String>,
}

#[derive(Debug, Serialize)]
struct QuestionRow {
    kind: &'static str,
    verdict: &'static str,
}

/// The row of an intent: the call is about to be dispatched. `now` is the time since the Unix epoch.
pub fn intent(process: &AuditedProcess, now: Duration, call: &CallRecord) -> String {
    let mut line = start_row(process, "intent", now, call);
    line.text("session", &truncate(&call.caller.session)).value("caller", &call.caller);
    line.text("tool", &truncate(&call.tool));
    line.text_or_null("server", call.server.as_deref().map(truncate).as_deref());
    line.text_or_null("source", call.source());
    line.text("decision", &truncate(call.decision.as_deref().unwrap_or_default()));
    arguments(&mut line, &call.arguments);
    breakpoint(&mut line, call.breakpoint.as_ref());
    line.finish()
}

/// The row of an outcome: the call ended or was refused. `now` is the time since the Unix epoch.
pub fn outcome(
    process: &AuditedProcess,
    now: Duration,
    call: &CallRecord,
    outcome: &RecordedOutcome,
) -> String {
    let mut line = start_row(process, "outcome", now, call);
    line.text("tool", &truncate(&call.tool));
    line.text_or_null("server", call.server.as_deref().map(truncate).as_deref());
    line.text("result", outcome.word());
    line.text_or_null("message", outcome.message.as_deref().map(truncate).as_deref());
    line.value("duration_us", &outcome.micros()).value("attempts", &outcome.attempts);
    if let Some(waited) = outcome.waited_micros() {
        line.value("waited_us", &waited);
    }
    line.value("bytes", &outcome.result_bytes);
    if !outcome.questions.is_empty() {
        let questions = outcome.questions.iter().map(|question| QuestionRow {
            kind: question.kind,
            verdict: question.verdict.as_str(),
        });
        line.value("questions", &questions.collect::<Vec<_>>());
    }
    // A call that was never dispatched has no intent that would say these.
    if call.decision.is_none() {
        line.text_or_null("source", call.source());
        line.text("session", &truncate(&call.caller.session)).value("caller", &call.caller);
        arguments(&mut line, &call.arguments);
    }
    let own = outcome.breakpoint.as_ref();
    breakpoint(&mut line, own.or(call.breakpoint.as_ref().filter(|_| call.decision.is_none())));
    line.finish()
}

/// A row with what both kinds begin with: the event, its time (seconds since the Unix epoch for
/// programs, RFC 3339 with microseconds for people), the call and the process.
fn start_row(
    process: &AuditedProcess,
    event: &'static str,
    now: Duration,
    call: &CallRecord,
) -> JsonLineWriter {
    let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_microsecond(micros)
        .map(|time| format!("{time:.6}"))
        .unwrap_or_default();
    let mut line = JsonLineWriter::new();
    line.text("event", event).value("unix", &now.as_secs_f64()).text("time", &time);
    line.text("call", &call.id.0).text_if("parent", call.parent());
    line.value("pid", &process.pid).text_or_null("user", process.user.as_deref());
    line
}

fn breakpoint(line: &mut JsonLineWriter, record: Option<&BreakpointRecord>) {
    let Some(record) = record else { return };
    line.value_bounded("breakpoint", record, ARGUMENTS_LIMIT, |_| {
        let cut = [("_cut".to_owned(), true.into())].into_iter().collect();
        BreakpointRecord { arguments_before: Some(cut), ..record.clone() }
    });
}

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
    use crate::model::{
        CallId, CallerRecord, ErrorKind, QuestionOutcome, QuestionRecord, ToolSource,
    };

    fn call(arguments: JsonObject) -> CallRecord {
        CallRecord {
            id: CallId("id-1".into()),
            parent: None,
            tool: "notes-read".into(),
            server: None,
            source: Some(ToolSource::Internal),
            definition: None,
            caller: CallerRecord {
                session: "s".into(),
                cwd: "/work".into(),
                user_id: Some("bob".into()),
                client: Some("ci".into()),
                environment: vec!["TICKET".into()],
                metadata: vec!["tenant".into()],
            },
            protocol: None,
            arguments,
            decision: Some("allowed".into()),
            breakpoint: None,
        }
    }

    fn process() -> AuditedProcess {
        AuditedProcess { pid: 7, user: Some("ada".into()) }
    }

    fn object(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn an_intent_and_an_outcome_are_one_line_each() {
        let now = Duration::from_millis(1_700_000_000_500);
        let call = call(object(&json!({"key": "a\nb"})));
        let begun = intent(&process(), now, &call);
        let nested = CallRecord { parent: Some(CallId("id-0".into())), ..call };
        let ended = RecordedOutcome {
            waited: Duration::ZERO,
            failure: Some(ErrorKind::Timeout),
            message: Some("too late".into()),
            duration: Duration::from_millis(3),
            attempts: 2,
            result_bytes: 0,
            questions: vec![QuestionRecord { kind: "form", verdict: QuestionOutcome::Declined }],
            breakpoint: None,
        };
        let ended = outcome(&process(), now, &nested, &ended);
        insta::assert_snapshot!([begun, ended].join("\n"), @r#"
        {"event":"intent","unix":1700000000.5,"time":"2023-11-14T22:13:20.500000Z","call":"id-1","pid":7,"user":"ada","session":"s","caller":{"cwd":"/work","user_id":"bob","client":"ci","environment":["TICKET"],"metadata":["tenant"]},"tool":"notes-read","server":null,"source":"internal","decision":"allowed","arguments":{"key":"a\nb"}}
        {"event":"outcome","unix":1700000000.5,"time":"2023-11-14T22:13:20.500000Z","call":"id-1","parent":"id-0","pid":7,"user":"ada","tool":"notes-read","server":null,"result":"timeout","message":"too late","duration_us":3000,"attempts":2,"bytes":0,"questions":[{"kind":"form","verdict":"declined"}]}
        "#);
    }

    #[test]
    fn a_row_is_bounded_and_stays_json() {
        let large = object(&json!({ "text": "é\"\n".repeat(100_000) }));
        let call = CallRecord { tool: "é".repeat(50_000), ..call(large) };
        let line = intent(&process(), Duration::ZERO, &call);
        assert!(line.len() < 32 * 1024 && !line.contains('\n'));
        let row: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(row["arguments"]["_cut"], true);
        assert!(row["arguments"]["_bytes"].as_u64().unwrap() > 400_000);
    }
}
