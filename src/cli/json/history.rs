//! The JSON of `history diff`; a call of the history has its own in [`crate::history::json`].

use crate::util::shape::shape;
use schemars::JsonSchema;
use serde::Serialize;

use crate::util::diff::{DiffLine, DiffMark, Hunk};

/// The results of two calls, compared.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HistoryDiffJson<'a> {
    /// The first call.
    pub a: &'a str,
    /// The call it is compared with.
    pub b: &'a str,
    /// Whether the results are the same.
    pub equal: bool,
    /// The lines that differ.
    pub differences: Vec<DifferenceJson<'a>>,
}

impl<'a> HistoryDiffJson<'a> {
    /// The JSON of a comparison of the calls `a` and `b`.
    pub fn new(a: &'a str, b: &'a str, equal: bool, hunks: &'a [Hunk]) -> Self {
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        let differ = lines.filter(|line| line.mark != DiffMark::Same);
        Self { a, b, equal, differences: differ.map(Into::into).collect() }
    }
}

shape! {
    /// A line that is in only one of the two texts.
    pub DifferenceJson<'a> of line: &'a DiffLine {
        /// `-`: only the first has it; `+`: only the second.
        op: String = line.mark.sign().to_string(),
        /// The line.
        line: &'a str = &line.text,
        /// Its line number in the first text, from 1.
        old_line: Option<usize> = line.old,
        /// Its line number in the second text, from 1.
        new_line: Option<usize> = line.new,
    }
}
