//! The port between a connection and the bytes under it.

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::Value;

use super::message::Incoming;
use crate::model::{CallId, Era, Error};

/// The largest message a server may send, after decompression.
pub const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;

/// One message to send, already as JSON.
#[derive(Debug, Clone)]
pub struct OutgoingFrame {
    /// The message as one line of JSON, without the newline.
    pub bytes: Bytes,
    /// What the message is, for transports with headers.
    pub kind: FrameKind,
    pub call: Option<CallId>,
}

/// What an outgoing message is; transports that need headers take them from here.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameKind {
    Request {
        id: Value,
        method: String,
        /// The tool, prompt or resource it names (`Mcp-Name`).
        name: Option<String>,
        /// Further headers by name and value (`Mcp-Param-*`).
        headers: Vec<(String, String)>,
    },
    Notification {
        method: String,
        cancels: Option<Value>,
    },
    /// An answer to a request of the server.
    Response {
        id: Value,
        is_error: bool,
    },
    /// Not one message of the protocol.
    Other,
}

#[derive(Debug, Clone)]
pub enum Arrival {
    /// What was sent, line end removed; it need not be a message.
    Message { incoming: Incoming, stream_of: Option<Value> },
    /// Something that is not a message but can be lived with (a banner on stdout, a wrong
    /// content type).
    Warning(String),
    /// No answer will come to this request, and why.
    Failed { id: Value, error: Error },
    /// The wire is gone; nothing will come any more.
    Closed(Error),
}

/// What a wire can tell about the other side.
#[derive(Debug, Clone, Default)]
pub struct ProcessInfo {
    pub pid: Option<u32>,
    pub stderr_tail: Vec<String>,
}

/// A duplex of JSON-RPC messages to one server.
#[async_trait]
pub trait Wire: Send + Sync + 'static {
    /// Sends one message. Returns when it is handed over: written to the pipe, or accepted by the
    /// HTTP server. Several sends may be under way at once.
    async fn send(&self, frame: OutgoingFrame) -> Result<(), Error>;

    /// The next thing that came. One caller only; cancel-safe. After [`Arrival::Closed`] it
    /// returns that again.
    async fn receive(&self) -> Arrival;

    fn set_agreement(&self, _era: Era, _version: &str) {}

    /// Whether the transport itself says where a message begins and ends, as the bodies and events
    /// of HTTP do. Then one that cannot be read says nothing about the next.
    fn delimits_messages(&self) -> bool {
        false
    }

    /// Whether [`Arrival::Closed`] follows a send that failed, and says why.
    fn explains_failed_sends(&self) -> bool {
        true
    }

    /// What a request is waiting for, for the message of a timeout ("the connection",
    /// "response headers", "the rest of the answer").
    fn waiting_for(&self, _id: &Value) -> Option<String> {
        None
    }

    fn process_info(&self) -> ProcessInfo {
        ProcessInfo::default()
    }

    /// Ends the connection politely and within bounds. Idempotent.
    async fn close(&self);
}
