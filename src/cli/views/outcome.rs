//! The JSON of `call`, and the preview of `call --dry-run`.

use serde_json::{Value, json};

use super::millis;
use crate::cli::output::{SpanStyle, StyledLine, StyledPage, json as json_text, messages};
use crate::host::policy::Decision;
use crate::host::request::{CallOutcome, DryRun};
use crate::model::{Origin, Routing, ToolDefinition, ToolResult, ToolSource};

/// The documented JSON of a call that was dispatched.
pub fn json(outcome: &CallOutcome) -> Value {
    let definition = &outcome.definition;
    let metadata = &outcome.metadata;
    let nothing = ToolResult::default();
    let result = outcome.result.as_ref().unwrap_or(&nothing);
    let mut value = json!({
        "tool": definition.name.full(),
        "success": outcome.error().is_none() && result.success,
        "output": result.output,
        "error": outcome.error().map(messages::object),
        "content": result.content,
        "structured": result.structured,
        "metadata": {
            "call_id": metadata.call_id.to_string(),
            "source": definition.source.as_str(),
            "server": server(definition),
            "duration_ms": millis(metadata.duration),
            "connect_ms": metadata.connect.map(millis),
            "attempts": metadata.attempts,
            "protocol": metadata.protocol,
        },
    });
    if let (Some(routing), Some(fields)) = (&metadata.routing, value["metadata"].as_object_mut()) {
        fields.insert("routing".to_owned(), routing_json(routing));
    }
    if !metadata.question_wait.is_zero()
        && let Some(fields) = value.get_mut("metadata").and_then(Value::as_object_mut)
    {
        fields.insert("waited_ms".to_owned(), millis(metadata.question_wait));
    }
    if let Some(fields) = value.as_object_mut() {
        if !result.warnings.is_empty() {
            fields.insert("warnings".to_owned(), json!(result.warnings));
        }
        if let Some(meta) = &result.meta {
            fields.insert("_meta".to_owned(), meta.clone());
        }
    }
    value
}

fn routing_json(routing: &Routing) -> Value {
    let skipped = routing.skipped.iter();
    let skipped: Vec<Value> = skipped
        .map(|skipped| json!({ "server": skipped.server, "reason": skipped.reason }))
        .collect();
    json!({ "server": routing.server, "others": routing.others, "skipped": skipped })
}

/// How the router chose a server, in lines.
pub fn routing(routing: &Routing) -> Vec<String> {
    let skipped = routing.skipped.iter();
    let mut lines: Vec<String> = skipped
        .map(|skipped| format!("'{}' was skipped: {}", skipped.server, skipped.reason))
        .collect();
    lines.push(match routing.others.as_slice() {
        [] => format!("the server '{}' was chosen", routing.server),
        others => {
            format!("the server '{}' was chosen, before {}", routing.server, others.join(", "))
        }
    });
    lines
}

/// What a call would send or start, and whether it would be asked about or refused.
pub fn preview(rehearsal: &DryRun) -> StyledPage {
    let preview = &rehearsal.preview;
    let mut page = StyledPage::from(StyledLine::styled(SpanStyle::Heading, &preview.summary));
    let (label, verdict, reason) = match &rehearsal.decision {
        Decision::Allow(_) => (SpanStyle::Dim, "", ""),
        Decision::Ask(reason) => (SpanStyle::Warning, "a person is asked first: ", reason.as_str()),
        Decision::Deny(reason) => (SpanStyle::Error, "it is refused by ", reason.as_str()),
    };
    if !verdict.is_empty() {
        page.push(StyledLine::styled(label, verdict).then(SpanStyle::Plain, reason));
    }
    page.text(SpanStyle::Plain, 0, &json_text::pretty(&preview.request));
    page
}

/// The same in JSON.
pub fn preview_json(rehearsal: &DryRun) -> Value {
    let preview = &rehearsal.preview;
    json!({
        "dry_run": true,
        "summary": preview.summary,
        "request": preview.request,
        "decision": decision_json(&rehearsal.decision),
    })
}

/// Whether a call may run, would be asked about or is refused, and why.
pub(super) fn decision_json(decision: &Decision) -> Value {
    let (action, reason) = match decision {
        Decision::Allow(reason) => ("allow", reason),
        Decision::Ask(reason) => ("ask", reason),
        Decision::Deny(reason) => ("deny", reason),
    };
    json!({ "action": action, "reason": reason })
}

fn server(definition: &ToolDefinition) -> Option<&str> {
    match (&definition.origin, definition.source) {
        (Origin::Server(name), _) => Some(name),
        (Origin::File(_), ToolSource::Mcp) => definition.name.component(),
        (Origin::File(_), ToolSource::Internal) | (Origin::Program, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use insta::assert_snapshot;

    use super::super::tool::tests::{builtin, remote};
    use super::*;
    use crate::model::{CallId, CallMetadata, Error};

    fn outcome(definition: ToolDefinition, result: Result<ToolResult, Error>) -> CallOutcome {
        let metadata = CallMetadata {
            call_id: CallId("id-1".to_owned()),
            duration: Duration::from_micros(1234),
            question_wait: Duration::ZERO,
            connect: Some(Duration::from_millis(20)),
            attempts: 1,
            protocol: Some("2025-11-25".to_owned()),
            routing: None,
        };
        CallOutcome { definition: Arc::new(definition), result, metadata }
    }

    #[test]
    fn a_success_has_the_documented_shape() {
        let outcome = outcome(remote("s", "echo", ""), Ok(ToolResult::text("hi\u{1b}")));
        assert_snapshot!(json_text::pretty(&json(&outcome)), @r#"
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
        let value = json(&outcome(builtin("b", ""), Ok(ToolResult::failure("cannot"))));
        assert_eq!(value["success"], false);
        assert_eq!(value["error"]["kind"], "tool");
        assert_eq!(value["output"], "cannot");
        assert_eq!(value["metadata"]["server"], Value::Null);
    }

    #[test]
    fn a_call_without_an_answer_has_the_same_fields() {
        let error =
            Error::timeout("no answer within 5 s").with_server("s").with_hint("--timeout 30s");
        let failed = json(&outcome(remote("s", "slow", ""), Err(error)));
        let worked = json(&outcome(remote("s", "echo", ""), Ok(ToolResult::text("hi"))));
        let keys = |v: &Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&failed), keys(&worked));
        assert_eq!(failed["error"]["server"], "s");
        assert_eq!(failed["output"], Value::Null);
    }
}
