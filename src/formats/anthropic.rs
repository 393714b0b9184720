//! Messages: tools with an `input_schema`, blocks of type `tool_use`, and one user message with
//! blocks of type `tool_result`.

use serde_json::{Value, json};

use super::{CallAnswer, RequestedCall, block_text, is_shown_image, is_type};

/// Takes a whole response (a message of the assistant) or its list of blocks.
pub(super) fn calls(response: &Value) -> Option<Vec<&Value>> {
    match response.get("content") {
        // A message may be a text alone.
        Some(Value::String(_)) => Some(Vec::new()),
        content => {
            let blocks = content.unwrap_or(response).as_array()?;
            Some(blocks.iter().filter(|block| is_type(block, "tool_use")).collect())
        }
    }
}

pub(super) fn answer(call: &RequestedCall, answer: &CallAnswer) -> Value {
    let mut result = json!({ "type": "tool_result", "tool_use_id": call.id });
    if let Some(content) = content(answer) {
        result["content"] = content;
    }
    if answer.is_error {
        result["is_error"] = json!(true);
    }
    result
}

/// The blocks of an answer, without texts that say nothing, which the API refuses; `None` when
/// there is nothing to say.
fn content(answer: &CallAnswer) -> Option<Value> {
    let blocks = answer.content.iter().map(|block| {
        // A failure is told in texts alone.
        if is_shown_image(block) && !answer.is_error {
            let data = block["data"].as_str().unwrap_or_default();
            let media_type = &block["mimeType"];
            let source = json!({ "type": "base64", "media_type": media_type, "data": data });
            json!({ "type": "image", "source": source })
        } else {
            json!({ "type": "text", "text": block_text(block) })
        }
    });
    let blocks: Vec<Value> = blocks.filter(|block| block["text"] != "").collect();
    if blocks.is_empty() {
        let text = answer.text();
        return (!text.is_empty()).then(|| Value::String(text));
    }
    Some(Value::Array(blocks))
}
