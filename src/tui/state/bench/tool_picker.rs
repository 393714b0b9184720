//! A fuzzy picker of tools.

use std::sync::Arc;

use crate::tui::event::bench::TargetSide;
use crate::tui::state::{LineInput, ListCursor, ToolRow, ToolSearch};

#[derive(Debug)]
pub struct ToolPicker {
    pub side: TargetSide,
    pub words: LineInput,
    /// The position of the selected match.
    pub list: ListCursor,
    rows: Vec<Arc<ToolRow>>,
    found: Vec<usize>,
}

impl ToolPicker {
    pub fn of(side: TargetSide, rows: Vec<Arc<ToolRow>>) -> Self {
        let found = (0..rows.len()).collect();
        Self { side, words: LineInput::default(), list: ListCursor::default(), rows, found }
    }

    /// Searches again, after the search text changed.
    pub fn search(&mut self) {
        self.found = ToolSearch::of(self.words.text()).find(&self.rows);
        self.list = ListCursor::default();
    }

    pub fn found(&self) -> impl ExactSizeIterator<Item = &ToolRow> + '_ {
        self.found.iter().map(|at| &*self.rows[*at])
    }

    /// The chosen tool; `None` when the filter finds none.
    pub fn chosen(&self) -> Option<&ToolRow> {
        self.rows.get(*self.found.get(self.list.chosen())?).map(|row| &**row)
    }

    /// Moves the cursor by `by` tools; back when negative.
    pub fn step(&mut self, by: isize) {
        self.list.step(by, self.found.len());
    }
}
