//! The audit log: JSON lines, an *intent* before a call is dispatched and an *outcome* after it,
//! so that a crash between the two leaves its evidence.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use crate::model::{CallRecord, JsonObject, RecordedOutcome};
use crate::util::append::{AppendError, RecordLocation};
use crate::util::json_line::JsonLineWriter;
use crate::util::segments::{SegmentRetention, SegmentedLog};

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

/// Where rows are appended; opened with the first one.
#[derive(Debug)]
pub struct AuditLog {
    file: SegmentedLog,
    process: AuditedProcess,
}

impl AuditLog {
    /// The log of `process` at `location`. With `sync` each row is forced to the disk; `keep` says when a file
    /// is set aside and which are removed.
    pub fn new(
        location: RecordLocation,
        process: AuditedProcess,
        sync: bool,
        keep: SegmentRetention,
    ) -> Self {
        Self { file: SegmentedLog::new(location, sync, keep), process }
    }

    /// Appends an intent: the call is about to be dispatched. `now` is the time since the Unix epoch.
    pub fn append_intent(&self, now: Duration, call: &CallRecord) -> Result<(), AppendError> {
        let mut line = self.start_row("intent", now, call);
        line.text("session", &truncate(&call.caller.session)).value("caller", &call.caller);
        line.text("tool", &truncate(&call.tool));
        line.text_or_null("server", call.server.as_deref().map(truncate).as_deref());
        line.text_or_null("source", call.source());
        line.text("decision", &truncate(call.decision.as_deref().unwrap_or_default()));
        arguments(&mut line, &call.arguments);
        self.file.append(now, &line.finish())
    }

    /// Appends an outcome: the call ended or was refused. `now` is the time since the Unix epoch.
    pub fn append_outcome(
        &self,
        now: Duration,
        call: &CallRecord,
        outcome: &RecordedOutcome,
    ) -> Result<(), AppendError> {
        let mut line = self.start_row("outcome", now, call);
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
        self.file.append(now, &line.finish())
    }

    /// What was put right when the file was opened; each note is handed out once.
    pub fn take_notes(&self) -> Vec<String> {
        self.file.take_notes()
    }

    /// A row with what both kinds begin with: the event, its time (seconds since the Unix epoch for
    /// programs, RFC 3339 with microseconds for people), the call and the process.
    fn start_row(&self, event: &'static str, now: Duration, call: &CallRecord) -> JsonLineWriter {
        let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        let time = jiff::Timestamp::from_microsecond(micros)
            .map(|time| format!("{time:.6}"))
            .unwrap_or_default();
        let mut line = JsonLineWriter::new();
        line.text("event", event).value("unix", &now.as_secs_f64()).text("time", &time);
        line.text("call", &call.id.0).text_if("parent", call.parent());
        line.value("pid", &self.process.pid).text_or_null("user", self.process.user.as_deref());
        line
    }
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
        }
    }

    fn log(root: &std::path::Path) -> AuditLog {
        AuditLog::new(
            RecordLocation::own(root, FILE),
            AuditedProcess { pid: 7, user: Some("ada".into()) },
            false,
            SegmentRetention::default(),
        )
    }

    fn object(value: &Value) -> JsonObject {
        value.as_object().cloned().unwrap()
    }

    fn lines(log: &AuditLog) -> Vec<String> {
        std::fs::read_to_string(log.file.path()).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn an_intent_and_an_outcome_are_one_line_each() {
        let root = tempfile::tempdir().unwrap();
        let log = log(root.path());
        let now = Duration::from_millis(1_700_000_000_500);
        let call = call(object(&json!({"key": "a\nb"})));
        log.append_intent(now, &call).unwrap();
        let nested = CallRecord { parent: Some(CallId("id-0".into())), ..call };
        let outcome = RecordedOutcome {
            waited: Duration::ZERO,
            failure: Some(ErrorKind::Timeout),
            message: Some("too late".into()),
            duration: Duration::from_millis(3),
            attempts: 2,
            result_bytes: 0,
            questions: vec![QuestionRecord { kind: "form", verdict: QuestionOutcome::Declined }],
        };
        log.append_outcome(now, &nested, &outcome).unwrap();
        insta::assert_snapshot!(lines(&log).join("\n"), @r#"
        {"event":"intent","unix":1700000000.5,"time":"2023-11-14T22:13:20.500000Z","call":"id-1","pid":7,"user":"ada","session":"s","caller":{"cwd":"/work","user_id":"bob","client":"ci","environment":["TICKET"],"metadata":["tenant"]},"tool":"notes-read","server":null,"source":"internal","decision":"allowed","arguments":{"key":"a\nb"}}
        {"event":"outcome","unix":1700000000.5,"time":"2023-11-14T22:13:20.500000Z","call":"id-1","parent":"id-0","pid":7,"user":"ada","tool":"notes-read","server":null,"result":"timeout","message":"too late","duration_us":3000,"attempts":2,"bytes":0,"questions":[{"kind":"form","verdict":"declined"}]}
        "#);
    }

    #[test]
    fn a_row_is_bounded_and_stays_json() {
        let root = tempfile::tempdir().unwrap();
        let log = log(root.path());
        let large = object(&json!({ "text": "é\"\n".repeat(100_000) }));
        let call = CallRecord { tool: "é".repeat(50_000), ..call(large) };
        log.append_intent(Duration::ZERO, &call).unwrap();
        let lines = lines(&log);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() < 32 * 1024);
        let row: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(row["arguments"]["_cut"], true);
        assert!(row["arguments"]["_bytes"].as_u64().unwrap() > 400_000);
    }
}
