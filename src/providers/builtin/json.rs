//! `builtin.json`: a jq expression over a JSON value.

use serde_json::{Value, json};

use super::arguments::BuiltinArguments;
use super::{BuiltinFunction, FunctionBody, FunctionFuture, FunctionResult, in_thread};
use crate::model::{ToolContext, ToolResult};
use crate::util::jq;

pub(super) const QUERY: BuiltinFunction = BuiltinFunction {
    module: "builtin.json",
    name: "query",
    aliases: &[],
    title: "Query JSON",
    description: "Runs a jq expression over a JSON value or JSON text. A single result is returned \
                  as a value, anything else as a list.",
    input: || {
        json!({
            "type": "object",
            "properties": {
                "filter": {
                    "type": "string",
                    "description": "A jq expression, such as .items[] | select(.size > 3) | .name",
                },
                "input": { "description": "The value to query" },
                "json": { "type": "string", "description": "The value as JSON text instead" },
            },
            "required": ["filter"],
            "additionalProperties": false,
            "examples": [{ "filter": ".a", "input": { "a": 1 } }],
        })
    },
    output: None,
    idempotent: true,
    run: FunctionBody::Async(run),
};

fn run<'a>(context: &'a ToolContext, arguments: BuiltinArguments<'a>) -> FunctionFuture<'a> {
    Box::pin(query(context, arguments))
}

async fn query(context: &ToolContext, arguments: BuiltinArguments<'_>) -> FunctionResult {
    let filter = arguments.text("filter")?;
    let input = match arguments.json("input", "json")? {
        Some(Ok(value)) => value,
        Some(Err(refusal)) => return Ok(refusal),
        None => Value::Null,
    };
    // The engine's own limits end a filter that nobody waits for.
    let result = in_thread(context, "query", move || jq::query(&filter, &input)).await?;
    Ok(match result {
        Ok(mut results) if results.len() == 1 => {
            ToolResult::json(results.pop().unwrap_or_default())
        }
        Ok(results) => ToolResult::json(Value::Array(results)),
        Err(error) => ToolResult::failure(error.to_string()),
    })
}
