//! The record of one call: filled once by the host, and written by the audit log, the statistics
//! and the history, each in its own format.
//!
//! What a breakpoint did to a call.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{CallId, ErrorKind, JsonObject, QuestionOutcome, ToolDefinition, ToolSource};

/// A call that is about to be dispatched or was refused.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// The identity that joins all records of the call.
    pub id: CallId,
    /// The call this one is nested in; `None` for a call by a front end.
    pub parent: Option<CallId>,
    /// The tool's full name, as [`ToolName::full`](super::ToolName::full) spells it; the name as
    /// typed if no tool was found.
    pub tool: String,
    /// The server the tool belongs to, or that failed before its tools were known; `None` for
    /// internal tools.
    pub server: Option<String>,
    /// Where the tool comes from; `None` if unknown.
    pub source: Option<ToolSource>,
    /// The tool's definition at the time of the call, if known.
    pub definition: Option<Arc<ToolDefinition>>,
    /// The caller: user, session, client and directory.
    pub caller: CallerRecord,
    /// The protocol revision spoken with the server; `None` for tools without a server.
    pub protocol: Option<String>,
    /// The arguments after coercion, secrets masked.
    pub arguments: JsonObject,
    /// What allowed the call (`allowed`, `approved by a person`, `--yes`, …); `None` if it was
    /// refused, which leaves an outcome without an intent.
    pub decision: Option<String>,
    /// What a breakpoint did to it before it was sent; `None` if none was about it.
    pub breakpoint: Option<BreakpointRecord>,
}

impl CallRecord {
    /// `internal` or `mcp`, as the records spell it.
    pub fn source(&self) -> Option<&'static str> {
        self.source.map(ToolSource::as_str)
    }

    /// Which program was called, see [`EntryOrigin::program_id`](super::EntryOrigin::program_id);
    /// `None` if the tool was not found, and for tools without an entry in a file.
    #[doc(hidden)] // for the program's own records
    pub fn program(&self) -> Option<String> {
        self.definition.as_ref()?.program()
    }

    /// The end of a command line that names its server; only for an ad-hoc server.
    #[doc(hidden)] // for the program's own records
    pub fn command_end(&self) -> Option<&str> {
        self.definition.as_ref()?.entry.as_ref()?.command_end.as_deref()
    }

    /// The identity of the call this one is nested in, as the records spell it.
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_ref().map(|id| &*id.0)
    }
}

impl CallRecord {
    /// Whether statistics count the call. Only successful calls have a duration there. Calls that were
    /// refused, answered by a person or cancelled before they were sent say nothing about the tool, nor do names that may
    /// not be a tool's.
    pub fn is_counted(&self, outcome: &RecordedOutcome) -> bool {
        let is_known = self.definition.is_some() || self.server.is_some();
        let is_answered = |stop: &BreakpointRecord| stop.outcome == HoldOutcome::Answered;
        if self.breakpoint.as_ref().is_some_and(is_answered) {
            return false;
        }
        outcome.attempts > 0
            || match outcome.failure {
                Some(ErrorKind::Interrupted(_) | ErrorKind::Denied) => false,
                Some(ErrorKind::Usage) => is_known,
                _ => true,
            }
    }
}

/// Distinguishes calls with the same tool name: the project they were made for, and the program
/// behind the name. Absent in records of earlier versions.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct CallPlace {
    /// The root directory of the project; absent for a call outside any project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The program, as 12 hexadecimal digits; absent for tools without an entry in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// The caller, as recorded. Of variables and metadata only the names are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallerRecord {
    /// The session the call was made in; a separate member in every record.
    #[serde(skip)]
    pub session: String,
    /// The working directory of the caller.
    #[serde(default)]
    pub cwd: String,
    /// The user on whose behalf the call was made; absent if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The client of a host that serves others: the name in its token, or else the name it gives
    /// itself. Absent for a call by toolhost's own process.
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
    /// The kind of the failure; `None` for success.
    pub failure: Option<ErrorKind>,
    /// The error message, with secrets masked; for many calls recorded as one, their counts.
    pub message: Option<String>,
    /// The time from the first attempt to the response, excluding time spent waiting for a person.
    pub duration: Duration,
    /// Time spent waiting for a person: for approval, and for answers to questions.
    pub waited: Duration,
    /// Attempts made; 0 if the call was refused or ended before its first attempt.
    pub attempts: u32,
    /// The size of the result as JSON, in bytes; 0 without a result.
    pub result_bytes: u64,
    /// The questions of the server during the call, and their outcomes.
    pub questions: Vec<QuestionRecord>,
    /// What a breakpoint did to its result; `None` if none was about that.
    pub breakpoint: Option<BreakpointRecord>,
}

impl RecordedOutcome {
    /// `ok`, or the word of the failure's kind.
    pub fn word(&self) -> &'static str {
        self.failure.map_or("ok", ErrorKind::as_str)
    }

    /// [`RecordedOutcome::waited`] in whole microseconds; `None` if there was no wait for a person.
    pub fn waited_micros(&self) -> Option<u64> {
        let micros = u64::try_from(self.waited.as_micros()).unwrap_or(u64::MAX);
        (micros > 0).then_some(micros)
    }

    /// The duration in whole microseconds, as all records store it.
    pub fn micros(&self) -> u64 {
        u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX)
    }
}

/// One question of a server during a call, never the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionRecord {
    /// The sort of question: `form`, `url` or `sampling`.
    pub kind: &'static str,
    /// The outcome of the question.
    pub verdict: QuestionOutcome,
}

/// Where a breakpoint stops a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldPoint {
    /// Before it is sent.
    Call,
    /// With its result, before the caller gets it.
    Result,
}

/// What became of a call at a breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum HoldOutcome {
    /// It went on unchanged.
    Continued,
    /// It went on with other arguments, or another result.
    Edited,
    /// It was answered and never sent.
    Answered,
    /// It was refused.
    Refused,
    /// It was not stopped, because no console was attached.
    #[strum(serialize = "not stopped")]
    NotStopped,
}

/// What a breakpoint did to a call, as the audit log keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakpointRecord {
    /// The pattern of its rule.
    pub pattern: String,
    /// Where the call was stopped.
    pub on: HoldPoint,
    /// What became of it.
    pub outcome: HoldOutcome,
    /// Who decided: a console, or the limit of the rule; or why nobody did.
    pub by: String,
    /// The arguments before they were edited, secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_before: Option<JsonObject>,
}
