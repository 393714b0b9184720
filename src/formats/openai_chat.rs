//! Chat Completions: `tools` of type `function`, `tool_calls` with arguments as a text of JSON, and
//! messages of the role `tool`.

use serde_json::{Value, json};

use super::{CallAnswer, RequestedCall, is_type};

pub(super) fn calls(response: &Value) -> Option<Vec<&Value>> {
    let message = response.pointer("/choices/0/message").unwrap_or(response);
    let calls = match (message, message.get("tool_calls")) {
        (Value::Array(calls), _) | (_, Some(Value::Array(calls))) => calls,
        // A message without calls asks for none.
        (Value::Object(message), None | Some(Value::Null)) if message.contains_key("role") => {
            return Some(Vec::new());
        }
        _ => return None,
    };
    // Calls of other types, such as `custom`, are for tools that were not exported from here.
    let is_function = |call: &&Value| is_type(call, "function") || !call["type"].is_string();
    Some(calls.iter().filter(is_function).collect())
}

pub(super) fn answer(call: &RequestedCall, answer: &CallAnswer) -> Value {
    json!({ "role": "tool", "tool_call_id": call.id, "content": answer.text() })
}
