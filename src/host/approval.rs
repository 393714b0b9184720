//! The trait for asking a person to approve a call.

use std::borrow::Cow;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::catalogue::fingerprint;
use crate::model::{CallId, Error, JsonObject, ToolDefinition};
use crate::provider::Preview;

/// What a person is asked to approve.
#[derive(Debug, Serialize, Deserialize)]
pub struct ApprovalRequest<'a> {
    /// The tool to be called, with known secrets masked.
    pub definition: Cow<'a, ToolDefinition>,
    /// The arguments as they would be sent, with secrets masked.
    pub arguments: Cow<'a, JsonObject>,
    /// Why approval is needed: the rule, the entry's key, the server's hint.
    pub reason: String,
    /// Exactly what would be sent or started, secrets masked; or why that cannot be shown.
    pub preview: Result<Preview, Error>,
    /// Identifies the same call when it is repeated, see [`identity`].
    pub identity: String,
    /// The identity of the call in records, if the caller chose it.
    pub call: Option<CallId>,
}

/// Distinguishes calls: two are the same if the tool, its whole definition and its arguments are
/// the same, including secrets. It is a hash, which reveals none of them.
pub fn identity(tool: &ToolDefinition, arguments: &JsonObject) -> String {
    fingerprint::hash(&json!({
        "tool": tool.name.full(),
        "definition": fingerprint::fingerprint(tool),
        "arguments": arguments,
    }))
}

/// The answer to a request for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// The call may run, this once.
    Granted,
    /// A person refused the call; it ends as denied.
    Refused,
    /// No terminal or console can ask; the call ends as denied, with a hint about `--yes`.
    Unavailable,
}

/// Asks a person about a call on behalf of a front end.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks and waits for the answer.
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval;
}

/// The approver of a run without a person: every answer is [`Approval::Unavailable`].
#[derive(Debug, Default, Clone, Copy)]
pub struct NoApprover;

#[async_trait]
impl Approver for NoApprover {
    async fn ask(&self, _request: &ApprovalRequest<'_>) -> Approval {
        Approval::Unavailable
    }
}
