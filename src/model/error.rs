//! The error type: what happened, where, the peer's last output, what to do next.
//!
//! Every error of every room becomes an [`Error`]; its [`ErrorKind`] decides the exit code.
//!
//! Causes of errors that callers act on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strum::IntoStaticStr;

use super::diagnostic::SourceLocation;
use crate::util::append::AppendError;

/// The classes of failure, one for each documented exit code.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorKind {
    /// A bug in toolhost, or output that cannot be written.
    Internal,
    /// The command line, a name or the arguments are wrong; nothing was sent.
    Usage,
    /// The tool reported a failure: `isError`, a JSON-RPC error, a command's non-zero exit code.
    Tool,
    /// The server or program could not be started or reached, or died.
    Unreachable,
    /// Credentials are missing, refused or expired.
    Auth,
    /// Refused by policy, a person or the trust rules.
    Denied,
    /// A time limit was reached.
    Timeout,
    /// A threshold, pin or comparison failed.
    Check,
    /// A configuration file or the entry asked for is invalid.
    Config,
    /// The peer broke JSON, JSON-RPC, MCP, HTTP or its own output schema, or passed a size limit.
    Protocol,
    /// A usable but incomplete result.
    Partial,
    /// A signal ended the run.
    Interrupted(Signal),
}

/// The signals that end a run in an orderly way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Signal {
    /// The terminal was closed (SIGHUP).
    Hangup,
    /// Ctrl-C (SIGINT), exit code 130.
    Interrupt,
    /// SIGTERM, as service managers send it, exit code 143.
    Terminate,
}

impl ErrorKind {
    /// The exit code of the documented table.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Internal => 1,
            Self::Usage => 2,
            Self::Tool => 3,
            Self::Unreachable => 4,
            Self::Auth => 5,
            Self::Denied => 6,
            Self::Timeout => 7,
            Self::Check => 8,
            Self::Config => 9,
            Self::Protocol => 10,
            Self::Partial => 11,
            Self::Interrupted(Signal::Hangup) => 129,
            Self::Interrupted(Signal::Interrupt) => 130,
            Self::Interrupted(Signal::Terminate) => 143,
        }
    }

    /// All of them, of signals the most common one.
    pub const ALL: [Self; 12] = [
        Self::Internal,
        Self::Usage,
        Self::Tool,
        Self::Unreachable,
        Self::Auth,
        Self::Denied,
        Self::Timeout,
        Self::Check,
        Self::Config,
        Self::Protocol,
        Self::Partial,
        Self::Interrupted(Signal::Interrupt),
    ];

    /// The kind with this name; for signals the most common one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Which of several failures decides the exit code; the lowest wins.
    ///
    /// The order is the documented one: signal, 1, 9, 2, 5, 6, 7, 10, 4, 3, 8, 11.
    pub fn precedence(self) -> u8 {
        match self {
            Self::Interrupted(_) => 0,
            Self::Internal => 1,
            Self::Config => 2,
            Self::Usage => 3,
            Self::Auth => 4,
            Self::Denied => 5,
            Self::Timeout => 6,
            Self::Protocol => 7,
            Self::Unreachable => 8,
            Self::Tool => 9,
            Self::Check => 10,
            Self::Partial => 11,
        }
    }
}

/// The step of a server's or call's life in which something went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorPhase {
    /// While files are read and resolved.
    #[strum(serialize = "configuration")]
    Configure,
    /// Starting a process or opening a connection.
    Start,
    /// Agreeing on a protocol version.
    Handshake,
    /// While tools or offerings are listed.
    List,
    /// While one call is under way.
    Call,
    /// Ending a connection or process.
    Shutdown,
}

/// Whether another attempt makes sense, as known where the error was created. The host counts
/// attempts and waits between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RetryAdvice {
    /// No advice: the error's kind decides.
    #[default]
    Unspecified,
    /// Another attempt would be useless or could do harm.
    Never,
    /// Another attempt may work, after the usual pause.
    AfterBackoff,
    /// Another attempt may work, but not before this much time has passed.
    After(Duration),
}

/// One failure. Cheap to clone. Its texts may be untrusted and are made safe only when shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Error(Arc<ErrorInner>);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ErrorInner {
    kind: ErrorKind,
    message: String,
    server: Option<String>,
    phase: Option<ErrorPhase>,
    hint: Option<String>,
    details: Vec<String>,
    location: Option<SourceLocation>,
    data: Option<Value>,
    retry_advice: RetryAdvice,
    cause: ErrorCause,
}

impl Error {
    /// Whether a person or the end of the program stopped the operation, which is not a failure.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.kind(), ErrorKind::Interrupted(_))
    }

    /// An error of `kind`; `message` is a lower-case fragment without a full stop.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(ErrorInner {
            kind,
            message: message.into(),
            server: None,
            phase: None,
            hint: None,
            details: Vec::new(),
            location: None,
            data: None,
            retry_advice: RetryAdvice::Unspecified,
            cause: ErrorCause::Unspecified,
        }))
    }

    /// The error for what a person stopped.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Interrupted(Signal::Interrupt), message)
    }

    /// Record files that cannot be read.
    #[doc(hidden)] // for the program's own commands
    pub fn unreadable_records(error: AppendError) -> Self {
        match error {
            AppendError::Unsafe(why) => Self::denied(format!("not read: {why}"))
                .with_hint("check who created it, and remove it"),
            AppendError::Failed(why) => Self::internal(why),
        }
    }

    fn update(mut self, change: impl FnOnce(&mut ErrorInner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Says what the failure was part of: prefixes the message with `words`.
    #[must_use]
    pub fn context(self, prefix: &str) -> Self {
        self.update(|b| b.message = format!("{prefix}: {}", b.message))
    }

    /// Names the server the error belongs to.
    #[must_use]
    pub fn with_server(self, server: impl Into<String>) -> Self {
        self.update(|b| b.server = Some(server.into()))
    }

    /// Sets the step in which it happened.
    #[must_use]
    pub fn with_phase(self, phase: ErrorPhase) -> Self {
        self.update(|b| b.phase = Some(phase))
    }

    /// Says what a person can do next.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        self.update(|b| b.hint = Some(hint.into()))
    }

    /// Adds one line of evidence, such as a line of the server's stderr.
    #[must_use]
    pub fn with_detail(self, line: impl Into<String>) -> Self {
        self.update(|b| b.details.push(line.into()))
    }

    /// Adds several lines of evidence.
    #[must_use]
    pub fn with_details(self, lines: impl IntoIterator<Item = String>) -> Self {
        self.update(|b| b.details.extend(lines))
    }

    /// The problem of a file as an error.
    pub fn of_diagnostic(kind: ErrorKind, diagnostic: super::Diagnostic) -> Self {
        Self::new(kind, diagnostic.message).update(|b| {
            b.hint = diagnostic.hint;
            b.location = diagnostic.location;
        })
    }

    /// Sets the position in a file.
    #[must_use]
    pub fn with_location(self, location: SourceLocation) -> Self {
        self.update(|b| b.location = Some(location))
    }

    /// Attaches machine-readable evidence (a JSON-RPC error's `with_data`, the offending value).
    #[must_use]
    pub fn with_data(self, data: Value) -> Self {
        self.update(|b| b.data = Some(data))
    }

    /// Says whether another attempt makes sense.
    #[must_use]
    pub fn with_retry_advice(self, again: RetryAdvice) -> Self {
        self.update(|b| b.retry_advice = again)
    }

    /// Sets the cause, for callers that act on it.
    #[must_use]
    pub fn with_cause(self, cause: ErrorCause) -> Self {
        self.update(|b| b.cause = cause)
    }

    /// Sets the JSON-RPC error that the peer returned; `data` is the `data` of that error. Both are
    /// stored as evidence: `{"code": …, "data": …}`.
    #[must_use]
    pub fn with_rpc_error(self, code: i64, data: Option<&Value>) -> Self {
        self.with_cause(ErrorCause::Rpc { code }).with_data(json!({ "code": code, "data": data }))
    }

    /// Sets the HTTP status with which the peer refused. The evidence is `{"http_status": …}`.
    #[must_use]
    pub fn with_http_status(self, status: u16) -> Self {
        self.with_cause(ErrorCause::Http { status }).with_data(json!({ "http_status": status }))
    }

    /// The same error with every text in it rewritten, evidence included.
    #[must_use]
    pub fn map_text(self, rewrite: &dyn Fn(&str) -> String) -> Self {
        self.update(|b| {
            b.message = rewrite(&b.message);
            b.hint = b.hint.as_deref().map(rewrite);
            b.details = b.details.iter().map(|line| rewrite(line)).collect();
            b.data = b.data.as_ref().map(|data| crate::util::json::map_json(data, rewrite));
        })
    }

    /// The class of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What happened, as a lower-case fragment.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The server the failure belongs to.
    pub fn server(&self) -> Option<&str> {
        self.0.server.as_deref()
    }

    /// The step in which it happened.
    pub fn phase(&self) -> Option<ErrorPhase> {
        self.0.phase
    }

    /// What a person can do next.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Lines of evidence, oldest first.
    pub fn details(&self) -> &[String] {
        &self.0.details
    }

    /// The position in a file, if the cause is in one.
    pub fn location(&self) -> Option<&SourceLocation> {
        self.0.location.as_ref()
    }

    /// Whether another attempt makes sense.
    pub fn retry_advice(&self) -> RetryAdvice {
        self.0.retry_advice
    }

    /// Its cause, if callers act on it.
    pub fn cause(&self) -> ErrorCause {
        self.0.cause
    }

    /// The code of the JSON-RPC error that caused it.
    pub fn rpc_code(&self) -> Option<i64> {
        match self.0.cause {
            ErrorCause::Rpc { code } => Some(code),
            _ => None,
        }
    }

    /// The `data` of the JSON-RPC error that caused it; null if there was none.
    pub fn rpc_data(&self) -> Option<&Value> {
        self.rpc_code().and_then(|_| self.data()?.get("data"))
    }

    /// The HTTP status with which the peer refused; a lost session is always a 404.
    pub fn http_status(&self) -> Option<u16> {
        match self.0.cause {
            ErrorCause::Http { status } => Some(status),
            ErrorCause::SessionLost => Some(404),
            _ => None,
        }
    }

    /// Evidence for programs, printed under `data` with `--json`.
    pub fn data(&self) -> Option<&Value> {
        self.0.data.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = &self.0.server {
            write!(f, "server '{server}': ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        impl Error {
            $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self {
                Self::new(ErrorKind::$kind, message)
            })*
        }
    };
}

constructors! {
    /// An error of kind [`ErrorKind::Internal`].
    internal => Internal;
    /// An error of kind [`ErrorKind::Usage`].
    usage => Usage;
    /// An error of kind [`ErrorKind::Tool`].
    tool => Tool;
    /// An error of kind [`ErrorKind::Unreachable`].
    unreachable => Unreachable;
    /// An error of kind [`ErrorKind::Auth`].
    auth => Auth;
    /// An error of kind [`ErrorKind::Denied`].
    denied => Denied;
    /// An error of kind [`ErrorKind::Timeout`].
    timeout => Timeout;
    /// An error of kind [`ErrorKind::Config`].
    config => Config;
    /// An error of kind [`ErrorKind::Protocol`].
    protocol => Protocol;
    /// An error of kind [`ErrorKind::Partial`].
    partial => Partial;
}

/// The cause of an [`Error`], for callers that act on it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_survives_whatever_is_said_about_the_error() {
        let error = Error::tool("no")
            .with_rpc_error(-32601, Some(&json!({ "why": "secret" })))
            .context("cannot list")
            .with_server("notes")
            .map_text(&|text| text.replace("secret", "***"));
        assert_eq!(error.rpc_code(), Some(-32601));
        assert_eq!(error.rpc_data(), Some(&json!({ "why": "***" })));
        assert_eq!(error.http_status(), None);
    }

    #[test]
    fn evidence_alone_is_no_cause() {
        let error = Error::tool("no").with_data(json!({ "code": -32601, "data": null }));
        assert_eq!((error.rpc_code(), error.rpc_data()), (None, None));
        let refused = Error::unreachable("no").with_http_status(404);
        assert_eq!(refused.data(), Some(&json!({ "http_status": 404 })));
        assert_eq!(refused.http_status(), Some(404));
        assert_eq!(refused.with_cause(ErrorCause::SessionLost).http_status(), Some(404));
    }
}
