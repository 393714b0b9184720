//! Checking a result against its output schema before it is returned.

use super::listings::ListedTool;
use crate::model::{Error, ErrorPhase, ToolResult, ToolSource};
use crate::util::text::truncate;

const SHOWN: usize = 20;

/// Maximum length of a message made from a tool's own text, in characters.
const WORDS: usize = 500;

/// Checks a result against the tool's output schema and completes its error. The result itself is
/// never changed: a person who debugs a server wants to see what came.
pub(super) async fn check_output(tool: &ListedTool, result: &mut ToolResult, validate: bool) {
    if !result.success {
        if result.error.is_none() {
            result.error = Some(with_context(tool, Error::tool(failure_message(result))));
        }
        return;
    }
    if !validate || result.error.is_some() {
        return;
    }
    let Some(checker) = tool.output_checker().await else { return };
    let definition = &tool.definition;
    let Some(structured) = &result.structured else {
        if definition.source == ToolSource::Mcp {
            result.error = Some(with_context(
                tool,
                Error::protocol(format!(
                    "'{}' declares an output schema but returned no structured content",
                    definition.name
                )),
            ));
        }
        return;
    };
    match checker.check(structured).await {
        Ok(problems) if problems.is_empty() => {}
        Ok(problems) => {
            let error = Error::protocol(format!(
                "the result of '{}' does not match its own output schema",
                definition.name
            ))
            .with_details(problems.iter().take(SHOWN).map(ToString::to_string));
            result.error = Some(with_context(tool, error));
        }
        Err(reason) => result.warnings.push(format!("the result was not checked: {reason}")),
    }
}

fn with_context(tool: &ListedTool, error: Error) -> Error {
    let error = error.with_phase(ErrorPhase::Call);
    match tool.definition.server() {
        Some(server) => error.with_server(server),
        None => error,
    }
}

fn failure_message(result: &ToolResult) -> String {
    let text = result.output.as_str().map_or_else(|| result.output.to_string(), str::to_owned);
    if text.is_empty() {
        return "the tool failed without an error message".to_owned();
    }
    truncate(&text, WORDS)
}
