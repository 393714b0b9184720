//! The documented JSON of recorded calls.

use crate::util::shape::shape;
use serde_json::Value;

use super::HistoryEntry;
use super::read::StoredError;
use crate::model::{CallerRecord, JsonObject};
use crate::util::timestamp::rfc3339;
use crate::util::units::millis;

shape! {
    /// A call without its result.
    pub HistoryCallJson<'a> of entry: &'a HistoryEntry, with {
        let result = entry.result.as_ref();
    } {
        /// The call's identity.
        id: &'a str = &entry.id,
        /// When it started (RFC 3339).
        time: String = rfc3339(entry.unix),
        /// The same in seconds since the Unix epoch.
        unix: f64 = entry.unix,
        /// The full name of the tool.
        tool: &'a str = &entry.tool,
        /// The server, for MCP tools.
        server: Option<&'a str> = entry.server.as_deref(),
        /// The root directory of the project it was made for; null outside of every project.
        project: Option<&'a str> = entry.place.project.as_deref(),
        /// The program behind the name, as 12 hexadecimal digits; null for tools without an
        /// entry in a file.
        program: Option<&'a str> = entry.place.program.as_deref(),
        /// The arguments that name its server on a command line; only for one not in any config file.
        #[serde(skip_serializing_if = "Option::is_none")]
        command_end: Option<&'a str> = entry.command_end.as_deref(),
        /// `internal` or `mcp`.
        source: Option<&'a str> = entry.source.as_deref(),
        /// The session it belongs to.
        session: Option<&'a str> = entry.session.as_deref(),
        /// Who made the call; null in lines written by earlier versions.
        caller: Option<&'a CallerRecord> = entry.caller.as_ref(),
        /// The call it was part of.
        parent: Option<&'a str> = entry.parent.as_deref(),
        /// The protocol version spoken, for MCP tools.
        protocol: Option<&'a str> = entry.protocol.as_deref(),
        /// The fingerprint of the definition that was called.
        fingerprint: Option<&'a str> = entry.fingerprint.as_deref(),
        /// The decision on it, and why.
        decision: Option<&'a str> = entry.decision.as_deref(),
        /// Whether the tool did what it was asked for.
        success: bool = entry.error.is_none(),
        /// Why it failed.
        error: Option<&'a StoredError> = entry.error.as_ref(),
        /// From the first attempt to the answer, excluding the wait for a person.
        duration_ms: f64 = millis(entry.duration()),
        /// How long the call waited for a person to approve it or to answer its server.
        #[serde(skip_serializing_if = "Option::is_none")]
        waited_ms: Option<f64> = entry.waited().map(millis),
        /// Attempts made.
        attempts: u32 = entry.attempts,
        /// Its arguments without secrets; null when they were too large to keep.
        arguments: Option<&'a JsonObject> = entry.arguments.as_ref(),
        /// Bytes of the whole result as JSON.
        bytes: Option<u64> = result.map(|result| result.bytes),
        /// The kinds of its content blocks, in order.
        kinds: Option<&'a [String]> = result.map(|result| result.kinds.as_slice()),
    }
}

shape! {
    /// A call with its result.
    pub HistoryDetailJson<'a> of entry: &'a HistoryEntry, with {
        let result = entry.result.as_ref();
    } {
        #[serde(flatten)]
        call: HistoryCallJson<'a> = entry.into(),
        /// The output of the tool: the structured result, or else the text.
        output: Option<&'a Value> = result.map(|result| &result.output),
        /// Whether only the beginning of the result was kept.
        cut: bool = result.is_some_and(|result| result.cut),
    }
}
