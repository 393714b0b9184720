//! Commands and events of comparing and pinning tools.

use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::pins::PinReportState;
use crate::model::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinsEffect {
    Compare(String),
    /// Pin the tool as it was shown, if it still is that.
    Accept(Box<PinReview>),
}

/// A tool compared with its pin, as shown to the user; secrets masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinReview {
    pub tool: String,
    /// The server of the tool; `None` for internal tools.
    pub server: Option<String>,
    /// How it compares: new, same or changed.
    pub state: PinReportState,
    /// The fingerprint of what would be pinned.
    pub now: Option<String>,
    /// What changed of the whole server: its entry, endpoint or instructions.
    pub server_changes: Vec<DefinitionChange>,
    pub changes: Vec<DefinitionChange>,
}

#[derive(Debug)]
pub enum PinsEvent {
    Compared(Result<PinReview, Error>),
    /// The tool was pinned as it was shown.
    Accepted(PinReview),
    /// The tool was not what was shown any more; this is what it is now.
    ChangedMeanwhile(PinReview),
    /// The tool was not pinned, and why.
    Failed(Error),
}
