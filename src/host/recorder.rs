//! The trait for recording every call, before and after it runs, and the recorder of a real run: audit log,
//! statistics and history behind one trait, and the statistics of one host in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use thiserror::Error;

use crate::audit::log::AuditedProcess;
use crate::catalogue::fingerprint;
use crate::model::{
    CallPlace, CallRecord, EventSink, HostEvent, RecordedOutcome, ToolDefinition, ToolResult,
    TraceContext,
};
use crate::stats::SpoolRow;
use crate::stats::count::{CallCounts, ToolKey};
use crate::util::append::AppendError;
use crate::util::clock::Clock;
use crate::util::segments::SegmentedLog;
use crate::{audit, history};

/// Why a record was not written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The place of the record is not what it should be (a symbolic link, another user's file):
    /// calls may be hidden from the user, so nothing is run.
    #[error("{0}")]
    Unsafe(String),
    /// It could not be written. Shown as a warning; the call still runs, unless the user requires
    /// records.
    #[error("{0}")]
    Lost(String),
}

/// Keeps records. Dispatch calls a recorder directly, so nothing is lost; a recorder must not wait
/// for another process.
pub trait Recorder: Send + Sync {
    /// Whether calls are recorded at all; `false` when a person switched the audit log off.
    fn is_switched_on(&self) -> bool {
        true
    }

    /// The trace context for what the tool does during the call: the caller's, unless the recorder
    /// starts its own span for the call.
    fn begin_span(
        &self,
        _call: &CallRecord,
        parent: Option<&TraceContext>,
    ) -> Option<TraceContext> {
        parent.cloned()
    }

    /// Writes a call that is about to be dispatched.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn record_intent(&self, call: &CallRecord) -> Result<(), RecordError>;

    /// Writes how a call ended, or why it was never dispatched (then it has no decision and no
    /// attempts); `result` is what the tool returned, secrets masked.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn record_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
        result: Option<&ToolResult>,
    ) -> Result<(), RecordError>;

    /// Writes one outcome for many calls, with their number as the attempts. Benchmarks are not
    /// part of the statistics or the history, which cover real use.
    ///
    /// # Errors
    /// Why the record could not be written.
    fn record_batch_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
    ) -> Result<(), RecordError> {
        self.record_outcome(call, outcome, None)
    }

    /// Sends what it still holds, within its own time limit; called once, when the host has closed.
    fn close(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

/// The recorder of a host that was built without one: records nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoRecorder;

impl Recorder for NoRecorder {
    fn is_switched_on(&self) -> bool {
        false
    }

    fn record_intent(&self, _call: &CallRecord) -> Result<(), RecordError> {
        Ok(())
    }

    fn record_outcome(
        &self,
        _call: &CallRecord,
        _outcome: &RecordedOutcome,
        _result: Option<&ToolResult>,
    ) -> Result<(), RecordError> {
        Ok(())
    }
}

const MAX_FINGERPRINTS: usize = 10_000;

/// The records of calls, each when it is switched on.
#[derive(Debug, Default)]
pub struct RecordStores {
    /// The audit log: an intent and an outcome for each call.
    pub audit: AuditTarget,
    /// The statistics: one line for each call, folded by readers.
    pub spool: Option<SegmentedLog>,
    /// The history: arguments and results of each call.
    pub history: Option<SegmentedLog>,
}

#[derive(Debug, Default)]
pub enum AuditTarget {
    #[default]
    Off,
    /// It is enabled, but there is no place for it, such as a home directory.
    Nowhere,
    Log(SegmentedLog, AuditedProcess),
}

impl AuditTarget {
    /// The log; `None` when it is switched off.
    fn log(&self) -> Result<Option<(&SegmentedLog, &AuditedProcess)>, RecordError> {
        match self {
            Self::Off => Ok(None),
            Self::Nowhere => Err(RecordError::Lost("audit log: there is no home directory".into())),
            Self::Log(log, process) => Ok(Some((log, process))),
        }
    }
}

pub struct RecorderSet {
    stores: RecordStores,
    /// By the name of the tool; a new listing makes a new definition.
    fingerprints: Mutex<HashMap<String, (Arc<ToolDefinition>, String)>>,
    clock: Arc<dyn Clock>,
    events: EventSink,
    scope: RecordScope,
}

/// What all calls of one configuration have in common in their records.
#[derive(Debug, Default)]
pub struct RecordScope {
    /// The root directory of the project; `None` outside of every project.
    pub project: Option<String>,
    /// The program behind each server by its name, for calls that fail before its tools are known.
    pub server_programs: HashMap<String, String>,
}

impl RecorderSet {
    /// Writes to `stores`; what had to be repaired in one of their files is a warning in `events`.
    pub fn new(stores: RecordStores, clock: Arc<dyn Clock>, events: EventSink) -> Self {
        let scope = RecordScope::default();
        Self { stores, fingerprints: Mutex::default(), clock, events, scope }
    }

    #[must_use]
    pub fn with_scope(self, scope: RecordScope) -> Self {
        Self { scope, ..self }
    }

    fn place(&self, call: &CallRecord) -> CallPlace {
        let of_server = || self.scope.server_programs.get(call.server.as_ref()?).cloned();
        let program = call.program().or_else(of_server);
        CallPlace { project: self.scope.project.clone(), program }
    }

    fn fingerprint(&self, tool: &Arc<ToolDefinition>) -> String {
        let mut fingerprints = self.fingerprints.lock().unwrap_or_else(PoisonError::into_inner);
        let name = tool.name.full();
        if let Some((_, value)) = fingerprints.get(&name).filter(|(of, _)| Arc::ptr_eq(of, tool)) {
            return value.clone();
        }
        let value = fingerprint::fingerprint(tool);
        if fingerprints.len() >= MAX_FINGERPRINTS {
            fingerprints.clear();
        }
        fingerprints.insert(name, (Arc::clone(tool), value.clone()));
        value
    }

    fn write(
        &self,
        record: &str,
        log: &SegmentedLog,
        now: Duration,
        line: &str,
    ) -> Result<(), RecordError> {
        let written = log.append(now, line);
        for text in log.take_notes() {
            self.events.emit(HostEvent::Warning { text });
        }
        written.map_err(|error| match error {
            AppendError::Unsafe(why) => RecordError::Unsafe(format!("{record}: {why}")),
            AppendError::Failed(why) => RecordError::Lost(format!("{record}: {why}")),
        })
    }

    fn write_audit_outcome(
        &self,
        now: Duration,
        call: &CallRecord,
        outcome: &RecordedOutcome,
    ) -> Result<(), RecordError> {
        let Some((log, process)) = self.stores.audit.log()? else { return Ok(()) };
        self.write("audit log", log, now, &audit::log::outcome(process, now, call, outcome))
    }

    fn write_spool(
        &self,
        now: Duration,
        call: &CallRecord,
        place: &CallPlace,
        outcome: &RecordedOutcome,
    ) -> Result<(), RecordError> {
        let spool = self.stores.spool.as_ref().filter(|_| call.is_counted(outcome));
        let Some(spool) = spool else { return Ok(()) };
        let row = SpoolRow::new(now, call, place.clone(), outcome);
        self.write("statistics", spool, now, &row.line())
    }

    /// A call that was never dispatched has no result to show or compare.
    fn write_history(
        &self,
        call: &CallRecord,
        place: &CallPlace,
        outcome: &RecordedOutcome,
        result: Option<&ToolResult>,
    ) -> Result<(), RecordError> {
        let log = self.stores.history.as_ref().filter(|_| call.decision.is_some());
        let (Some(log), Some(tool)) = (log, &call.definition) else { return Ok(()) };
        let fingerprint = self.fingerprint(tool);
        let now = self.clock.unix();
        let row = history::log::row(now, call, place, &fingerprint, outcome, result);
        self.write("history", log, now, &row)
    }
}

impl Recorder for RecorderSet {
    fn is_switched_on(&self) -> bool {
        !matches!(self.stores.audit, AuditTarget::Off)
    }

    fn record_intent(&self, call: &CallRecord) -> Result<(), RecordError> {
        let Some((log, process)) = self.stores.audit.log()? else { return Ok(()) };
        let now = self.clock.unix();
        self.write("audit log", log, now, &audit::log::intent(process, now, call))
    }

    fn record_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
        result: Option<&ToolResult>,
    ) -> Result<(), RecordError> {
        let now = self.clock.unix();
        // One record that fails does not cost the others.
        let audited = self.write_audit_outcome(now, call, outcome);
        let place = self.place(call);
        let counted = self.write_spool(now, call, &place, outcome);
        let history = self.write_history(call, &place, outcome, result);
        audited.and(counted).and(history)
    }

    fn record_batch_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
    ) -> Result<(), RecordError> {
        self.write_audit_outcome(self.clock.unix(), call, outcome)
    }
}

/// A recorder that counts calls and keeps nothing else: no arguments, no results, no file.
///
/// Pass it to [`ToolHostBuilder::recorder`](super::builder::ToolHostBuilder::recorder) and keep a
/// second handle to read it.
#[derive(Debug, Default)]
pub struct UsageCounter {
    tools: Mutex<BTreeMap<ToolKey, CallCounts>>,
}

impl UsageCounter {
    /// The counts so far, by tool.
    pub fn tools(&self) -> Vec<(ToolKey, CallCounts)> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        tools.iter().map(|(tool, counts)| (tool.clone(), counts.clone())).collect()
    }

    /// The counts of all tools together.
    pub fn total(&self) -> CallCounts {
        let mut total = CallCounts::default();
        for (_, counts) in self.tools() {
            total.merge(&counts);
        }
        total
    }
}

impl Recorder for UsageCounter {
    fn is_switched_on(&self) -> bool {
        // Counts are not an audit log.
        false
    }

    fn record_intent(&self, _call: &CallRecord) -> Result<(), RecordError> {
        Ok(())
    }

    fn record_outcome(
        &self,
        call: &CallRecord,
        outcome: &RecordedOutcome,
        _result: Option<&ToolResult>,
    ) -> Result<(), RecordError> {
        if call.is_counted(outcome) {
            let place = CallPlace { program: call.program(), ..CallPlace::default() };
            let tool = ToolKey { name: call.tool.clone(), server: call.server.clone(), place };
            let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            tools.entry(tool).or_default().add_call(outcome);
        }
        Ok(())
    }

    fn record_batch_outcome(
        &self,
        _call: &CallRecord,
        _outcome: &RecordedOutcome,
    ) -> Result<(), RecordError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use super::*;
    use crate::model::{
        CallId, CallerRecord, ErrorKind, Origin, QuestionOutcome, QuestionRecord, ToolName,
        ToolSource,
    };
    use crate::util::append::RecordLocation;
    use crate::util::clock::SystemClock;
    use crate::util::segments::SegmentRetention;

    const AUDIT: &str = crate::audit::log::FILE;
    const SPOOL: &str = crate::stats::spool::FILE;
    const HISTORY: &str = crate::history::log::FILE;

    struct FixedUnixClock;

    impl Clock for FixedUnixClock {
        fn now(&self) -> Instant {
            SystemClock.now()
        }

        fn unix(&self) -> Duration {
            Duration::from_micros(1_700_000_000_123_456)
        }
    }

    fn recorder(root: &Path, audit: RecordLocation) -> RecorderSet {
        let at = |file: &str| RecordLocation::own(root, file);
        let log = |at| SegmentedLog::new(at, false, SegmentRetention::default());
        let process = AuditedProcess { pid: 7, user: Some("ada".into()) };
        let stores = RecordStores {
            audit: AuditTarget::Log(log(audit), process),
            spool: Some(log(at(SPOOL))),
            history: Some(log(at(HISTORY))),
        };
        RecorderSet::new(stores, Arc::new(FixedUnixClock), EventSink::discard())
    }

    fn call(decision: Option<&str>) -> CallRecord {
        let name = ToolName::of("notes", "read");
        let arguments = serde_json::json!({ "key": "a\nb", "n": 1.5 });
        CallRecord {
            id: CallId("id-1".into()),
            parent: None,
            tool: name.full(),
            server: Some("notes".into()),
            source: Some(ToolSource::Mcp),
            definition: Some(Arc::new(ToolDefinition::new(
                name,
                ToolSource::Mcp,
                "mcp",
                Origin::Server("notes".into()),
            ))),
            caller: CallerRecord {
                session: "s".into(),
                cwd: "/work".into(),
                metadata: vec!["tenant".into()],
                ..CallerRecord::default()
            },
            protocol: Some("2025-06-18".into()),
            arguments: arguments.as_object().cloned().unwrap(),
            decision: decision.map(str::to_owned),
            breakpoint: None,
        }
    }

    fn outcome(failure: Option<(ErrorKind, &str)>, attempts: u32) -> RecordedOutcome {
        RecordedOutcome {
            waited: Duration::ZERO,
            failure: failure.map(|(kind, _)| kind),
            message: failure.map(|(_, message)| message.to_owned()),
            duration: Duration::from_micros(1_250),
            attempts,
            result_bytes: 42,
            questions: Vec::new(),
            breakpoint: None,
        }
    }

    #[test]
    fn the_lines_of_a_call_keep_their_members_and_their_order() {
        let root = tempfile::tempdir().unwrap();
        let set = recorder(root.path(), RecordLocation::own(root.path(), AUDIT));
        let nested = CallRecord { parent: Some(CallId("id-0".into())), ..call(Some("allowed")) };
        set.record_intent(&nested).unwrap();
        let question = QuestionRecord { kind: "form", verdict: QuestionOutcome::Unattended };
        let ok = RecordedOutcome { questions: vec![question], ..outcome(None, 2) };
        set.record_outcome(&nested, &ok, Some(&ToolResult::text("hi"))).unwrap();
        let late = outcome(Some((ErrorKind::Timeout, "too late")), 2);
        set.record_outcome(&nested, &late, None).unwrap();
        let batch = RecordedOutcome {
            message: Some("9 calls: 9 answered, 0 failed".into()),
            duration: Duration::from_secs(3),
            result_bytes: 0,
            ..outcome(None, 9)
        };
        set.record_batch_outcome(&call(Some("allowed")), &batch).unwrap();
        let refused = RecordedOutcome {
            duration: Duration::ZERO,
            result_bytes: 0,
            ..outcome(Some((ErrorKind::Denied, "no")), 0)
        };
        set.record_outcome(&call(None), &refused, None).unwrap();
        let text = |file: &str| std::fs::read_to_string(root.path().join(file)).unwrap();
        insta::assert_snapshot!(text(AUDIT), @r#"
        {"event":"intent","unix":1700000000.123456,"time":"2023-11-14T22:13:20.123456Z","call":"id-1","parent":"id-0","pid":7,"user":"ada","session":"s","caller":{"cwd":"/work","metadata":["tenant"]},"tool":"notes-read","server":"notes","source":"mcp","decision":"allowed","arguments":{"key":"a\nb","n":1.5}}
        {"event":"outcome","unix":1700000000.123456,"time":"2023-11-14T22:13:20.123456Z","call":"id-1","parent":"id-0","pid":7,"user":"ada","tool":"notes-read","server":"notes","result":"ok","message":null,"duration_us":1250,"attempts":2,"bytes":42,"questions":[{"kind":"form","verdict":"nobody"}]}
        {"event":"outcome","unix":1700000000.123456,"time":"2023-11-14T22:13:20.123456Z","call":"id-1","parent":"id-0","pid":7,"user":"ada","tool":"notes-read","server":"notes","result":"timeout","message":"too late","duration_us":1250,"attempts":2,"bytes":42}
        {"event":"outcome","unix":1700000000.123456,"time":"2023-11-14T22:13:20.123456Z","call":"id-1","pid":7,"user":"ada","tool":"notes-read","server":"notes","result":"ok","message":"9 calls: 9 answered, 0 failed","duration_us":3000000,"attempts":9,"bytes":0}
        {"event":"outcome","unix":1700000000.123456,"time":"2023-11-14T22:13:20.123456Z","call":"id-1","pid":7,"user":"ada","tool":"notes-read","server":"notes","result":"denied","message":"no","duration_us":0,"attempts":0,"bytes":0,"source":"mcp","session":"s","caller":{"cwd":"/work","metadata":["tenant"]},"arguments":{"key":"a\nb","n":1.5}}
        "#);
        insta::assert_snapshot!(text(SPOOL), @r#"
        {"t":1700000000123,"id":"id-1","tool":"notes-read","server":"notes","k":"ok","us":1250,"n":2,"b":42}
        {"t":1700000000123,"id":"id-1","tool":"notes-read","server":"notes","k":"timeout","us":1250,"n":2,"b":42}
        "#);
        let value = fingerprint::fingerprint(call(None).definition.as_ref().unwrap());
        let history = text(HISTORY).replace(&value, "FINGERPRINT");
        insta::assert_snapshot!(history, @r#"
        {"id":"id-1","unix":1700000000.122206,"tool":"notes-read","server":"notes","source":"mcp","session":"s","caller":{"cwd":"/work","metadata":["tenant"]},"parent":"id-0","protocol":"2025-06-18","fingerprint":"FINGERPRINT","decision":"allowed","duration_us":1250,"attempts":2,"arguments":{"key":"a\nb","n":1.5},"result":{"success":true,"bytes":42,"kinds":["text"],"output":"hi"}}
        {"id":"id-1","unix":1700000000.122206,"tool":"notes-read","server":"notes","source":"mcp","session":"s","caller":{"cwd":"/work","metadata":["tenant"]},"parent":"id-0","protocol":"2025-06-18","fingerprint":"FINGERPRINT","decision":"allowed","duration_us":1250,"attempts":2,"arguments":{"key":"a\nb","n":1.5},"fault":{"kind":"timeout","message":"too late"}}
        "#);
    }

    #[test]
    fn a_call_is_two_audit_lines_and_one_statistics_line_and_a_refusal_one_audit_line() {
        let root = tempfile::tempdir().unwrap();
        let set = recorder(root.path(), RecordLocation::own(root.path(), AUDIT));
        set.record_intent(&call(Some("allowed"))).unwrap();
        let denied = Some((ErrorKind::Denied, "no"));
        set.record_outcome(&call(Some("allowed")), &outcome(denied, 1), None).unwrap();
        set.record_outcome(&call(None), &outcome(denied, 0), None).unwrap();
        let lines =
            |name: &str| std::fs::read_to_string(root.path().join(name)).unwrap().lines().count();
        assert_eq!((lines(AUDIT), lines(SPOOL), lines(HISTORY)), (3, 1, 1));
    }

    #[test]
    fn a_server_that_does_not_start_is_counted_and_what_may_be_no_tool_is_not() {
        let root = tempfile::tempdir().unwrap();
        let set = recorder(root.path(), RecordLocation::own(root.path(), AUDIT));
        let unknown = CallRecord { definition: None, source: None, server: None, ..call(None) };
        let dead = Some((ErrorKind::Unreachable, "refused"));
        set.record_outcome(&unknown, &outcome(dead, 0), None).unwrap();
        let cancelled = ErrorKind::Interrupted(crate::model::Signal::Interrupt);
        set.record_outcome(&unknown, &outcome(Some((cancelled, "cancelled")), 0), None).unwrap();
        set.record_outcome(&unknown, &outcome(Some((ErrorKind::Denied, "hidden")), 0), None)
            .unwrap();
        let text = |file: &str| std::fs::read_to_string(root.path().join(file)).unwrap();
        assert_eq!((text(AUDIT).lines().count(), text(SPOOL).lines().count()), (3, 1));
        assert!(text(SPOOL).contains(r#""k":"unreachable""#) && text(SPOOL).contains(r#""n":1"#));
        assert!(!root.path().join(HISTORY).exists());
    }

    #[test]
    fn a_log_without_a_place_is_lost_and_one_that_is_off_is_not() {
        let set = |audit| {
            let stores = RecordStores { audit, ..RecordStores::default() };
            RecorderSet::new(stores, Arc::new(FixedUnixClock), EventSink::discard())
        };
        let off = set(AuditTarget::Off);
        assert!(!off.is_switched_on() && off.record_intent(&call(Some("allowed"))).is_ok());
        let nowhere = set(AuditTarget::Nowhere);
        assert!(nowhere.is_switched_on());
        let lost = nowhere.record_intent(&call(Some("allowed"))).unwrap_err();
        assert!(matches!(lost, RecordError::Lost(_)), "{lost}");
    }

    #[test]
    fn one_record_that_fails_does_not_cost_the_other() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a-file"), "").unwrap();
        let audit = RecordLocation::named(root.path().join("a-file/audit.jsonl"));
        let set = recorder(root.path(), audit);
        let written = set.record_outcome(&call(Some("allowed")), &outcome(None, 1), None);
        assert!(written.is_err());
        assert!(root.path().join(SPOOL).exists() && root.path().join(HISTORY).exists());
    }
}
