//! What happens while toolhost works, as a closed set of events for whoever watches.

use std::sync::Arc;
use std::time::Duration;

use super::call::CallId;
use super::fault::Fault;
use super::server::ServerState;

/// The severity of a log line from a tool or server (RFC 5424 names, as MCP uses them).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLevel(pub String);

/// Something that happened. Viewers may miss events; records are kept elsewhere.
#[derive(Debug, Clone)]
pub enum Event {
    /// A call was accepted and is about to run.
    CallStarted { call_id: CallId, tool: String },
    /// A tool reported progress.
    Progress { call_id: CallId, progress: f64, total: Option<f64>, message: Option<String> },
    /// A tool or server logged a line.
    Log { origin: String, level: LogLevel, text: String },
    /// An attempt failed and another one follows after `delay`.
    AttemptFailed { call_id: CallId, attempt: u32, fault: Fault, delay: Duration },
    /// A call ended.
    CallFinished { call_id: CallId, tool: String, success: bool, duration: Duration },
    /// A server changed its state.
    Server { server: String, state: ServerState },
    /// A server's catalogue changed.
    ListChanged { server: String },
    /// Something a person should know that is not worth an error.
    Notice { origin: String, text: String },
}

/// Where events go. Sending never blocks and never fails; a slow viewer loses events.
#[derive(Clone)]
pub struct EventSink(Arc<dyn Fn(Event) + Send + Sync>);

impl EventSink {
    /// A sink that hands each event to `deliver`, which must return at once.
    pub fn new(deliver: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(deliver))
    }

    /// A sink that forgets everything.
    pub fn nowhere() -> Self {
        Self::new(|_| {})
    }

    /// Emits one event.
    pub fn emit(&self, event: Event) {
        (self.0)(event);
    }
}

impl std::fmt::Debug for EventSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventSink")
    }
}
