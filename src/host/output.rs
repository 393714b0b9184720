//! What is made of a result before it is handed out.
//!
//! Owns: the check against the output schema, the fault of a "no" without one.

use super::listings::Tool;
use crate::model::{Fault, Phase, Source, ToolResult};

/// How many problems of a result are listed.
const SHOWN: usize = 20;

/// The longest message that is made from a tool's own words, in characters.
const WORDS: usize = 500;

/// Checks a result against the tool's output schema and completes its fault. The result itself is
/// never changed: a person who debugs a server wants to see what came.
pub(super) async fn examine(tool: &Tool, result: &mut ToolResult, validate: bool) {
    if !result.success {
        if result.fault.is_none() {
            result.fault = Some(about(tool, Fault::tool(words(result))));
        }
        return;
    }
    if !validate || result.fault.is_some() {
        return;
    }
    let Some(checker) = tool.output().await else { return };
    let definition = &tool.definition;
    let Some(structured) = &result.structured else {
        if definition.source == Source::Mcp {
            result.fault = Some(about(
                tool,
                Fault::protocol(format!(
                    "'{}' declares an output schema but gave no structured content",
                    definition.name
                )),
            ));
        }
        return;
    };
    match checker.check(structured).await {
        Ok(problems) if problems.is_empty() => {}
        Ok(problems) => {
            let fault = Fault::protocol(format!(
                "the result of '{}' does not fit its own output schema",
                definition.name
            ))
            .details(problems.iter().take(SHOWN).map(ToString::to_string));
            result.fault = Some(about(tool, fault));
        }
        Err(reason) => result.warnings.push(format!("the result was not checked: {reason}")),
    }
}

fn about(tool: &Tool, fault: Fault) -> Fault {
    let fault = fault.phase(Phase::Call);
    match tool.definition.name.component() {
        Some(server) if tool.definition.source == Source::Mcp => fault.server(server),
        _ => fault,
    }
}

/// The tool's own words for its "no".
fn words(result: &ToolResult) -> String {
    let text = result.output.as_str().map_or_else(|| result.output.to_string(), str::to_owned);
    match text.char_indices().nth(WORDS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None if text.is_empty() => "the tool failed without a word".to_owned(),
        None => text,
    }
}
