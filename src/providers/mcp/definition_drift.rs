//! Refusing to call a tool whose definition changed since it was listed, unless the entry allows
//! it.

use std::sync::Arc;

use serde_json::Value;

use crate::catalogue::changes;
use crate::config::spec::DriftPolicy;
use crate::model::{Error, ToolDefinition};

const LINES: usize = 30;

/// Decides what to do when the called tool is not what was listed. Returns the warnings.
pub fn check_drift(
    before: &ToolDefinition,
    after: &ToolDefinition,
    drift: DriftPolicy,
) -> Result<Vec<String>, Error> {
    let (Some(old), Some(new)) = (before.raw_value(), after.raw_value()) else {
        return Ok(Vec::new());
    };
    if drift == DriftPolicy::Allow {
        return Ok(Vec::new());
    }
    let differences = changes::between(&without_nulls(old), &without_nulls(new));
    if differences.is_empty() {
        return Ok(Vec::new());
    }
    let (tool, parts) = (&after.name, changes::names(&differences));
    let drifted = format!("drift: the tool '{tool}' changed after it was listed ({parts})");
    let lines = changes::lines(&differences, LINES);
    if drift == DriftPolicy::Warn {
        let first = format!("{drifted} (`drift: warn` allows it)");
        return Ok(std::iter::once(first).chain(lines).collect());
    }
    Err(Error::denied(drifted).with_details(lines).with_hint(
        "review it with `toolhost inspect`; `drift: warn` in the server's entry allows changes",
    ))
}

/// The same definition without what says which arguments travel as headers too: that concerns the
/// transport, and what may be called is the same with and without it.
pub fn without_header_hints(definition: &ToolDefinition) -> ToolDefinition {
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

/// A part that is null is a part that is not there.
fn without_nulls(mut definition: Value) -> Value {
    if let Value::Object(parts) = &mut definition {
        parts.retain(|_, part| !part.is_null());
    }
    definition
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::{ErrorKind, Origin, ToolName, ToolSource};

    fn tool(raw: &Value) -> ToolDefinition {
        let origin = Origin::Server("s".into());
        let mut tool = ToolDefinition::new(ToolName::of("s", "t"), ToolSource::Mcp, "mcp", origin);
        tool.raw = serde_json::value::to_raw_value(raw).ok().map(Arc::from);
        tool
    }

    #[test]
    fn the_same_definition_passes() {
        let before = tool(&json!({ "name": "t", "description": "x", "_meta": 1, "title": null }));
        let after = tool(&json!({ "description": "x", "name": "t", "_meta": 2 }));
        assert!(check_drift(&before, &after, DriftPolicy::Block).unwrap().is_empty());
    }

    #[test]
    fn what_travels_as_a_header_is_no_change_of_the_tool() {
        let with = |property: Value| {
            let schema = json!({ "properties": { "region": property } });
            tool(&json!({ "name": "t", "inputSchema": schema }))
        };
        let before = with(json!({ "type": "string" }));
        let after = with(json!({ "type": "string", "x-mcp-header": "Region" }));
        assert!(check_drift(&before, &after, DriftPolicy::Block).is_err());
        let (before, after) = (without_header_hints(&before), without_header_hints(&after));
        assert!(check_drift(&before, &after, DriftPolicy::Block).is_ok());
    }

    #[test]
    fn a_changed_one_is_refused_with_both_sides_unless_the_entry_lets_it_pass() {
        let before = tool(&json!({ "name": "t", "description": "reads" }));
        let after = tool(&json!({ "name": "t", "description": "deletes" }));
        let error = check_drift(&before, &after, DriftPolicy::Block).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        assert_eq!(error.details(), ["description:", "  -reads", "  +deletes"]);
        let warnings = check_drift(&before, &after, DriftPolicy::Warn).unwrap();
        assert_eq!(warnings.len(), 4);
        assert!(warnings[0].contains("changed after it was listed (description)"), "{warnings:?}");
        assert!(check_drift(&before, &after, DriftPolicy::Allow).unwrap().is_empty());
    }
}
