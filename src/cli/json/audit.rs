//! The JSON of `audit`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::audit::read::AuditedCall;
use crate::model::{CallerRecord, JsonObject};
use crate::util::number::millis;
use crate::util::timestamp::rfc3339;

/// A call from the audit log.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditedCallJson<'a> {
    /// The ID of the call.
    call: &'a str,
    /// When it started or was refused (RFC 3339).
    time: String,
    /// The same time in seconds since the Unix epoch.
    unix: f64,
    /// The full name of the tool.
    tool: &'a str,
    /// The server, for MCP tools.
    server: Option<&'a str>,
    /// `internal` or `mcp`.
    source: Option<&'a str>,
    /// The session it belongs to.
    session: Option<&'a str>,
    /// Who made the call; null in lines from earlier versions.
    caller: Option<&'a CallerRecord>,
    /// The call it was part of.
    parent: Option<&'a str>,
    /// The user it ran as.
    user: Option<&'a str>,
    /// The process that made the call.
    pid: Option<u32>,
    /// The decision about the call, and why.
    decision: Option<&'a str>,
    /// Whether it was refused, so that nothing was sent.
    refused: bool,
    /// Its arguments; secrets are masked and long values are cut.
    arguments: Option<&'a JsonObject>,
    /// `ok` or the kind of error; null when no outcome was recorded.
    result: Option<&'a str>,
    /// The error message of the call.
    message: Option<&'a str>,
    /// Time from the first attempt to the response.
    duration_ms: Option<f64>,
    /// Attempts made; 0 when nothing was sent.
    attempts: Option<u32>,
    /// Bytes of the result as JSON.
    bytes: Option<u64>,
    /// By how many seconds the clock was set back just before.
    clock_back_s: Option<f64>,
}

impl<'a> From<&'a AuditedCall> for AuditedCallJson<'a> {
    fn from(call: &'a AuditedCall) -> Self {
        let outcome = call.outcome.as_ref();
        Self {
            call: &call.call,
            time: rfc3339(call.at),
            unix: call.at,
            tool: &call.tool,
            server: call.server.as_deref(),
            source: call.source.as_deref(),
            session: call.session.as_deref(),
            caller: call.caller.as_ref(),
            parent: call.parent.as_deref(),
            user: call.user.as_deref(),
            pid: call.pid,
            decision: call.decision.as_deref(),
            refused: call.was_refused(),
            arguments: call.arguments.as_ref(),
            result: outcome.map(|outcome| outcome.result.as_str()),
            message: outcome.and_then(|outcome| outcome.message.as_deref()),
            duration_ms: outcome.map(|outcome| millis(Duration::from_micros(outcome.duration_us))),
            attempts: outcome.map(|outcome| outcome.attempts),
            bytes: outcome.map(|outcome| outcome.bytes),
            clock_back_s: call.clock_set_back_by,
        }
    }
}
