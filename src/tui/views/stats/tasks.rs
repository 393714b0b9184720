//! Work for the statistics view.

use tokio::sync::Mutex;

use crate::model::CallFilter;
use crate::stats::comparison::earlier_period;
use crate::stats::summary::TimeSeriesSet;
use crate::stats::{ReadBudget, Statistics, Summary, Usage};
use crate::tui::prelude::*;
use crate::tui::tasks::{ConsoleDeps, blocking};

/// The window and row to read statistics for.
#[derive(Debug, Clone, PartialEq)]
pub struct StatsViewQuery {
    pub window: StatsWindow,
    pub timelines_of: Vec<String>,
    pub by_server: bool,
    /// Calls of all projects instead of only the console's own.
    pub all_projects: bool,
}

/// The statistics of one window at one moment.
#[derive(Debug)]
pub struct StatsSnapshot {
    pub window: StatsWindow,
    pub all_projects: bool,
    pub summary: Summary,
    /// The counts of the period before, for a window of a fixed length.
    pub earlier: Option<Vec<Usage>>,
    pub timelines: TimeSeriesSet,
    pub place: String,
    /// The size of the spool in bytes.
    pub size: Option<u64>,
    pub is_recording: bool,
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
    /// Everything that was counted.
    All,
    SinceReset,
}

impl StatsWindow {
    #[must_use]
    pub fn next(self) -> Self {
        let all = [Self::Minute, Self::FiveMinutes, Self::Hour, Self::Session, Self::All];
        after(&all, self)
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

/// A timeline covers at least this much, because its slices are a minute or longer.
const MIN_TIMELINE_SPAN: Duration = Duration::from_mins(30);
const SLICES: usize = 60;

/// What was read of the statistics so far; `None` where they are stored nowhere.
pub type SharedStatistics = Option<Arc<Mutex<OpenStatistics>>>;

pub struct OpenStatistics {
    statistics: Statistics,
    opened: Duration,
    /// The root of the project whose calls are shown; `None` shows those of all.
    project: Option<String>,
    /// When the user reset the count.
    reset_at: Option<Duration>,
}

/// What was counted; with `is_reset` only from now on.
pub fn query(look: StatsViewQuery, is_reset: bool) -> Task {
    let name = ("statistics", look.clone(), is_reset);
    let work = async move |context: TaskContext| {
        let nowhere = || {
            Error::internal("no home directory for the statistics")
                .with_hint("set stats: { path: FILE } in tools.yaml")
        };
        let mut open = context.stats.ok_or_else(nowhere)?.lock_owned().await;
        let now = context.deps.clock.unix();
        blocking(move || {
            if is_reset {
                open.reset_at = Some(now);
            }
            open.snapshot(&look, now, context.deps.keeps_statistics)
        })
        .await
    };
    Task::new(name, work, |state, snapshot| {
        state.stats.loaded(snapshot, &mut state.context);
        state.tools.catalogue.set_usage(state.stats.usage_figures());
    })
}

impl OpenStatistics {
    /// Nothing is read yet.
    pub fn new(deps: &ConsoleDeps) -> SharedStatistics {
        Some(Arc::new(Mutex::new(Self {
            statistics: Statistics::new(deps.statistics.clone()?, ReadBudget::Everything),
            opened: deps.clock.unix(),
            project: deps.project_root.clone(),
            reset_at: None,
        })))
    }

    fn filter(&self, since: Option<Duration>, all_projects: bool) -> CallFilter {
        let project = self.project.clone().filter(|_| !all_projects);
        CallFilter { since, project, ..CallFilter::default() }
    }

    fn snapshot(
        &mut self,
        look: &StatsViewQuery,
        now: Duration,
        is_recording: bool,
    ) -> Result<StatsSnapshot, Error> {
        self.statistics.refresh()?;
        let since = match look.window {
            StatsWindow::Session => Some(self.opened),
            StatsWindow::SinceReset => self.reset_at,
            window => window.length().map(|length| now.saturating_sub(length)),
        };
        let filter = self.filter(since, look.all_projects);
        let summary = self.statistics.summary(&filter, now);
        let earlier = match look.window.length().and_then(|_| earlier_period(&filter, &summary)) {
            Some(filter) => {
                let earlier = self.statistics.summary(&filter, now);
                Some(if look.by_server { earlier.servers() } else { earlier.tools })
            }
            None => None,
        };
        let since = since.map(|since| since.min(now.saturating_sub(MIN_TIMELINE_SPAN)));
        let query = CallFilter {
            tools: Some(look.timelines_of.clone()),
            ..self.filter(since, look.all_projects)
        };
        let timelines = self.statistics.time_series_by(&query, now, SLICES, look.by_server);
        Ok(StatsSnapshot {
            window: look.window,
            all_projects: look.all_projects,
            summary,
            earlier,
            timelines,
            place: self.statistics.spool().path.display().to_string(),
            size: self.statistics.size(),
            is_recording,
        })
    }
}
