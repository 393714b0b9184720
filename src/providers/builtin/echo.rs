//! `builtin.echo`: returns its input, for testing.

use serde_json::{Value, json};

use super::{BuiltinFunction, FunctionBody, input};
use crate::model::ToolResult;
use crate::providers::arguments::text;

pub(super) const ECHO: BuiltinFunction = BuiltinFunction {
    module: "builtin.echo",
    name: "echo",
    aliases: &[("src.tools.core.dummy_tool", "dummy_tool_function")],
    title: "Echo",
    description: "Returns the message it is given.",
    input: || {
        let mut message = text("The message to return");
        message["examples"] = json!(["hello"]);
        input(&[("message", message)], &["message"])
    },
    output: None,
    idempotent: true,
    // An entry may bring a schema with other names (the documents' dummy tool does): then the
    // arguments come back as they were given.
    run: FunctionBody::Sync(|_, arguments| {
        Ok(match arguments.0.get("message") {
            Some(Value::String(message)) => ToolResult::text(message.clone()),
            _ => ToolResult::json(Value::Object(arguments.0.clone())),
        })
    }),
};
