//! What a server asks a person while it works, and the port through which it is answered.

use async_trait::async_trait;
use serde_json::Value;

use super::call::CallId;

/// A question of a server.
#[derive(Debug, Clone)]
pub struct Question {
    /// Who asks: the server's name in the files, never what it calls itself.
    pub server: String,
    /// The call that waits for the answer, when that is known.
    pub call: Option<CallId>,
    /// What is asked.
    pub ask: Ask,
}

/// What a server may ask. All of it is the server's own words.
#[derive(Debug, Clone)]
pub enum Ask {
    /// To fill in a form (elicitation, mode `form`).
    Form {
        /// What it says.
        message: String,
        /// The JSON Schema of the answer, as it was sent.
        schema: Value,
    },
    /// To open an address (elicitation, mode `url`). Nothing ever opens it without consent.
    Open {
        /// What it says.
        message: String,
        /// The address, unchecked.
        url: String,
    },
    /// To let a model write something (`sampling/createMessage`); a person stands in for it.
    Sample {
        /// The parameters, as they were sent.
        params: Value,
    },
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Yes: the form's content as an object, `{}` for an address that was opened, for a sample the
    /// result (`role`, `content`, `model`).
    Accept(Value),
    /// A person said no.
    Decline,
    /// A person turned away without an answer.
    Cancel,
    /// Nobody could be asked. Servers hear it as a no.
    Nobody,
}

/// Answers what servers ask. Several questions may come at once, also of one server.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Asks and waits for the answer; dropped when the server does not wait for it any more.
    async fn ask(&self, question: Question) -> Reply;
}

/// Nobody is there.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoInbox;

#[async_trait]
impl Inbox for NoInbox {
    async fn ask(&self, _question: Question) -> Reply {
        Reply::Nobody
    }
}
