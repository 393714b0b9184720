//! Calling a tool: questions, tasks, and the answer as one result.

use serde_json::{Value, json};

use super::connection::{Connection, RequestOptions};
use super::rounds::{self, RequestResult};
use super::tasks::{self, Dialect};
use crate::model::{Era, Error, ErrorPhase, JsonObject, ToolDefinition, ToolResult};
use crate::util::text::truncate;

/// How much of an answer that cannot be used is quoted, in characters.
const QUOTE_CHARS: usize = 300;

/// Calls `tool`; `as_task` asks for a task (see [`requires_task`]).
pub async fn call(
    connection: &Connection,
    tool: &str,
    arguments: &JsonObject,
    as_task: bool,
    options: &RequestOptions,
) -> Result<ToolResult, Error> {
    let named = |error: Error| connection.in_context(error, ErrorPhase::Call);
    let mut params = JsonObject::from_iter([
        ("name".to_owned(), tool.into()),
        ("arguments".to_owned(), Value::Object(arguments.clone())),
    ]);
    if as_task {
        params.insert("task".to_owned(), json!({ "ttl": tasks::TIME_TO_LIVE }));
    }
    // A task reports progress under the token of its call until it ends.
    let RequestResult { result, raw, request: _until_the_end } =
        rounds::request(connection, "tools/call", params, options).await?;
    let kind = result.get("resultType").map(|t| t.as_str().unwrap_or_default());
    let result = match kind {
        None if as_task && result.get("task").is_some_and(Value::is_object) => {
            let first = result.get("task").and_then(Value::as_object).cloned().unwrap_or_default();
            Box::pin(tasks::await_result(connection, &first, Dialect::Core, options)).await
        }
        None | Some("complete") => read_result(result, raw.get()),
        Some("task") => {
            Box::pin(tasks::await_result(connection, &result, Dialect::Extension, options)).await
        }
        Some(other) => {
            Err(unusable_result(&format!("has the unknown resultType {other:?}"), raw.get()))
        }
    };
    let mut result = result.map_err(named)?;
    result.error = result.error.map(named);
    Ok(result)
}

/// Whether a tool must be called as a task, as revision 2025-11-25 has them. Later ones leave it
/// to the server.
pub fn requires_task(connection: &Connection, definition: Option<&ToolDefinition>) -> bool {
    if connection.agreement.era != Era::Legacy {
        return false;
    }
    let offered = &connection.agreement.capabilities["tasks"]["requests"]["tools"]["call"];
    offered.is_object() && definition.is_some_and(|tool| tool.requires_task)
}

/// An answer to a call that cannot be used: `what` ends a sentence about it, `text` is the answer.
fn unusable_result(what: &str, text: &str) -> Error {
    Error::protocol(format!("the response to tools/call {what}"))
        .with_detail(format!("result: {}", truncate(text, QUOTE_CHARS)))
}

/// Reads the result of a call; `text` is where it stood, for messages.
pub(super) fn read_result(mut map: JsonObject, raw: &str) -> Result<ToolResult, Error> {
    let mut result = ToolResult { success: true, ..ToolResult::default() };
    result.structured = map.remove("structuredContent").filter(|v| !v.is_null());
    result.meta = map.remove("_meta");
    result.content = match map.remove("content") {
        Some(Value::Array(items)) => items,
        Some(_) => return Err(unusable_result("has content that is not an array", raw)),
        None if result.structured.is_some() => {
            result.warnings.push("the result has no content, only structuredContent".to_owned());
            Vec::new()
        }
        None => match map.remove("toolResult") {
            Some(old) => {
                result.warnings.push("the result has the shape of revision 2024-10-07".to_owned());
                vec![json!({ "type": "text", "text": old.to_string() })]
            }
            None => return Err(unusable_result("has no content", raw)),
        },
    };
    for (index, item) in result.content.iter().enumerate() {
        check_content(item).map_err(|error| {
            unusable_result(&format!("has a bad content[{index}]: {}", error.message()), raw)
        })?;
    }
    let is_error = match map.get("isError") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(_) => {
            return Err(unusable_result("has an isError that is not a boolean", raw));
        }
    };
    result.output = output(&result);
    if result.content.is_empty() && result.structured.is_none() {
        result.warnings.push("the result is empty".to_owned());
    }
    if is_error {
        result.success = false;
        result.error = Some(Error::tool(error_text(&result)));
    }
    Ok(result)
}

/// Refuses content that its type does not allow; the message is the reason.
pub(super) fn check_content(item: &Value) -> Result<(), Error> {
    let refused = |reason: String| Err(Error::protocol(reason));
    let text = |key: &str| match item.get(key) {
        Some(Value::String(_)) => Ok(()),
        Some(_) => refused(format!("{key} is not text")),
        None => refused(format!("{key} is missing")),
    };
    match item.get("type").and_then(Value::as_str) {
        Some("text") => text("text"),
        Some("image" | "audio") => text("data").and_then(|()| text("mimeType")),
        Some("resource_link") => text("uri"),
        Some("resource") => match item.get("resource") {
            Some(resource) if resource.get("uri").is_some_and(Value::is_string) => Ok(()),
            Some(_) => refused("the resource has no uri".to_owned()),
            None => refused("resource is missing".to_owned()),
        },
        Some(other) => refused(format!("unknown type {other:?}")),
        None => refused("it has no type".to_owned()),
    }
}

/// The result as one value: structured if there is such, else the text, else the blocks.
fn output(result: &ToolResult) -> Value {
    if let Some(structured) = &result.structured {
        return structured.clone();
    }
    match texts(result) {
        Some(text) => Value::String(text),
        None => Value::Array(result.content.clone()),
    }
}

fn texts(result: &ToolResult) -> Option<String> {
    let texts: Option<Vec<&str>> = result
        .content
        .iter()
        .map(|item| item.get("text").filter(|_| item["type"] == "text").and_then(Value::as_str))
        .collect();
    texts.map(|texts| texts.join("\n"))
}

fn error_text(result: &ToolResult) -> String {
    let first = result.content.iter().find_map(|item| item.get("text").and_then(Value::as_str));
    let line = first.and_then(|text| text.lines().find(|l| !l.trim().is_empty()));
    match line {
        Some(line) => line.trim().chars().take(200).collect::<String>(),
        None => "the tool reported an error without text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ErrorKind;

    fn read(value: &Value) -> Result<ToolResult, Error> {
        read_result(value.as_object().unwrap().clone(), &value.to_string())
    }

    #[test]
    fn texts_become_one_output() {
        let result = read(&json!({ "content": [
            { "type": "text", "text": "a" }, { "type": "text", "text": "b" } ] }))
        .unwrap();
        assert_eq!(result.output, json!("a\nb"));
    }

    #[test]
    fn structured_content_is_the_output() {
        let result = read(&json!({ "content": [], "structuredContent": { "n": 1 } })).unwrap();
        assert_eq!(result.output, json!({ "n": 1 }));
    }

    #[test]
    fn an_is_error_is_a_wellformed_no() {
        let result = read(
            &json!({ "content": [{ "type": "text", "text": "disk full\nx" }], "isError": true }),
        )
        .unwrap();
        assert!(!result.success);
        let error = result.error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Tool);
        assert_eq!(error.message(), "disk full");
    }

    #[test]
    fn results_that_are_none_say_why() {
        for (value, expected) in [
            (json!({}), "no content"),
            (json!({ "content": "text" }), "not an array"),
            (json!({ "content": [{ "type": "video" }] }), "unknown type \"video\""),
            (json!({ "content": [{ "type": "image", "data": "x" }] }), "mimeType is missing"),
            (json!({ "content": [], "isError": "yes" }), "isError"),
        ] {
            let error = read(&value).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Protocol);
            assert!(error.message().contains(expected), "{}", error.message());
        }
    }
}
