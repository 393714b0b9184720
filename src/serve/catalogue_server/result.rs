//! The outcome of a call, in the shape of `tools/call`.
//!
//! A failure of the tool, of its server or of toolhost's own checks is a result with `isError`, so
//! that the model reads why; only a name that is not offered is an error of the protocol.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde::Deserialize as _;
use serde_json::Value;

use crate::model::{Error, ToolResult};

pub(super) fn of_result(result: ToolResult) -> CallToolResult {
    let mut content: Vec<ContentBlock> = result.content.iter().map(block).collect();
    // When a failed tool returned no content, its error is the content.
    if let Some(error) = result.error.as_ref().filter(|_| content.is_empty()) {
        content.push(ContentBlock::text(error_text(error)));
    }
    let mut sent = CallToolResult::success(content);
    sent.structured_content = result.structured;
    sent.is_error = (!result.success || result.error.is_some()).then_some(true);
    sent.meta = result.meta.and_then(meta);
    sent
}

pub(super) fn meta(meta: Value) -> Option<MetaObject> {
    match meta {
        Value::Object(entries) => Some(MetaObject(entries)),
        _ => None,
    }
}

pub(super) fn of_error(error: &Error) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error_text(error))])
}

/// The message, the details and what to do, unless that is something to type into a shell, which a
/// client does not have.
pub(super) fn error_text(error: &Error) -> String {
    let mut text = error.to_string();
    for detail in error.details() {
        text.push('\n');
        text.push_str(detail);
    }
    let is_for_a_shell = |hint: &&str| hint.contains("--") || hint.contains("toolhost ");
    if let Some(hint) = error.hint().filter(|hint| !is_for_a_shell(hint)) {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    text
}

/// A block of a kind that the SDK does not know is sent as its JSON.
fn block(block: &Value) -> ContentBlock {
    ContentBlock::deserialize(block).unwrap_or_else(|_| ContentBlock::text(block.to_string()))
}
