//! Whether a call may run, must be asked about, or is refused.
//!
//! Owns: the decision, as a pure function. Never does: ask anybody.

use crate::config::spec::{PolicyAction, PolicyRule};
use crate::model::ToolDefinition;
use crate::util::pattern;

/// What was decided and why, in the words of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may run.
    Allow(String),
    /// A person decides.
    Ask(String),
    /// It may not run.
    Deny(String),
}

/// Decides about a tool. Of the rules the first that matches its full name counts.
///
/// A person is asked when the rule says so, when the entry requires approval, or when the tool
/// itself says that it destroys something. Nothing here takes such a reason away again: a rule
/// that allows only keeps later rules from counting.
pub fn decide(rules: &[PolicyRule], tool: &ToolDefinition) -> Decision {
    let name = tool.name.full();
    let rule = rules.iter().find(|rule| pattern::matches(&rule.pattern, &name));
    if let Some(rule) = rule
        && rule.action == PolicyAction::Deny
    {
        return Decision::Deny(said_by(rule));
    }
    if tool.requires_approval {
        return Decision::Ask("its entry requires approval".into());
    }
    if let Some(rule) = rule
        && rule.action == PolicyAction::Ask
    {
        return Decision::Ask(said_by(rule));
    }
    if tool.annotations.destructive == Some(true) {
        return Decision::Ask("the tool says that it may destroy something".into());
    }
    Decision::Allow(match rule {
        Some(rule) => format!("allowed: {}", said_by(rule)),
        None => "allowed".into(),
    })
}

fn said_by(rule: &PolicyRule) -> String {
    let action = match rule.action {
        PolicyAction::Allow => "allow",
        PolicyAction::Ask => "ask",
        PolicyAction::Deny => "deny",
    };
    let place = &rule.place;
    format!("the rule '{}: {action}' at {}:{}", rule.pattern, place.file.display(), place.line)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Origin, Place, Source, ToolName};

    fn rule(pattern: &str, action: PolicyAction) -> PolicyRule {
        let place =
            Place { file: Arc::new("tools.yaml".into()), line: 7, column: 1, text: Arc::from("") };
        PolicyRule { pattern: pattern.into(), action, place }
    }

    fn tool(change: impl FnOnce(&mut ToolDefinition)) -> ToolDefinition {
        let mut tool = ToolDefinition::new(
            ToolName::of("notes", "delete"),
            Source::Internal,
            "storage",
            Origin::Server(String::new()),
        );
        change(&mut tool);
        tool
    }

    #[test]
    fn the_first_rule_that_matches_counts() {
        let rules = [rule("notes-*", PolicyAction::Allow), rule("*-delete", PolicyAction::Deny)];
        assert!(matches!(decide(&rules, &tool(|_| ())), Decision::Allow(_)));
        assert_eq!(
            decide(&rules[1..], &tool(|_| ())),
            Decision::Deny("the rule '*-delete: deny' at tools.yaml:7".into())
        );
        assert_eq!(decide(&[], &tool(|_| ())), Decision::Allow("allowed".into()));
    }

    #[test]
    fn any_reason_to_ask_is_enough_and_none_is_taken_away() {
        let allow = [rule("*", PolicyAction::Allow)];
        let ask = [rule("*", PolicyAction::Ask)];
        assert!(matches!(decide(&ask, &tool(|_| ())), Decision::Ask(_)));
        assert!(matches!(decide(&allow, &tool(|t| t.requires_approval = true)), Decision::Ask(_)));
        let destructive = tool(|t| t.annotations.destructive = Some(true));
        assert!(matches!(decide(&allow, &destructive), Decision::Ask(_)));
        let harmless = tool(|t| {
            t.annotations.read_only = Some(true);
            t.requires_approval = true;
        });
        assert!(matches!(decide(&allow, &harmless), Decision::Ask(_)));
    }

    #[test]
    fn silence_about_destruction_is_no_reason_to_ask() {
        assert!(matches!(
            decide(&[], &tool(|t| t.annotations.destructive = None)),
            Decision::Allow(_)
        ));
    }
}
