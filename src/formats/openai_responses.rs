//! The Responses API: flat function tools, items of type `function_call`, and items of type
//! `function_call_output`.

use serde_json::{Value, json};

use super::{CallAnswer, ModelFormat, RequestedCall, ResponseError, block_text, parse_arguments};

pub(super) fn definition(name: &str, description: Option<&str>, schema: &Value) -> Value {
    let mut tool = json!({ "type": "function", "name": name });
    if let Some(description) = description {
        tool["description"] = json!(description);
    }
    tool["parameters"] = schema.clone();
    // The default, true, takes a small subset of schemas only.
    tool["strict"] = json!(false);
    tool
}

pub(super) fn requested_calls(response: &Value) -> Result<Vec<RequestedCall>, ResponseError> {
    let items = response.get("output").unwrap_or(response);
    let Some(items) = items.as_array() else {
        let format = ModelFormat::OpenaiResponses.as_str();
        return Err(ResponseError::Shape { format, missing: "output" });
    };
    let is_call = |item: &&Value| item.get("type").and_then(Value::as_str) == Some("function_call");
    let calls = items.iter().filter(is_call).enumerate();
    calls.map(|(index, call)| requested_call(index + 1, call)).collect()
}

fn requested_call(number: usize, call: &Value) -> Result<RequestedCall, ResponseError> {
    let field = |name: &'static str| {
        let value = call.get(name).and_then(Value::as_str);
        value.ok_or(ResponseError::Call { number, missing: name })
    };
    Ok(RequestedCall {
        id: Some(field("call_id")?.to_owned()),
        name: field("name")?.to_owned(),
        arguments: match call.get("arguments") {
            Some(Value::String(text)) => parse_arguments(text),
            other => super::arguments_object(other),
        },
    })
}

pub(super) fn answer_messages(answers: &[(RequestedCall, CallAnswer)]) -> Vec<Value> {
    let message = |(call, answer): &(RequestedCall, CallAnswer)| json!({ "type": "function_call_output", "call_id": call.id, "output": output(answer) });
    answers.iter().map(message).collect()
}

/// One text, or parts when there are pictures among them.
fn output(answer: &CallAnswer) -> Value {
    let is_image = super::is_shown_image;
    if !answer.content.iter().any(is_image) {
        return Value::String(answer.text());
    }
    let parts = answer.content.iter().map(|block| {
        let field = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        if is_image(block) {
            let url = format!("data:{};base64,{}", field("mimeType"), field("data"));
            json!({ "type": "input_image", "image_url": url, "detail": "auto" })
        } else {
            json!({ "type": "input_text", "text": block_text(block) })
        }
    });
    Value::Array(parts.collect())
}
