//! A server's question to a person, and the trait that answers it.
//!
//! The client behind a request to a server: which questions it can answer, and which log lines it
//! wants.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::CallId;

/// A question of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Question {
    /// Who asks: the server's name in the config files, never the name it gives itself.
    pub server: String,
    /// The call that waits for the answer, if known.
    pub call: Option<CallId>,
    /// The round of questions of that call, from 1, when the server answers with questions
    /// (revision 2026-07-28); `None` when it asks by itself.
    pub round: Option<u32>,
    /// The server's own name for the question in that round.
    pub key: Option<String>,
    /// The time left for that call when the question is asked; `None` if unknown.
    pub time_left: Option<Duration>,
    /// The form, address or sample that is requested.
    pub body: QuestionBody,
}

/// What a server may ask. All texts are the server's own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum QuestionBody {
    /// To fill in a form (elicitation, mode `form`).
    Form {
        /// The server's explanation, shown to the person.
        message: String,
        /// The JSON Schema of the answer, as sent.
        schema: Value,
    },
    /// To open an address (elicitation, mode `url`). It is never opened without consent.
    Url {
        /// The server's explanation, shown to the person.
        message: String,
        /// The address: `http` or `https`, nothing else has been checked.
        url: String,
    },
    /// To let a model write something (`sampling/createMessage`); a person answers in its place.
    Sampling {
        /// The parameters of the request, as sent.
        params: Value,
    },
}

impl QuestionBody {
    /// What kind of question it is, as a word for records and rules.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Form { .. } => "form",
            Self::Url { .. } => "url",
            Self::Sampling { .. } => "sampling",
        }
    }

    /// The question in the server's wording: its message, or the last message for a model.
    pub fn message(&self) -> &str {
        match self {
            Self::Form { message, .. } | Self::Url { message, .. } => message,
            Self::Sampling { params } => {
                let last = params.get("messages").and_then(Value::as_array).and_then(|m| m.last());
                let blocks = last.and_then(|message| message.get("content"));
                let block = blocks.and_then(|c| c.as_array().map_or(Some(c), |list| list.first()));
                block.and_then(|block| block.get("text")?.as_str()).unwrap_or_default()
            }
        }
    }
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum QuestionReply {
    /// Yes: the form's content as an object, `{}` for an address that was opened, for a sample the
    /// result (`role`, `content`, `model`).
    Accept(Value),
    /// A person refused to answer.
    Decline,
    /// A person dismissed the question without answering.
    Cancel,
    /// No person could be asked. Servers see a decline.
    Unattended,
}

impl QuestionReply {
    /// The outcome, without the content of the answer.
    pub fn outcome(&self) -> QuestionOutcome {
        match self {
            Self::Accept(_) => QuestionOutcome::Accepted,
            Self::Decline => QuestionOutcome::Declined,
            Self::Cancel => QuestionOutcome::Cancelled,
            Self::Unattended => QuestionOutcome::Unattended,
        }
    }
}

/// The outcome of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum QuestionOutcome {
    /// The question was answered as asked.
    Accepted,
    /// A person refused to answer.
    Declined,
    /// The person dismissed it, or its answer is no longer needed.
    Cancelled,
    /// It was declined because no person could be asked.
    #[strum(serialize = "nobody")]
    Unattended,
    /// Declined by toolhost without asking a person: toolhost never does what it asks for.
    Refused,
}

/// Answers questions of servers. Several may arrive at once, even from one server.
#[async_trait]
pub trait QuestionHandler: Send + Sync {
    /// Asks and waits for the answer. The future is dropped when the server no longer waits for it.
    async fn ask(&self, question: Question) -> QuestionReply;

    /// Whether several questions may be asked at once. If not, each waits until the previous one
    /// has been answered.
    fn allows_concurrent(&self) -> bool {
        false
    }

    /// Whether each call has a person of its own, who alone can be asked for it.
    fn asks_callers(&self) -> bool {
        false
    }

    /// Whether servers may ask for the roots of clients, in addition to those in their entries.
    fn offers_roots(&self) -> bool {
        false
    }

    /// The roots of the client behind a call, as `roots/list` has them; `key` is the server's own
    /// name for the question. `None` when that client has no roots, or no client is waiting.
    async fn list_roots(&self, _call: Option<&CallId>, _key: Option<&str>) -> Vec<Value> {
        Vec::new()
    }
}

/// The handler for front ends without a person: every question is unattended.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoQuestionHandler;

#[async_trait]
impl QuestionHandler for NoQuestionHandler {
    async fn ask(&self, _question: Question) -> QuestionReply {
        QuestionReply::Unattended
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuestionAbilities {
    /// Forms to fill in (elicitation, mode `form`).
    pub forms: bool,
    /// Addresses to visit (elicitation, mode `url`).
    pub urls: bool,
    pub sampling: bool,
    /// The directories it works in (`roots/list`).
    pub roots: bool,
}

impl QuestionAbilities {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            forms: self.forms && other.forms,
            urls: self.urls && other.urls,
            sampling: self.sampling && other.sampling,
            roots: self.roots && other.roots,
        }
    }
}

/// Which questions the client behind a request can answer and which log lines it wants, for servers
/// that clients share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientAbilities {
    /// The minimum level of log lines it wants, one of [`LOG_LEVELS`](super::event::LOG_LEVELS);
    /// `None` leaves it to the configuration.
    pub log_level: Option<&'static str>,
    /// The questions it can answer; `None` means all that toolhost supports.
    pub questions: Option<QuestionAbilities>,
}
