//! The ids of abandoned requests, whose late responses are ignored.

use std::collections::VecDeque;

/// How many ids are remembered; with more, the oldest are forgotten.
const MAX_RETIRED_IDS: usize = 256;

#[derive(Debug, Default)]
pub struct RetiredIds(VecDeque<i64>);

impl RetiredIds {
    /// Remembers an id, and forgets the oldest one if there are too many.
    pub fn insert(&mut self, id: i64) {
        if self.0.len() >= MAX_RETIRED_IDS {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }

    /// Whether the request with this id was abandoned, as far as is remembered.
    pub fn contains(&self, id: i64) -> bool {
        self.0.contains(&id)
    }
}
