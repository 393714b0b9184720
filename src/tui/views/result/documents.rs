//! Results, failures and dry runs as text documents.

use serde_json::{Value, json};

use crate::host::content::{is_text_copy_of, json_output, kind, media_type, size};
use crate::host::request::{CallOutcome, DryRun};
use crate::model::{ErrorKind, ToolResult};
use crate::present::messages;
use crate::tui::prelude::*;
use crate::tui::views::result::presentation::CallResult;
use crate::tui::widgets::json_tree;
use crate::tui::widgets::picture::{Picture, PictureBox};
use crate::tui::widgets::scroll_text::TextLimits;
use crate::util::{base64, diff, json as json_text};

const LIMITS: TextLimits =
    TextLimits::of_lines(100_000, "The rest is not shown; E saves all of it.");

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
        Err(error) => page.page(&messages::failure(error)),
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
        page.page(&messages::failure(error));
    }
    let Ok(result) = &outcome.result else { return };
    for warning in &result.warnings {
        page.line(Role::Warning, format!("! {warning}"));
    }
    // A large text beside structured content is taken for the copy that MCP asks for: to read it
    // would hold up the screen. The raw format shows both.
    let is_large = result.content.iter().any(|block| {
        block["text"].as_str().is_some_and(|text| text.len() > json_tree::LONGEST_JSON)
    });
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
            page.text(Role::Plain, text);
        }
    }
    if let Some(value) = structured {
        if !page.is_empty() {
            page.gap();
            page.line(Role::Title, "structured content");
        }
        page.json(value);
    }
    if page.is_empty() {
        page.line(Role::Dim, "empty result");
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
            page.line(Role::Dim, format!("[image {kind} {pixels} {bytes}, E saves it]"));
            page.picture(&Arc::new(picture));
        }
        Err(error) => {
            let text = format!("[image {kind} {bytes}, not shown: {error}; E saves it]");
            page.line(Role::Dim, text);
        }
    }
}

/// One content block; a description for what cannot be shown.
pub fn block(page: &mut ScrollText, block: &Value) {
    let text = block["text"].as_str().filter(|_| kind(block) == "text");
    match text.and_then(json_tree::parse) {
        Some(value) => page.json(&value),
        None => page.page(&present::content::block(block, "E saves it")),
    }
}

fn account(page: &mut ScrollText, outcome: &CallOutcome) {
    let metadata = &outcome.metadata;
    let mut facts = vec![format!("call {}", metadata.call_id.0)];
    facts.extend(metadata.connect.map(|time| format!("connected in {}", show_duration(time))));
    if !metadata.person_wait.is_zero() {
        facts.push(format!("waited {} for a person", show_duration(metadata.person_wait)));
    }
    if metadata.attempts > 1 {
        facts.push(format!("{} attempts", metadata.attempts));
    }
    facts.extend(outcome.result.as_ref().ok().map(|result| show_size(size(result))));
    facts.extend(metadata.protocol.as_ref().map(|protocol| format!("protocol {protocol}")));
    page.gap();
    page.line(Role::Dim, facts.join(" · "));
    if let Some(routing) = &metadata.routing {
        page.page(&present::outcome::routing(routing).into_iter().collect());
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
    page.json(&whole(result));
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
        page.line(Role::Success, "Same as the previous call.");
    }
    let mut lines = Page::default();
    present::difference::hunks(&mut lines, &hunks);
    page.page(&lines);
    page
}

pub fn dry_run_document(dry_run: &Result<DryRun, Error>) -> ScrollText {
    let mut page = ScrollText::with_limits(LIMITS);
    match dry_run {
        Ok(dry_run) => {
            page.line(Role::Success, "Not sent. A call would send:");
            page.page(&present::outcome::preview(dry_run));
            for warning in &dry_run.warnings {
                page.text(Role::Warning, &format!("! {warning}"));
            }
        }
        Err(error) => {
            page.line(Role::Error, "Not sent. This call is not possible:");
            page.page(&messages::failure(error));
        }
    }
    page
}
