//! The declared tools of a server compared with those it advertises.

use std::collections::HashSet;
use std::sync::Arc;

use crate::catalogue::drift::Drift;
use crate::model::{ToolDefinition, ToolStatus};

#[derive(Debug, Default)]
pub struct ServerToolLists {
    declared: Vec<Arc<ToolDefinition>>,
    /// `None` until it was asked.
    advertised: Option<Vec<Arc<ToolDefinition>>>,
    /// The differences between declaration and advertisement.
    pub drift: Drift,
    /// How many differ from what was declared or pinned.
    pub count: usize,
    /// Whether a person is asked before each call of all its tools.
    pub asks_always: bool,
}

/// One tool in the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriftLine {
    /// A tool that is advertised exactly as declared.
    Unchanged(String),
    /// A tool that is advertised but not declared.
    Extra(String),
    /// A tool that is declared but not advertised.
    Missing(String),
    /// Declared, and different in these parts.
    Changed(String, String),
}

impl ServerToolLists {
    pub(super) fn declare(&mut self, tools: Vec<Arc<ToolDefinition>>) {
        self.declared = tools;
        self.compare();
    }

    /// This is advertised, with what is only declared among it as unavailable.
    pub(super) fn advertise(&mut self, tools: Vec<Arc<ToolDefinition>>) {
        let differs = |tool: &&Arc<ToolDefinition>| {
            matches!(
                tool.status,
                ToolStatus::Drifted | ToolStatus::Changed | ToolStatus::Unavailable
            )
        };
        self.count = tools.iter().filter(differs).count();
        let mut live = tools;
        live.retain(|tool| tool.status != ToolStatus::Unavailable);
        self.asks_always = !live.is_empty() && live.iter().all(|tool| tool.requires_approval);
        self.advertised = Some(live);
        self.compare();
    }

    fn compare(&mut self) {
        let live = self.advertised.as_deref().unwrap_or(&self.declared);
        self.drift = Drift::between(&self.declared, live);
    }

    /// Whether anything is declared, so that there is something to compare.
    pub fn is_declared(&self) -> bool {
        !self.declared.is_empty()
    }

    pub fn has_advertised(&self) -> bool {
        self.advertised.is_some()
    }

    /// Tool by tool: what differs first.
    pub fn lines(&self) -> Vec<DriftLine> {
        let mut lines: Vec<DriftLine> =
            self.drift.missing.iter().cloned().map(DriftLine::Missing).collect();
        let changed = self.drift.changed.iter();
        lines.extend(changed.map(|(name, what)| DriftLine::Changed(name.clone(), what.join(", "))));
        let declared: HashSet<&str> = self.declared.iter().map(|tool| tool.name.tool()).collect();
        let live = self.advertised.as_deref().unwrap_or_default();
        let names = live.iter().map(|tool| tool.name.tool());
        let (known, extra): (Vec<&str>, Vec<&str>) = names.partition(|n| declared.contains(n));
        lines.extend(extra.into_iter().map(|name| DriftLine::Extra(name.to_owned())));
        let changed = |name: &&str| self.drift.changed.iter().any(|(other, _)| other == name);
        let same = known.into_iter().filter(|name| !changed(name));
        lines.extend(same.map(|name| DriftLine::Unchanged(name.to_owned())));
        lines
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tui::state::tests::tool;

    #[test]
    fn every_tool_stands_in_the_comparison_once() {
        let of = |name: &str, described: &str| {
            let mut tool = tool(name, json!({ "type": "object" }));
            tool.description = Some(described.to_owned());
            Arc::new(tool)
        };
        let mut advertised = ServerToolLists::default();
        advertised.declare(vec![of("s-same", "a"), of("s-other", "a"), of("s-gone", "a")]);
        assert!(!advertised.has_advertised() && advertised.drift == Drift::default());
        let mut gone = ToolDefinition::clone(&of("s-gone", "a"));
        gone.status = ToolStatus::Unavailable;
        let mut other = ToolDefinition::clone(&of("s-other", "b"));
        other.status = ToolStatus::Drifted;
        let live = vec![of("s-same", "a"), Arc::new(other), of("s-new", "n"), Arc::new(gone)];
        advertised.advertise(live);
        let expected = [
            DriftLine::Missing("gone".into()),
            DriftLine::Changed("other".into(), "description".into()),
            DriftLine::Extra("new".into()),
            DriftLine::Unchanged("same".into()),
        ];
        assert_eq!(advertised.lines(), expected);
        assert_eq!(advertised.count, 2);
    }
}
