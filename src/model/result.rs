//! The result of a call: one type for every kind of tool.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::CallId;
use super::error::Error;
use crate::util::json::map_json;

/// The outcome of a call that reached its tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ToolResult {
    /// Whether the tool says it worked.
    pub success: bool,
    /// The result as one value: text for text tools, the structured value when there is one.
    pub output: Value,
    /// Content blocks in MCP's shape, in order.
    pub content: Vec<Value>,
    /// The structured result, when the tool gave one.
    pub structured: Option<Value>,
    /// What is wrong with the result although it is shown (a broken output schema, an `isError`).
    pub error: Option<Error>,
    /// Warnings to show with the result.
    pub warnings: Vec<String>,
    /// The `_meta` of an MCP result, or what an internal tool chose to add.
    pub meta: Option<Value>,
}

impl ToolResult {
    /// A successful result with one text block.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            success: true,
            content: vec![serde_json::json!({ "type": "text", "text": text })],
            output: Value::String(text),
            ..Self::default()
        }
    }

    /// A successful result with a JSON value; its compact JSON is the text block.
    pub fn json(value: Value) -> Self {
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Self {
            success: true,
            content: vec![serde_json::json!({ "type": "text", "text": text })],
            structured: value.is_object().then(|| value.clone()),
            output: value,
            ..Self::default()
        }
    }

    /// A failure reported by the tool itself.
    pub fn failure(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            success: false,
            content: vec![serde_json::json!({ "type": "text", "text": message })],
            output: Value::String(message.clone()),
            error: Some(Error::tool(message)),
            ..Self::default()
        }
    }
}

impl ToolResult {
    /// The same result with every text in it rewritten.
    #[must_use]
    pub fn map_text(self, rewrite: &dyn Fn(&str) -> String) -> Self {
        Self {
            success: self.success,
            output: map_json(&self.output, rewrite),
            content: self.content.iter().map(|block| map_json(block, rewrite)).collect(),
            structured: self.structured.as_ref().map(|value| map_json(value, rewrite)),
            error: self.error.map(|error| error.map_text(rewrite)),
            warnings: self.warnings.iter().map(|line| rewrite(line)).collect(),
            meta: self.meta.as_ref().map(|value| map_json(value, rewrite)),
        }
    }
}

/// Facts about a call other than its result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallMetadata {
    /// The call's identity in audit, statistics and history.
    pub call_id: CallId,
    /// The time from the first attempt to the response, excluding connecting and time spent waiting
    /// for a person.
    pub duration: Duration,
    /// Time spent waiting for a person: for approval of the call, and for answers to its server's
    /// questions.
    pub person_wait: Duration,
    /// Time spent connecting to the server, if that was needed.
    pub connect: Option<Duration>,
    /// The number of attempts that were made.
    pub attempts: u32,
    /// The protocol version spoken, for MCP tools.
    pub protocol: Option<String>,
    /// How the server was chosen, if several could have been called.
    pub routing: Option<Routing>,
    /// The process of the background host that made the call; `None` when this process did.
    pub host_pid: Option<u32>,
    /// Why the call is missing in a record, as its result warns; `None` when it was recorded.
    #[serde(default)]
    pub unrecorded: Option<String>,
}

/// The router's choice between servers that offer one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Routing {
    /// The name of the server in `mcp.yaml`.
    pub server: String,
    /// Other servers that could have been chosen.
    pub others: Vec<String>,
    /// Servers that were skipped because they do not work.
    pub skipped: Vec<SkippedServer>,
}

/// A server that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedServer {
    /// The name of the server in `mcp.yaml`.
    pub server: String,
    /// Why the router did not choose it, as text.
    pub reason: String,
}
