//! The port for asking a person to approve a call.

use async_trait::async_trait;
use serde_json::json;

use crate::catalogue::fingerprint;
use crate::model::{CallId, Error, JsonObject, ToolDefinition};
use crate::provider::Preview;

/// What a person is asked to approve.
#[derive(Debug)]
pub struct ApprovalRequest<'a> {
    /// The tool that is to be called, known secrets masked.
    pub definition: &'a ToolDefinition,
    /// The arguments as they would be sent; secrets masked.
    pub arguments: &'a JsonObject,
    /// Why a person is asked: the rule, the entry's key, the server's hint.
    pub reason: String,
    /// Exactly what would be sent or started, secrets masked; or why that cannot be shown.
    pub preview: Result<Preview, Error>,
    /// What makes it the same call again, see [`identity`].
    pub identity: String,
    /// The identity of the call in records, when the caller chose it.
    pub call: Option<CallId>,
}

/// Tells calls apart: two are the same when the tool, its whole definition and its arguments are,
/// secrets included. A hash, from which none of that can be read.
pub fn identity(tool: &ToolDefinition, arguments: &JsonObject) -> String {
    fingerprint::hash(&json!({
        "tool": tool.name.full(),
        "definition": fingerprint::fingerprint(tool),
        "arguments": arguments,
    }))
}

/// How a question about a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// The call may go on, this once.
    Granted,
    /// A person refused the call; it ends as denied.
    Refused,
    /// No terminal or console can ask; the call ends as denied, with a hint about `--yes`.
    Unavailable,
}

/// The front end's way to ask a person about a call.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks and waits for the answer.
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval;
}

/// The approver of a run without a person: every question is [`Approval::Unavailable`].
#[derive(Debug, Default, Clone, Copy)]
pub struct NoApprover;

#[async_trait]
impl Approver for NoApprover {
    async fn ask(&self, _request: &ApprovalRequest<'_>) -> Approval {
        Approval::Unavailable
    }
}
