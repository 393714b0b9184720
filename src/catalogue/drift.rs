//! Drift: `provides_tools` of an entry against the tools the server advertises.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::changes;
use super::fingerprint::content;
use crate::model::{Diagnostic, Error, ToolDefinition, ToolStatus};

/// How the live tools of a server differ from the declared ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Drift {
    /// Declared, but the server does not offer them.
    pub missing: Vec<String>,
    /// Both, with what differs (`description`, `inputSchema`, …).
    pub changed: Vec<(String, Vec<&'static str>)>,
}

impl Drift {
    pub fn between<T: Borrow<ToolDefinition>>(declared: &[T], live: &[T]) -> Self {
        let by_name: HashMap<&str, &ToolDefinition> =
            live.iter().map(|tool| (tool.borrow().name.tool(), tool.borrow())).collect();
        let mut drift = Self::default();
        for tool in declared {
            let tool: &ToolDefinition = tool.borrow();
            let name = tool.name.tool();
            match by_name.get(name) {
                None => drift.missing.push(name.to_owned()),
                Some(live) => {
                    let what = differences(tool, live);
                    if !what.is_empty() {
                        drift.changed.push((name.to_owned(), what));
                    }
                }
            }
        }
        drift
    }
}

/// Marks the live tools of `with_server` that differ from what is declared, and keeps declared tools
/// that are not offered as unavailable. Returns the findings.
///
/// A server without declarations cannot drift. When the live list is known to be `partial`, a
/// tool that is not on it may still exist, so nothing is called missing.
pub fn apply(
    server: &str,
    declared: &[Arc<ToolDefinition>],
    live: &mut Vec<Arc<ToolDefinition>>,
    partial: bool,
) -> Vec<Diagnostic> {
    if declared.is_empty() {
        return Vec::new();
    }
    let mut drift = Drift::between(declared, live);
    if partial {
        drift.missing.clear();
    }
    let mut diagnostics = Vec::new();
    for (tool, line) in live.iter_mut().filter_map(|tool| {
        let line = describe_tool(&drift, tool.name.tool())?;
        Some((tool, line))
    }) {
        let tool = Arc::make_mut(tool);
        tool.status = ToolStatus::Drifted;
        diagnostics.push(Diagnostic::warning(line.clone()).with_entry(server));
        tool.warnings.push(line);
    }
    for tool in declared.iter().filter(|t| drift.missing.iter().any(|m| m == t.name.tool())) {
        let line = format!("the server does not offer '{}', which is declared", tool.name.tool());
        diagnostics.push(Diagnostic::warning(line.clone()).with_entry(server));
        let mut missing = ToolDefinition::clone(tool);
        missing.status = ToolStatus::Unavailable;
        missing.unavailable_reason = Some(
            Error::usage(line)
                .with_server(server)
                .with_hint(format!("`toolhost list --server {server}` shows what it offers")),
        );
        live.push(Arc::new(missing));
    }
    diagnostics
}

fn describe_tool(drift: &Drift, tool: &str) -> Option<String> {
    let (_, what) = drift.changed.iter().find(|(name, _)| name == tool)?;
    Some(format!("'{tool}' differs from its declaration in {}", what.join(", ")))
}

fn differences(declared: &ToolDefinition, live: &ToolDefinition) -> Vec<&'static str> {
    let mut stated = content(declared);
    if let Value::Object(parts) = &mut stated {
        parts.shift_remove("annotations");
        // The default of a definition; a declaration that says no more states nothing.
        parts.retain(|part, value| part != "inputSchema" || *value != json!({ "type": "object" }));
    }
    let changes = changes::between(&stated, &content(live)).into_iter();
    changes.filter(|change| change.before.is_some()).map(|change| change.part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Origin, ToolName, ToolSource};

    fn tool(
        name: &str,
        description: Option<&str>,
        schema: serde_json::Value,
    ) -> Arc<ToolDefinition> {
        let mut tool = ToolDefinition::new(
            ToolName::of("s", name),
            ToolSource::Mcp,
            "mcp",
            Origin::Server("s".into()),
        );
        tool.description = description.map(str::to_owned);
        tool.input_schema = schema.into();
        Arc::new(tool)
    }

    #[test]
    fn only_what_is_stated_is_compared() {
        let declared = [tool("a", None, json!({"type": "object"}))];
        let mut live = vec![tool("a", Some("anything"), json!({"type": "object", "x": 1}))];
        assert!(apply("s", &declared, &mut live, false).is_empty());
        assert_eq!(live[0].status, ToolStatus::Live);
    }

    #[test]
    fn the_order_of_keys_is_no_difference() {
        let declared = [tool("a", None, json!({"type": "object", "x": 1}))];
        let live = [tool("a", None, json!({"x": 1, "type": "object"}))];
        assert_eq!(Drift::between(&declared, &live), Drift::default());
    }

    #[test]
    fn missing_and_changed_are_told_apart_and_extras_are_nobodys_drift() {
        let declared = [
            tool("gone", None, json!({"type": "object"})),
            tool("other", Some("does this"), json!({"type": "object", "x": 1})),
        ];
        let mut live = vec![
            tool("other", Some("does that"), json!({"type": "object", "x": 2})),
            tool("new", None, json!({"type": "object"})),
        ];
        let drift = Drift::between(&declared, &live);
        assert_eq!(drift.missing, ["gone"]);
        assert_eq!(drift.changed, [("other".to_owned(), vec!["description", "inputSchema"])]);
        let diagnostics = apply("s", &declared, &mut live, false);
        assert_eq!(diagnostics.len(), 2);
        let status: Vec<_> = live.iter().map(|t| (t.name.tool(), t.status)).collect();
        assert_eq!(
            status,
            [
                ("other", ToolStatus::Drifted),
                ("new", ToolStatus::Live),
                ("gone", ToolStatus::Unavailable)
            ]
        );
        assert!(live[2].unavailable_reason.is_some());
    }

    #[test]
    fn a_partial_list_proves_nothing_missing() {
        let declared = [tool("gone", None, json!({"type": "object"}))];
        let mut live = Vec::new();
        assert!(apply("s", &declared, &mut live, true).is_empty());
        assert!(live.is_empty());
    }
}
