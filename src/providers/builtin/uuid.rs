//! `builtin.uuid`: fresh random or time-ordered identifiers.

use serde_json::json;
use uuid::Uuid;

use super::{BuiltinFunction, FunctionBody, input};
use crate::model::{Error, ToolResult};

pub(super) const GENERATE: BuiltinFunction = BuiltinFunction {
    module: "builtin.uuid",
    name: "generate",
    aliases: &[],
    title: "Generate UUIDs",
    description: "Generates UUIDs, one per line: version 4 (random) or 7 (sortable by time).",
    input: || {
        let version = json!({ "type": "integer", "enum": [4, 7], "default": 4 });
        let count = json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 1 });
        input(&[("version", version), ("count", count)], &[])
    },
    output: None,
    // Every call gives new ones: harmless to repeat, but never the same.
    idempotent: false,
    run: FunctionBody::Sync(|_, arguments| {
        let make: fn() -> Uuid = match arguments.number("version")? {
            None | Some(4.0) => Uuid::new_v4,
            Some(7.0) => Uuid::now_v7,
            Some(other) => {
                return Err(Error::usage(format!("'version' must be 4 or 7, found {other}")));
            }
        };
        let count = arguments.number("count")?.unwrap_or(1.0);
        let lines: Vec<String> = (1_u8..=100)
            .take_while(|n| f64::from(*n) <= count)
            .map(|_| make().to_string())
            .collect();
        if lines.is_empty() || count > 100.0 {
            return Err(Error::usage(format!("'count' must be between 1 and 100, found {count}")));
        }
        Ok(ToolResult::text(lines.join("\n")))
    }),
};
