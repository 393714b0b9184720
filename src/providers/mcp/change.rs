//! A definition that changed between being listed and being called is not called.

use std::sync::Arc;

use serde_json::Value;

use crate::model::{Fault, ToolDefinition};

/// Refuses a call whose tool is not what was listed.
///
/// # Errors
/// A fault of kind denied that shows each changed part, before and after.
pub fn refuse_if_changed(before: &ToolDefinition, after: &ToolDefinition) -> Result<(), Fault> {
    let (Some(old), Some(new)) = (before.raw_value(), after.raw_value()) else {
        return Ok(());
    };
    let changes: Vec<String> =
        ["title", "description", "inputSchema", "outputSchema", "annotations"]
            .into_iter()
            .filter(|key| old.get(key) != new.get(key))
            .flat_map(|key| {
                [
                    format!("- {key}: {}", show(old.get(key))),
                    format!("+ {key}: {}", show(new.get(key))),
                ]
            })
            .collect();
    if changes.is_empty() {
        return Ok(());
    }
    Err(Fault::denied(format!("drift: the tool '{}' changed after it was listed", after.name))
        .details(changes)
        .hint("look at it with `toolhost inspect`; `dev: true` in the server's entry lets changes pass"))
}

/// The same definition without what says which arguments travel as headers too: that concerns the
/// transport, and what may be called is the same with and without it.
pub fn beside_headers(definition: &ToolDefinition) -> ToolDefinition {
    let mut raw = definition.raw_value().unwrap_or_default();
    let properties = raw.get_mut("inputSchema").and_then(|schema| schema.get_mut("properties"));
    for property in properties.and_then(Value::as_object_mut).into_iter().flatten() {
        if let Value::Object(property) = property.1 {
            property.remove("x-mcp-header");
        }
    }
    let mut plain = definition.clone();
    plain.raw = serde_json::value::to_raw_value(&raw).ok().map(Arc::from);
    plain
}

fn show(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "(none)".to_owned(), ToString::to_string);
    match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{FaultKind, Origin, Source, ToolName};

    fn tool(raw: &Value) -> ToolDefinition {
        let origin = Origin::Server("s".into());
        let mut tool = ToolDefinition::new(ToolName::of("s", "t"), Source::Mcp, "mcp", origin);
        tool.raw = serde_json::value::to_raw_value(raw).ok().map(Arc::from);
        tool
    }

    #[test]
    fn the_same_definition_passes() {
        let before = tool(&json!({ "name": "t", "description": "x", "_meta": 1 }));
        let after = tool(&json!({ "description": "x", "name": "t", "_meta": 2 }));
        assert!(refuse_if_changed(&before, &after).is_ok());
    }

    #[test]
    fn what_travels_as_a_header_is_no_change_of_the_tool() {
        let with = |property: Value| {
            let schema = json!({ "properties": { "region": property } });
            tool(&json!({ "name": "t", "inputSchema": schema }))
        };
        let before = with(json!({ "type": "string" }));
        let after = with(json!({ "type": "string", "x-mcp-header": "Region" }));
        assert!(refuse_if_changed(&before, &after).is_err());
        let (before, after) = (beside_headers(&before), beside_headers(&after));
        assert!(refuse_if_changed(&before, &after).is_ok());
    }

    #[test]
    fn a_changed_one_is_refused_with_both_sides() {
        let before = tool(&json!({ "name": "t", "description": "reads" }));
        let after = tool(&json!({ "name": "t", "description": "deletes" }));
        let fault = refuse_if_changed(&before, &after).unwrap_err();
        assert_eq!(fault.kind(), FaultKind::Denied);
        assert_eq!(
            fault.detail_lines(),
            ["- description: \"reads\"", "+ description: \"deletes\""]
        );
    }
}
