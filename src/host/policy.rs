//! Deciding whether a call may run, needs approval, or is denied.

use serde::{Deserialize, Serialize};

use crate::config::spec::{PolicyAction, PolicyRule};
use crate::model::ToolDefinition;
use crate::util::pattern;

/// The decision and its reason, as in the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// The call runs without asking; contains the rule or hint that allows it.
    Allow(String),
    /// A person has to approve the call, for this reason.
    Ask(String),
    /// The call is refused by this rule.
    Deny(String),
}

/// Decides about a tool. The first rule about its entry that matches its full name wins.
///
/// A person is asked if the rule says so, if the entry requires approval, or if the tool itself
/// says it destroys something. An `allow` rule does not override these reasons; it only stops later
/// rules from applying.
pub fn decide(rules: &[PolicyRule], tool: &ToolDefinition) -> Decision {
    let name = tool.name.full();
    let rule =
        rules.iter().find(|rule| applies_to(rule, tool) && pattern::matches(&rule.pattern, &name));
    if let Some(rule) = rule
        && rule.action == PolicyAction::Deny
    {
        return Decision::Deny(describe_rule(rule));
    }
    if tool.requires_approval {
        return Decision::Ask("its entry requires approval".into());
    }
    if let Some(rule) = rule
        && rule.action == PolicyAction::Ask
    {
        return Decision::Ask(describe_rule(rule));
    }
    if tool.annotations.destructive == Some(true) {
        return Decision::Ask("the tool says that it may destroy something".into());
    }
    Decision::Allow(match rule {
        Some(rule) => format!("allowed: {}", describe_rule(rule)),
        None => "allowed".into(),
    })
}

/// Whether a rule applies to the entry that a tool comes from. A project may use any name, so the
/// user's `allow` rules apply only to the user's own entries; their `ask` and `deny` rules apply to
/// all entries.
fn applies_to(rule: &PolicyRule, tool: &ToolDefinition) -> bool {
    let project = tool.entry.as_ref().and_then(|entry| entry.project());
    match &rule.project {
        Some(required) => project == Some(required),
        None => project.is_none() || rule.action != PolicyAction::Allow,
    }
}

fn describe_rule(rule: &PolicyRule) -> String {
    let action = match rule.action {
        PolicyAction::Allow => "allow",
        PolicyAction::Ask => "ask",
        PolicyAction::Deny => "deny",
    };
    let place = &rule.location;
    format!("the rule '{}: {action}' at {}:{}", rule.pattern, place.file.display(), place.line)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{EntryOrigin, Layer, Origin, SourceLocation, ToolName, ToolSource};

    fn rule(pattern: &str, action: PolicyAction) -> PolicyRule {
        let place = SourceLocation {
            file: Arc::new("tools.yaml".into()),
            line: 7,
            column: 1,
            text: Arc::from(""),
        };
        PolicyRule { pattern: pattern.into(), action, project: None, location: place }
    }

    fn tool(change: impl FnOnce(&mut ToolDefinition)) -> ToolDefinition {
        let mut tool = ToolDefinition::new(
            ToolName::of("notes", "delete"),
            ToolSource::Internal,
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
    fn a_refusal_beats_every_reason_to_ask() {
        let deny = [rule("*", PolicyAction::Deny)];
        for tool in
            [tool(|t| t.requires_approval = true), tool(|t| t.annotations.destructive = Some(true))]
        {
            assert!(matches!(decide(&deny, &tool), Decision::Deny(_)));
        }
    }

    fn of_project(directory: &str) -> ToolDefinition {
        tool(|t| t.entry = Some(EntryOrigin::of(Layer::Project, directory)))
    }

    #[test]
    fn what_the_user_allows_by_a_name_is_not_allowed_to_a_project_that_took_it() {
        let rules = [rule("notes-*", PolicyAction::Allow), rule("*", PolicyAction::Ask)];
        for layer in [Layer::User, Layer::Flag, Layer::Variable, Layer::Embedded] {
            let own = tool(|t| t.entry = Some(EntryOrigin::of(layer, "/p")));
            assert!(matches!(decide(&rules, &own), Decision::Allow(_)), "{layer:?}");
        }
        assert!(matches!(decide(&rules, &of_project("/p")), Decision::Ask(_)));
        // A refusal holds for the tool of every server that offers it.
        let deny = [rule("notes-*", PolicyAction::Deny)];
        assert!(matches!(decide(&deny, &of_project("/p")), Decision::Deny(_)));
    }

    #[test]
    fn a_rule_may_be_about_one_project() {
        let about = |action| PolicyRule { project: Some("/p".into()), ..rule("*", action) };
        let allow = [about(PolicyAction::Allow), rule("*", PolicyAction::Ask)];
        assert!(matches!(decide(&allow, &of_project("/p")), Decision::Allow(_)));
        for other in [of_project("/q"), of_project("/p/q"), tool(|_| ())] {
            assert!(matches!(decide(&allow, &other), Decision::Ask(_)));
        }
        let deny = [about(PolicyAction::Deny)];
        assert!(matches!(decide(&deny, &of_project("/p")), Decision::Deny(_)));
        assert!(matches!(decide(&deny, &of_project("/q")), Decision::Allow(_)));
    }

    #[test]
    fn silence_about_destruction_is_no_reason_to_ask() {
        assert!(matches!(
            decide(&[], &tool(|t| t.annotations.destructive = None)),
            Decision::Allow(_)
        ));
    }
}
