//! Gemini: function declarations with a JSON Schema, parts with a `functionCall`, and one message
//! with parts that hold a `functionResponse`.

use serde_json::{Value, json};

use super::{CallAnswer, ModelFormat, RequestedCall, ResponseError, arguments_object};

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

pub(super) fn definition(name: &str, description: Option<&str>, schema: &Value) -> Value {
    json!({
        "name": name,
        // The API requires one.
        "description": description.unwrap_or(name),
        "parametersJsonSchema": schema,
    })
}

/// Takes a whole response, its content, or the list of parts.
pub(super) fn requested_calls(response: &Value) -> Result<Vec<RequestedCall>, ResponseError> {
    let content = response.pointer("/candidates/0/content").unwrap_or(response);
    let parts = content.get("parts").unwrap_or(content);
    let Some(parts) = parts.as_array() else {
        let format = ModelFormat::Gemini.as_str();
        return Err(ResponseError::Shape { format, missing: "candidates[0].content.parts" });
    };
    // Google's SDK for Python dumps the names of fields in its own case, and fields without a value.
    let call_of = |part: &'_ Value| {
        let calls = ["functionCall", "function_call"].map(|name| part.get(name).cloned());
        calls.into_iter().flatten().find(|call| !call.is_null())
    };
    let calls = parts.iter().filter_map(call_of).enumerate();
    calls
        .map(|(index, call)| {
            let name = call.get("name").and_then(Value::as_str);
            let name = name.ok_or(ResponseError::Call { number: index + 1, missing: "name" })?;
            Ok(RequestedCall {
                id: call.get("id").and_then(Value::as_str).map(str::to_owned),
                name: name.to_owned(),
                arguments: arguments_object(call.get("args")),
            })
        })
        .collect()
}

pub(super) fn answer_messages(answers: &[(RequestedCall, CallAnswer)]) -> Vec<Value> {
    if answers.is_empty() {
        return Vec::new();
    }
    let parts: Vec<Value> = answers
        .iter()
        .map(|(call, answer)| {
            let mut response = json!({ "name": call.name, "response": response(answer) });
            if let Some(id) = &call.id {
                response["id"] = json!(id);
            }
            json!({ "functionResponse": response })
        })
        .collect();
    vec![json!({ "role": "user", "parts": parts })]
}

/// An object, with the result under the key that the API names.
fn response(answer: &CallAnswer) -> Value {
    match (&answer.structured, answer.is_error) {
        (_, true) => json!({ "error": answer.text() }),
        (Some(structured), false) => json!({ "output": structured }),
        (None, false) => json!({ "output": answer.text() }),
    }
}
