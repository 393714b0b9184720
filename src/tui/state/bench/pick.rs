//! Choosing a tool by a few letters.

use std::sync::Arc;

use super::Side;
use crate::tui::state::{Line, List, Query, Row};

/// The tools that one is chosen of.
#[derive(Debug)]
pub struct Picker {
    /// For which side.
    pub side: Side,
    /// What is searched for.
    pub words: Line,
    /// The chosen one of those that are found.
    pub list: List,
    rows: Vec<Arc<Row>>,
    found: Vec<usize>,
}

impl Picker {
    /// One of these.
    pub fn of(side: Side, rows: Vec<Arc<Row>>) -> Self {
        let found = (0..rows.len()).collect();
        Self { side, words: Line::default(), list: List::default(), rows, found }
    }

    /// What is searched for was changed.
    pub fn search(&mut self) {
        self.found = Query::of(self.words.text()).find(&self.rows);
        self.list = List::default();
    }

    /// The tools that are found, the best first.
    pub fn found(&self) -> impl ExactSizeIterator<Item = &Row> + '_ {
        self.found.iter().map(|at| &*self.rows[*at])
    }

    /// The chosen one.
    pub fn chosen(&self) -> Option<&Row> {
        self.rows.get(*self.found.get(self.list.chosen())?).map(|row| &**row)
    }

    /// So many tools on; back when negative.
    pub fn step(&mut self, by: isize) {
        self.list.step(by, self.found.len());
    }
}
