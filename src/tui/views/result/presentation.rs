//! What the result of a call looks like: as text, tree, table or raw JSON, or compared with another.
//!
//! Owns: the documents, and the request to make one. A large one takes its time and is made away
//! from the loop of the console. Never does: know which one is looked at, or draw.

use serde_json::Value;

use crate::host::content;
use crate::host::request::CallOutcome;
use crate::model::ToolResult;
use crate::tui::prelude::*;
use crate::tui::views::result::documents;
use crate::tui::widgets::json_tree::JsonTree;
use crate::tui::widgets::page::has_words;
use crate::tui::widgets::picture::PictureBox;
use crate::tui::widgets::scroll_text::TextLimits;
use crate::tui::widgets::table::ResultTable;
use crate::util::json;

/// The outcome of a call, or why it was not made.
pub type CallResult = Result<CallOutcome, Error>;

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

    pub fn click(&mut self, row: usize, height: usize) {
        match self {
            Self::Text(_) => {}
            Self::Tree(tree) => tree.list.click(row, 0, height, tree.len()),
            // The first row has the titles.
            Self::Table(table) => table.list.click(row, 1, height, table.row_count()),
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
                return documents::difference(&before, &now).into();
            }
            PresentationKind::Format { format, activity, pictures } => (format, activity, pictures),
        };
        let table = match (format, result) {
            (ResultFormat::Tree, Some(result)) => {
                return ResultBody::Tree(JsonTree::of(&content::filter_value(result)));
            }
            (ResultFormat::Raw, Some(result)) => return documents::raw(result).into(),
            (ResultFormat::Table, Some(result)) => ResultTable::of(&content::filter_value(result)),
            (ResultFormat::Best, Some(result)) if activity.is_empty() => table_of_all(result),
            _ => None,
        };
        match table {
            Some(table) => ResultBody::Table(table),
            None => documents::text(&self.outcome, *activity, pictures).into(),
        }
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
