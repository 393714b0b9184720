//! The content blocks of a result: their kinds, and the bytes that can be saved.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::ToolResult;
use crate::util::{base64, json};

/// One block that contains its own bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentPayload {
    /// The bytes, decoded from base64 where the block has them so.
    pub bytes: Vec<u8>,
    pub media_type: String,
}

/// The value a filter works on: the structured result, text that is JSON as what it says, or the
/// output itself.
pub fn filter_input(result: &ToolResult) -> Value {
    filter_value(result).into_owned()
}

/// The same as [`filter_input`], borrowed where nothing has to be read from a text.
pub fn filter_value(result: &ToolResult) -> Cow<'_, Value> {
    let value = result.structured.as_ref().unwrap_or(&result.output);
    match value {
        Value::String(text) if result.structured.is_none() => {
            serde_json::from_str(text).map_or(Cow::Borrowed(value), Cow::Owned)
        }
        other => Cow::Borrowed(other),
    }
}

/// The blocks that have bytes, in order.
pub fn payloads(result: &ToolResult) -> Result<Vec<ContentPayload>, usize> {
    let mut payloads = Vec::new();
    for (index, block) in result.content.iter().enumerate() {
        let text = |value: &Value| ContentPayload {
            bytes: value.as_str().unwrap_or_default().as_bytes().to_vec(),
            media_type: "text/plain".to_owned(),
        };
        let binary = |holder: &Value, field: &str| -> Result<ContentPayload, usize> {
            let data = holder.get(field).and_then(Value::as_str).unwrap_or_default();
            let bytes = base64::decode(data).ok_or(index + 1)?;
            Ok(ContentPayload { bytes, media_type: media_type(holder) })
        };
        match kind(block) {
            "text" => payloads.push(text(&block["text"])),
            "image" | "audio" => payloads.push(binary(block, "data")?),
            "resource" if block["resource"].get("blob").is_some() => {
                payloads.push(binary(&block["resource"], "blob")?);
            }
            "resource" => payloads.push(text(&block["resource"]["text"])),
            _ => {}
        }
    }
    if payloads.is_empty()
        && let Some(value) = result.structured.as_ref().or_else(|| json_output(&result.output))
    {
        let bytes = json::pretty(value).into_bytes();
        payloads.push(ContentPayload { bytes, media_type: "application/json".to_owned() });
    }
    Ok(payloads)
}

/// The `type` that the block declares.
pub fn kind(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

pub fn media_type(holder: &Value) -> String {
    let claimed = holder.get("mimeType").and_then(Value::as_str);
    claimed.unwrap_or("application/octet-stream").to_owned()
}

pub fn json_output(output: &Value) -> Option<&Value> {
    (!output.is_string() && !output.is_null()).then_some(output)
}

/// Whether the blocks only repeat `filter_input` as text, as MCP asks of servers.
pub fn is_text_copy_of(content: &[Value], value: &Value) -> bool {
    content.iter().all(|block| {
        kind(block) == "text"
            && block["text"]
                .as_str()
                .and_then(|text| serde_json::from_str::<Value>(text).ok())
                .is_some_and(|copy| copy == *value)
    })
}

/// Bytes of a result as JSON, counted without building it.
pub fn size(result: &ToolResult) -> u64 {
    json::size(&(&result.content, &result.structured))
}
