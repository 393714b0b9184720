//! Causes of errors, as far as callers decide by them.
//!
//! Owns: the causes that change what happens next. Never does: choose words; an error's message is
//! for people and is never compared.

use serde::{Deserialize, Serialize};

/// The cause of an [`Error`](super::Error), for the callers that go on in another way because of
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ErrorCause {
    /// No cause is given; callers decide by the error's kind.
    #[default]
    Unspecified,
    /// The peer answered with a JSON-RPC error.
    Rpc {
        /// The error's `code`.
        code: i64,
    },
    /// The peer answered with an HTTP status that means failure.
    Http {
        /// The status, 300 to 599.
        status: u16,
    },
    /// The server no longer knows the session (HTTP 404, legacy era): a new one may do.
    SessionLost,
    /// The tool or its provider was removed while the host runs.
    ToolRemoved,
    /// Code or a program changed since a person trusted it: trust has to be asked for again before
    /// another attempt makes sense.
    TrustOutdated,
}
