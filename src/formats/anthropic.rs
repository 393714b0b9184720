//! Messages: tools with an `input_schema`, blocks of type `tool_use`, and one user message with
//! blocks of type `tool_result`.

use serde_json::{Value, json};

use super::{
    CallAnswer, ModelFormat, RequestedCall, ResponseError, arguments_object, block_text,
    is_shown_image,
};

pub(super) fn definition(name: &str, description: Option<&str>, schema: &Value) -> Value {
    let mut tool = json!({ "name": name });
    if let Some(description) = description {
        tool["description"] = json!(description);
    }
    tool["input_schema"] = schema.clone();
    tool
}

/// Takes a whole response (a message of the assistant) or its list of blocks.
pub(super) fn requested_calls(response: &Value) -> Result<Vec<RequestedCall>, ResponseError> {
    let content = response.get("content");
    let blocks = match content.unwrap_or(response) {
        Value::Array(blocks) => blocks.as_slice(),
        // A message may be a text alone.
        Value::String(_) if content.is_some() => &[],
        _ => {
            let format = ModelFormat::Anthropic.as_str();
            return Err(ResponseError::Shape { format, missing: "content" });
        }
    };
    let is_call = |block: &&Value| block.get("type").and_then(Value::as_str) == Some("tool_use");
    let calls = blocks.iter().filter(is_call).enumerate();
    calls
        .map(|(index, call)| {
            let field = |name: &'static str| {
                let value = call.get(name).and_then(Value::as_str);
                value.ok_or(ResponseError::Call { number: index + 1, missing: name })
            };
            Ok(RequestedCall {
                id: Some(field("id")?.to_owned()),
                name: field("name")?.to_owned(),
                arguments: arguments_object(call.get("input")),
            })
        })
        .collect()
}

pub(super) fn answer_messages(answers: &[(RequestedCall, CallAnswer)]) -> Vec<Value> {
    if answers.is_empty() {
        return Vec::new();
    }
    let results: Vec<Value> = answers
        .iter()
        .map(|(call, answer)| {
            let mut result = json!({ "type": "tool_result", "tool_use_id": call.id });
            if let Some(content) = content(answer) {
                result["content"] = content;
            }
            if answer.is_error {
                result["is_error"] = json!(true);
            }
            result
        })
        .collect();
    vec![json!({ "role": "user", "content": results })]
}

/// The blocks of an answer, without texts that say nothing, which the API refuses; `None` when
/// there is nothing to say.
fn content(answer: &CallAnswer) -> Option<Value> {
    let blocks = answer.content.iter().map(|block| {
        let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        // A failure is told in texts alone.
        if is_shown_image(block) && !answer.is_error {
            let source = json!({
                "type": "base64", "media_type": field("mimeType"), "data": field("data"),
            });
            json!({ "type": "image", "source": source })
        } else {
            json!({ "type": "text", "text": block_text(block) })
        }
    });
    let is_empty = |block: &Value| block.get("text").and_then(Value::as_str) == Some("");
    let blocks: Vec<Value> = blocks.filter(|block| !is_empty(block)).collect();
    if blocks.is_empty() {
        let text = answer.text();
        return (!text.is_empty()).then(|| Value::String(text));
    }
    Some(Value::Array(blocks))
}
