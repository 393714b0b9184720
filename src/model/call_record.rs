//! The record of one call: filled once by the host, and written by the audit log, the statistics
//! and the history, each in its own format.
//!
//! Owns: which facts about a call are recorded. Never does: mask (the arguments and the message are
//! masked before they get here), or know how a line is written.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallId, ErrorKind, JsonObject, QuestionOutcome, ToolDefinition, ToolSource};

/// A call that is about to be dispatched, or that was refused.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// The identity that joins all records of the call.
    pub id: CallId,
    /// The call this one is nested in; `None` for one that a front end made.
    pub parent: Option<CallId>,
    /// The tool's full name, as [`ToolName::full`](super::ToolName::full) spells it; the name as it was
    /// typed when no tool was found by it.
    pub tool: String,
    /// The server that the tool belongs to, or that failed before its tools were known; `None` for
    /// internal tools.
    pub server: Option<String>,
    /// Where the tool comes from; `None` when it was not found out.
    pub source: Option<ToolSource>,
    /// The tool's definition at the time of the call, when it was known.
    pub definition: Option<Arc<ToolDefinition>>,
    /// Whose call it is.
    pub caller: CallerRecord,
    /// The protocol revision spoken with the server; `None` for tools that are not of a server.
    pub protocol: Option<String>,
    /// The arguments after coercion, secrets masked.
    pub arguments: JsonObject,
    /// What allowed the call (`allowed`, `approved by a person`, `--yes`, …); `None` when it was
    /// refused, which leaves an outcome without an intent.
    pub decision: Option<String>,
}

impl CallRecord {
    /// `internal` or `mcp`, as the records spell it.
    pub fn source(&self) -> Option<&'static str> {
        self.source.map(ToolSource::as_str)
    }

    /// Which program was called, see [`EntryOrigin::program_id`](super::EntryOrigin::program_id);
    /// `None` when the tool was not found, and for tools without an entry of a file.
    #[doc(hidden)] // for the program's own records
    pub fn program(&self) -> Option<String> {
        self.definition.as_ref()?.program()
    }

    /// The words that name its server on a command line; only for one that is in no file.
    #[doc(hidden)] // for the program's own records
    pub fn command_end(&self) -> Option<&str> {
        self.definition.as_ref()?.entry.as_ref()?.command_end.as_deref()
    }

    /// The identity of the call this one is nested in, as the records spell it.
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_ref().map(|id| id.0.as_str())
    }
}

impl CallRecord {
    /// Whether statistics count the call. Every attempt is counted, also one that was refused before it
    /// was sent; only calls that went well have a duration there. Not counted is what a person gave up
    /// before it was sent, and the refusal of a name of which it is not known whether it is a tool's.
    pub fn is_counted(&self, outcome: &RecordedOutcome) -> bool {
        let is_known = self.definition.is_some() || self.server.is_some();
        outcome.attempts > 0
            || match outcome.failure {
                Some(ErrorKind::Interrupted(_)) => false,
                Some(ErrorKind::Denied) => is_known,
                _ => true,
            }
    }
}

/// What tells calls of one name apart: the project they were made for, and the program behind the
/// name. Absent in records of earlier versions.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct CallPlace {
    /// The root directory of the project; absent for a call outside of every project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The program, as 12 hexadecimal digits; absent for tools without an entry of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// Whose call it is, as the records keep it. Of what the call carries only names are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallerRecord {
    /// The session the call was made in; a member of its own in every record.
    #[serde(skip)]
    pub session: String,
    /// The directory the caller works in.
    #[serde(default)]
    pub cwd: String,
    /// On whose behalf the call was made; absent when unsaid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The client of a host that serves others: as its token names it, otherwise as it names itself.
    /// Absent for a call of toolhost's own process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The names of the variables that the call carried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// The keys of the metadata that the call carried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata: Vec<String>,
}

/// How a recorded call ended.
#[derive(Debug, Clone, Default)]
pub struct RecordedOutcome {
    /// The kind of the failure; `None` is success.
    pub failure: Option<ErrorKind>,
    /// The failure in words, secrets masked; for many calls recorded as one, their counts.
    pub message: Option<String>,
    /// From the first attempt to the answer, without the time in which a person was waited for.
    pub duration: Duration,
    /// How long a person was waited for: for an approval, and for answers to questions.
    pub waited: Duration,
    /// Attempts made; 0 when the call was refused or ended before its first attempt.
    pub attempts: u32,
    /// The size of the result as JSON, in bytes; 0 without a result.
    pub result_bytes: u64,
    /// What the server asked during the call and what came of each question.
    pub questions: Vec<QuestionRecord>,
}

impl RecordedOutcome {
    /// `ok`, or the word of the failure's kind.
    pub fn word(&self) -> &'static str {
        self.failure.map_or("ok", ErrorKind::as_str)
    }

    /// [`RecordedOutcome::waited`] in whole microseconds; `None` when no person was waited for.
    pub fn waited_micros(&self) -> Option<u64> {
        let micros = u64::try_from(self.waited.as_micros()).unwrap_or(u64::MAX);
        (micros > 0).then_some(micros)
    }

    /// The duration in whole microseconds, as all records store it.
    pub fn micros(&self) -> u64 {
        u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX)
    }
}

/// One question of a server during a call; never what was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionRecord {
    /// The sort of question: `form`, `url` or `sampling`.
    pub kind: &'static str,
    /// What came of the question.
    pub verdict: QuestionOutcome,
}
