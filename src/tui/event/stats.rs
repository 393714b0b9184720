//! Commands and events of the statistics view.

use std::time::Duration;

use crate::model::Error;
use crate::stats::summary::TimeSeriesSet;
use crate::stats::{Summary, Usage};

#[derive(Debug, Clone, PartialEq)]
pub enum StatsEffect {
    /// Look at what was counted.
    Query(StatsViewQuery),
    ResetAndQuery(StatsViewQuery),
}

/// The window and row to read statistics for.
#[derive(Debug, Clone, PartialEq)]
pub struct StatsViewQuery {
    pub window: StatsWindow,
    pub timelines_of: Vec<String>,
    pub by_server: bool,
    /// Calls of all projects instead of only the console's own.
    pub all_projects: bool,
}

/// What the reader reports to the statistics view.
#[derive(Debug)]
pub enum StatsEvent {
    /// The statistics of the window that was asked for.
    Loaded(Box<StatsSnapshot>),
    /// The store could not be read.
    Failed(Error),
}

/// The statistics of one window at one moment.
#[derive(Debug)]
pub struct StatsSnapshot {
    pub window: StatsWindow,
    pub all_projects: bool,
    /// The counts by tool or server.
    pub summary: Summary,
    /// The counts of the period before, for a window of a fixed length.
    pub earlier: Option<Vec<Usage>>,
    pub timelines: TimeSeriesSet,
    /// Repairs and problems of the store.
    pub notes: Vec<String>,
    pub place: String,
    /// The size of the store in bytes.
    pub size: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatsWindow {
    /// The last 60 seconds.
    Minute,
    FiveMinutes,
    /// The last 60 minutes.
    #[default]
    Hour,
    /// Since the console was opened.
    Session,
    /// All statistics in the store.
    All,
    SinceReset,
}

impl StatsWindow {
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Minute => Self::FiveMinutes,
            Self::FiveMinutes => Self::Hour,
            Self::Hour => Self::Session,
            Self::Session => Self::All,
            Self::All | Self::SinceReset => Self::Minute,
        }
    }

    /// How long it is, when that does not depend on anything.
    pub fn length(self) -> Option<Duration> {
        match self {
            Self::Minute => Some(Duration::from_mins(1)),
            Self::FiveMinutes => Some(Duration::from_mins(5)),
            Self::Hour => Some(Duration::from_hours(1)),
            Self::Session | Self::All | Self::SinceReset => None,
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Minute => "last 1m",
            Self::FiveMinutes => "last 5m",
            Self::Hour => "last 1h",
            Self::Session => "this session",
            Self::All => "all",
            Self::SinceReset => "since reset",
        }
    }
}
