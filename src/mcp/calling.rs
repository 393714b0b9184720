//! Calling a tool: rounds of questions included, the answer as one result.
//!
//! Owns: `tools/call` in both eras, and what an acceptable result is. Questions a server asks
//! before it answers (`input_required`, 2026-07-28) are declined, ten rounds at most. Never does:
//! check arguments or structured results against schemas — the host does, for every kind.

use serde_json::{Map, Value, json};

use super::connection::{Connection, RequestOptions};
use super::message::Raw;
use crate::model::{Event, EventSink, Fault, JsonObject, Phase, ToolResult};

/// How often a server may ask before it answers.
const ROUNDS: usize = 10;

/// Calls `tool`.
///
/// # Errors
/// As [`Connection::request`]; and when the answer is no tool result.
pub async fn call(
    connection: &Connection,
    tool: &str,
    arguments: &JsonObject,
    options: &RequestOptions,
    events: &EventSink,
    server: &str,
) -> Result<ToolResult, Fault> {
    let named = |fault: Fault| fault.server(server).phase(Phase::Call);
    let mut params = params(tool, arguments);
    for _ in 0..ROUNDS {
        let raw = connection.request("tools/call", Value::Object(params.clone()), options).await?;
        match Answer::read(&raw).map_err(named)? {
            Answer::Result(mut result) => {
                result.fault = result.fault.map(named);
                return Ok(*result);
            }
            Answer::Questions { requests, state } => {
                for (key, request) in &requests {
                    let question = request
                        .get("params")
                        .and_then(|p| p.get("message"))
                        .and_then(Value::as_str)
                        .unwrap_or(key);
                    let text = format!(
                        "asked \"{question}\"; declined, such questions are not supported yet"
                    );
                    events.emit(Event::Notice { origin: server.to_owned(), text });
                }
                let responses = decline(&requests).map_err(named)?;
                params.insert("inputResponses".into(), Value::Object(responses));
                // Echoed exactly, and only when there was one.
                match state {
                    Some(state) => params.insert("requestState".into(), state),
                    None => params.remove("requestState"),
                };
            }
        }
    }
    Err(named(Fault::protocol(format!(
        "limit: the server asked for input {ROUNDS} times in a row"
    ))))
}

/// The parameters of a plain call.
pub fn params(tool: &str, arguments: &JsonObject) -> Map<String, Value> {
    let mut params = Map::new();
    params.insert("name".into(), Value::String(tool.to_owned()));
    params.insert("arguments".into(), Value::Object(arguments.clone()));
    params
}

fn decline(requests: &Map<String, Value>) -> Result<Map<String, Value>, Fault> {
    requests
        .iter()
        .map(|(key, request)| match request.get("method").and_then(Value::as_str) {
            Some("elicitation/create") => Ok((key.clone(), json!({ "action": "decline" }))),
            Some(method) => Err(Fault::tool(format!(
                "the server needs {method} before it answers, which toolhost does not offer"
            ))),
            None => Err(Fault::protocol(format!("the input request {key:?} has no method"))),
        })
        .collect()
}

enum Answer {
    Result(Box<ToolResult>),
    Questions { requests: Map<String, Value>, state: Option<Value> },
}

impl Answer {
    fn read(raw: &Raw) -> Result<Self, Fault> {
        let value = raw.parse()?;
        let Value::Object(mut map) = value else {
            return Err(broken("is not an object", raw));
        };
        match map.get("resultType").map(|t| t.as_str().unwrap_or_default().to_owned()).as_deref() {
            None | Some("complete") => read_result(map, raw).map(|r| Self::Result(Box::new(r))),
            Some("input_required") => {
                let requests = match map.remove("inputRequests") {
                    Some(Value::Object(requests)) => requests,
                    None => Map::new(),
                    Some(_) => return Err(broken("has inputRequests that are no object", raw)),
                };
                Ok(Self::Questions { requests, state: map.remove("requestState") })
            }
            Some("task") => Err(Fault::tool(
                "the server answers with a task, although toolhost did not offer the extension",
            )),
            Some(other) => Err(broken(&format!("has the unknown resultType {other:?}"), raw)),
        }
    }
}

fn broken(what: &str, raw: &Raw) -> Fault {
    let head: String = raw.get().chars().take(300).collect();
    Fault::protocol(format!("the answer to tools/call {what}")).detail(format!("result: {head}"))
}

fn read_result(mut map: Map<String, Value>, raw: &Raw) -> Result<ToolResult, Fault> {
    let mut result = ToolResult { success: true, ..ToolResult::default() };
    result.structured = map.remove("structuredContent").filter(|v| !v.is_null());
    result.meta = map.remove("_meta");
    result.content = match map.remove("content") {
        Some(Value::Array(items)) => items,
        Some(_) => return Err(broken("has content that is no list", raw)),
        None if result.structured.is_some() => {
            result.warnings.push("the result has no content, only structuredContent".to_owned());
            Vec::new()
        }
        None => match map.remove("toolResult") {
            Some(old) => {
                result.warnings.push("the result has the shape of revision 2024-10-07".to_owned());
                vec![json!({ "type": "text", "text": old.to_string() })]
            }
            None => return Err(broken("has no content", raw)),
        },
    };
    for (index, item) in result.content.iter().enumerate() {
        check_content(item)
            .map_err(|reason| broken(&format!("has a bad content[{index}]: {reason}"), raw))?;
    }
    let is_error = match map.get("isError") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(flag)) => *flag,
        Some(_) => return Err(broken("has an isError that is neither true nor false", raw)),
    };
    result.output = output(&result);
    if result.content.is_empty() && result.structured.is_none() {
        result.warnings.push("the result is empty".to_owned());
    }
    if is_error {
        result.success = false;
        result.fault = Some(Fault::tool(error_text(&result)));
    }
    Ok(result)
}

/// What a content block must have, by its type.
pub(super) fn check_content(item: &Value) -> Result<(), String> {
    let text = |key: &str| match item.get(key) {
        Some(Value::String(_)) => Ok(()),
        Some(_) => Err(format!("{key} is not text")),
        None => Err(format!("{key} is missing")),
    };
    match item.get("type").and_then(Value::as_str) {
        Some("text") => text("text"),
        Some("image" | "audio") => text("data").and_then(|()| text("mimeType")),
        Some("resource_link") => text("uri"),
        Some("resource") => match item.get("resource") {
            Some(Value::Object(resource)) if resource.get("uri").is_some_and(Value::is_string) => {
                Ok(())
            }
            Some(_) => Err("the resource has no uri".to_owned()),
            None => Err("resource is missing".to_owned()),
        },
        Some(other) => Err(format!("unknown type {other:?}")),
        None => Err("it has no type".to_owned()),
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

/// All blocks as text, when all are text.
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
        None => "the tool reports an error without a text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FaultKind;

    fn read(value: &Value) -> Result<ToolResult, Fault> {
        match Answer::read(&Raw(serde_json::value::to_raw_value(value).unwrap()))? {
            Answer::Result(result) => Ok(*result),
            Answer::Questions { .. } => panic!("questions"),
        }
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
        let fault = result.fault.unwrap();
        assert_eq!(fault.kind(), FaultKind::Tool);
        assert_eq!(fault.message(), "disk full");
    }

    #[test]
    fn results_that_are_none_say_why() {
        for (value, words) in [
            (json!("x"), "not an object"),
            (json!({}), "no content"),
            (json!({ "content": "text" }), "no list"),
            (json!({ "content": [{ "type": "video" }] }), "unknown type \"video\""),
            (json!({ "content": [{ "type": "image", "data": "x" }] }), "mimeType is missing"),
            (json!({ "content": [], "resultType": "perhaps" }), "unknown resultType"),
            (json!({ "content": [], "isError": "yes" }), "isError"),
        ] {
            let fault = read(&value).unwrap_err();
            assert_eq!(fault.kind(), FaultKind::Protocol);
            assert!(fault.message().contains(words), "{}", fault.message());
        }
    }
}
