//! The recorder of a real run: audit log, statistics and history behind one port.
//!
//! Owns: turning intents, outcomes and exchanges into rows. Never does: mask (dispatch did) or wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;

use super::recorder::{ExchangeRecord, IntentRecord, OutcomeRecord, RecordError, Recorder};
use crate::audit::log::{QuestionRow, RefusedRow};
use crate::audit::{AuditLog, IntentRow, OutcomeRow};
use crate::catalogue::fingerprint;
use crate::history::{HistoryLog, HistoryRow};
use crate::model::{EventSink, HostEvent, ToolDefinition};
use crate::stats::{self, Spool};
use crate::util::append::AppendError;
use crate::util::clock::Clock;

/// The most fingerprints that are remembered.
const MAX_FINGERPRINTS: usize = 10_000;

/// The records of calls, each when it is switched on.
#[derive(Debug, Default)]
pub struct RecordStores {
    /// The audit log: an intent and an outcome for each call.
    pub audit: Option<AuditLog>,
    /// The statistics: one line for each call, folded by readers.
    pub spool: Option<Spool>,
    /// The history: arguments and results of each call.
    pub history: Option<HistoryLog>,
}

/// Writes the records of calls.
pub struct RecorderSet {
    stores: RecordStores,
    /// Fingerprints of the definitions that were called.
    fingerprints: Mutex<HashMap<String, CachedFingerprint>>,
    clock: Arc<dyn Clock>,
    events: EventSink,
    pid: u32,
    user: Option<String>,
}

impl RecorderSet {
    /// Keeps the records that are given. `user` is the name the process runs under; what had to
    /// be put right about a file is told to `events`.
    pub fn new(
        kept: RecordStores,
        clock: Arc<dyn Clock>,
        events: EventSink,
        user: Option<String>,
    ) -> Self {
        let fingerprints = Mutex::default();
        Self { stores: kept, fingerprints, clock, events, pid: std::process::id(), user }
    }

    fn fingerprint(&self, tool: &ToolDefinition) -> String {
        let mut known = self.fingerprints.lock().unwrap_or_else(PoisonError::into_inner);
        let name = tool.name.full();
        if let Some(cached) = known.get(&name).filter(|cached| cached.is_of(tool)) {
            return cached.value.clone();
        }
        let value = fingerprint::fingerprint(tool);
        if known.len() >= MAX_FINGERPRINTS {
            known.clear();
        }
        known.insert(name, CachedFingerprint::new(tool, value.clone()));
        value
    }

    fn write_audit_outcome(
        &self,
        now: Duration,
        result: &str,
        outcome: &OutcomeRecord<'_>,
    ) -> Result<(), RecordError> {
        let Some(audit) = &self.stores.audit else { return Ok(()) };
        let questions = outcome.questions.iter().map(|question| QuestionRow {
            kind: question.kind,
            verdict: question.verdict.as_str(),
        });
        let questions: Vec<QuestionRow> = questions.collect();
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
            questions: &questions,
            refused: outcome.refusal.map(|refused| RefusedRow {
                source: refused.source.as_str(),
                session: refused.session,
                arguments: refused.arguments,
            }),
        };
        let written = audit.append_outcome(now, &row);
        self.emit_warnings(audit.take_notes());
        written.map_err(|error| store_error("audit log", error))
    }

    fn emit_warnings(&self, notes: Vec<String>) {
        for text in notes {
            self.events.emit(HostEvent::Warning { text });
        }
    }
}

impl Recorder for RecorderSet {
    fn record_intent(&self, intent: &IntentRecord<'_>) -> Result<(), RecordError> {
        let Some(audit) = &self.stores.audit else { return Ok(()) };
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
        let written = audit.append_intent(self.clock.unix(), &row);
        self.emit_warnings(audit.take_notes());
        written.map_err(|error| store_error("audit log", error))
    }

    fn record_outcome(&self, outcome: &OutcomeRecord<'_>) -> Result<(), RecordError> {
        let now = self.clock.unix();
        let result = outcome.failure.map_or("ok", crate::model::ErrorKind::as_str);
        let audited = self.write_audit_outcome(now, result, outcome);
        // A refused call says nothing about how the tool performs.
        let counted =
            self.stores.spool.as_ref().filter(|_| outcome.attempts > 0).map_or(Ok(()), |spool| {
                let written = spool.append(&stats::SpoolRow {
                    t: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
                    id: outcome.call_id.0.clone(),
                    tool: outcome.tool.to_owned(),
                    server: outcome.server.map(str::to_owned),
                    k: result.to_owned(),
                    us: micros(outcome.duration),
                    n: outcome.attempts,
                    b: outcome.result_bytes,
                });
                self.emit_warnings(spool.take_notes());
                written.map_err(|error| store_error("statistics", error))
            });
        audited.and(counted)
    }

    fn record_batch_outcome(&self, outcome: &OutcomeRecord<'_>) -> Result<(), RecordError> {
        let result = outcome.failure.map_or("ok", crate::model::ErrorKind::as_str);
        self.write_audit_outcome(self.clock.unix(), result, outcome)
    }

    fn keeps_exchanges(&self) -> bool {
        self.stores.history.is_some()
    }

    fn record_exchange(&self, exchange: &ExchangeRecord<'_>) -> Result<(), RecordError> {
        let Some(history) = &self.stores.history else { return Ok(()) };
        let outcome = exchange.outcome;
        let fingerprint = self.fingerprint(exchange.definition);
        let row = HistoryRow {
            id: &exchange.call_id.0,
            tool: outcome.tool,
            server: outcome.server,
            source: exchange.definition.source.as_str(),
            session: exchange.session,
            parent: exchange.parent,
            protocol: exchange.protocol,
            fingerprint: &fingerprint,
            decision: exchange.decision,
            arguments: exchange.arguments,
            duration: outcome.duration,
            attempts: outcome.attempts,
            error: outcome.failure.map(|kind| (kind.as_str(), outcome.message.unwrap_or(""))),
            result: exchange.result,
            bytes: outcome.result_bytes,
        };
        let written = history.append(self.clock.unix(), &row);
        self.emit_warnings(history.take_notes());
        written.map_err(|error| store_error("history", error))
    }
}

/// The fingerprint of a definition, and what tells that the definition is still the same without
/// computing it again: whoever lists a tool anew makes its parts anew.
struct CachedFingerprint {
    schema: Arc<Value>,
    raw: Option<Arc<RawValue>>,
    description: Option<String>,
    value: String,
}

impl CachedFingerprint {
    fn new(tool: &ToolDefinition, value: String) -> Self {
        Self {
            schema: Arc::clone(&tool.input_schema),
            raw: tool.raw.clone(),
            description: tool.description.clone(),
            value,
        }
    }

    fn is_of(&self, tool: &ToolDefinition) -> bool {
        let same_raw = match (&self.raw, &tool.raw) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        same_raw
            && Arc::ptr_eq(&self.schema, &tool.input_schema)
            && self.description == tool.description
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn store_error(what: &str, error: AppendError) -> RecordError {
    match error {
        AppendError::Unsafe(why) => RecordError::Unsafe(format!("{what}: {why}")),
        AppendError::Failed(why) => RecordError::Lost(format!("{what}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallId, ErrorKind, JsonObject, ToolSource};
    use crate::util::append::RecordLocation;
    use crate::util::clock::SystemClock;
    use crate::util::segments::SegmentRetention;

    fn audit(location: RecordLocation) -> AuditLog {
        AuditLog::new(location, false, SegmentRetention::default())
    }

    fn outcome(id: &CallId, attempts: u32) -> OutcomeRecord<'_> {
        OutcomeRecord {
            call_id: id,
            parent: None,
            tool: "t",
            server: None,
            failure: Some(ErrorKind::Denied),
            message: None,
            duration: Duration::ZERO,
            attempts,
            result_bytes: 0,
            questions: &[],
            refusal: None,
        }
    }

    #[test]
    fn one_call_is_two_audit_lines_and_one_statistics_line() {
        let root = tempfile::tempdir().unwrap();
        let set = RecorderSet::new(
            RecordStores {
                audit: Some(audit(RecordLocation::own(root.path(), crate::audit::log::FILE))),
                spool: Some(Spool::new(
                    RecordLocation::own(root.path(), stats::spool::FILE),
                    false,
                    SegmentRetention::default(),
                )),
                history: None,
            },
            Arc::new(SystemClock),
            EventSink::discard(),
            None,
        );
        let id = CallId("id-1".into());
        set.record_intent(&IntentRecord {
            call_id: &id,
            parent: None,
            tool: "t",
            server: None,
            source: ToolSource::Internal,
            session: "s",
            arguments: &JsonObject::new(),
            decision: "allowed",
        })
        .unwrap();
        set.record_outcome(&outcome(&id, 1)).unwrap();
        set.record_outcome(&outcome(&id, 0)).unwrap();
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
            RecordStores {
                audit: Some(audit(RecordLocation::named(root.path().join("a-file/audit.jsonl")))),
                spool: Some(Spool::new(
                    RecordLocation::own(root.path(), stats::spool::FILE),
                    false,
                    SegmentRetention::default(),
                )),
                history: None,
            },
            Arc::new(SystemClock),
            EventSink::discard(),
            None,
        );
        assert!(set.record_outcome(&outcome(&CallId("id-1".into()), 1)).is_err());
        assert!(root.path().join(crate::stats::spool::FILE).exists());
    }
}
