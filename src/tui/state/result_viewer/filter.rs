//! A jq filter on a result, run while it is typed.

use std::sync::Arc;

use crate::tui::event::tools::ToolsEffect;
use crate::tui::presentation::FilterInput;
use crate::tui::presentation::scroll_text::ScrollText;
use crate::tui::state::LineInput;
use crate::util::jq::JqError;

#[derive(Debug, Default)]
pub struct ResultFilter {
    pub line: LineInput,
    pub is_typing: bool,
    pub text: ScrollText,
    /// How many values that was.
    pub results: usize,
    pub error: Option<JqError>,
    running: Option<String>,
    /// The filter that `text` is of.
    shown: Option<String>,
}

impl ResultFilter {
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
