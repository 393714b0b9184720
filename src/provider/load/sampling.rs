//! Sampling the results of a run for inspection, and counting tool errors.

use super::{Inspection, LoadOutcome};
use crate::model::{Error, ToolResult};

/// How much of a tool's error message is kept, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// Counts the answers of a run and picks those that are inspected: the first, and then one in
/// [`Inspection::every`].
pub struct AnswerSampler {
    inspection: Option<Inspection>,
    answers: u64,
}

impl AnswerSampler {
    pub fn new(inspection: Option<Inspection>) -> Self {
        Self { inspection, answers: 0 }
    }

    /// Counts an answer. Returns the inspection if this answer is to be inspected.
    pub fn sample(&mut self) -> Option<&Inspection> {
        let number = self.answers;
        self.answers += 1;
        self.inspection.as_ref().filter(|each| number.is_multiple_of(each.every.max(1)))
    }
}

pub fn tool_error(result: &ToolResult) -> LoadOutcome {
    let message = result.error.as_ref().map_or("the tool returned an error", Error::message);
    LoadOutcome::ToolError(match message.char_indices().nth(MAX_ERROR_CHARS) {
        // The ellipsis shows the cut, also to what looks for secrets at the end of the text.
        Some((at, _)) => format!("{}…", message.get(..at).unwrap_or_default()).into(),
        None => message.into(),
    })
}
