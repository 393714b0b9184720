//! A jq filter on a result, run while it is typed.
//!
//! Owns: what was typed, which run is awaited, and what the last good one gave. One run at a time;
//! what was typed meanwhile runs next. Never does: run a filter.

use std::sync::Arc;

use crate::tui::event::tools::ToolsEffect;
use crate::tui::presentation::FilterInput;
use crate::tui::presentation::scroll_text::ScrollText;
use crate::tui::state::LineInput;
use crate::util::jq::JqError;

/// A jq filter that is written, and what it gives.
#[derive(Debug, Default)]
pub struct ResultFilter {
    /// The filter as it is typed.
    pub line: LineInput,
    /// Whether it is being typed.
    pub is_typing: bool,
    /// What the last filter that worked gave.
    pub text: ScrollText,
    /// How many values that was.
    pub results: usize,
    /// Why the newest filter gives nothing.
    pub error: Option<JqError>,
    /// The filter that is running.
    running: Option<String>,
    /// The filter that `text` is of.
    shown: Option<String>,
}

impl ResultFilter {
    /// Whether the result is shown through it.
    pub fn is_on(&self) -> bool {
        self.is_typing || !self.line.text().trim().is_empty()
    }

    /// Has what is typed now run over the value, unless a run is awaited or nothing changed.
    pub(super) fn request(&mut self, input: &Arc<FilterInput>) -> Option<ToolsEffect> {
        let filter = self.line.text().trim();
        let filter = if filter.is_empty() { "." } else { filter };
        if self.running.is_some() || self.shown.as_deref() == Some(filter) {
            return None;
        }
        self.running = Some(filter.to_owned());
        Some(ToolsEffect::Query { filter: filter.to_owned(), input: Arc::clone(input) })
    }

    /// Takes in what a filter gave.
    pub(super) fn finished(
        &mut self,
        filter: String,
        results: Result<(ScrollText, usize), JqError>,
    ) {
        self.running = None;
        self.shown = Some(filter);
        match results {
            Ok((text, results)) => {
                (self.text, self.results, self.error) = (text, results, None);
            }
            Err(error) => self.error = Some(error),
        }
    }
}
