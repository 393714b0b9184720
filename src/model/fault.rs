//! A failure as a value: what happened, where, the peer's last words, what to do next.
//!
//! Every error of every room ends as a [`Fault`]; its [`FaultKind`] decides the exit code.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::problem::Place;

/// The classes of failure, one for each documented exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// A bug of toolhost, or an output that cannot be written.
    Internal,
    /// The command line, a name or the arguments are wrong; nothing was sent.
    Usage,
    /// A well-formed no: `isError`, a JSON-RPC error, a command's non-zero exit.
    Tool,
    /// The server or program could not be started or reached, or died.
    Unreachable,
    /// Credentials are missing, refused or expired.
    Auth,
    /// Policy, a person or the trust rules refused.
    Denied,
    /// A limit of time fired.
    Timeout,
    /// A threshold, pin or comparison failed.
    Check,
    /// A configuration file or the entry asked for is invalid.
    Config,
    /// The peer broke JSON, JSON-RPC, MCP, HTTP or its own output schema, or passed a size limit.
    Protocol,
    /// A usable but incomplete answer.
    Partial,
    /// A signal ended the run.
    Interrupted(Signal),
}

/// The signals that end a run in an orderly way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    /// The terminal went away (SIGHUP).
    Hangup,
    /// Ctrl-C (SIGINT).
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl FaultKind {
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

    /// The word for this kind in JSON and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::Usage => "usage",
            Self::Tool => "tool",
            Self::Unreachable => "unreachable",
            Self::Auth => "auth",
            Self::Denied => "denied",
            Self::Timeout => "timeout",
            Self::Check => "check",
            Self::Config => "config",
            Self::Protocol => "protocol",
            Self::Partial => "partial",
            Self::Interrupted(_) => "interrupted",
        }
    }

    /// The kind with this word; of signals the commonest one.
    pub fn of(word: &str) -> Option<Self> {
        let all = [
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
        all.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Which of several failures of what was asked for decides the exit code; lower wins.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Reading and resolving configuration.
    Configure,
    /// Starting a process or opening a connection.
    Start,
    /// Agreeing on a protocol version.
    Handshake,
    /// Listing tools.
    List,
    /// One call.
    Call,
    /// Ending a connection or process.
    Shutdown,
}

impl Phase {
    /// The phase as a word, for messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configure => "configuration",
            Self::Start => "start",
            Self::Handshake => "handshake",
            Self::List => "list",
            Self::Call => "call",
            Self::Shutdown => "shutdown",
        }
    }
}

/// What whoever made a fault knows about trying again. The host counts the attempts and waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Again {
    /// Nothing: the fault's kind decides.
    #[default]
    Unsaid,
    /// Another attempt would be of no use, or could do harm.
    Never,
    /// Another attempt may work, after the usual pause.
    Soon,
    /// Another attempt may work, and not before this much time has passed.
    After(Duration),
}

/// One failure. Cheap to clone; text in it may be untrusted and is made safe only when shown.
#[derive(Debug, Clone)]
pub struct Fault(Arc<Body>);

#[derive(Debug, Clone)]
struct Body {
    kind: FaultKind,
    message: String,
    server: Option<String>,
    phase: Option<Phase>,
    hint: Option<String>,
    details: Vec<String>,
    place: Option<Place>,
    data: Option<serde_json::Value>,
    again: Again,
    is_trust_outdated: bool,
}

impl Fault {
    /// A fault of `kind`; `message` is a lower-case fragment without a full stop.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Body {
            kind,
            message: message.into(),
            server: None,
            phase: None,
            hint: None,
            details: Vec::new(),
            place: None,
            data: None,
            again: Again::Unsaid,
            is_trust_outdated: false,
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut Body)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Says what the failure was part of: `words` stand before the message.
    #[must_use]
    pub fn within(self, words: &str) -> Self {
        self.with(|b| b.message = format!("{words}: {}", b.message))
    }

    /// Names the server the fault belongs to.
    #[must_use]
    pub fn server(self, server: impl Into<String>) -> Self {
        self.with(|b| b.server = Some(server.into()))
    }

    /// Names the step in which it happened.
    #[must_use]
    pub fn phase(self, phase: Phase) -> Self {
        self.with(|b| b.phase = Some(phase))
    }

    /// Says what a person can do next.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.with(|b| b.hint = Some(hint.into()))
    }

    /// Adds one line of evidence, such as a line of the server's stderr.
    #[must_use]
    pub fn detail(self, line: impl Into<String>) -> Self {
        self.with(|b| b.details.push(line.into()))
    }

    /// Adds several lines of evidence.
    #[must_use]
    pub fn details(self, lines: impl IntoIterator<Item = String>) -> Self {
        self.with(|b| b.details.extend(lines))
    }

    /// Points at the spot in a file.
    #[must_use]
    pub fn place(self, place: Place) -> Self {
        self.with(|b| b.place = Some(place))
    }

    /// Attaches machine-readable evidence (a JSON-RPC error's `data`, the offending value).
    #[must_use]
    pub fn data(self, data: serde_json::Value) -> Self {
        self.with(|b| b.data = Some(data))
    }

    /// Says whether another attempt makes sense.
    #[must_use]
    pub fn again(self, again: Again) -> Self {
        self.with(|b| b.again = again)
    }

    /// Says that what would have been started is not what a person trusted, so that trust has to be
    /// asked for again before another attempt makes sense.
    #[must_use]
    pub fn trust_outdated(self) -> Self {
        self.with(|b| b.is_trust_outdated = true)
    }

    /// The same fault with every text in it rewritten, evidence included.
    #[must_use]
    pub fn map_text(self, rewrite: &dyn Fn(&str) -> String) -> Self {
        self.with(|b| {
            b.message = rewrite(&b.message);
            b.hint = b.hint.as_deref().map(rewrite);
            b.details = b.details.iter().map(|line| rewrite(line)).collect();
            b.data = b.data.as_ref().map(|data| super::result::map_json(data, rewrite));
        })
    }

    /// The class of the failure.
    pub fn kind(&self) -> FaultKind {
        self.0.kind
    }

    /// What happened, as a lower-case fragment.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The server the failure belongs to.
    pub fn server_name(&self) -> Option<&str> {
        self.0.server.as_deref()
    }

    /// The step in which it happened.
    pub fn at_phase(&self) -> Option<Phase> {
        self.0.phase
    }

    /// What a person can do next.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Lines of evidence, oldest first.
    pub fn detail_lines(&self) -> &[String] {
        &self.0.details
    }

    /// The spot in a file, when the cause is in one.
    pub fn at_place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// Whether another attempt makes sense.
    pub fn tried_again(&self) -> Again {
        self.0.again
    }

    /// Whether it came of code or a program that changed since a person trusted it.
    pub fn is_trust_outdated(&self) -> bool {
        self.0.is_trust_outdated
    }

    /// Machine-readable evidence.
    pub fn evidence(&self) -> Option<&serde_json::Value> {
        self.0.data.as_ref()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = &self.0.server {
            write!(f, "server '{server}': ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Fault {}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {
        impl Fault {
            $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self {
                Self::new(FaultKind::$kind, message)
            })*
        }
    };
}

constructors! {
    /// A fault of kind [`FaultKind::Internal`].
    internal => Internal;
    /// A fault of kind [`FaultKind::Usage`].
    usage => Usage;
    /// A fault of kind [`FaultKind::Tool`].
    tool => Tool;
    /// A fault of kind [`FaultKind::Unreachable`].
    unreachable => Unreachable;
    /// A fault of kind [`FaultKind::Auth`].
    auth => Auth;
    /// A fault of kind [`FaultKind::Denied`].
    denied => Denied;
    /// A fault of kind [`FaultKind::Timeout`].
    timeout => Timeout;
    /// A fault of kind [`FaultKind::Config`].
    config => Config;
    /// A fault of kind [`FaultKind::Protocol`].
    protocol => Protocol;
    /// A fault of kind [`FaultKind::Partial`].
    partial => Partial;
}
