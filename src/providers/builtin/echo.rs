//! `builtin.echo`: returns its input, for testing.

use serde_json::{Value, json};

use super::{BuiltinFunction, FunctionBody};
use crate::model::ToolResult;

pub(super) const ECHO: BuiltinFunction = BuiltinFunction {
    module: "builtin.echo",
    name: "echo",
    aliases: &[("src.tools.core.dummy_tool", "dummy_tool_function")],
    title: "Echo",
    description: "Returns the message it is given.",
    input: || {
        json!({
            "type": "object",
            "properties": {
                "message": {
                    "type": "string",
                    "description": "The message to return",
                    "examples": ["hello"],
                },
            },
            "required": ["message"],
            "additionalProperties": false,
        })
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
