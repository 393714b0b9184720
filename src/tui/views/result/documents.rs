//! Results, failures and dry runs as text documents.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::host::content::{is_text_copy_of, json_output, kind, media_type, size};
use crate::host::policy::Decision;
use crate::host::request::{CallOutcome, DryRun};
use crate::model::{Error, ErrorKind, ToolResult};
use crate::tui::theme::StyleRole;
use crate::tui::views::result::presentation::CallResult;
use crate::tui::widgets::json_lines;
use crate::tui::widgets::picture::{Picture, PictureBox};
use crate::tui::widgets::scroll_text::{ScrollText, TextLimits};
use crate::util::diff::DiffMark;
use crate::util::units::{show_duration, show_size};
use crate::util::{base64, diff, json as json_text};

const LIMITS: TextLimits = TextLimits {
    lines: 100_000,
    bytes: usize::MAX,
    notice: "The rest is not shown; E saves all of it.",
};

/// The maximum number of pictures decoded per result; for others only the size is shown.
const MAX_PICTURES: u8 = 8;

/// Everything about a finished call, with what was reported while it ran.
pub fn text(
    outcome: &CallResult,
    activity: ScrollText,
    pictures: Option<PictureBox>,
) -> ScrollText {
    let mut page = ScrollText::with_limits(LIMITS);
    match outcome {
        Ok(outcome) => ended(&mut page, outcome, pictures),
        Err(error) => failed(&mut page, error),
    }
    if !activity.is_empty() {
        page.gap();
        page.append(activity);
    }
    if let Ok(outcome) = outcome {
        account(&mut page, outcome);
    }
    page
}

fn ended(page: &mut ScrollText, outcome: &CallOutcome, pictures: Option<PictureBox>) {
    if let Some(error) = outcome.error() {
        failed(page, error);
    }
    let Ok(result) = &outcome.result else { return };
    for warning in &result.warnings {
        page.line(StyleRole::Warning, format!("! {warning}"));
    }
    // A large text beside structured content is taken for the copy that MCP asks for: to read it
    // would hold up the screen. The raw format shows both.
    let is_large = result
        .content
        .iter()
        .any(|block| block["text"].as_str().is_some_and(|text| text.len() > json_lines::LONGEST));
    // The output of a server's tool without structured content is made of its blocks.
    let output = json_output(&result.output)
        .filter(|value| !is_large && is_text_copy_of(&result.content, value));
    let structured = result.structured.as_ref().or(output);
    let repeats =
        structured.is_some_and(|value| is_large || is_text_copy_of(&result.content, value));
    if !repeats {
        let mut shown = 0;
        for content in &result.content {
            match pictures.filter(|_| kind(content) == "image" && shown < MAX_PICTURES) {
                Some(within) => {
                    picture(page, content, within);
                    shown += 1;
                }
                None => block(page, content),
            }
        }
        if let (Value::String(text), true) = (&result.output, result.content.is_empty()) {
            page.text(StyleRole::Plain, text);
        }
    }
    if let Some(value) = structured {
        if !page.is_empty() {
            page.gap();
            page.line(StyleRole::Title, "structured content");
        }
        json_lines::push(page, value);
    }
    if page.is_empty() {
        page.line(StyleRole::Dim, "empty result");
    }
}

/// The outcome of checking a result against its tool's output schema, in two words; `None`
/// when there is no schema or no result.
pub fn schema_verdict(outcome: &CallOutcome) -> Option<&'static str> {
    outcome.definition.output_schema.as_ref()?;
    let result = outcome.result.as_ref().ok()?;
    match &result.error {
        Some(error) if error.kind() == ErrorKind::Protocol => Some("schema mismatch"),
        Some(_) => None,
        None if !result.success => None,
        None if result.structured.is_some() => Some("schema ok"),
        None => Some("schema unchecked"),
    }
}

/// A picture below its size, or why it is not shown.
fn picture(page: &mut ScrollText, block: &Value, within: PictureBox) {
    let data = block["data"].as_str().unwrap_or_default();
    let kind = media_type(block);
    let bytes = show_size(base64::decoded_len(data));
    match Picture::of(data, within) {
        Ok(picture) => {
            let pixels = format!("{}x{}", picture.width, picture.height);
            page.line(StyleRole::Dim, format!("[image {kind} {pixels} {bytes}, E saves it]"));
            page.picture(&Arc::new(picture));
        }
        Err(error) => {
            let text = format!("[image {kind} {bytes}, not shown: {error}; E saves it]");
            page.line(StyleRole::Dim, text);
        }
    }
}

/// One content block; a description for what cannot be shown.
fn block(page: &mut ScrollText, block: &Value) {
    let of = |holder: &Value, field: &str| {
        let size = base64::decoded_len(holder[field].as_str().unwrap_or_default());
        format!("{} {}, E saves it", media_type(holder), show_size(size))
    };
    match kind(block) {
        "text" => {
            let text = block["text"].as_str().unwrap_or_default();
            match json_lines::parse(text) {
                Some(value) => json_lines::push(page, &value),
                None => page.text(StyleRole::Plain, text),
            }
        }
        word @ ("image" | "audio") => {
            page.line(StyleRole::Dim, format!("[{word} {}]", of(block, "data")));
        }
        "resource" => {
            let resource = &block["resource"];
            let uri = resource["uri"].as_str().unwrap_or_default();
            if let Some(text) = resource["text"].as_str() {
                page.line(StyleRole::Dim, format!("[resource {uri}]"));
                page.text(StyleRole::Plain, text);
            } else {
                let said = format!("[resource {uri}: {}]", of(resource, "blob"));
                page.line(StyleRole::Dim, said);
            }
        }
        "resource_link" => {
            let name = block["title"].as_str().or_else(|| block["name"].as_str());
            let uri = block["uri"].as_str().unwrap_or_default();
            let said = format!("[link] {} {uri}", name.unwrap_or_default());
            page.line(StyleRole::Dim, said);
        }
        _ => {
            page.line(StyleRole::Dim, "[unknown content]");
            page.text(StyleRole::Plain, &json_text::pretty(block));
        }
    }
}

fn failed(page: &mut ScrollText, error: &Error) {
    let kind = error.kind().as_str();
    page.text(StyleRole::Error, &format!("{kind}: {}", error.message()));
    for text in error.details() {
        page.text(StyleRole::Plain, text);
    }
    if let Some(hint) = error.hint() {
        page.text(StyleRole::Dim, &format!("hint: {hint}"));
    }
}

fn account(page: &mut ScrollText, outcome: &CallOutcome) {
    let metadata = &outcome.metadata;
    page.gap();
    page.fact("call", &metadata.call_id.0);
    let mut took = format!("took {}", show_duration(metadata.duration));
    if let Some(connect) = metadata.connect {
        took = format!("{took}, connecting {}", show_duration(connect));
    }
    if !metadata.person_wait.is_zero() {
        took = format!("{took}, waiting for a person {}", show_duration(metadata.person_wait));
    }
    page.fact("time", took);
    page.fact("attempts", metadata.attempts.to_string());
    if let Ok(result) = &outcome.result {
        page.fact("size", show_size(size(result)));
    }
    if let Some(protocol) = &metadata.protocol {
        page.fact("protocol", protocol);
    }
    if let Some(routing) = &metadata.routing {
        let others = match routing.others.as_slice() {
            [] => String::new(),
            others => format!(", before {}", others.join(", ")),
        };
        page.fact("server", format!("{}{others}", routing.server));
        for skipped in &routing.skipped {
            page.fact("skipped", format!("{}: {}", skipped.server, skipped.reason));
        }
    }
}

pub fn whole(result: &ToolResult) -> Value {
    let mut all = json!({ "content": result.content, "isError": !result.success });
    if let Some(all) = all.as_object_mut() {
        let more = [("structuredContent", &result.structured), ("_meta", &result.meta)];
        for (key, value) in more.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)))
        {
            all.insert(key.to_owned(), value.clone());
        }
    }
    all
}

pub fn raw(result: &ToolResult) -> ScrollText {
    let mut page = ScrollText::with_limits(LIMITS);
    json_lines::push(&mut page, &whole(result));
    page
}

/// How what a call gave differs from what the one before gave.
pub fn difference(before: &Value, now: &Value) -> ScrollText {
    let mut page = ScrollText::with_limits(LIMITS);
    let text = |value: &Value| match value {
        Value::String(text) => format!("{text}\n"),
        other => json_text::pretty(other) + "\n",
    };
    let hunks = diff::hunks(&text(before), &text(now), 3);
    if hunks.is_empty() {
        page.line(StyleRole::Success, "Same as the previous call.");
    }
    for hunk in &hunks {
        let place = format!("@@ line {} @@", hunk.new.start + 1);
        page.line(StyleRole::Dim, place);
        for line in &hunk.lines {
            let role = match line.mark {
                DiffMark::Same => StyleRole::Plain,
                DiffMark::Removed => StyleRole::Error,
                DiffMark::Added => StyleRole::Success,
            };
            page.line(role, format!("{} {}", line.mark.sign(), line.text));
        }
    }
    page
}

/// What a call would send.
pub fn dry_run_document(dry_run: &Result<DryRun, Error>) -> ScrollText {
    let mut page = ScrollText::with_limits(LIMITS);
    match dry_run {
        Ok(dry_run) => {
            page.line(StyleRole::Success, "Not sent. A call would send:");
            page.text(StyleRole::Title, &dry_run.preview.summary);
            let (meaning, text) = match &dry_run.decision {
                Decision::Allow(_) => (StyleRole::Dim, "runs without asking".to_owned()),
                Decision::Ask(why) => (StyleRole::Warning, format!("asks for approval: {why}")),
                Decision::Deny(why) => (StyleRole::Error, format!("refused by {why}")),
            };
            page.line(meaning, text);
            for warning in &dry_run.warnings {
                page.text(StyleRole::Warning, &format!("! {warning}"));
            }
            page.text(StyleRole::Plain, &json_text::pretty(&dry_run.preview.request));
        }
        Err(error) => {
            page.line(StyleRole::Error, "Not sent. This call is not possible:");
            failed(&mut page, error);
        }
    }
    page
}
