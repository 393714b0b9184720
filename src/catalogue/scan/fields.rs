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
            walk(schema, path, &mut budget, &mut look);
        }
    }
    budget.is_complete
}

pub(super) fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
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

fn walk(
    schema: &Value,
    path: &str,
    budget: &mut ScanBudget,
    look: &mut impl FnMut(DefinitionText<'_>),
) {
    // Depth is bounded where definitions are read; a stack of our own costs nothing.
    let mut pending: Vec<(String, &Value, bool)> = vec![(path.to_owned(), schema, true)];
    while let Some((path, value, is_prose)) = pending.pop() {
        match value {
            Value::String(text) => {
                let Some(text) = budget.take(text) else { return };
                look(DefinitionText { path, text, is_prose });
            }
            Value::Array(items) => {
                if pending.len() + items.len() > MOST_TEXTS {
                    budget.is_complete = false;
                    continue;
                }
                let items = items.iter().enumerate().rev();
                pending.extend(items.map(|(at, item)| (format!("{path}[{at}]"), item, is_prose)));
            }
            Value::Object(members) => {
                if pending.len() + members.len() > MOST_TEXTS {
                    budget.is_complete = false;
                    continue;
                }
                for (key, member) in members.iter().rev() {
                    let Some(name) = budget.take(key) else { return };
                    let path = format!("{path}.{}", head(name, 100));
                    // A key is a name; one that is a sentence is meant to be read.
                    look(DefinitionText {
                        path: path.clone(),
                        text: name,
                        is_prose: name.contains(' '),
                    });
                    let is_prose = is_prose && !FOR_MACHINES.contains(&key.as_str());
                    pending.push((path, member, is_prose));
                }
            }
            _ => {}
        }
    }
}
