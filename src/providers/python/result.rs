//! What a worker answers: the value of a call, or why there is none.

use serde::Deserialize;
use serde_json::Value;

use crate::mcp::message::RawJson;
use crate::model::{Error, ErrorKind, ErrorPhase, RetryAdvice, ToolResult};
use crate::providers::confinement::Sandbox;

#[derive(Debug, Deserialize)]
pub(super) struct WorkerError {
    kind: ErrorKind,
    phase: Option<ErrorPhase>,
    /// The class of the exception that the function raised, without its module.
    exception: Option<String>,
    /// The cause as one line; for an exception its class and message.
    message: String,
    hint: Option<String>,
    /// Lines of evidence, such as a traceback.
    #[serde(default)]
    details: Vec<String>,
}

impl WorkerError {
    /// The one that stands in the data of a worker's JSON-RPC error.
    pub(super) fn of(error: &Error) -> Option<Self> {
        serde_json::from_value(error.rpc_data()?.clone()).ok()
    }

    pub(super) fn into_error(self) -> Error {
        let mut error = Error::new(self.kind, self.message).with_details(self.details);
        if let Some(phase) = self.phase {
            error = error.with_phase(phase);
        }
        if self.exception.is_some() {
            error = error.with_retry_advice(RetryAdvice::AfterBackoff);
        }
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    /// Names the sandbox as what may have made the function fail.
    fn within(mut self, sandbox: &Sandbox) -> Self {
        let hint = match (self.exception.as_deref(), sandbox.memory_limit()) {
            (Some("MemoryError"), Some(limit)) => {
                self.message = format!("{} ({limit})", self.message);
                "'memory' of 'sandbox' in the entry sets how much it may use"
            }
            (Some("PermissionError"), _) if sandbox.confines() => {
                "its sandbox may be the reason: 'toolhost inspect' shows what it may access"
            }
            _ => return self,
        };
        self.hint.get_or_insert_with(|| hint.to_owned());
        self
    }
}

/// Reads the answer to a call. An exception is a well-formed no that may pass; a final one is a
/// result that says `success: false`.
pub(super) fn read(answer: &RawJson, sandbox: Option<&Sandbox>) -> Result<ToolResult, Error> {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "structuredContent", default)]
        value: Value,
        #[serde(rename = "_meta")]
        meta: Meta,
    }

    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "dev.toolhost/warnings", default)]
        warnings: Vec<String>,
        #[serde(rename = "dev.toolhost/error")]
        error: Option<WorkerError>,
    }
    let Answer { value, meta } = serde_json::from_str(answer.get()).map_err(|error| {
        Error::protocol(format!("the result of the function cannot be read: {error}"))
            .with_phase(ErrorPhase::Call)
    })?;
    let mut result = match meta.error {
        None => of_value(value),
        Some(raised) => {
            let raised = match sandbox {
                Some(sandbox) => raised.within(sandbox),
                None => raised,
            };
            let failure = ToolResult::failure(raised.message.clone());
            ToolResult { error: Some(raised.into_error()), ..failure }
        }
    };
    result.warnings = meta.warnings;
    Ok(result)
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
