//! The approval question before a call.

use crate::host::policy::ApprovalRequest;
use crate::model::{JsonObject, ToolStatus};
use crate::present::{self, Line, Page, Role};
use crate::util::json;
use crate::util::text::shorten;

/// Maximum characters of a description in the short form: it must not push the request off the screen.
const SHORT: usize = 300;

/// What is asked before a call, and all that would be sent; with `whole` what the tool says of itself,
/// where it is from, and the arguments beside the request that is made of them.
pub fn page(request: &ApprovalRequest<'_>, whole: bool) -> Page {
    let tool = &request.definition;
    let mut page =
        Page::from(Line::plain("Call ").then(Role::Name, tool.name.full()).then(Role::Plain, "?"));
    page.fact(11, "because", Line::plain(&request.reason));
    let is_doubtful =
        matches!(tool.status, ToolStatus::Changed | ToolStatus::Drifted | ToolStatus::Unchecked);
    if let Some(line) = present::tool::status_line(tool).filter(|_| is_doubtful) {
        page.fact(11, "status", line);
    }
    let mut fact = |key: &str, role: Role, text: &str| page.fact(11, key, Line::styled(role, text));
    for warning in &tool.warnings {
        fact("warning", Role::Warning, warning);
    }
    if let Some(description) = &tool.description {
        let text = if whole {
            description.clone()
        } else {
            shorten(&present::first_sentence(description), SHORT).into_owned()
        };
        for (at, line) in text.trim().lines().enumerate() {
            fact(if at == 0 { "says" } else { "" }, Role::Plain, line);
        }
    }
    let claims = present::tool::claims(&tool.annotations).join(", ");
    if !claims.is_empty() {
        fact("claims", Role::Plain, &claims);
    }
    for touch in &tool.touches {
        fact("touches", Role::Plain, touch);
    }
    if !tool.calls.is_empty() {
        fact("calls", Role::Plain, &tool.calls.join(", "));
    }
    if whole {
        fact("from", Role::Plain, &present::tool::origin(&tool.origin));
    }
    match &request.preview {
        Ok(preview) => {
            fact("does", Role::Plain, &preview.summary);
            page.text(Role::Plain, 2, &json::pretty(&preview.request));
        }
        Err(why) => {
            fact("request", Role::Warning, &format!("it cannot be shown: {why}"));
            arguments(&mut page, &request.arguments);
        }
    }
    if whole && request.preview.is_ok() {
        arguments(&mut page, &request.arguments);
    }
    page
}

/// Every argument; every character of what would be sent is shown.
pub fn arguments(page: &mut Page, arguments: &JsonObject) {
    if arguments.is_empty() {
        page.push(Line::styled(Role::Dim, "without arguments").indented(2));
        return;
    }
    page.push(Line::styled(Role::Dim, "arguments").indented(2));
    for (key, value) in arguments {
        page.assignment(4, key, &json::pretty(value));
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use insta::assert_snapshot;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Error, Origin, ToolDefinition, ToolName, ToolSource};
    use crate::present::page::LineRenderer;
    use crate::provider::Preview;

    fn definition() -> ToolDefinition {
        let origin = Origin::Server("files".to_owned());
        let name = ToolName::of("files", "delete");
        let mut definition = ToolDefinition::new(name, ToolSource::Mcp, "mcp", origin);
        definition.description = Some("Deletes a file. There is no way back.".to_owned());
        definition.annotations.destructive = Some(true);
        definition.status = ToolStatus::Drifted;
        definition.touches = vec!["the server 'files'".to_owned()];
        definition
    }

    fn shown(arguments: &Value, preview: Result<Preview, Error>, whole: bool) -> String {
        let definition = definition();
        let request = ApprovalRequest {
            definition: Cow::Borrowed(&definition),
            arguments: Cow::Borrowed(arguments.as_object().unwrap()),
            reason: "the rule '*-delete: ask' at tools.yaml:7".to_owned(),
            preview,
            identity: String::new(),
            call: None,
        };
        LineRenderer::default().page(&page(&request, whole))
    }

    #[test]
    fn the_question_shows_exactly_what_would_be_sent() {
        let arguments = json!({ "path": "/tmp/\u{1b}[8mx" });
        let preview = Preview {
            summary: "sends tools/call to the server 'files'".to_owned(),
            request: json!({ "method": "tools/call", "params": { "arguments": arguments } }),
        };
        assert_snapshot!(shown(&arguments, Ok(preview.clone()), false), @r#"
        Call files-delete?
          because  the rule '*-delete: ask' at tools.yaml:7
          status   drifted: what the server offers differs from the declaration
          says     Deletes a file
          claims   may destroy something
          touches  the server 'files'
          does     sends tools/call to the server 'files'
          {
            "method": "tools/call",
            "params": {
              "arguments": {
                "path": "/tmp/\u001b[8mx"
              }
            }
          }
        "#);
        assert_snapshot!(shown(&arguments, Ok(preview), true), @r#"
        Call files-delete?
          because  the rule '*-delete: ask' at tools.yaml:7
          status   drifted: what the server offers differs from the declaration
          says     Deletes a file. There is no way back.
          claims   may destroy something
          touches  the server 'files'
          from     server 'files'
          does     sends tools/call to the server 'files'
          {
            "method": "tools/call",
            "params": {
              "arguments": {
                "path": "/tmp/\u001b[8mx"
              }
            }
          }
          arguments
            path = "/tmp/\u001b[8mx"
        "#);
    }

    #[test]
    fn a_request_that_cannot_be_shown_says_why_and_shows_the_arguments() {
        let arguments = json!({ "path": "x", "options": { "force": true } });
        assert_snapshot!(shown(&arguments, Err(Error::timeout("too slow")), false), @r#"
        Call files-delete?
          because  the rule '*-delete: ask' at tools.yaml:7
          status   drifted: what the server offers differs from the declaration
          says     Deletes a file
          claims   may destroy something
          touches  the server 'files'
          request  it cannot be shown: too slow
          arguments
            path = "x"
            options = {
              "force": true
            }
        "#);
    }
}
