//! `builtin.json`: a jq expression over a JSON value.

use serde_json::{Value, json};

use super::arguments::BuiltinArguments;
use super::{BuiltinFunction, FunctionBody, FunctionFuture, FunctionResult};
use crate::model::error::Signal;
use crate::model::{Error, ErrorKind, ToolContext, ToolResult};
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
    let input = match (arguments.0.get("input"), arguments.optional_text("json")?) {
        (Some(_), Some(_)) => {
            return Err(Error::usage("only one of 'input' and 'json' can be given"));
        }
        (Some(value), None) => value.clone(),
        (None, Some(text)) => match serde_json::from_str(&text) {
            Ok(value) => value,
            Err(error) => return Ok(ToolResult::failure(format!("'json' is not JSON: {error}"))),
        },
        (None, None) => Value::Null,
    };
    // A filter may take seconds, which the runtime has no time for. When the call is cancelled the
    // thread ends by itself: the engine's own limits see to that.
    let running = tokio::task::spawn_blocking(move || jq::query(&filter, &input));
    let result = tokio::select! {
        () = context.cancel.cancelled() => {
            return Err(Error::new(ErrorKind::Interrupted(Signal::Interrupt), "the query was stopped"));
        }
        result = running => result
            .map_err(|error| Error::internal(format!("the query could not be run: {error}")))?,
    };
    Ok(match result {
        Ok(mut results) if results.len() == 1 => {
            ToolResult::json(results.pop().unwrap_or_default())
        }
        Ok(results) => ToolResult::json(Value::Array(results)),
        Err(error) => ToolResult::failure(error.to_string()),
    })
}
