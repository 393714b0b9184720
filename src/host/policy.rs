//! Deciding whether a call may run, needs approval, or is denied; the trait for asking a person, and the
//! rules for calls that a model asks for.

use std::borrow::Cow;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ToolHost;
use super::call_record::OpenCall;
use super::request::{CallArguments, CallRequest};
use crate::audit::mask::MASK;
use crate::catalogue::fingerprint;
use crate::config::spec::{PolicyAction, PolicyRule};
use crate::formats::{CallAnswer, ExportedCatalogue, RAW_ARGUMENTS, RequestedCall};
use crate::model::{CallId, Error, JsonObject, ToolDefinition, ToolResult};
use crate::provider::Preview;
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

/// What a person is asked to approve.
#[derive(Debug, Serialize, Deserialize)]
pub struct ApprovalRequest<'a> {
    /// The tool to be called, with known secrets masked.
    pub definition: Cow<'a, ToolDefinition>,
    /// The arguments as they would be sent, with secrets masked.
    pub arguments: Cow<'a, JsonObject>,
    /// Why approval is needed: the rule, the entry's key, the server's hint.
    pub reason: String,
    /// Exactly what would be sent or started, secrets masked; or why that cannot be shown.
    pub preview: Result<Preview, Error>,
    /// Identifies the same call when it is repeated, see [`identity`].
    pub identity: String,
    /// The identity of the call in records, if the caller chose it.
    pub call: Option<CallId>,
}

/// Distinguishes calls: two are the same if the tool, its whole definition and its arguments are
/// the same, including secrets. It is a hash, which reveals none of them.
pub fn identity(tool: &ToolDefinition, arguments: &JsonObject) -> String {
    fingerprint::hash(&json!({
        "tool": tool.name.full(),
        "definition": fingerprint::fingerprint(tool),
        "arguments": arguments,
    }))
}

/// The answer to a request for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// The call may run, this once.
    Granted,
    /// A person refused the call; it ends as denied.
    Refused,
    /// No terminal or console can ask; the call ends as denied, with a hint about `--yes`.
    Unavailable,
}

/// Asks a person about a call on behalf of a front end.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Asks and waits for the answer.
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval;
}

/// The approver of a run without a person: every answer is [`Approval::Unavailable`].
#[derive(Debug, Default, Clone, Copy)]
pub struct NoApprover;

#[async_trait]
impl Approver for NoApprover {
    async fn ask(&self, _request: &ApprovalRequest<'_>) -> Approval {
        Approval::Unavailable
    }
}

impl ToolHost {
    /// Runs a call that a model asks for, under the rules of every call, and gives the answer to
    /// send back. Errors are reported to the model too. `exported` is what the model was given, and
    /// `adjust` says what the call has beside its name and arguments, such as a session.
    pub async fn answer_model(
        &self,
        exported: &ExportedCatalogue,
        call: &RequestedCall,
        adjust: impl FnOnce(&mut CallRequest),
    ) -> CallAnswer {
        let arguments = match &call.arguments {
            Ok(arguments) => arguments.clone(),
            Err(unparsed) => {
                let name = exported.tool(&call.name).map_or(&call.name, |tool| &tool.full_name);
                // The text may hold a secret, and no schema says where.
                let masked = [(RAW_ARGUMENTS.to_owned(), Value::from(MASK))].into_iter().collect();
                let mut request = CallRequest::new(name, CallArguments::Object(masked));
                adjust(&mut request);
                let error = Error::usage(unparsed.to_string());
                OpenCall::new(self, &request, self.new_call_id(), None).fail(&error);
                return CallAnswer::failure(
                    json!({ "error": error.message(), RAW_ARGUMENTS: unparsed.text }).to_string(),
                );
            }
        };
        let (name, arguments) = match exported.tool(&call.name) {
            Some(tool) => (tool.full_name.as_str(), tool.own_arguments(arguments)),
            None => (call.name.as_str(), arguments),
        };
        let mut request = CallRequest::new(name, CallArguments::Object(arguments));
        adjust(&mut request);
        match self.call(request).await.and_then(|outcome| outcome.result) {
            Ok(result) => answer_of(result),
            Err(error) => CallAnswer::failure(error_text(&error)),
        }
    }
}

fn answer_of(result: ToolResult) -> CallAnswer {
    CallAnswer {
        is_error: !result.success || result.error.is_some(),
        content: result.content,
        structured: result.structured,
    }
}

/// An error as a model reads it: what happened, and each detail; the hint, which often names a command
/// for a person, only without them.
fn error_text(error: &Error) -> String {
    let mut lines = vec![error.to_string()];
    match (error.details(), error.hint()) {
        ([], Some(hint)) => lines.push(format!("hint: {hint}")),
        (details, _) => lines.extend(details.iter().cloned()),
    }
    lines.join("\n")
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
