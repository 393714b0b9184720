//! Protocol violations of a peer that are tolerated with a warning.

use super::notifications::NotificationFlaw;
use super::questions::QuestionRejection;
use crate::util::text::truncate;

const MAX_WARNINGS: usize = 20;
/// How much of a warning is kept, in characters: it may quote what the server made up.
pub(super) const WARNING_CHARS: usize = 300;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProtocolWarning {
    // The text of messages.
    /// A message contains bytes that are not UTF-8.
    #[error("a message is not valid UTF-8; the bad bytes are shown as \u{fffd}")]
    InvalidUtf8,
    /// `\uD800` to `\uDFFF` without its other half.
    #[error("a string contains half of a surrogate pair; shown as \u{fffd}")]
    LoneSurrogate,
    /// NUL bytes that JSON never holds.
    #[error("raw NUL bytes between messages were ignored")]
    NulBytes,
    /// An array of messages, as JSON-RPC has it and MCP does not.
    #[error("messages arrived as a batch array, which no supported revision allows")]
    BatchArray,
    /// The number of messages without a line end between them.
    #[error("{0} messages arrived on one line")]
    SharedLine(usize),
    /// A member that the envelope contains more than once.
    #[error("a message has the key \"{0}\" twice; the last one counts")]
    DuplicateKey(&'static str),
    #[error("\"jsonrpc\" is {0}, not \"2.0\"")]
    OtherRpcVersion(String),
    #[error("the message has no \"jsonrpc\": \"2.0\"")]
    NoRpcVersion,
    /// A line of stdout that is not a message.
    #[error("non-protocol line on stdout: {0}")]
    NonProtocolLine(String),
    /// An event or a body that is not a message, and its start when that can be quoted.
    #[error("an event is not JSON{}", quoted(.0.as_deref()))]
    EventNotJson(Option<String>),

    // Answers and their ids.
    /// A second answer to one request.
    #[error("a request got two responses; the first one counts")]
    AnsweredTwice,
    /// The response to an abandoned request.
    #[error("a response arrived after its request was abandoned; ignored")]
    LateAnswer,
    /// A number that came back written in another way.
    #[error("the id {sent} was returned as {came}")]
    IdRewritten {
        sent: i64,
        /// The same id in the JSON that came.
        came: String,
    },
    #[error("an error without an id: {0}")]
    ErrorWithoutId(String),
    #[error("a response to unknown id {0}")]
    UnknownId(String),
    /// Too many messages before both sides agreed on a version.
    #[error("it sent too much before the handshake ended; some of it was dropped")]
    TooMuchBeforeHandshake,

    // Requests and notifications of the server.
    #[error("a {method} request has the id {id}; it gets no response")]
    UnusableRequestId { method: String, id: String },
    #[error("a {method} request could not be read: {reason}")]
    UnreadableRequest { method: String, reason: String },
    /// A request that breaks a limit on open questions; no one is asked.
    #[error("a {method} request gets no response: {reason}")]
    RejectedRequest { method: String, reason: QuestionRejection },
    #[error("a {0} notification could not be read")]
    UnreadableNotification(String),
    #[error("a {method} notification {flaw}")]
    FlawedNotification { method: String, flaw: NotificationFlaw },

    // Lists, completions and subscriptions.
    /// A list that is there although its capability is not declared.
    #[error("it does not declare the {0} capability")]
    UndeclaredCapability(&'static str),
    #[error("it lists the {item} \"{key}\" twice; the first one counts")]
    ListedTwice { item: &'static str, key: String },
    #[error("its {list} cannot be listed: {reason}")]
    NotListed { list: &'static str, reason: String },
    #[error("it returned {count} completions; {kept} are used")]
    TooManyValues { count: usize, kept: usize },
    /// The number of changes dropped before a subscriber read them.
    #[error("it sent {0} change notifications faster than they could be processed")]
    ChangesLost(u64),
    #[error("it acknowledged a subscription twice")]
    AcknowledgedTwice,
    #[error("it sent change notifications before it acknowledged the subscription")]
    ChangeBeforeAcknowledgement,
    /// A change of a list that was not subscribed to.
    #[error("it sent an unrequested change notification for its {0}")]
    UnaskedChange(&'static str),
    #[error("it sent a change notification without a subscription id")]
    ChangeWithoutSubscription,
    #[error("it ended a subscription without its id")]
    EndWithoutSubscription,
    #[error("it did not accept the log level: {0}")]
    LogLevelRefused(String),
    /// A tool that is not what was listed, where the entry lets that pass.
    #[error("{0} (`drift: warn` allows it)")]
    DefinitionChanged(DefinitionDrift),
    #[error("{0}")]
    DefinitionDifference(String),

    // HTTP.
    #[error("a session id of {0} bytes is not used")]
    SessionIdTooLong(usize),
    #[error("a session id that is not visible ASCII is not used")]
    SessionIdNotAscii,
    #[error("JSON labelled as {0}")]
    MislabelledJson(String),
    /// A server at another path than its entry says.
    #[error("nothing at {configured}, but at {found}: use that as the entry's url")]
    FoundElsewhere {
        configured: String,
        /// The address that answers as a server.
        found: String,
    },
    #[error("the server's event stream is no longer read: {0}")]
    EventStreamLost(String),
    #[error("the server ended its event stream {0} times: its notifications no longer arrive")]
    EventStreamEnded(u32),
    /// The transport before Streamable HTTP names its address once.
    #[error("a second endpoint event; the first one counts")]
    SecondEndpoint,
    /// The address of a server that is reached without encryption.
    #[error("{0} is plain http: traffic can be read and changed on the way")]
    Unencrypted(String),
    /// The address of a server whose certificate is not looked at.
    #[error("the certificate of {0} is not checked")]
    CertificateUnchecked(String),
    /// Only the transport before Streamable HTTP is spoken.
    #[error("it speaks only the older HTTP+SSE transport: set type: sse in its entry")]
    OlderTransport,
}

/// A tool whose definition changed between being listed and being called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("drift: the tool '{tool}' changed after it was listed ({parts})")]
pub struct DefinitionDrift {
    pub tool: String,
    pub parts: String,
}

fn quoted(text: Option<&str>) -> String {
    text.map(|text| format!(": {text}")).unwrap_or_default()
}

impl ProtocolWarning {
    #[must_use]
    pub(super) fn map_text(self, rewrite: &dyn Fn(&str) -> String) -> Self {
        match self {
            Self::MislabelledJson(kind) => Self::MislabelledJson(rewrite(&kind)),
            Self::FoundElsewhere { configured, found } => {
                Self::FoundElsewhere { configured: rewrite(&configured), found: rewrite(&found) }
            }
            Self::EventStreamLost(reason) => Self::EventStreamLost(rewrite(&reason)),
            Self::Unencrypted(place) => Self::Unencrypted(rewrite(&place)),
            Self::CertificateUnchecked(place) => Self::CertificateUnchecked(rewrite(&place)),
            other => other,
        }
    }
}

/// The warnings about one server: each with how often it came, in order of first appearance.
#[derive(Debug, Default)]
pub struct WarningList {
    /// The text, because a server could fill memory with what its messages quote.
    known: Vec<(String, u64)>,
    dropped: u64,
}

impl WarningList {
    /// Adds a warning; equal ones are counted.
    pub fn add(&mut self, warning: &ProtocolWarning) {
        let text = truncate(&warning.to_string(), WARNING_CHARS);
        if let Some((_, count)) = self.known.iter_mut().find(|(existing, _)| *existing == text) {
            *count += 1;
        } else if self.known.len() < MAX_WARNINGS {
            self.known.push((text, 1));
        } else {
            self.dropped += 1;
        }
    }

    /// Adds a warning unless the list is full or already has it: one that is repeated during the
    /// handshake counts once.
    pub fn add_once(&mut self, warning: &ProtocolWarning) {
        let text = truncate(&warning.to_string(), WARNING_CHARS);
        if self.known.len() < MAX_WARNINGS
            && !self.known.iter().any(|(existing, _)| *existing == text)
        {
            self.known.push((text, 1));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub fn lines(&self) -> Vec<String> {
        let lines = self.known.iter().map(|(text, count)| match count {
            1 => text.clone(),
            times => format!("{text} ({times} times)"),
        });
        let dropped = (self.dropped > 0).then(|| format!("and {} more warnings", self.dropped));
        lines.chain(dropped).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_warnings_are_counted_and_other_ones_are_bounded() {
        let mut list = WarningList::default();
        assert!(list.is_empty());
        list.add_once(&ProtocolWarning::NulBytes);
        list.add_once(&ProtocolWarning::NulBytes);
        assert_eq!(list.lines(), ["raw NUL bytes between messages were ignored"]);
        list.add(&ProtocolWarning::NulBytes);
        assert_eq!(list.lines(), ["raw NUL bytes between messages were ignored (2 times)"]);
        for count in 0..30 {
            list.add(&ProtocolWarning::SharedLine(count));
        }
        assert_eq!(list.lines().len(), MAX_WARNINGS + 1);
        assert_eq!(list.lines().last().unwrap(), "and 11 more warnings");
    }

    #[test]
    fn what_a_server_made_up_is_cut() {
        let mut list = WarningList::default();
        list.add(&ProtocolWarning::NonProtocolLine("x".repeat(10_000)));
        assert_eq!(list.lines()[0].chars().count(), WARNING_CHARS + 1);
    }

    #[test]
    fn secrets_are_taken_out_of_what_http_brought() {
        let warning = ProtocolWarning::MislabelledJson("hunter2".to_owned());
        let shown = warning.map_text(&|text| text.replace("hunter2", "***")).to_string();
        assert_eq!(shown, "JSON labelled as ***");
    }
}
