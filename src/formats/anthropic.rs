//! Messages: tools with an `input_schema`, blocks of type `tool_use`, and one user message with
//! blocks of type `tool_result`.

use serde_json::{Value, json};

use super::{CallAnswer, ModelFormat, RequestedCall, ResponseError, arguments_object, block_text};

/// The types of pictures that the API takes.
const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

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
    let blocks = response.get("content").unwrap_or(response);
    let blocks = match blocks {
        Value::Array(blocks) => blocks.as_slice(),
        // A message may be a text alone.
        Value::String(_) => &[],
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
            result["content"] = content(answer);
            if answer.is_error {
                result["is_error"] = json!(true);
            }
            result
        })
        .collect();
    vec![json!({ "role": "user", "content": results })]
}

fn content(answer: &CallAnswer) -> Value {
    if answer.content.is_empty() {
        return json!(answer.text());
    }
    let blocks = answer.content.iter().map(|block| {
        let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        if field("type") == "image" && IMAGES.contains(&field("mimeType")) {
            let source = json!({
                "type": "base64", "media_type": field("mimeType"), "data": field("data"),
            });
            json!({ "type": "image", "source": source })
        } else {
            json!({ "type": "text", "text": block_text(block) })
        }
    });
    Value::Array(blocks.collect())
}
