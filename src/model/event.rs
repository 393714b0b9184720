//! The closed set of events that front ends may listen to while toolhost works.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::call::CallId;
use super::error::Error;
use super::offering::ListKind;
use super::question::QuestionOutcome;
use super::server::ServerState;

/// The severity of a log line from a tool or server (RFC 5424 names, as MCP uses them).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLevel(pub String);

impl LogLevel {
    /// Whether it is less severe than `threshold`; a level that nobody knows is not.
    pub fn is_below(&self, threshold: &str) -> bool {
        let place = |level: &str| LOG_LEVELS.iter().position(|entry| *entry == level);
        matches!((place(&self.0), place(threshold)), (Some(own), Some(least)) if own < least)
    }
}

/// The names of the levels, least severe first.
pub const LOG_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The provider whose list changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListOwner {
    /// The MCP server of this name.
    Server(String),
    /// Registered by the program that embeds toolhost.
    Program,
}

/// Something that happened. Viewers may miss events; records are kept separately.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum HostEvent {
    /// A call was accepted and is about to run.
    CallStarted {
        /// The identity that all events of the call share.
        call_id: CallId,
        /// The full name of the tool that is called.
        tool: String,
        /// The call it is part of, when it is nested in one.
        parent: Option<CallId>,
        /// The client that made it, as the records name it; `None` for this process itself.
        client: Option<String>,
    },
    /// A tool reported progress during a call.
    Progress {
        /// The identity that all events of the call share.
        call_id: CallId,
        /// The progress, in the tool's own unit.
        progress: f64,
        /// The total in the same unit, if known.
        total: Option<f64>,
        /// The tool's description of what it is doing.
        message: Option<String>,
    },
    /// A tool or server logged a line.
    Log {
        /// The server or tool that wrote the line.
        origin: String,
        /// The call it belongs to, if that is certain.
        call_id: Option<CallId>,
        /// The severity its author gave the line.
        level: LogLevel,
        /// The text, not yet made safe for a terminal.
        text: String,
    },
    /// The server turned the call into a task, and the host waits for it to finish.
    TaskStarted {
        /// The identity that all events of the call share.
        call_id: CallId,
    },
    /// An attempt failed and another one follows.
    AttemptFailed {
        /// The identity that all events of the call share.
        call_id: CallId,
        /// The number of the failed attempt, from 1.
        attempt: u32,
        /// The error of that failed attempt.
        error: Error,
        /// The wait before the next one.
        delay: Duration,
    },
    /// A call ended, successfully or not.
    CallFinished {
        /// The identity that all events of the call share.
        call_id: CallId,
        /// The full name of the tool that is called.
        tool: String,
        /// Whether the tool returned a result without an error.
        success: bool,
        /// Whether it was cancelled, which is not a failure of the tool.
        is_cancelled: bool,
        /// The time from the first attempt to the response, excluding time spent waiting for a
        /// person.
        duration: Duration,
    },
    /// A server changed its state.
    ServerStateChanged {
        /// The name of the server in `mcp.yaml`.
        server: String,
        /// The new state of the server.
        state: ServerState,
    },
    /// Items of a list were added, removed or changed.
    ListChanged {
        /// The provider whose list changed.
        owner: ListOwner,
        /// The list to request again.
        list: ListKind,
    },
    /// A resource that a subscription watches changed.
    ResourceUpdated {
        /// The name of the server in `mcp.yaml`.
        server: String,
        /// The address of the resource that changed.
        uri: String,
    },
    /// A server asked a question and got its answer.
    QuestionAnswered {
        /// The name of the server in `mcp.yaml`.
        server: String,
        /// The call that waited for the answer, if known.
        call_id: Option<CallId>,
        /// The round of questions of that call, from 1 (see [`Question::round`]).
        ///
        /// [`Question::round`]: super::question::Question::round
        round: Option<u32>,
        /// `form`, `url`, `sampling` or `roots`.
        kind: Cow<'static, str>,
        /// The question, as the server worded it.
        message: String,
        /// The outcome of the question, never the answer itself.
        outcome: QuestionOutcome,
    },
    /// Something a person should know that is not an error.
    Notice {
        /// Who says so: a server or a tool.
        origin: String,
        /// The text, not yet made safe for a terminal.
        text: String,
    },
    /// A problem that toolhost itself found outside the call; a person should always see it.
    Warning {
        /// The text, not yet made safe for a terminal.
        text: String,
    },
}

/// Receives events. Sending never blocks and never fails; a slow viewer loses events.
#[derive(Clone, Default)]
pub struct EventSink(Option<Arc<dyn Fn(HostEvent) + Send + Sync>>);

impl EventSink {
    /// A sink that hands each event to `deliver`, which must return at once.
    pub fn new(deliver: impl Fn(HostEvent) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(deliver)))
    }

    /// A sink that drops everything.
    pub fn discard() -> Self {
        Self::default()
    }

    /// Hands an event to the viewer; returns at once, whether or not the event is seen.
    pub fn emit(&self, event: HostEvent) {
        if let Some(deliver) = &self.0 {
            deliver(event);
        }
    }
}

impl std::fmt::Debug for EventSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventSink")
    }
}
