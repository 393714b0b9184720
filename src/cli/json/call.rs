//! The JSON of `call`, `history rerun` and their `--dry-run`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::ErrorJson;
use super::tool::{DecisionJson, server};
use crate::host::request::{CallOutcome, DryRun};
use crate::model::{Error, Routing, SkippedServer, ToolResult};
use crate::util::number::millis;

/// A call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CallJson<'a> {
    /// The full name of the tool.
    pub tool: String,
    /// Whether the call succeeded.
    pub success: bool,
    /// The structured result, otherwise the text; null without a result.
    pub output: &'a Value,
    /// Why it failed.
    pub error: Option<ErrorJson<'a>>,
    /// The content blocks, as MCP has them.
    pub content: &'a [Value],
    /// The structured result.
    pub structured: Option<&'a Value>,
    /// Details about how the call ran; null when it was not found or refused.
    pub metadata: Option<CallMetadataJson<'a>>,
    /// Metadata that the tool added to its result, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ResultJson<'a>>,
    /// Warnings about the response.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub warnings: &'a [String],
    /// The same as `result.metadata`, under its MCP name.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<&'a Value>,
}

/// Metadata from the tool itself, as opposed to what toolhost knows about the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResultJson<'a> {
    /// The `metadata` of a tool's own result, or the `_meta` of a server's.
    pub metadata: &'a Value,
}

/// How a call went.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CallMetadataJson<'a> {
    /// The ID of the call in the audit log and the history.
    pub call_id: &'a str,
    /// `internal` or `mcp`.
    pub source: &'static str,
    /// The server, for MCP tools.
    pub server: Option<&'a str>,
    /// From the first attempt to the response, excluding connecting and waiting for user input.
    pub duration_ms: f64,
    /// Time spent connecting, if needed.
    pub connect_ms: Option<f64>,
    /// Attempts made.
    pub attempts: u32,
    /// The protocol version used, for MCP tools.
    pub protocol: Option<&'a str>,
    /// How the server was chosen; only when there were several candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingJson<'a>>,
    /// Time spent waiting for the user to approve the call or answer its server; not part of
    /// the duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<f64>,
    /// The background host that made the call, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<CallHostJson>,
}

/// The background host that made a call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CallHostJson {
    /// Its process.
    pub pid: u32,
}

/// The choice among servers that offer the same tool.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RoutingJson<'a> {
    /// The chosen one.
    pub server: &'a str,
    /// Other servers that could have been chosen.
    pub others: &'a [String],
    /// Servers that were skipped.
    pub skipped: Vec<SkippedServerJson<'a>>,
}

/// A server that was skipped.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkippedServerJson<'a> {
    /// Its name.
    pub server: &'a str,
    /// Why the server was skipped.
    pub reason: &'a str,
}

impl<'a> From<&'a Routing> for RoutingJson<'a> {
    fn from(routing: &'a Routing) -> Self {
        let skipped = |skipped: &'a SkippedServer| SkippedServerJson {
            server: &skipped.server,
            reason: &skipped.reason,
        };
        Self {
            server: &routing.server,
            others: &routing.others,
            skipped: routing.skipped.iter().map(skipped).collect(),
        }
    }
}

impl<'a> From<&'a CallOutcome> for CallJson<'a> {
    fn from(outcome: &'a CallOutcome) -> Self {
        let (definition, metadata) = (&outcome.definition, &outcome.metadata);
        let result: Option<&ToolResult> = outcome.result.as_ref().ok();
        let waited = metadata.person_wait;
        Self {
            tool: definition.name.full(),
            success: outcome.error().is_none() && result.is_some_and(|result| result.success),
            output: result.map_or(&Value::Null, |result| &result.output),
            error: outcome.error().map(Into::into),
            content: result.map(|result| result.content.as_slice()).unwrap_or_default(),
            structured: result.and_then(|result| result.structured.as_ref()),
            metadata: Some(CallMetadataJson {
                call_id: &metadata.call_id.0,
                source: definition.source.as_str(),
                server: server(definition),
                duration_ms: millis(metadata.duration),
                connect_ms: metadata.connect.map(millis),
                attempts: metadata.attempts,
                protocol: metadata.protocol.as_deref(),
                routing: metadata.routing.as_ref().map(Into::into),
                waited_ms: (!waited.is_zero()).then(|| millis(waited)),
                host: metadata.host_pid.map(|pid| CallHostJson { pid }),
            }),
            warnings: result.map(|result| result.warnings.as_slice()).unwrap_or_default(),
            result: result
                .and_then(|result| result.meta.as_ref())
                .map(|metadata| ResultJson { metadata }),
            meta: result.and_then(|result| result.meta.as_ref()),
        }
    }
}

impl<'a> CallJson<'a> {
    /// A call that was not dispatched: not found, refused, or its server could not be asked.
    pub fn undispatched(name: &str, error: &'a Error) -> Self {
        Self {
            tool: name.to_owned(),
            success: false,
            output: &Value::Null,
            error: Some(error.into()),
            content: &[],
            structured: None,
            metadata: None,
            result: None,
            warnings: &[],
            meta: None,
        }
    }
}

/// What a call would send or start.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DryRunJson<'a> {
    /// Always true.
    pub dry_run: bool,
    /// One line: what would happen.
    pub summary: &'a str,
    /// The request: argv and stdin, a JSON-RPC message, or an HTTP request; secrets are masked.
    pub request: &'a Value,
    /// Whether the call may run.
    pub decision: DecisionJson<'a>,
}

impl<'a> From<&'a DryRun> for DryRunJson<'a> {
    fn from(dry_run: &'a DryRun) -> Self {
        Self {
            dry_run: true,
            summary: &dry_run.preview.summary,
            request: &dry_run.preview.request,
            decision: (&dry_run.decision).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use insta::assert_snapshot;

    use super::*;
    use crate::model::{CallId, CallMetadata, ToolDefinition};
    use crate::present::tool::tests::{builtin, remote};
    use crate::util::json;

    fn outcome(definition: ToolDefinition, result: Result<ToolResult, Error>) -> CallOutcome {
        let metadata = CallMetadata {
            call_id: CallId("id-1".to_owned()),
            duration: Duration::from_micros(1234),
            person_wait: Duration::ZERO,
            connect: Some(Duration::from_millis(20)),
            attempts: 1,
            protocol: Some("2025-11-25".to_owned()),
            routing: None,
            host_pid: None,
        };
        CallOutcome { definition: Arc::new(definition), result, metadata }
    }

    fn value(outcome: &CallOutcome) -> Value {
        serde_json::to_value(CallJson::from(outcome)).unwrap()
    }

    #[test]
    fn a_success_has_the_documented_shape() {
        let outcome = outcome(remote("s", "echo", ""), Ok(ToolResult::text("hi\u{1b}")));
        assert_snapshot!(json::pretty(&CallJson::from(&outcome)), @r#"
        {
          "tool": "s-echo",
          "success": true,
          "output": "hi\u001b",
          "error": null,
          "content": [
            {
              "type": "text",
              "text": "hi\u001b"
            }
          ],
          "structured": null,
          "metadata": {
            "call_id": "id-1",
            "source": "mcp",
            "server": "s",
            "duration_ms": 1.234,
            "connect_ms": 20.0,
            "attempts": 1,
            "protocol": "2025-11-25"
          }
        }
        "#);
    }

    #[test]
    fn a_no_of_the_tool_is_no_success() {
        let value = value(&outcome(builtin("b", ""), Ok(ToolResult::failure("cannot"))));
        assert_eq!(value["success"], false);
        assert_eq!(value["error"]["kind"], "tool");
        assert_eq!(value["output"], "cannot");
        assert_eq!(value["metadata"]["server"], Value::Null);
    }

    #[test]
    fn a_call_without_an_answer_has_the_same_fields() {
        let error =
            Error::timeout("no response within 5 s").with_server("s").with_hint("--timeout 30s");
        let failed = value(&outcome(remote("s", "slow", ""), Err(error)));
        let worked = value(&outcome(remote("s", "echo", ""), Ok(ToolResult::text("hi"))));
        let keys = |v: &Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&failed), keys(&worked));
        assert_eq!(failed["error"]["server"], "s");
        assert_eq!(failed["output"], Value::Null);
    }
}
