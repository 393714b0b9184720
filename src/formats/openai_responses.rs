//! The Responses API: flat function tools, items of type `function_call`, and items of type
//! `function_call_output`.

use serde_json::{Value, json};

use super::{CallAnswer, RequestedCall, block_text, is_shown_image, is_type};

pub(super) fn calls(response: &Value) -> Option<Vec<&Value>> {
    let items = response.get("output").unwrap_or(response).as_array()?;
    Some(items.iter().filter(|item| is_type(item, "function_call")).collect())
}

pub(super) fn answer(call: &RequestedCall, answer: &CallAnswer) -> Value {
    json!({ "type": "function_call_output", "call_id": call.id, "output": output(answer) })
}

/// One text, or parts when there are pictures among them.
fn output(answer: &CallAnswer) -> Value {
    if !answer.content.iter().any(is_shown_image) {
        return Value::String(answer.text());
    }
    let parts = answer.content.iter().map(|block| {
        let field = |name: &str| block[name].as_str().unwrap_or_default();
        if is_shown_image(block) {
            let url = format!("data:{};base64,{}", field("mimeType"), field("data"));
            json!({ "type": "input_image", "image_url": url, "detail": "auto" })
        } else {
            json!({ "type": "input_text", "text": block_text(block) })
        }
    });
    Value::Array(parts.collect())
}
