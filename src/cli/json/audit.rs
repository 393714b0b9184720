//! The JSON of `audit`.

use crate::util::shape::shape;
use std::time::Duration;

use crate::audit::read::AuditedCall;
use crate::model::{BreakpointRecord, CallerRecord, JsonObject};
use crate::util::number::millis;
use crate::util::timestamp::rfc3339;

shape! {
    /// A call from the audit log.
    pub AuditedCallJson<'a> of call: &'a AuditedCall, with {
        let outcome = call.outcome.as_ref();
    } {
        /// The ID of the call.
        call: &'a str = &call.call,
        /// When it started or was refused (RFC 3339).
        time: String = rfc3339(call.at),
        /// The same time in seconds since the Unix epoch.
        unix: f64 = call.at,
        /// The full name of the tool.
        tool: &'a str = &call.tool,
        /// The server, for MCP tools.
        server: Option<&'a str> = call.server.as_deref(),
        /// `internal` or `mcp`.
        source: Option<&'a str> = call.source.as_deref(),
        /// The session it belongs to.
        session: Option<&'a str> = call.session.as_deref(),
        /// Who made the call; null in lines from earlier versions.
        caller: Option<&'a CallerRecord> = call.caller.as_ref(),
        /// The call it was part of.
        parent: Option<&'a str> = call.parent.as_deref(),
        /// The user it ran as.
        user: Option<&'a str> = call.user.as_deref(),
        /// The process that made the call.
        pid: Option<u32> = call.pid,
        /// The decision about the call, and why.
        decision: Option<&'a str> = call.decision.as_deref(),
        /// Whether it was refused, so that nothing was sent.
        refused: bool = call.was_refused(),
        /// Its arguments; secrets are masked and long values are cut.
        arguments: Option<&'a JsonObject> = call.arguments.as_ref(),
        /// What breakpoints did to the call, and then to its result.
        breakpoints: &'a [BreakpointRecord] = &call.breakpoints,
        /// `ok` or the kind of error; null when no outcome was recorded.
        result: Option<&'a str> = outcome.map(|outcome| outcome.result.as_str()),
        /// The error message of the call.
        message: Option<&'a str> = outcome.and_then(|outcome| outcome.message.as_deref()),
        /// Time from the first attempt to the response.
        duration_ms: Option<f64> =
            outcome.map(|outcome| millis(Duration::from_micros(outcome.duration_us))),
        /// Attempts made; 0 when nothing was sent.
        attempts: Option<u32> = outcome.map(|outcome| outcome.attempts),
        /// Bytes of the result as JSON.
        bytes: Option<u64> = outcome.map(|outcome| outcome.bytes),
        /// By how many seconds the clock was set back just before.
        clock_back_s: Option<f64> = call.clock_set_back_by,
    }
}
