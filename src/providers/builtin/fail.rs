//! `builtin.fail`: fails on purpose, so that scripts and alerts can be tried.

use serde_json::json;

use super::{BuiltinFunction, FunctionBody};
use crate::model::{Error, ToolResult};

pub(super) const FAIL: BuiltinFunction = BuiltinFunction {
    module: "builtin.fail",
    name: "fail",
    aliases: &[],
    title: "Fail",
    description: "Fails on purpose: with a failed result (mode tool), or with an error of kind \
                  unreachable, timeout or protocol, as if no response had arrived.",
    input: || {
        json!({
            "type": "object",
            "properties": {
                "message": { "type": "string", "description": "The message", "default": "failed on purpose" },
                "mode": {
                    "type": "string",
                    "enum": ["tool", "error"],
                    "default": "tool",
                    "description": "tool: the tool reports a failure; error: no usable response arrives",
                },
                "kind": {
                    "type": "string",
                    "enum": ["unreachable", "timeout", "protocol"],
                    "default": "unreachable",
                    "description": "The kind of error in mode error",
                },
            },
            "additionalProperties": false,
        })
    },
    output: None,
    idempotent: true,
    run: FunctionBody::Sync(|_, arguments| {
        let message =
            arguments.optional_text("message")?.unwrap_or_else(|| "failed on purpose".to_owned());
        if arguments.word("mode", &["tool", "error"])? == "tool" {
            return Ok(ToolResult::failure(message));
        }
        Err(match arguments.word("kind", &["unreachable", "timeout", "protocol"])? {
            "timeout" => Error::timeout(message),
            "protocol" => Error::protocol(message),
            _ => Error::unreachable(message),
        })
    }),
};
