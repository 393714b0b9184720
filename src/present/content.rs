//! The content blocks of a result, as text for people.

use serde_json::Value;

pub use crate::host::content::{ContentPayload, filter_input, payloads};
use crate::host::content::{is_text_copy_of, json_output, kind, media_type};
use crate::model::{Error, ErrorKind, ToolResult};
use crate::present::{Line, Page, Role, markdown};
use crate::util::{base64, json, units};

/// The result for people; with `verbose` also the annotations of each block.
pub fn page(result: &ToolResult, verbose: bool) -> Page {
    let mut page = Page::default();
    let structured = result.structured.as_ref().or_else(|| json_output(&result.output));
    if let Some(value) = structured.filter(|value| is_text_copy_of(&result.content, value)) {
        page.text(Role::Plain, 0, &json::pretty(value));
        return page;
    }
    for block in &result.content {
        page.append(self::block(block, "use --save", TextLook::AsSent));
        if verbose && let Some(line) = annotations(block) {
            page.push(line);
        }
    }
    // The cause of a problem is often in the half that is not shown otherwise.
    if let (Some(ErrorKind::Protocol), Some(value)) =
        (result.error.as_ref().map(Error::kind), structured)
        && !page.is_empty()
    {
        page.push(Line::styled(Role::Dim, "structuredContent:"));
        page.text(Role::Plain, 2, &json::pretty(value));
    }
    if page.is_empty() {
        match structured {
            Some(value) => page.text(Role::Plain, 0, &json::pretty(value)),
            None => match &result.output {
                Value::Null => {}
                Value::String(text) => show_text(&mut page, text),
                other => page.text(Role::Plain, 0, &json::pretty(other)),
            },
        }
    }
    page
}

/// How Markdown is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextLook {
    AsSent,
    LaidOut,
}

impl TextLook {
    /// How blocks are shown together: those that are long are not laid out.
    pub fn of<'a>(blocks: impl IntoIterator<Item = &'a Value>) -> Self {
        let texts = |block: &'a Value| [&block["text"], &block["resource"]["text"]];
        let all = blocks.into_iter().flat_map(texts).filter_map(Value::as_str);
        let is_long = all.map(str::len).sum::<usize>() > markdown::LONGEST;
        if is_long { Self::AsSent } else { Self::LaidOut }
    }
}

/// One content block; `save` says how to get what is not text.
pub fn block(block: &Value, save: &str, look: TextLook) -> Page {
    let mut page = Page::default();
    let note = |text: String| Line::styled(Role::Dim, text);
    let show_text = |page: &mut Page, text: &str, kind: &Value| {
        let is_markdown = kind.as_str().is_some_and(|kind| kind.starts_with("text/markdown"));
        let lays_out = look == TextLook::LaidOut;
        match lays_out.then(|| markdown::page(text, is_markdown)).flatten() {
            Some(laid_out) => page.append(laid_out),
            None => show_text(page, text),
        }
    };
    match kind(block) {
        "text" => {
            let text = block["text"].as_str().unwrap_or_default();
            show_text(&mut page, text, &block["mimeType"]);
        }
        "image" | "audio" => {
            let size = base64::decoded_len(block["data"].as_str().unwrap_or_default());
            page.push(note(format!("[{} {}, {save}]", media_type(block), units::show_size(size))));
        }
        "resource" => {
            let resource = &block["resource"];
            let uri = resource["uri"].as_str().unwrap_or_default();
            if let Some(text) = resource["text"].as_str() {
                page.push(note(format!("[resource {uri}]")));
                show_text(&mut page, text, &resource["mimeType"]);
            } else {
                let size = base64::decoded_len(resource["blob"].as_str().unwrap_or_default());
                page.push(note(format!(
                    "[resource {uri}: {} {}, {save}]",
                    media_type(resource),
                    units::show_size(size)
                )));
            }
        }
        "resource_link" => {
            let name = block["title"].as_str().or_else(|| block["name"].as_str());
            let uri = block["uri"].as_str().unwrap_or_default();
            let mut line = note("[link] ".to_owned());
            if let Some(name) = name {
                line.push(Role::Plain, name);
                line.push(Role::Plain, " ");
            }
            line.push(Role::Dim, uri);
            let size = block["size"].as_u64().map(units::show_size);
            let about: Vec<&str> =
                block["mimeType"].as_str().into_iter().chain(size.as_deref()).collect();
            if !about.is_empty() {
                line.push(Role::Dim, format!(" ({})", about.join(", ")));
            }
            page.push(line);
            if let Some(description) = block["description"].as_str() {
                page.text(Role::Dim, 2, description);
            }
        }
        _ => {
            page.push(note("[unknown content]".to_owned()));
            page.text(Role::Plain, 0, &json::pretty(block));
        }
    }
    page
}

fn annotations(block: &Value) -> Option<Line> {
    let annotations = block.get("annotations")?;
    let mut parts = Vec::new();
    if let Some(audience) = annotations.get("audience").and_then(Value::as_array) {
        let roles: Vec<&str> = audience.iter().filter_map(Value::as_str).take(4).collect();
        parts.push(format!("for {}", roles.join(" and ")));
    }
    if let Some(Value::Number(priority)) = annotations.get("priority") {
        parts.push(format!("priority {priority}"));
    }
    if let Some(changed) = annotations.get("lastModified").and_then(Value::as_str) {
        parts.push(format!("changed {changed}"));
    }
    (!parts.is_empty()).then(|| Line::styled(Role::Dim, format!("  ({})", parts.join(", "))))
}

fn show_text(page: &mut Page, text: &str) {
    page.text(Role::Plain, 0, text.strip_suffix('\n').unwrap_or(text));
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::present::page::LineRenderer;

    fn shown(result: &ToolResult) -> String {
        LineRenderer::default().page(&page(result, false))
    }

    #[test]
    fn annotations_are_shown_to_those_who_want_more() {
        let annotations = json!({ "audience": ["user", "assistant"], "priority": 0.9 });
        let block = json!({ "type": "text", "text": "hi", "annotations": annotations });
        let result = with(vec![block]);
        assert_eq!(shown(&result), "hi\n");
        let more = LineRenderer::default().page(&page(&result, true));
        assert_eq!(more, "hi\n  (for user and assistant, priority 0.9)\n");
    }

    fn with(content: Vec<Value>) -> ToolResult {
        ToolResult { success: true, content, ..ToolResult::default() }
    }

    #[test]
    fn text_is_shown_and_made_safe() {
        assert_eq!(shown(&ToolResult::text("a\n\tb\x1b]0;x\x07")), "a\n\tb␛]0;x\\x07\n");
        assert_eq!(shown(&ToolResult::text("line\n")), "line\n");
    }

    #[test]
    fn every_kind_of_block_has_a_form() {
        let result = with(vec![
            json!({ "type": "text", "text": "see:" }),
            json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(4096) }),
            json!({ "type": "audio", "mimeType": "audio/wav\u{1b}[2J", "data": "" }),
            json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } }),
            json!({ "type": "resource", "resource": { "uri": "file:///b", "blob": "AAAA" } }),
            json!({ "type": "resource_link", "uri": "http://169.254.169.254/", "name": "evil" }),
            json!({ "type": "hologram", "x": 1 }),
        ]);
        assert_snapshot!(shown(&result), @r#"
        see:
        [image/png 3.0 KiB, use --save]
        [audio/wav␛[2J 0 B, use --save]
        [resource file:///a]
        inside
        [resource file:///b: application/octet-stream 3 B, use --save]
        [link] evil http://169.254.169.254/
        [unknown content]
        {
          "type": "hologram",
          "x": 1
        }
        "#);
    }

    #[test]
    fn structured_results_are_shown_once() {
        let value = json!({ "a": 1, "b": [true] });
        assert_eq!(shown(&ToolResult::json(value.clone())), json::pretty(&value) + "\n");
        let both = ToolResult {
            structured: Some(value),
            content: vec![json!({ "type": "text", "text": "one apple" })],
            ..ToolResult::default()
        };
        assert_eq!(shown(&both), "one apple\n");
    }

    #[test]
    fn lists_and_numbers_of_internal_tools_are_readable() {
        assert_eq!(shown(&ToolResult::json(json!(42))), "42\n");
        assert_eq!(shown(&ToolResult::json(json!([1]))), "[\n  1\n]\n");
        assert_eq!(shown(&ToolResult::default()), "");
    }

    #[test]
    fn a_filter_sees_the_structure_behind_text() {
        assert_eq!(filter_input(&ToolResult::text("{\"a\":1}")), json!({ "a": 1 }));
        assert_eq!(filter_input(&ToolResult::text("plain")), json!("plain"));
    }

    #[test]
    fn payloads_are_decoded_and_links_have_none() {
        let result = with(vec![
            json!({ "type": "text", "text": "t" }),
            json!({ "type": "image", "mimeType": "image/png", "data": "Zm9v" }),
            json!({ "type": "resource_link", "uri": "file:///etc/passwd", "name": "x" }),
        ]);
        let payloads = payloads(&result).unwrap();
        assert_eq!(payloads.len(), 2);
        assert_eq!(payloads[1].bytes, b"foo");
        assert_eq!(payloads[1].media_type, "image/png");
    }

    #[test]
    fn broken_binary_data_is_named_by_its_block() {
        let result = with(vec![json!({ "type": "image", "data": "!!" })]);
        assert_eq!(payloads(&result), Err(1));
    }
}
