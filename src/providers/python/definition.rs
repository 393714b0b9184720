//! What a worker says of tools, and turning it into their definitions.
//!
//! Keys of the tool's entry take precedence, except that approval can only be added.
//!
//! A class whose methods are tools.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::node::ConfigNode;
use crate::model::{JsonObject, Safety, Speed, ToolDefinition, ToolScope};

/// The most attempts a definition may ask for, as in files.
const MAX_RETRIES: u64 = 100;

/// The answer to `tools/list`.
#[derive(Debug, Deserialize)]
pub(super) struct OfferedTools {
    /// Definitions, typed functions or methods.
    pub(super) tools: Vec<OfferedTool>,
    #[serde(rename = "_meta")]
    pub(super) about: LeftOut,
}

#[derive(Debug, Deserialize)]
pub(super) struct LeftOut {
    /// Public ones that do not become tools, with the reason.
    #[serde(rename = "dev.toolhost/leftOut")]
    pub(super) reasons: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OfferedTool {
    /// The tool's name or the last part of it.
    pub(super) name: String,
    pub(super) description: Option<String>,
    #[serde(rename = "inputSchema")]
    pub(super) input_schema: Value,
    #[serde(rename = "_meta")]
    pub(super) meta: OfferedToolMeta,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OfferedToolMeta {
    #[serde(rename = "dev.toolhost/tool")]
    pub(super) about: AboutTool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AboutTool {
    #[serde(default)]
    pub(super) doubts: Vec<String>,
    pub(super) file: Option<PathBuf>,
    /// What its author says beside name, description and schema. Nothing of it was checked.
    #[serde(flatten, skip_serializing)]
    pub(super) attributes: JsonObject,
}

/// Takes an attribute over; `None` when it cannot be used.
type TakeAttribute = fn(&mut ToolDefinition, &Value) -> Option<()>;

const ATTRIBUTES: [(&str, &str, TakeAttribute); 10] = [
    ("title", "text", |tool, value| text(value).map(|text| tool.title = Some(text))),
    ("category", "text", |tool, value| text(value).map(|text| tool.category = Some(text))),
    ("version", "text", |tool, value| text(value).map(|text| tool.version = Some(text))),
    ("speed", "one of instant, fast, medium, slow", |tool, value| {
        Speed::parse(value.as_str()?).map(|speed| tool.speed = speed)
    }),
    ("safety", "one of native, sandboxed, external", |tool, value| {
        // What a sandbox enforces outweighs a claim.
        if tool.sandbox.is_none() {
            tool.safety = Safety::parse(value.as_str()?)?;
        }
        Some(())
    }),
    ("scope", "global or session", |tool, value| {
        tool.scope = match value.as_str()? {
            "session" => ToolScope::Session,
            "global" => ToolScope::Global,
            _ => return None,
        };
        Some(())
    }),
    ("timeout", "a number of seconds greater than 0", |tool, value| {
        let seconds = value.as_f64().filter(|seconds| *seconds > 0.0)?;
        tool.timeout = Some(Duration::try_from_secs_f64(seconds).ok()?);
        Some(())
    }),
    ("retries", "a number up to 100", |tool, value| {
        let count = value.as_u64().filter(|count| *count <= MAX_RETRIES)?;
        tool.retries = u32::try_from(count).ok()?;
        Some(())
    }),
    (APPROVAL, "true or false", |tool, value| {
        // Where the intent is unclear, the user decides.
        tool.requires_approval |= *value != Value::Bool(false);
        value.as_bool().map(drop)
    }),
    ("output_schema", "a JSON Schema", |tool, value| {
        value.is_object().then(|| {
            tool.output_schema.get_or_insert_with(|| value.clone().into());
        })
    }),
];

const APPROVAL: &str = "requires_approval";

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Fills `definition` with what its author declares, where `entry` does not set it. Unusable values
/// become warnings of the definition.
pub(super) fn fill(definition: &mut ToolDefinition, attributes: &JsonObject, entry: &ConfigNode) {
    for (key, expected, take) in ATTRIBUTES {
        let is_open = entry.get(key).is_none_or(ConfigNode::is_null) || key == APPROVAL;
        let Some(value) = attributes.get(key).filter(|value| is_open && !value.is_null()) else {
            continue;
        };
        if take(definition, value).is_none() {
            let warning = format!("its definition has '{key}: {value}', which is not {expected}");
            definition.warnings.push(warning);
        }
    }
}

/// How long a constructor may take when the entry does not say.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A class whose methods are tools; one instance serves all calls of a worker. Serialized it is the
/// part of a request that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct PythonClass {
    /// Its name in the module; a dotted one leads through another class.
    #[serde(rename = "class")]
    pub(super) name: String,
    pub(super) config: JsonObject,
    pub(super) methods: Option<Vec<String>>,
    /// How long its constructor may take, in seconds.
    #[serde(serialize_with = "seconds")]
    pub(super) start_timeout: Duration,
}

fn seconds<S: serde::Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(value.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;
    use crate::model::{Origin, ToolName, ToolSource};

    fn filled(entry: &str, attributes: &Value) -> ToolDefinition {
        let entry = parse(&SourceText::new("t.yaml", entry), entry).unwrap();
        let name = ToolName::plain("t");
        let mut definition =
            ToolDefinition::new(name, ToolSource::Internal, "python", Origin::Program);
        let text = |key| entry.get(key).and_then(ConfigNode::text);
        definition.category = text("category").map(str::to_owned);
        definition.requires_approval =
            entry.get("requires_approval").is_some_and(|node| node.as_bool().unwrap());
        fill(&mut definition, attributes.as_object().unwrap(), &entry);
        definition
    }

    #[test]
    fn a_definition_says_what_the_entry_leaves_open() {
        let attributes = json!({
            "category": "db", "speed": "slow", "scope": "session", "timeout": 2.5, "version": 3,
            "requires_approval": true, "safety": "external", "retries": 2,
        });
        let tool = filled("category: mine", &attributes);
        assert_eq!((tool.category.as_deref(), tool.speed), (Some("mine"), Speed::Slow));
        assert_eq!((tool.scope, tool.safety), (ToolScope::Session, Safety::External));
        assert_eq!(tool.timeout, Some(Duration::from_millis(2500)));
        assert_eq!((tool.version.as_deref(), tool.retries), (Some("3"), 2));
        assert!(tool.requires_approval && tool.warnings.is_empty());
    }

    #[test]
    fn approval_is_never_taken_away() {
        let tool = filled("requires_approval: true", &json!({ "requires_approval": false }));
        assert!(tool.requires_approval);
        assert!(filled("x: 1", &json!({ "requires_approval": "no" })).requires_approval);
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
            let tool = filled("x: 1", &json!({ key: [] }));
            assert_eq!(tool.warnings.len(), 1, "{key}");
            assert!(tool.warnings[0].contains(&format!("'{key}: []'")), "{:?}", tool.warnings);
        }
        for timeout in [0.0, -1.0, 1e300] {
            assert_eq!(filled("x: 1", &json!({ "timeout": timeout })).warnings.len(), 1);
        }
    }
}
