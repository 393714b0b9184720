//! From a worker's reply to the result of a call.

use serde_json::Value;

use super::wire::{Blame, Complaint};
use super::worker::Reply;
use crate::model::fault::Signal;
use crate::model::{Fault, FaultKind, Phase, ToolResult};

/// Reads the reply to a call. An exception is a well-formed no; so is a result that says
/// `success: false`.
///
/// # Errors
/// When the function could not be called at all, or its result cannot be carried.
pub(super) fn read(reply: Reply) -> Result<ToolResult, Fault> {
    let warnings = reply.warnings.clone();
    let mut result = match reply.error {
        Some(complaint) if complaint.kind == Blame::Raised => {
            let mut result = ToolResult::failure(complaint.message.clone());
            result.fault = Some(fault_of(complaint));
            result
        }
        Some(complaint) => return Err(fault_of(complaint)),
        None => of_value(value(reply)?),
    };
    result.warnings = warnings;
    Ok(result)
}

/// The value of a reply to anything but a call.
///
/// # Errors
/// As [`read`], and an exception too.
pub(super) fn value(reply: Reply) -> Result<Value, Fault> {
    if let Some(complaint) = reply.error {
        return Err(fault_of(complaint));
    }
    let Some(raw) = reply.result else { return Ok(Value::Null) };
    serde_json::from_str(raw.get()).map_err(|error| {
        Fault::protocol(format!("the result of the function cannot be read: {error}"))
            .phase(Phase::Call)
    })
}

/// What a complaint is to those who called.
pub(super) fn fault_of(complaint: Complaint) -> Fault {
    let Complaint { kind, message, hint, details } = complaint;
    let fault = match kind {
        Blame::Raised => Fault::tool(message).phase(Phase::Call),
        Blame::Import => Fault::unreachable(message).phase(Phase::Start),
        Blame::Entry => Fault::config(message).phase(Phase::Start),
        Blame::TooLarge => Fault::protocol(message).phase(Phase::Call),
        Blame::Denied => Fault::denied(message).phase(Phase::Start),
        Blame::Stopped => Fault::new(FaultKind::Interrupted(Signal::Interrupt), message),
    };
    let fault = fault.details(details);
    match hint {
        Some(hint) => fault.hint(hint),
        None => fault,
    }
}

/// A value is the result itself, unless it says `success` and `output` or `error`.
fn of_value(value: Value) -> ToolResult {
    let Value::Object(mut map) = value else { return ToolResult::json(value) };
    let says = map.get("success").and_then(Value::as_bool);
    let (Some(success), true) = (says, map.contains_key("output") || map.contains_key("error"))
    else {
        return ToolResult::json(Value::Object(map));
    };
    map.shift_remove("success");
    let output = map.shift_remove("output").unwrap_or_default();
    let error = map.shift_remove("error").unwrap_or_default();
    let mut meta = match map.shift_remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        Some(Value::Null) | None => serde_json::Map::new(),
        Some(other) => serde_json::Map::from_iter([("metadata".to_owned(), other)]),
    };
    // What has no place of its own is kept all the same.
    meta.extend(map);
    let mut result = if success { ToolResult::json(output) } else { failure(output, error) };
    result.meta = (!meta.is_empty()).then_some(Value::Object(meta));
    result
}

fn failure(output: Value, error: Value) -> ToolResult {
    let message = match (&error, &output) {
        (Value::String(text), _) | (Value::Null, Value::String(text)) => text.clone(),
        (Value::Null, _) => "the function says that it failed, and not why".to_owned(),
        (Value::Object(map), _) => match map.get("message").and_then(Value::as_str) {
            Some(message) => message.to_owned(),
            None => error.to_string(),
        },
        _ => error.to_string(),
    };
    let mut result = ToolResult::failure(message.clone());
    if !matches!(error, Value::String(_) | Value::Null) {
        result.fault = Some(Fault::tool(message).data(error));
    }
    if !output.is_null() {
        let given = ToolResult::json(output);
        result.content.extend(given.content);
        result.structured = given.structured;
        result.output = given.output;
    }
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_that_says_so_is_taken_apart() {
        let good = of_value(json!({ "success": true, "output": [1], "metadata": { "rows": 1 } }));
        assert!(
            good.success && good.output == json!([1]) && good.meta == Some(json!({ "rows": 1 }))
        );
        let bad = of_value(json!({ "success": false, "error": "no such table", "output": null }));
        assert!(!bad.success && bad.output == json!("no such table"));
        let told = of_value(json!({ "success": false, "error": { "message": "m", "code": 7 } }));
        let fault = told.fault.unwrap();
        assert_eq!(
            (fault.message(), fault.evidence()),
            ("m", Some(&json!({ "message": "m", "code": 7 })))
        );
        let more = of_value(json!({ "success": true, "output": 1, "rows": 5 }));
        assert_eq!(more.meta, Some(json!({ "rows": 5 })));
    }

    #[test]
    fn other_values_are_the_result() {
        for value in
            [json!({ "success": true }), json!({ "success": "yes", "output": 1 }), json!(null)]
        {
            let result = of_value(value.clone());
            assert!(result.success && result.output == value, "{value}");
        }
    }
}
