//! Causes of errors that callers act on.

use serde::{Deserialize, Serialize};

/// The cause of an [`Error`](super::Error), for callers that act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ErrorCause {
    /// No specific cause; callers decide by the error's kind.
    #[default]
    Unspecified,
    /// The peer returned a JSON-RPC error.
    Rpc {
        /// The `code` of the JSON-RPC error.
        code: i64,
    },
    /// The peer returned an HTTP status that means failure.
    Http {
        /// The status, 300 to 599.
        status: u16,
    },
    /// The server no longer knows the session (HTTP 404, legacy era): a new one may work.
    SessionLost,
    /// The tool or its provider was removed while the host runs.
    ToolRemoved,
    /// Code or a program changed since a person trusted it: it must be trusted again before another
    /// attempt makes sense.
    TrustOutdated,
}
