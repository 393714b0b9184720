//! `builtin.json`: a jq expression over a JSON value.

use serde_json::{Value, json};

use super::{BuiltinFunction, FunctionBody, FunctionResult, in_thread, input};
use crate::model::{Error, ToolContext, ToolResult};
use crate::providers::arguments::{Arguments, text};
use crate::util::jq;

pub(super) const QUERY: BuiltinFunction = BuiltinFunction {
    module: "builtin.json",
    name: "query",
    aliases: &[],
    title: "Query JSON",
    description: "Runs a jq expression over a JSON value or JSON text. A single result is returned \
                  as a value, anything else as a list.",
    input: || {
        let properties = [
            ("filter", text("A jq expression, such as .items[] | select(.size > 3) | .name")),
            ("input", json!({ "description": "The value to query" })),
            ("json", text("The value as JSON text instead")),
        ];
        let mut schema = input(&properties, &["filter"]);
        schema["examples"] = json!([{ "filter": ".a", "input": { "a": 1 } }]);
        schema
    },
    output: None,
    idempotent: true,
    run: FunctionBody::Async(|context, arguments| Box::pin(query(context, arguments))),
};

async fn query(context: &ToolContext, arguments: Arguments<'_>) -> FunctionResult {
    let filter = arguments.text("filter")?.to_owned();
    let input = arguments.json("input", "json")?.unwrap_or_default();
    // The engine's own limits end a filter that nobody waits for.
    let results = in_thread(context, "query", move || jq::query(&filter, &input)).await?;
    let mut results = results.map_err(|error| Error::tool(error.to_string()))?;
    Ok(ToolResult::json(match results.as_mut_slice() {
        [only] => only.take(),
        _ => Value::Array(results),
    }))
}
