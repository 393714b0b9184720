//! The texts of a definition, each with its JSON path.

use serde_json::Value;

use super::MOST_BYTES;
use crate::model::ToolDefinition;

const MOST_TEXTS: usize = 20_000;
const FOR_MACHINES: [&str; 9] =
    ["$ref", "$schema", "$id", "$anchor", "$dynamicRef", "type", "format", "pattern", "required"];

pub(super) struct DefinitionText<'a> {
    pub(super) path: String,
    pub(super) text: &'a str,
    /// Whether the text is prose for a reader, not a name or a value for programs.
    pub(super) is_prose: bool,
}

/// Hands every text to `look`. Says whether that was all of them.
pub(super) fn for_each_text(
    tool: &ToolDefinition,
    mut look: impl FnMut(DefinitionText<'_>),
) -> bool {
    let mut budget = ScanBudget { bytes: MOST_BYTES, texts: MOST_TEXTS, is_complete: true };
    let plain = [
        ("name", Some(tool.name.tool()), false),
        ("title", tool.title.as_deref(), true),
        ("description", tool.description.as_deref(), true),
        ("annotations.title", tool.annotations.title.as_deref(), true),
    ];
    for (path, text, is_prose) in plain {
        if let Some(text) = text.and_then(|text| budget.take(text)) {
            look(DefinitionText { path: path.to_owned(), text, is_prose });
        }
    }
    for (path, schema) in
        [("inputSchema", Some(&tool.input_schema)), ("outputSchema", tool.output_schema.as_ref())]
    {
        if let Some(schema) = schema {
            walk(&schema.read(), path, true, &mut budget, &mut look);
        }
    }
    budget.is_complete
}

pub(super) fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

struct ScanBudget {
    bytes: usize,
    texts: usize,
    is_complete: bool,
}

impl ScanBudget {
    fn take<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        if self.texts == 0 || self.bytes == 0 {
            self.is_complete = false;
            return None;
        }
        self.texts -= 1;
        let part = head(text, self.bytes);
        self.is_complete &= part.len() == text.len();
        self.bytes -= part.len();
        Some(part)
    }
}

/// Depth is bounded where definitions are read.
fn walk(
    value: &Value,
    path: &str,
    is_prose: bool,
    budget: &mut ScanBudget,
    look: &mut impl FnMut(DefinitionText<'_>),
) {
    match value {
        Value::String(text) => {
            if let Some(text) = budget.take(text) {
                look(DefinitionText { path: path.to_owned(), text, is_prose });
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate().take(MOST_TEXTS) {
                walk(item, &format!("{path}[{at}]"), is_prose, budget, look);
            }
            budget.is_complete &= items.len() <= MOST_TEXTS;
        }
        Value::Object(members) => {
            for (key, member) in members {
                let Some(name) = budget.take(key) else { return };
                let path = format!("{path}.{}", head(name, 100));
                // A key is a name; one that is a sentence is meant to be read.
                let text =
                    DefinitionText { path: path.clone(), text: name, is_prose: name.contains(' ') };
                look(text);
                let is_prose = is_prose && !FOR_MACHINES.contains(&key.as_str());
                walk(member, &path, is_prose, budget, look);
            }
        }
        _ => {}
    }
}
