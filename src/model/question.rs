//! A server's question to a person, and the port through which it is answered.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call_id::CallId;

/// A question of a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Question {
    /// Who asks: the server's name in the files, never what it calls itself.
    pub server: String,
    /// The call that waits for the answer, when that is known.
    pub call: Option<CallId>,
    /// The round of questions of that call, from 1, when the server answers with questions
    /// (revision 2026-07-28); `None` when it asks by itself.
    pub round: Option<u32>,
    /// The server's own name of the question in that round.
    pub key: Option<String>,
    /// How long that call may still take when the question is put; `None` when that is not known.
    pub time_left: Option<Duration>,
    /// The form, the address or the sample that is asked for.
    pub body: QuestionBody,
}

/// What a server may ask. All of it is the server's own words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum QuestionBody {
    /// To fill in a form (elicitation, mode `form`).
    Form {
        /// The server's explanation, shown to the person.
        message: String,
        /// The JSON Schema of the answer, as it was sent.
        schema: Value,
    },
    /// To open an address (elicitation, mode `url`). Nothing ever opens it without consent.
    Url {
        /// The server's explanation, shown to the person.
        message: String,
        /// The address: `http` or `https`, and nothing else was checked.
        url: String,
    },
    /// To let a model write something (`sampling/createMessage`); a person stands in for it.
    Sampling {
        /// The parameters, as they were sent.
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

    /// The question in the server's words: its message, or the last message for a model.
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
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionReply {
    /// Yes: the form's content as an object, `{}` for an address that was opened, for a sample the
    /// result (`role`, `content`, `model`).
    Accept(Value),
    /// A person refused to answer.
    Decline,
    /// A person turned away without an answer.
    Cancel,
    /// No person could be asked. Servers hear it as a decline.
    Unattended,
}

impl QuestionReply {
    /// What was decided, without what was said.
    pub fn outcome(&self) -> QuestionOutcome {
        match self {
            Self::Accept(_) => QuestionOutcome::Accepted,
            Self::Decline => QuestionOutcome::Declined,
            Self::Cancel => QuestionOutcome::Cancelled,
            Self::Unattended => QuestionOutcome::Unattended,
        }
    }
}

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuestionOutcome {
    /// The question was answered as asked.
    Accepted,
    /// A person refused to answer.
    Declined,
    /// The person dismissed it, or its answer is no longer awaited.
    Cancelled,
    /// It was declined because no person could be asked.
    Unattended,
    /// Declined by toolhost without asking a person: what it asks for is never done.
    Refused,
}

impl QuestionOutcome {
    /// The word used in records and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Declined => "declined",
            Self::Cancelled => "cancelled",
            Self::Unattended => "nobody",
            Self::Refused => "refused",
        }
    }
}

/// Answers what servers ask. Several questions may come at once, also of one server.
#[async_trait]
pub trait QuestionHandler: Send + Sync {
    /// Asks and waits for the answer; dropped when the server does not wait for it any more.
    async fn ask(&self, question: Question) -> QuestionReply;

    /// Whether several questions may be put at once; if not, each waits until the one before was
    /// answered.
    fn allows_concurrent(&self) -> bool {
        false
    }

    /// Whether servers may ask for the roots of clients, beside those that their entries have.
    fn offers_roots(&self) -> bool {
        false
    }

    /// The roots of the client behind a call, as `roots/list` has them; `key` is the server's own
    /// name of the question. None when that client has none, or no client waits.
    async fn list_roots(&self, _call: Option<&CallId>, _key: Option<&str>) -> Vec<Value> {
        Vec::new()
    }
}

/// The handler of front ends without a person: every question is unattended.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoQuestionHandler;

#[async_trait]
impl QuestionHandler for NoQuestionHandler {
    async fn ask(&self, _question: Question) -> QuestionReply {
        QuestionReply::Unattended
    }
}
