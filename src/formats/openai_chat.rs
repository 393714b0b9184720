//! Chat Completions: `tools` of type `function`, `tool_calls` with arguments as a text of JSON, and
//! messages of the role `tool`.

use serde_json::{Value, json};

use super::{CallAnswer, ModelFormat, RequestedCall, ResponseError, parse_arguments};

pub(super) fn definition(name: &str, description: Option<&str>, schema: &Value) -> Value {
    let mut function = json!({ "name": name });
    if let Some(description) = description {
        function["description"] = json!(description);
    }
    function["parameters"] = schema.clone();
    json!({ "type": "function", "function": function })
}

pub(super) fn requested_calls(response: &Value) -> Result<Vec<RequestedCall>, ResponseError> {
    let message = response.pointer("/choices/0/message").unwrap_or(response);
    let calls = match (message, message.get("tool_calls")) {
        (Value::Array(calls), _) | (_, Some(Value::Array(calls))) => calls,
        // A message without calls asks for none.
        (Value::Object(message), None | Some(Value::Null)) if message.contains_key("role") => {
            return Ok(Vec::new());
        }
        _ => {
            let format = ModelFormat::Openai.as_str();
            return Err(ResponseError::Shape { format, missing: "choices[0].message" });
        }
    };
    // Calls of other types, such as `custom`, are for tools that were not exported from here.
    let is_function = |call: &&Value| {
        call.get("type").and_then(Value::as_str).is_none_or(|kind| kind == "function")
    };
    let calls = calls.iter().filter(is_function).enumerate();
    calls.map(|(index, call)| requested_call(index + 1, call)).collect()
}

fn requested_call(number: usize, call: &Value) -> Result<RequestedCall, ResponseError> {
    let field = |at: &str, missing| {
        let value = call.pointer(at).and_then(Value::as_str);
        value.ok_or(ResponseError::Call { number, missing })
    };
    Ok(RequestedCall {
        id: Some(field("/id", "id")?.to_owned()),
        name: field("/function/name", "function.name")?.to_owned(),
        arguments: match call.pointer("/function/arguments") {
            Some(Value::String(text)) => parse_arguments(text),
            other => super::arguments_object(other),
        },
    })
}

pub(super) fn answer_messages(answers: &[(RequestedCall, CallAnswer)]) -> Vec<Value> {
    let message = |(call, answer): &(RequestedCall, CallAnswer)| json!({ "role": "tool", "tool_call_id": call.id, "content": answer.text() });
    answers.iter().map(message).collect()
}
