//! The tools of a store: their definitions, and the functions that run them.

use serde_json::{Value, json};

use super::arguments::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE};
use super::operations;
use crate::providers::engines::config::EngineLimits;
use crate::providers::engines::kind::{EngineTool, StoreEffect};
use crate::providers::toolkit::ToolkitTool;

/// The tools of a store. Deleting needs approval, unless the entry says that nothing is lost by it;
/// writing does not ask, or a store would be of no use in a script.
pub(super) static TOOLS: [EngineTool; 5] = [
    EngineTool {
        tool: ToolkitTool { name: "read", aliases: &["get"] },
        is_default: true,
        effect: StoreEffect::Reads,
        is_idempotent: true,
        timeout: None,
        description: |component, sort| {
            format!("Reads the value of a key in {}.", store(component, sort))
        },
        input: |limits| (json!({ "key": key(limits) }), &["key"]),
        output: || json!({ "key": text_schema(), "value": {}, "version": version_schema() }),
        summary: |_| "reads a key",
        run: |call| Box::pin(operations::read(call)),
    },
    EngineTool {
        tool: ToolkitTool { name: "write", aliases: &["put", "set"] },
        is_default: true,
        effect: StoreEffect::Keeps,
        is_idempotent: true,
        timeout: None,
        description: |component, sort| {
            format!(
                "Writes a JSON value to a key of {}. if_version requires the key to have that version, \
                 if_absent requires it to have no value.",
                store(component, sort)
            )
        },
        input: |limits| {
            let properties = json!({
                "key": key(limits),
                "value": { "maxLength": limits.max_value_bytes, "description": "any JSON value" },
                "if_version": expected_version(),
                "if_absent": { "type": "boolean", "description": "only if the key has no value" },
            });
            (properties, &["key", "value"])
        },
        output: || json!({ "key": text_schema(), "version": version_schema() }),
        summary: |_| "writes a key",
        run: |call| Box::pin(operations::write(call)),
    },
    EngineTool {
        tool: ToolkitTool { name: "list", aliases: &["keys"] },
        is_default: true,
        effect: StoreEffect::Reads,
        is_idempotent: true,
        timeout: None,
        description: |component, sort| {
            format!("Lists the keys of {}, sorted, page by page.", store(component, sort))
        },
        input: |limits| {
            let properties = json!({
                "prefix": key_text("only keys that start with this", limits),
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": DEFAULT_PAGE_SIZE, "description": "maximum number of keys to return" },
                "cursor": key_text("the cursor of the previous page", limits),
            });
            (properties, &[])
        },
        output: || {
            json!({
                "keys": { "type": "array", "items": {
                    "type": "object",
                    "properties": { "key": text_schema(), "version": version_schema(), "bytes": { "type": "integer" } },
                    "required": ["key", "version", "bytes"],
                } },
                "cursor": { "type": ["string", "null"], "description": "for the next page; null at the end" },
            })
        },
        summary: |_| "lists the keys",
        run: |call| Box::pin(operations::list(call)),
    },
    EngineTool {
        tool: ToolkitTool { name: "delete", aliases: &["remove"] },
        is_default: true,
        effect: StoreEffect::Deletes,
        is_idempotent: true,
        timeout: None,
        description: |component, sort| format!("Deletes a key of {}.", store(component, sort)),
        input: |limits| (json!({ "key": key(limits), "if_version": expected_version() }), &["key"]),
        output: || json!({ "key": text_schema(), "existed": { "type": "boolean" } }),
        summary: |_| "deletes a key",
        run: |call| Box::pin(operations::delete(call)),
    },
    EngineTool {
        tool: ToolkitTool { name: "clear", aliases: &[] },
        is_default: false,
        effect: StoreEffect::Deletes,
        is_idempotent: true,
        timeout: None,
        description: |component, sort| format!("Deletes all keys of {}.", store(component, sort)),
        input: |_| (json!({}), &[]),
        output: || json!({ "deleted": { "type": "integer" } }),
        summary: |_| "deletes all keys",
        run: |call| Box::pin(operations::clear(call)),
    },
];

fn store(component: &str, sort: &str) -> String {
    format!("the store '{component}' ({sort})")
}

fn key_text(about: &str, limits: &EngineLimits) -> Value {
    json!({ "type": "string", "maxLength": limits.max_key_bytes, "pattern": "^[^\\u0000]*$", "description": about })
}

fn key(limits: &EngineLimits) -> Value {
    let mut key = key_text("the key", limits);
    key["minLength"] = 1.into();
    key
}

fn expected_version() -> Value {
    json!({ "type": "integer", "minimum": 1, "description": "the version the key must have" })
}

fn version_schema() -> Value {
    json!({ "type": "integer", "description": "changes with every write" })
}

fn text_schema() -> Value {
    json!({ "type": "string" })
}
