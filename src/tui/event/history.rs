//! Commands and events of the history view.

use std::time::Duration;

use crate::history::HistoryEntry;
use crate::history::compare::CallComparison;
use crate::model::Error;
use crate::util::timestamp::Since;

#[derive(Debug, Clone, PartialEq)]
pub enum HistoryEffect {
    Read {
        /// Calls that do not pass are not read.
        filter: HistoryReadFilter,
        /// The maximum number of calls to read.
        limit: usize,
    },
    /// Read this call, whole; then say whether its tool is still what it was.
    Open(String),
    /// Compare two calls, by their identities; which of them is older does not matter.
    Compare(String, String),
    /// Write these calls to a file, a line each.
    Export(Vec<String>),
}

/// Which calls are read from the file; an empty filter reads all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HistoryReadFilter {
    pub tool: Option<String>,
    /// Only calls that failed, or only calls that did not.
    pub failed: Option<bool>,
    /// The earliest time; `None` reads from the start.
    pub since: Option<Since>,
    pub session: Option<SessionFilter>,
    /// Calls of all projects instead of only the console's own.
    pub all_projects: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionFilter {
    Current,
    Id(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct PastCall {
    /// The identity of the call, as `history show` takes it.
    pub id: String,
    /// When it began, for people: local, to the second.
    pub time: String,
    pub tool: String,
    /// The server, or what else it is from.
    pub source: String,
    /// The client of a host that made it; `None` for one that this program made itself.
    pub client: Option<String>,
    /// The word of the failure's kind, when it failed.
    pub error: Option<String>,
    pub duration: Duration,
    pub arguments: String,
}

#[derive(Debug)]
pub enum HistoryEvent {
    /// These are the newest calls.
    Read {
        calls: Vec<PastCall>,
        /// Lines that could not be read.
        damaged: usize,
        /// Whether there are older ones.
        more: bool,
        /// Whether calls are kept at the moment.
        is_recording: bool,
    },
    /// The history could not be read.
    Unreadable(Error),
    /// One call with its arguments and result.
    Entry(Box<HistoryEntry>),
    /// The call of this identity is not there, and why.
    NotFound(String, Error),
    /// Whether the tool of this call changed since; `None` when that was not kept.
    DefinitionChecked(String, Result<Option<bool>, Error>),
    Compared(Box<CallComparison>),
    /// The two calls could not be compared.
    CompareFailed(Error),
}
