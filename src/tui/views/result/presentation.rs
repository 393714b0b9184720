//! What the result of a call looks like: as text, tree, table or raw JSON, or compared with another.
//!
//! Owns: the documents, and the request to make one. A large one takes its time and is made away
//! from the loop of the console. Never does: know which one is looked at, or draw.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::host::content::{self, is_text_copy_of, json_output, kind, media_type, size};
use crate::host::request::{CallOutcome, DryRun};
use crate::model::{ErrorKind, ToolResult};
use crate::present::content::TextLook;
use crate::present::messages;
use crate::tui::prelude::*;
use crate::tui::widgets::json_tree::{self, JsonTree};
use crate::tui::widgets::page::has_words;
use crate::tui::widgets::picture::{Picture, PictureBox};
use crate::tui::widgets::scroll_text::TextLimits;
use crate::tui::widgets::table::ResultTable;
use crate::util::{base64, diff, json};

/// The outcome of a call, or why it was not made.
pub type CallResult = Result<CallOutcome, Error>;

/// A result that filters run over, and what they see of it once the first one ran.
#[derive(Debug)]
pub struct FilterInput {
    pub outcome: Arc<CallResult>,
    pub value: OnceLock<Value>,
}

/// The largest result, in bytes of JSON, that is made ready between two events.
const MAX_INSTANT_BYTES: u64 = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultFormat {
    /// A table for a list of objects, else text.
    #[default]
    Best,
    Text,
    Tree,
    Table,
    /// Everything that came, as JSON.
    Raw,
}

impl ResultFormat {
    pub fn title(self) -> &'static str {
        match self {
            Self::Best => "table or text",
            Self::Text => "text",
            Self::Tree => "json",
            Self::Table => "table",
            Self::Raw => "raw",
        }
    }

    /// The format after this one; the last leads to the first.
    #[must_use]
    pub fn next(self, has_table: bool) -> Self {
        match self {
            Self::Best if has_table => Self::Raw,
            Self::Best | Self::Text => Self::Tree,
            Self::Tree if has_table => Self::Table,
            Self::Tree | Self::Table => Self::Raw,
            Self::Raw => Self::Text,
        }
    }
}

#[derive(Debug, Clone)]
pub enum PresentationKind {
    Format {
        format: ResultFormat,
        activity: Box<ScrollText>,
        /// The room for each picture in a text; `None` shows none.
        pictures: Option<PictureBox>,
    },
    Difference(Arc<CallResult>),
}

#[derive(Debug, Clone)]
pub struct PresentationRequest {
    pub generation: u64,
    pub outcome: Arc<CallResult>,
    pub kind: PresentationKind,
}

/// What is shown of a result.
#[derive(Debug)]
pub enum ResultBody {
    Text(ScrollText),
    Tree(JsonTree),
    Table(ResultTable),
}

impl Default for ResultBody {
    fn default() -> Self {
        Self::Text(ScrollText::default())
    }
}

impl ResultBody {
    /// Moves by this many rows; negative moves up.
    pub fn scroll(&mut self, by: isize) {
        match self {
            Self::Text(text) => text.scroll(by),
            Self::Tree(tree) => tree.step(by),
            Self::Table(table) => table.step(by),
        }
    }

    /// The number of the line, the node or the row that is looked at.
    pub fn current(&self) -> usize {
        match self {
            Self::Text(text) => text.first_line(),
            Self::Tree(tree) => tree.chosen_node(),
            Self::Table(table) => table.list.chosen(),
        }
    }

    /// Goes to the line, the node or the row with this number.
    pub fn go_to(&mut self, number: usize) {
        match self {
            Self::Text(text) => text.scroll_to_line(number),
            Self::Tree(tree) => tree.reveal(number),
            Self::Table(table) => table.list.choose(number, table.row_count()),
        }
    }

    /// The numbers of those that have the words, which a text marks.
    pub fn find(&mut self, words: Option<&str>) -> Vec<usize> {
        if let Self::Text(text) = self {
            text.highlight = words.map(str::to_owned);
        }
        let Some(words) = words else { return Vec::new() };
        let is_match = |text: &str| has_words(text, words);
        match self {
            Self::Text(text) => text.find(is_match),
            Self::Tree(tree) => tree.find(is_match),
            Self::Table(table) => table.find(is_match),
        }
    }

    /// Whether what is shown is a table, or has a list that can be one.
    pub fn has_table(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Tree(tree) => tree.has_table,
            Self::Table(_) => true,
        }
    }

    /// The jq path of what is chosen; `None` in a text.
    pub fn chosen_path(&self) -> Option<String> {
        match self {
            Self::Text(_) => None,
            Self::Tree(tree) => Some(tree.chosen_path()),
            Self::Table(table) => Some(table.chosen_path()),
        }
    }
}

impl From<ScrollText> for ResultBody {
    fn from(text: ScrollText) -> Self {
        Self::Text(text)
    }
}

impl PresentationRequest {
    /// Whether it takes long enough that keys would wait for it: pictures always may.
    pub fn is_large(&self) -> bool {
        let is_large = |outcome: &CallResult| {
            result_of(outcome).is_some_and(|result| {
                let parts = (&result.content, &result.structured, &result.output);
                json::is_longer_than(&parts, MAX_INSTANT_BYTES)
            })
        };
        let is_slow = match &self.kind {
            PresentationKind::Difference(before) => is_large(before),
            PresentationKind::Format { pictures: Some(_), .. } => true,
            PresentationKind::Format { .. } => false,
        };
        is_slow || is_large(&self.outcome)
    }

    pub fn build(self) -> ResultBody {
        let result = result_of(&self.outcome);
        let (format, activity, pictures) = match self.kind {
            PresentationKind::Difference(before) => {
                let value = |result| content::filter_input(result);
                let before = result_of(&before).map(value).unwrap_or_default();
                let now = result.map(value).unwrap_or_default();
                return difference(&before, &now).into();
            }
            PresentationKind::Format { format, activity, pictures } => (format, activity, pictures),
        };
        let table = match (format, result) {
            (ResultFormat::Tree, Some(result)) => {
                return ResultBody::Tree(JsonTree::of(&content::filter_value(result)));
            }
            (ResultFormat::Raw, Some(result)) => return raw(result).into(),
            (ResultFormat::Table, Some(result)) => ResultTable::of(&content::filter_value(result)),
            (ResultFormat::Best, Some(result)) if activity.is_empty() => table_of_all(result),
            _ => None,
        };
        if let Some(table) = table {
            return ResultBody::Table(table);
        }
        let look = match result.filter(|_| format != ResultFormat::Text) {
            Some(result) => TextLook::of(&result.content),
            None => TextLook::AsSent,
        };
        text(&self.outcome, *activity, pictures, look).into()
    }
}

/// The table of a result that is a list of objects and nothing else.
fn table_of_all(result: &ToolResult) -> Option<ResultTable> {
    let value = content::filter_value(result);
    let is_list = value.is_array() || value.as_object().is_some_and(|object| object.len() == 1);
    let is_all = result.success
        && result.warnings.is_empty()
        && content::is_text_copy_of(&result.content, &value);
    ResultTable::of(&value).filter(|_| is_list && is_all)
}

/// What a call gave; `None` when it failed without a result.
pub fn result_of(outcome: &CallResult) -> Option<&ToolResult> {
    outcome.as_ref().ok()?.result.as_ref().ok()
}

pub fn has_pictures(outcome: &CallResult) -> bool {
    const FIRST: usize = 100;
    let mut blocks = result_of(outcome).into_iter().flat_map(|result| &result.content).take(FIRST);
    blocks.any(|block| content::kind(block) == "image")
}

/// Whether the best form of the result is a text that is not shown as it came.
pub fn has_layout(outcome: &CallResult) -> bool {
    const FIRST: usize = 100;
    let Some(result) = result_of(outcome) else { return false };
    let page = |block: &Value, look: TextLook| present::content::block(block, "", look);
    let is_laid_out =
        |block: &Value| page(block, TextLook::LaidOut) != page(block, TextLook::AsSent);
    let mut texts = result
        .content
        .iter()
        .take(FIRST)
        .filter(|block| matches!(kind(block), "text" | "resource"));
    TextLook::of(&result.content) == TextLook::LaidOut
        && texts.any(is_laid_out)
        && table_of_all(result).is_none()
}

pub fn filtered(values: &[Value]) -> ScrollText {
    let limits = TextLimits::of_lines(100_000, "The rest is not shown.");
    let mut text = ScrollText::with_limits(limits);
    for value in values {
        text.json(value);
    }
    if values.is_empty() {
        text.line(Role::Dim, "no values");
    }
    text
}

const LIMITS: TextLimits =
    TextLimits::of_lines(100_000, "The rest is not shown; E saves all of it.");

/// The maximum number of pictures decoded per result; for others only the size is shown.
const MAX_PICTURES: u8 = 8;

/// Everything about a finished call, with what was reported while it ran.
pub fn text(
    outcome: &CallResult,
    activity: ScrollText,
    pictures: Option<PictureBox>,
    look: TextLook,
) -> ScrollText {
    let mut page = ScrollText::with_limits(LIMITS);
    match outcome {
        Ok(outcome) => ended(&mut page, outcome, pictures, look),
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

fn ended(
    page: &mut ScrollText,
    outcome: &CallOutcome,
    pictures: Option<PictureBox>,
    look: TextLook,
) {
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
                None => block(page, content, look),
            }
        }
        if let (Value::String(text), true) = (&result.output, result.content.is_empty()) {
            block(page, &json!({ "type": "text", "text": text }), look);
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
pub fn block(page: &mut ScrollText, block: &Value, look: TextLook) {
    let text = block["text"].as_str().filter(|_| kind(block) == "text");
    match text.and_then(json_tree::parse) {
        Some(value) => page.json(&value),
        None => page.page(&present::content::block(block, "E saves it", look)),
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
        other => json::pretty(other) + "\n",
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
