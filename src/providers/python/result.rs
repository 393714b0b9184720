//! Turning a worker's reply into the result of a call.

use serde_json::Value;

use super::wire::{WorkerError, WorkerErrorKind, WorkerReply};
use crate::model::error::Signal;
use crate::model::{Error, ErrorKind, ErrorPhase, RetryAdvice, ToolResult};

/// Reads the reply to a call. An exception is a well-formed no that may pass; a final one is a result that says
/// `success: false`.
pub(super) fn read(reply: WorkerReply) -> Result<ToolResult, Error> {
    let warnings = reply.warnings.clone();
    let mut result = match reply.error {
        Some(worker_error) if worker_error.kind == WorkerErrorKind::Raised => {
            let mut result = ToolResult::failure(worker_error.message.clone());
            result.error = Some(error_from_worker(worker_error));
            result
        }
        Some(worker_error) => return Err(error_from_worker(worker_error)),
        None => of_value(value(reply)?),
    };
    result.warnings = warnings;
    Ok(result)
}

pub(super) fn value(reply: WorkerReply) -> Result<Value, Error> {
    if let Some(worker_error) = reply.error {
        return Err(error_from_worker(worker_error));
    }
    let Some(raw) = reply.result else { return Ok(Value::Null) };
    serde_json::from_str(raw.get()).map_err(|error| {
        Error::protocol(format!("the result of the function cannot be read: {error}"))
            .with_phase(ErrorPhase::Call)
    })
}

/// The error of a call whose request gave no result.
pub(super) fn error_from_worker(worker_error: WorkerError) -> Error {
    let WorkerError { kind, message, hint, details, exception: _ } = worker_error;
    let error = match kind {
        WorkerErrorKind::Raised => Error::tool(message)
            .with_phase(ErrorPhase::Call)
            .with_retry_advice(RetryAdvice::AfterBackoff),
        WorkerErrorKind::Import | WorkerErrorKind::Start => {
            Error::unreachable(message).with_phase(ErrorPhase::Start)
        }
        WorkerErrorKind::Entry => Error::config(message).with_phase(ErrorPhase::Start),
        WorkerErrorKind::StartTimeout => Error::timeout(message).with_phase(ErrorPhase::Start),
        WorkerErrorKind::TooLarge => Error::protocol(message).with_phase(ErrorPhase::Call),
        WorkerErrorKind::Denied => Error::denied(message).with_phase(ErrorPhase::Start),
        WorkerErrorKind::Stopped => Error::new(ErrorKind::Interrupted(Signal::Interrupt), message),
    };
    let error = error.with_details(details);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
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
    // What has no place of its own is still kept.
    meta.extend(map);
    let mut result = if success { ToolResult::json(output) } else { failure(output, error) };
    result.meta = (!meta.is_empty()).then_some(Value::Object(meta));
    result
}

fn failure(output: Value, error: Value) -> ToolResult {
    let message = match (&error, &output) {
        (Value::String(text), _) | (Value::Null, Value::String(text)) => text.clone(),
        (Value::Null, _) => "the function reported a failure without a reason".to_owned(),
        (Value::Object(map), _) => match map.get("message").and_then(Value::as_str) {
            Some(message) => message.to_owned(),
            None => error.to_string(),
        },
        _ => error.to_string(),
    };
    let mut result = ToolResult::failure(message.clone());
    if !matches!(error, Value::String(_) | Value::Null) {
        result.error = Some(Error::tool(message).with_data(error));
    }
    if !output.is_null() {
        let partial = ToolResult::json(output);
        result.content.extend(partial.content);
        result.structured = partial.structured;
        result.output = partial.output;
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
        let coded = of_value(json!({ "success": false, "error": { "message": "m", "code": 7 } }));
        let error = coded.error.unwrap();
        assert_eq!(
            (error.message(), error.data()),
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
