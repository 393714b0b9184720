//! The JSON of `call`, `history rerun` and their `--dry-run`.

use crate::util::shape::shape;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::ErrorJson;
use super::tool::{DecisionJson, server};
use crate::host::request::{CallOutcome, DryRun};
use crate::model::{Error, Routing, ToolResult};
use crate::util::units::millis;

shape! {
    /// A call.
    pub CallJson<'a> of outcome: &'a CallOutcome, with {
        let result: Option<&ToolResult> = outcome.result.as_ref().ok();
    } {
        /// The full name of the tool.
        tool: String = outcome.definition.name.full(),
        /// Whether the call succeeded.
        success: bool = outcome.error().is_none() && result.is_some_and(|result| result.success),
        /// The structured result, otherwise the text; null without a result.
        output: &'a Value = result.map_or(&Value::Null, |result| &result.output),
        /// Why it failed.
        error: Option<ErrorJson<'a>> = outcome.error().map(Into::into),
        /// The content blocks, as MCP has them.
        content: &'a [Value] = result.map(|result| result.content.as_slice()).unwrap_or_default(),
        /// The structured result.
        structured: Option<&'a Value> = result.and_then(|result| result.structured.as_ref()),
        /// Details about how the call ran; null when it was not found or refused.
        metadata: Option<CallMetadataJson<'a>> = Some(outcome.into()),
        /// Metadata that the tool added to its result, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<ResultJson<'a>> =
            result.and_then(|result| result.meta.as_ref()).map(|metadata| ResultJson { metadata }),
        /// Warnings about the response.
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        warnings: &'a [String] =
            result.map(|result| result.warnings.as_slice()).unwrap_or_default(),
        /// The same as `result.metadata`, under its MCP name.
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<&'a Value> = result.and_then(|result| result.meta.as_ref()),
    }
}

/// Metadata from the tool itself, as opposed to what toolhost knows about the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResultJson<'a> {
    /// The `metadata` of a tool's own result, or the `_meta` of a server's.
    pub metadata: &'a Value,
}

shape! {
    /// How a call went.
    pub CallMetadataJson<'a> of outcome: &'a CallOutcome, with {
        let (definition, metadata) = (&outcome.definition, &outcome.metadata);
        let waited = metadata.person_wait;
    } {
        /// The ID of the call in the audit log and the history.
        call_id: &'a str = &metadata.call_id.0,
        /// `internal` or `mcp`.
        source: &'static str = definition.source.as_str(),
        /// The server, for MCP tools.
        server: Option<&'a str> = server(definition),
        /// From the first attempt to the response, excluding connecting and waiting for user input.
        duration_ms: f64 = millis(metadata.duration),
        /// Time spent connecting, if needed.
        connect_ms: Option<f64> = metadata.connect.map(millis),
        /// Attempts made.
        attempts: u32 = metadata.attempts,
        /// The protocol version used, for MCP tools.
        protocol: Option<&'a str> = metadata.protocol.as_deref(),
        /// How the server was chosen; only when there were several candidates.
        #[serde(skip_serializing_if = "Option::is_none")]
        routing: Option<&'a Routing> = metadata.routing.as_ref(),
        /// Time spent waiting for the user to approve the call or answer its server; not part of
        /// the duration.
        #[serde(skip_serializing_if = "Option::is_none")]
        waited_ms: Option<f64> = (!waited.is_zero()).then(|| millis(waited)),
        /// The background host that made the call, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<CallHostJson> = metadata.host_pid.map(|pid| CallHostJson { pid }),
    }
}

/// The background host that made a call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CallHostJson {
    /// Its process.
    pub pid: u32,
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

shape! {
    /// What a call would send or start.
    pub DryRunJson<'a> of dry_run: &'a DryRun {
        /// Always true.
        dry_run: bool = true,
        /// One line: what would happen.
        summary: &'a str = &dry_run.preview.summary,
        /// The request: argv and stdin, a JSON-RPC message, or an HTTP request; secrets are masked.
        request: &'a Value = &dry_run.preview.request,
        /// Whether the call may run.
        decision: DecisionJson<'a> = (&dry_run.decision).into(),
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
            call_id: CallId("id-1".into()),
            duration: Duration::from_micros(1234),
            person_wait: Duration::ZERO,
            connect: Some(Duration::from_millis(20)),
            attempts: 1,
            protocol: Some("2025-11-25".to_owned()),
            routing: None,
            host_pid: None,
            unrecorded: None,
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
