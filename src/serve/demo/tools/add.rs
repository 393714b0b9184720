//! `add`: adds two numbers; has an output schema.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::model::{CallToolResponse, CallToolResult, ErrorData, Tool};
use serde::Deserialize;
use serde_json::{Number, Value, json};

use super::{DemoCall, DemoServer, DemoTool};

pub(super) struct Add;

#[derive(Deserialize)]
struct Arguments {
    a: Number,
    b: Number,
}

#[async_trait]
impl DemoTool for Add {
    fn definition(&self) -> Tool {
        let number = |text| json!({ "type": "number", "description": text });
        let input = json!({
            "type": "object",
            "properties": { "a": number("The first number"), "b": number("The second number") },
            "required": ["a", "b"],
            "additionalProperties": false,
        });
        let output = json!({
            "type": "object",
            "properties": { "sum": number("The sum") },
            "required": ["sum"],
        });
        super::tool("add", "Add", "Adds two numbers", input)
            .with_raw_output_schema(Arc::new(super::object(output)))
            .with_annotations(super::read_only())
    }

    async fn call(
        &self,
        _server: &DemoServer,
        call: DemoCall,
    ) -> Result<CallToolResponse, ErrorData> {
        let Arguments { a, b } = match call.arguments() {
            Ok(arguments) => arguments,
            Err(reason) => return Ok(super::error_result(reason.to_string())),
        };
        Ok(match sum(&a, &b) {
            Some(sum) => CallToolResult::structured(json!({ "sum": Value::Number(sum) })).into(),
            None => super::error_result("the sum is too large to represent"),
        })
    }
}

/// Whole numbers stay whole as long as they fit; `None` when the sum is not finite.
fn sum(a: &Number, b: &Number) -> Option<Number> {
    let whole = || Some(Number::from(a.as_i64()?.checked_add(b.as_i64()?)?));
    whole().or_else(|| Number::from_f64(a.as_f64()? + b.as_f64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stay_whole_until_they_do_not_fit() {
        let add = |a: &str, b: &str| {
            let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
            sum(&number(a), &number(b)).map(|n| n.to_string())
        };
        assert_eq!(add("2", "3").as_deref(), Some("5"));
        assert_eq!(add("2.5", "3").as_deref(), Some("5.5"));
        assert_eq!(add("9223372036854775807", "1").as_deref(), Some("9.223372036854776e+18"));
        assert_eq!(add("1e308", "1e308"), None);
    }
}
