//! Turns what the author of a definition declares into the tool's definition.
//!
//! Keys of the tool's entry take precedence, except that approval can only be added.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::describe::DefinitionAttributes;
use crate::config::node::ConfigNode;
use crate::model::{Safety, Speed, ToolDefinition, ToolScope};

/// The most attempts a definition may ask for, as in files.
const MAX_RETRIES: u64 = 100;

/// Fills `definition` with what its author declares, where `entry` does not set it. Unusable values
/// become warnings of the definition.
pub(super) fn fill(
    definition: &mut ToolDefinition,
    attributes: DefinitionAttributes,
    entry: &ConfigNode,
) {
    let mut warnings = Vec::new();
    let take = |key: &str, value: Option<Value>| {
        value.filter(|_| entry.get(key).is_none_or(ConfigNode::is_null))
    };
    let mut unusable = |key: &str, expected: &str, value: &Value| {
        warnings.push(format!("its definition has '{key}: {value}', which is not {expected}"));
    };
    for (key, slot, value) in [
        ("title", &mut definition.title, attributes.title),
        ("category", &mut definition.category, attributes.category),
        ("version", &mut definition.version, attributes.version),
    ] {
        match take(key, value) {
            Some(Value::String(text)) => *slot = Some(text),
            Some(Value::Number(number)) => *slot = Some(number.to_string()),
            Some(other) => unusable(key, "text", &other),
            None => {}
        }
    }
    if let Some(value) = take("speed", attributes.speed) {
        match value.as_str().and_then(Speed::parse) {
            Some(speed) => definition.speed = speed,
            None => unusable("speed", "one of instant, fast, medium, slow", &value),
        }
    }
    // What a sandbox enforces outweighs a claim.
    if definition.sandbox.is_none()
        && let Some(value) = take("safety", attributes.safety)
    {
        match value.as_str().and_then(Safety::parse) {
            Some(safety) => definition.safety = safety,
            None => unusable("safety", "one of native, sandboxed, external", &value),
        }
    }
    if let Some(value) = take("scope", attributes.scope) {
        match value.as_str() {
            Some("session") => definition.scope = ToolScope::Session,
            Some("global") => definition.scope = ToolScope::Global,
            _ => unusable("scope", "global or session", &value),
        }
    }
    if let Some(value) = take("timeout", attributes.timeout) {
        let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
        match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
            Some(timeout) => definition.timeout = Some(timeout),
            None => unusable("timeout", "a number of seconds greater than 0", &value),
        }
    }
    if let Some(value) = take("retries", attributes.retries) {
        let count = value.as_u64().filter(|count| *count <= MAX_RETRIES);
        match count.and_then(|count| u32::try_from(count).ok()) {
            Some(count) => definition.retries = count,
            None => unusable("retries", "a number up to 100", &value),
        }
    }
    match attributes.requires_approval {
        None | Some(Value::Bool(false)) => {}
        Some(Value::Bool(true)) => definition.requires_approval = true,
        Some(other) => {
            // The intent is unclear, so the user decides.
            definition.requires_approval = true;
            unusable("requires_approval", "true or false", &other);
        }
    }
    match attributes.output_schema {
        Some(schema @ Value::Object(_)) if definition.output_schema.is_none() => {
            definition.output_schema = Some(Arc::new(schema));
        }
        Some(Value::Object(_)) | None => {}
        Some(other) => unusable("output_schema", "a JSON Schema", &other),
    }
    definition.warnings.extend(warnings);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;
    use crate::model::{Origin, ToolName, ToolSource};

    fn filled(entry: &str, attributes: Value) -> ToolDefinition {
        let entry = parse(&SourceText::new("t.yaml", entry), entry).unwrap().root;
        let name = ToolName::plain("t");
        let mut definition =
            ToolDefinition::new(name, ToolSource::Internal, "python", Origin::Program);
        let text = |key| entry.get(key).and_then(|node| node.as_text().ok());
        definition.category = text("category").map(str::to_owned);
        definition.requires_approval =
            entry.get("requires_approval").is_some_and(|node| node.as_bool().unwrap());
        fill(&mut definition, serde_json::from_value(attributes).unwrap(), &entry);
        definition
    }

    #[test]
    fn a_definition_says_what_the_entry_leaves_open() {
        let attributes = json!({
            "category": "db", "speed": "slow", "scope": "session", "timeout": 2.5, "version": 3,
            "requires_approval": true, "safety": "external", "retries": 2,
        });
        let tool = filled("category: mine", attributes);
        assert_eq!((tool.category.as_deref(), tool.speed), (Some("mine"), Speed::Slow));
        assert_eq!((tool.scope, tool.safety), (ToolScope::Session, Safety::External));
        assert_eq!(tool.timeout, Some(Duration::from_millis(2500)));
        assert_eq!((tool.version.as_deref(), tool.retries), (Some("3"), 2));
        assert!(tool.requires_approval && tool.warnings.is_empty());
    }

    #[test]
    fn approval_is_never_taken_away() {
        let tool = filled("requires_approval: true", json!({ "requires_approval": false }));
        assert!(tool.requires_approval);
        assert!(filled("x: 1", json!({ "requires_approval": "no" })).requires_approval);
    }

    #[test]
    fn what_cannot_be_used_is_a_warning() {
        for key in [
            "title",
            "category",
            "version",
            "speed",
            "safety",
            "scope",
            "timeout",
            "retries",
            "requires_approval",
            "output_schema",
        ] {
            let tool = filled("x: 1", json!({ key: [] }));
            assert_eq!(tool.warnings.len(), 1, "{key}");
            assert!(tool.warnings[0].contains(&format!("'{key}: []'")), "{:?}", tool.warnings);
        }
        for timeout in [0.0, -1.0, 1e300] {
            assert_eq!(filled("x: 1", json!({ "timeout": timeout })).warnings.len(), 1);
        }
    }
}
