//! The recorder of a real run: audit log and statistics behind one port.
//!
//! Owns: turning intents and outcomes into rows. Never does: mask (dispatch did) or wait.

use std::sync::Arc;
use std::time::Duration;

use super::recorder::{Intent, Outcome, RecordError, Recorder};
use crate::audit::{AuditLog, IntentRow, OutcomeRow};
use crate::model::{Event, EventSink};
use crate::stats::{Row, Spool};
use crate::util::append::AppendError;
use crate::util::clock::Clock;

/// Audit and statistics, each when it is switched on.
pub struct RecorderSet {
    audit: Option<AuditLog>,
    spool: Option<Spool>,
    clock: Arc<dyn Clock>,
    events: EventSink,
    pid: u32,
    user: Option<String>,
}

impl RecorderSet {
    /// Keeps the records that are given. `user` is the name the process runs under; what had to
    /// be put right about a file is told to `events`.
    pub fn new(
        audit: Option<AuditLog>,
        spool: Option<Spool>,
        clock: Arc<dyn Clock>,
        events: EventSink,
        user: Option<String>,
    ) -> Self {
        Self { audit, spool, clock, events, pid: std::process::id(), user }
    }

    fn tell(&self, notes: Vec<String>) {
        for text in notes {
            self.events.emit(Event::Warning { text });
        }
    }
}

impl Recorder for RecorderSet {
    fn intent(&self, intent: &Intent<'_>) -> Result<(), RecordError> {
        let Some(audit) = &self.audit else { return Ok(()) };
        let row = IntentRow {
            call: &intent.call_id.0,
            parent: intent.parent.map(|id| id.0.as_str()),
            pid: self.pid,
            user: self.user.as_deref(),
            session: intent.session,
            tool: intent.tool,
            server: intent.server,
            source: intent.source.as_str(),
            decision: intent.decision,
            arguments: intent.arguments,
        };
        let written = audit.intent(self.clock.unix(), &row);
        self.tell(audit.take_notes());
        written.map_err(|error| failed("audit log", error))
    }

    fn outcome(&self, outcome: &Outcome<'_>) -> Result<(), RecordError> {
        let now = self.clock.unix();
        let result = outcome.failure.map_or("ok", crate::model::FaultKind::as_str);
        let audited = self.audit.as_ref().map_or(Ok(()), |audit| {
            let row = OutcomeRow {
                call: &outcome.call_id.0,
                parent: outcome.parent.map(|id| id.0.as_str()),
                pid: self.pid,
                user: self.user.as_deref(),
                tool: outcome.tool,
                server: outcome.server,
                result,
                message: outcome.message,
                duration: outcome.duration,
                attempts: outcome.attempts,
                bytes: outcome.result_bytes,
            };
            let written = audit.outcome(now, &row);
            self.tell(audit.take_notes());
            written.map_err(|error| failed("audit log", error))
        });
        // A refused call says nothing about how the tool performs.
        let counted =
            self.spool.as_ref().filter(|_| outcome.attempts > 0).map_or(Ok(()), |spool| {
                let written = spool.append(&Row {
                    t: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
                    id: outcome.call_id.0.clone(),
                    tool: outcome.tool.to_owned(),
                    server: outcome.server.map(str::to_owned),
                    k: result.to_owned(),
                    us: micros(outcome.duration),
                    n: outcome.attempts,
                    b: outcome.result_bytes,
                });
                self.tell(spool.take_notes());
                written.map_err(|error| failed("statistics", error))
            });
        audited.and(counted)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn failed(what: &str, error: AppendError) -> RecordError {
    match error {
        AppendError::Unsafe(why) => RecordError::Unsafe(format!("{what}: {why}")),
        AppendError::Failed(why) => RecordError::Lost(format!("{what}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallId, FaultKind, JsonObject, Source};
    use crate::util::clock::SystemClock;

    fn outcome(id: &CallId, attempts: u32) -> Outcome<'_> {
        Outcome {
            call_id: id,
            parent: None,
            tool: "t",
            server: None,
            failure: Some(FaultKind::Denied),
            message: None,
            duration: Duration::ZERO,
            attempts,
            result_bytes: 0,
        }
    }

    #[test]
    fn one_call_is_two_audit_lines_and_one_statistics_line() {
        let root = tempfile::tempdir().unwrap();
        let set = RecorderSet::new(
            Some(AuditLog::in_state_dir(root.path(), false)),
            Some(Spool::in_state_dir(root.path(), false)),
            Arc::new(SystemClock),
            EventSink::nowhere(),
            None,
        );
        let id = CallId("id-1".into());
        set.intent(&Intent {
            call_id: &id,
            parent: None,
            tool: "t",
            server: None,
            source: Source::Internal,
            session: "s",
            arguments: &JsonObject::new(),
            decision: "allowed",
        })
        .unwrap();
        set.outcome(&outcome(&id, 1)).unwrap();
        set.outcome(&outcome(&id, 0)).unwrap();
        let lines =
            |name: &str| std::fs::read_to_string(root.path().join(name)).unwrap().lines().count();
        assert_eq!(lines(crate::audit::log::FILE), 3);
        assert_eq!(lines(crate::stats::spool::FILE), 1);
    }

    #[test]
    fn one_record_that_fails_does_not_cost_the_other() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a-file"), "").unwrap();
        let set = RecorderSet::new(
            Some(AuditLog::at(root.path().join("a-file/audit.jsonl"), false)),
            Some(Spool::in_state_dir(root.path(), false)),
            Arc::new(SystemClock),
            EventSink::nowhere(),
            None,
        );
        assert!(set.outcome(&outcome(&CallId("id-1".into()), 1)).is_err());
        assert!(root.path().join(crate::stats::spool::FILE).exists());
    }
}
