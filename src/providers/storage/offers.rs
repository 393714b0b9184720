//! The tools of a store, and what is said about them.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::config::node::Node;
use crate::config::spec::ToolSpec;
use crate::model::{Problem, Speed, ToolDefinition, ToolName, ToolScope};
use crate::providers::engines::choice::{Choice, Limits, Place};
use crate::providers::toolkit::{Chosen, Offer};

/// How many keys a list gives when nothing is said, and the most it may be asked for.
pub(super) const PAGE: u64 = 100;
pub(super) const MOST_PAGE: u64 = 1000;

/// What a store can do.
pub(super) const OFFERS: &[Offer] = &[
    Offer { name: "read", aliases: &["get"] },
    Offer { name: "write", aliases: &["put", "set"] },
    Offer { name: "list", aliases: &["keys"] },
    Offer { name: "delete", aliases: &["remove"] },
    Offer { name: "clear", aliases: &[] },
];

/// What an entry gets that selects nothing; `clear` has to be named.
const USUAL: [&str; 4] = ["read", "write", "list", "delete"];

/// Which tools make up a store, as an enum of [`OFFERS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    List,
    Delete,
    Clear,
}

impl Operation {
    fn of(offer: &Offer) -> Self {
        match offer.name {
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
    chosen: Vec<Chosen>,
    writable: bool,
) -> Result<Vec<(Chosen, Operation)>, Vec<Problem>> {
    let selects = ["tools", "selected_tools", "original_tool_name"];
    let selects = selects.iter().any(|key| spec.entry.get(key).is_some());
    let mut problems = Vec::new();
    let mut tools = Vec::new();
    for tool in chosen {
        let operation = Operation::of(tool.offer);
        if !selects && (!USUAL.contains(&tool.offer.name) || (operation.changes() && !writable)) {
            continue;
        }
        if operation.changes() && !writable {
            problems.push(
                Problem::error(format!(
                    "'{}' changes the store, but the entry may only read",
                    tool.name
                ))
                .hint("say 'access: write', or leave it out")
                .at(spec.entry.get("access").map_or_else(|| spec.place.clone(), Node::place)),
            );
        }
        tools.push((tool, operation));
    }
    if problems.is_empty() { Ok(tools) } else { Err(problems) }
}

/// The whole definition of a tool.
pub(super) fn define(
    spec: &ToolSpec,
    tool: &Chosen,
    operation: Operation,
    choice: &Choice,
) -> ToolDefinition {
    let mut definition = tool.definition(spec);
    definition.aliases = aliases(&definition.name, tool.offer);
    let component = tool.name.component().unwrap_or(tool.name.tool());
    let store = format!("the store '{component}' ({})", choice.place.kind());
    definition.description.get_or_insert_with(|| match operation {
        Operation::Read => format!("Reads what a key of {store} holds."),
        Operation::Write => format!(
            "Writes a JSON value to a key of {store}. With if_version only while the key holds \
             that version, with if_absent only while it holds nothing."
        ),
        Operation::List => format!("Lists the keys of {store}, sorted, page by page."),
        Operation::Delete => format!("Deletes a key of {store}."),
        Operation::Clear => format!("Deletes all keys of {store}."),
    });
    definition.input_schema = Arc::new(input(operation, &choice.limits));
    definition.output_schema = Some(Arc::new(output(operation)));
    if spec.entry.get("speed").is_none() && matches!(choice.place, Place::Memory) {
        definition.speed = Speed::Instant;
    }
    annotate(&mut definition, operation);
    definition.touches.push(choice.place.touches(operation.changes()));
    if definition.scope == ToolScope::Session {
        definition.touches.push("each session has keys of its own".to_owned());
    }
    definition
}

/// The other spellings of a tool, for calls.
fn aliases(name: &ToolName, offer: &Offer) -> Vec<ToolName> {
    let Some(component) = name.component() else { return Vec::new() };
    std::iter::once(offer.name)
        .chain(offer.aliases.iter().copied())
        .filter(|word| *word != name.tool())
        .map(|word| ToolName::of(component, word))
        .collect()
}

/// What is true of a tool, whatever its entry says. Deleting asks a person, unless the entry says
/// that nothing is lost by it; writing does not ask, or nobody could use a store in a script.
fn annotate(definition: &mut ToolDefinition, operation: Operation) {
    let said = &mut definition.annotations;
    said.read_only = Some(!operation.changes());
    said.idempotent = Some(true);
    said.open_world = Some(false);
    said.destructive = match operation {
        Operation::Read | Operation::List => None,
        Operation::Write => said.destructive,
        Operation::Delete | Operation::Clear => Some(said.destructive.unwrap_or(true)),
    };
    definition.repeatable = definition.repeatable && !operation.changes();
}

fn input(operation: Operation, limits: &Limits) -> Value {
    let text = |about: &str| json!({ "type": "string", "maxLength": limits.key, "pattern": "^[^\\u0000]*$", "description": about });
    let key = || {
        let mut key = text("the key");
        key["minLength"] = 1.into();
        key
    };
    let version =
        json!({ "type": "integer", "minimum": 1, "description": "the version the key must hold" });
    let (properties, required) = match operation {
        Operation::Read => (json!({ "key": key() }), vec!["key"]),
        Operation::Write => (
            json!({
                "key": key(),
                "value": { "maxLength": limits.value, "description": "any JSON value" },
                "if_version": version,
                "if_absent": { "type": "boolean", "description": "only if the key holds nothing" },
            }),
            vec!["key", "value"],
        ),
        Operation::List => (
            json!({
                "prefix": text("only keys that begin with this"),
                "limit": { "type": "integer", "minimum": 1, "maximum": MOST_PAGE, "default": PAGE, "description": "the most keys to give" },
                "cursor": text("where the page before ended"),
            }),
            vec![],
        ),
        Operation::Delete => (json!({ "key": key(), "if_version": version }), vec!["key"]),
        Operation::Clear => (json!({}), vec![]),
    };
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn output(operation: Operation) -> Value {
    let version = json!({ "type": "integer", "description": "changes with every write" });
    let key = json!({ "type": "string" });
    let properties = match operation {
        Operation::Read => json!({ "key": key, "value": {}, "version": version }),
        Operation::Write => json!({ "key": key, "version": version }),
        Operation::List => json!({
            "keys": { "type": "array", "items": {
                "type": "object",
                "properties": { "key": key, "version": version, "bytes": { "type": "integer" } },
                "required": ["key", "version", "bytes"],
            } },
            "cursor": { "type": ["string", "null"], "description": "for the next page; null at the end" },
        }),
        Operation::Delete => json!({ "key": key, "existed": { "type": "boolean" } }),
        Operation::Clear => json!({ "deleted": { "type": "integer" } }),
    };
    let required: Vec<&String> =
        properties.as_object().into_iter().flat_map(|map| map.keys()).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}
