//! Gemini: function declarations with a JSON Schema, parts with a `functionCall`, and one message
//! with parts that hold a `functionResponse`.

use serde_json::{Value, json};

use super::{CallAnswer, RequestedCall};

/// The keywords that `parametersJsonSchema` takes, as the API's reference lists them.
pub(super) const KEYWORDS: &[&str] = &[
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
];

/// Takes a whole response, its content, or the list of parts.
pub(super) fn calls<'v>(response: &'v Value) -> Option<Vec<&'v Value>> {
    let content = response.pointer("/candidates/0/content").unwrap_or(response);
    let parts = content.get("parts").unwrap_or(content).as_array()?;
    // Google's SDK for Python dumps the names of fields in its own case, and fields without a value.
    let call_of = |part: &'v Value| {
        let calls = ["functionCall", "function_call"].map(|name| part.get(name));
        calls.into_iter().flatten().find(|call| !call.is_null())
    };
    Some(parts.iter().filter_map(call_of).collect())
}

pub(super) fn answer(call: &RequestedCall, answer: &CallAnswer) -> Value {
    let mut response = json!({ "name": call.name, "response": response(answer) });
    if let Some(id) = &call.id {
        response["id"] = json!(id);
    }
    json!({ "functionResponse": response })
}

/// An object, with the result under the key that the API names.
fn response(answer: &CallAnswer) -> Value {
    match (&answer.structured, answer.is_error) {
        (_, true) => json!({ "error": answer.text() }),
        (Some(structured), false) => json!({ "output": structured }),
        (None, false) => json!({ "output": answer.text() }),
    }
}
