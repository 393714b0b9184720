//! Statistics on their own thread: a command that waits for another process's lock still handles
//! signals.

use std::sync::Arc;

use crate::assembly;
use crate::cli::context::CommandContext;
use crate::cli::output::Output;
use crate::model::{CallFilter, Error};
use crate::present::stats::detail::slices_in;
use crate::stats::summary::TimeSlice;
use crate::stats::{ReadBudget, Statistics, Summary};
use crate::util::clock::{Clock as _, SystemClock};

pub(super) struct BlockingStatistics {
    statistics: Option<Statistics>,
    /// The root of the project whose calls are selected; `None` for all projects.
    project: Option<String>,
    output: Arc<Output>,
}

impl BlockingStatistics {
    /// The statistics of this configuration: of its project, or of all.
    pub(super) fn open(context: &CommandContext, all_projects: bool) -> Result<Self, Error> {
        let configuration = context.load_for_record("the statistics are", |all| &all.stats)?;
        let spec = &configuration.stats;
        let state_dir = context.environment.state_dir();
        let place = assembly::stats_place(spec, state_dir.as_deref()).ok_or_else(|| {
            Error::internal("there is no home directory, so there are no statistics")
                .with_hint("set stats: { path: FILE } in tools.yaml")
        })?;
        let statistics = Statistics::new(place, spec.retention, ReadBudget::FULL);
        Ok(Self {
            statistics: Some(statistics),
            project: configuration.project().filter(|_| !all_projects),
            output: Arc::clone(&context.output),
        })
    }

    /// The root of the project whose calls are selected; `None` for all projects.
    pub(super) fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    pub(super) async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Statistics) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let lost = || Error::internal("the thread that reads statistics ended early");
        let mut statistics = self.statistics.take().ok_or_else(lost)?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&mut statistics);
            (statistics, done)
        });
        let (statistics, done) = done.await.map_err(|_panicked| lost())?;
        self.statistics = Some(statistics);
        if done.is_err() {
            self.print_notes();
        }
        done
    }

    /// Folds spooled calls; returns whether there were any.
    pub(super) async fn refresh(&mut self) -> Result<bool, Error> {
        let changed = self.with(|statistics| statistics.refresh(SystemClock.unix())).await?;
        self.print_notes();
        Ok(changed)
    }

    /// The totals; with `with_slices` also by time slice.
    pub(super) async fn summary(
        &mut self,
        filter: CallFilter,
        with_slices: bool,
    ) -> Result<(Summary, Vec<TimeSlice>), Error> {
        let most = slices_in(self.output.width());
        self.with(move |statistics| {
            let now = SystemClock.unix();
            let summary = statistics.summary(&filter, now)?;
            let slices =
                if with_slices { statistics.time_series(&filter, now, most)? } else { Vec::new() };
            Ok((summary, slices))
        })
        .await
    }

    pub(super) fn print_notes(&mut self) {
        for note in self.statistics.iter_mut().flat_map(Statistics::take_notes) {
            self.output.warn(&note);
        }
    }
}
