//! The tools of a store, and what is said about them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::config::node::ConfigNode;
use crate::config::spec::ToolSpec;
use crate::model::{Diagnostic, Speed, ToolDefinition, ToolName, ToolScope};
use crate::providers::engines::config::{EngineConfig, EngineLimits, EngineLocation};
use crate::providers::toolkit::{SelectedTool, ToolkitTool};

/// How many keys a list gives when nothing is said, and the most it may be asked for.
pub(super) const DEFAULT_PAGE_SIZE: u64 = 100;
pub(super) const MAX_PAGE_SIZE: u64 = 1000;

/// What a store can do.
pub(super) const TOOLS: &[ToolkitTool] = &[
    ToolkitTool { name: "read", aliases: &["get"] },
    ToolkitTool { name: "write", aliases: &["put", "set"] },
    ToolkitTool { name: "list", aliases: &["keys"] },
    ToolkitTool { name: "delete", aliases: &["remove"] },
    ToolkitTool { name: "clear", aliases: &[] },
];

/// What an entry gets that selects nothing; `clear` has to be named.
const DEFAULT_TOOLS: [&str; 4] = ["read", "write", "list", "delete"];

/// Which tools make up a store, as an enum of [`TOOLS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreOperation {
    Read,
    Write,
    List,
    Delete,
    Clear,
}

impl StoreOperation {
    fn of(tool: &ToolkitTool) -> Self {
        match tool.name {
            "read" => Self::Read,
            "write" => Self::Write,
            "list" => Self::List,
            "delete" => Self::Delete,
            _ => Self::Clear,
        }
    }

    fn changes(self) -> bool {
        !matches!(self, Self::Read | Self::List)
    }
}

/// Which of the chosen tools an entry gives: what it selects, or the usual ones that its access
/// allows.
///
/// # Errors
/// A tool that changes something is selected by an entry that may only read.
pub(super) fn allowed(
    spec: &ToolSpec,
    chosen: Vec<SelectedTool>,
    writable: bool,
) -> Result<Vec<(SelectedTool, StoreOperation)>, Vec<Diagnostic>> {
    let selects = ["tools", "selected_tools", "original_tool_name"];
    let selects = selects.iter().any(|key| spec.entry.get(key).is_some());
    let mut diagnostics = Vec::new();
    let mut tools = Vec::new();
    for tool in chosen {
        let operation = StoreOperation::of(tool.original);
        if !selects
            && (!DEFAULT_TOOLS.contains(&tool.original.name) || (operation.changes() && !writable))
        {
            continue;
        }
        if operation.changes() && !writable {
            diagnostics.push(
                Diagnostic::error(format!(
                    "'{}' changes the store, but the entry may only read",
                    tool.name
                ))
                .with_hint("say 'access: write', or leave it out")
                .with_location(
                    spec.entry
                        .get("access")
                        .map_or_else(|| spec.location.clone(), ConfigNode::location),
                ),
            );
        }
        tools.push((tool, operation));
    }
    if diagnostics.is_empty() { Ok(tools) } else { Err(diagnostics) }
}

/// The whole definition of a tool.
pub(super) fn define(
    spec: &ToolSpec,
    tool: &SelectedTool,
    operation: StoreOperation,
    config: &EngineConfig,
) -> ToolDefinition {
    let mut definition = tool.definition(spec);
    definition.aliases = aliases(&definition.name, tool.original);
    let component = tool.name.component().unwrap_or(tool.name.tool());
    let store = format!("the store '{component}' ({})", config.location.kind());
    definition.description.get_or_insert_with(|| match operation {
        StoreOperation::Read => format!("Reads what a key of {store} holds."),
        StoreOperation::Write => format!(
            "Writes a JSON value to a key of {store}. With if_version only while the key holds \
             that version, with if_absent only while it holds nothing."
        ),
        StoreOperation::List => format!("Lists the keys of {store}, sorted, page by page."),
        StoreOperation::Delete => format!("Deletes a key of {store}."),
        StoreOperation::Clear => format!("Deletes all keys of {store}."),
    });
    definition.input_schema = Arc::new(input(operation, &config.limits));
    definition.output_schema = Some(Arc::new(output(operation)));
    if spec.entry.get("speed").is_none() && matches!(config.location, EngineLocation::Memory) {
        definition.speed = Speed::Instant;
    }
    annotate(&mut definition, operation);
    definition.touches.push(config.location.touches(operation.changes()));
    if definition.scope == ToolScope::Session {
        definition.touches.push("each session has keys of its own".to_owned());
    }
    definition
}

/// The other spellings of a tool, for calls.
fn aliases(name: &ToolName, tool: &ToolkitTool) -> Vec<ToolName> {
    let Some(component) = name.component() else { return Vec::new() };
    std::iter::once(tool.name)
        .chain(tool.aliases.iter().copied())
        .filter(|word| *word != name.tool())
        .map(|word| ToolName::of(component, word))
        .collect()
}

/// What is true of a tool, whatever its entry says. Deleting asks a person, unless the entry says
/// that nothing is lost by it; writing does not ask, or nobody could use a store in a script.
fn annotate(definition: &mut ToolDefinition, operation: StoreOperation) {
    let said = &mut definition.annotations;
    said.read_only = Some(!operation.changes());
    said.idempotent = Some(true);
    said.open_world = Some(false);
    said.destructive = match operation {
        StoreOperation::Read | StoreOperation::List => None,
        StoreOperation::Write => said.destructive,
        StoreOperation::Delete | StoreOperation::Clear => Some(said.destructive.unwrap_or(true)),
    };
    definition.is_repeatable = definition.is_repeatable && !operation.changes();
}

fn input(operation: StoreOperation, limits: &EngineLimits) -> Value {
    let text = |about: &str| json!({ "type": "string", "maxLength": limits.max_key_bytes, "pattern": "^[^\\u0000]*$", "description": about });
    let key = || {
        let mut key = text("the key");
        key["minLength"] = 1.into();
        key
    };
    let version =
        json!({ "type": "integer", "minimum": 1, "description": "the version the key must hold" });
    let (properties, required) = match operation {
        StoreOperation::Read => (json!({ "key": key() }), vec!["key"]),
        StoreOperation::Write => (
            json!({
                "key": key(),
                "value": { "maxLength": limits.max_value_bytes, "description": "any JSON value" },
                "if_version": version,
                "if_absent": { "type": "boolean", "description": "only if the key holds nothing" },
            }),
            vec!["key", "value"],
        ),
        StoreOperation::List => (
            json!({
                "prefix": text("only keys that begin with this"),
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": DEFAULT_PAGE_SIZE, "description": "the most keys to give" },
                "cursor": text("where the page before ended"),
            }),
            vec![],
        ),
        StoreOperation::Delete => (json!({ "key": key(), "if_version": version }), vec!["key"]),
        StoreOperation::Clear => (json!({}), vec![]),
    };
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn output(operation: StoreOperation) -> Value {
    let version = json!({ "type": "integer", "description": "changes with every write" });
    let key = json!({ "type": "string" });
    let properties = match operation {
        StoreOperation::Read => json!({ "key": key, "value": {}, "version": version }),
        StoreOperation::Write => json!({ "key": key, "version": version }),
        StoreOperation::List => json!({
            "keys": { "type": "array", "items": {
                "type": "object",
                "properties": { "key": key, "version": version, "bytes": { "type": "integer" } },
                "required": ["key", "version", "bytes"],
            } },
            "cursor": { "type": ["string", "null"], "description": "for the next page; null at the end" },
        }),
        StoreOperation::Delete => json!({ "key": key, "existed": { "type": "boolean" } }),
        StoreOperation::Clear => json!({ "deleted": { "type": "integer" } }),
    };
    let required: Vec<&String> =
        properties.as_object().into_iter().flat_map(|map| map.keys()).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}
