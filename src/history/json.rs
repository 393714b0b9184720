//! The documented JSON of recorded calls.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::HistoryEntry;
use super::read::StoredError;
use crate::model::{CallerRecord, JsonObject};
use crate::util::number::millis;
use crate::util::timestamp::rfc3339;

/// A call without its result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryCallJson<'a> {
    /// The call's identity.
    id: &'a str,
    /// When it started (RFC 3339).
    time: String,
    /// The same in seconds since the Unix epoch.
    unix: f64,
    /// The full name of the tool.
    tool: &'a str,
    /// The server, for MCP tools.
    server: Option<&'a str>,
    /// The root directory of the project it was made for; null outside of every project.
    project: Option<&'a str>,
    /// The program behind the name, as 12 hexadecimal digits; null for tools without an
    /// entry in a file.
    program: Option<&'a str>,
    /// The arguments that name its server on a command line; only for one not in any config file.
    #[serde(skip_serializing_if = "Option::is_none")]
    command_end: Option<&'a str>,
    /// `internal` or `mcp`.
    source: Option<&'a str>,
    /// The session it belongs to.
    session: Option<&'a str>,
    /// Who made the call; null in lines written by earlier versions.
    caller: Option<&'a CallerRecord>,
    /// The call it was part of.
    parent: Option<&'a str>,
    /// The protocol version spoken, for MCP tools.
    protocol: Option<&'a str>,
    /// The fingerprint of the definition that was called.
    fingerprint: Option<&'a str>,
    /// The decision on it, and why.
    decision: Option<&'a str>,
    /// Whether the tool did what it was asked for.
    success: bool,
    /// Why it failed.
    error: Option<&'a StoredError>,
    /// From the first attempt to the answer, excluding the wait for a person.
    duration_ms: f64,
    /// How long the call waited for a person to approve it or to answer its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<f64>,
    /// Attempts made.
    attempts: u32,
    /// Its arguments without secrets; null when they were too large to keep.
    arguments: Option<&'a JsonObject>,
    /// Bytes of the whole result as JSON.
    bytes: Option<u64>,
    /// The kinds of its content blocks, in order.
    kinds: Option<&'a [String]>,
}

impl<'a> From<&'a HistoryEntry> for HistoryCallJson<'a> {
    fn from(entry: &'a HistoryEntry) -> Self {
        let result = entry.result.as_ref();
        Self {
            id: &entry.id,
            time: rfc3339(entry.unix),
            unix: entry.unix,
            tool: &entry.tool,
            server: entry.server.as_deref(),
            project: entry.place.project.as_deref(),
            program: entry.place.program.as_deref(),
            command_end: entry.command_end.as_deref(),
            source: entry.source.as_deref(),
            session: entry.session.as_deref(),
            caller: entry.caller.as_ref(),
            parent: entry.parent.as_deref(),
            protocol: entry.protocol.as_deref(),
            fingerprint: entry.fingerprint.as_deref(),
            decision: entry.decision.as_deref(),
            success: entry.error.is_none(),
            error: entry.error.as_ref(),
            duration_ms: millis(entry.duration()),
            waited_ms: entry.waited().map(millis),
            attempts: entry.attempts,
            arguments: entry.arguments.as_ref(),
            bytes: result.map(|result| result.bytes),
            kinds: result.map(|result| result.kinds.as_slice()),
        }
    }
}

/// A call with its result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryDetailJson<'a> {
    #[serde(flatten)]
    call: HistoryCallJson<'a>,
    /// The output of the tool: the structured result, or else the text.
    output: Option<&'a Value>,
    /// Whether only the beginning of the result was kept.
    cut: bool,
}

impl<'a> From<&'a HistoryEntry> for HistoryDetailJson<'a> {
    fn from(entry: &'a HistoryEntry) -> Self {
        let result = entry.result.as_ref();
        Self {
            call: entry.into(),
            output: result.map(|result| &result.output),
            cut: result.is_some_and(|result| result.cut),
        }
    }
}
