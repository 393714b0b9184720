//! Statistics behind a thread: whoever waits for somebody else's lock still hears a signal.

use std::sync::Arc;

use crate::assembly;
use crate::cli::context::Context;
use crate::cli::output::Door;
use crate::cli::views::stats::detail::slices_in;
use crate::model::Fault;
use crate::stats::summary::Slice;
use crate::stats::{Patience, Query, Statistics, Summary};
use crate::util::clock::{Clock as _, SystemClock};

/// Statistics that are being read.
pub(super) struct Reading {
    statistics: Option<Statistics>,
    door: Arc<Door>,
}

impl Reading {
    /// Those of this configuration.
    ///
    /// # Errors
    /// Without a place to keep them.
    pub(super) fn open(context: &Context) -> Result<Self, Fault> {
        let configuration = context.load();
        let spec = &configuration.stats;
        if !spec.enabled {
            context.door.warn("the statistics are switched off (stats: { enabled: false })");
        }
        let state_dir = context.environment.state_dir();
        let place = assembly::statistics(spec, state_dir.as_deref()).ok_or_else(|| {
            Fault::internal("there is no home directory, and so no statistics")
                .hint("stats: { path: FILE } in tools.yaml names a place")
        })?;
        let statistics = Statistics::new(place, spec.retention, Patience::ALL);
        Ok(Self { statistics: Some(statistics), door: Arc::clone(&context.door) })
    }

    /// Does something with them, on a thread that may wait.
    pub(super) async fn with<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Statistics) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let lost = || Fault::internal("the thread that reads statistics ended early");
        let mut statistics = self.statistics.take().ok_or_else(lost)?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&mut statistics);
            (statistics, done)
        });
        let (statistics, done) = done.await.map_err(|_panicked| lost())?;
        self.statistics = Some(statistics);
        if done.is_err() {
            self.tell();
        }
        done
    }

    /// Folds what was spooled; gives whether there was anything.
    pub(super) async fn refresh(&mut self) -> Result<bool, Fault> {
        let changed = self.with(|statistics| statistics.refresh(SystemClock.unix())).await?;
        self.tell();
        Ok(changed)
    }

    /// What was counted, and with `course` how it went in the course of time.
    pub(super) async fn summary(
        &mut self,
        query: Query,
        course: bool,
    ) -> Result<(Summary, Vec<Slice>), Fault> {
        let most = slices_in(self.door.width());
        self.with(move |statistics| {
            let now = SystemClock.unix();
            let summary = statistics.summary(&query, now)?;
            let course = if course { statistics.course(&query, now, most)? } else { Vec::new() };
            Ok((summary, course))
        })
        .await
    }

    /// Passes on what the statistics have to say.
    pub(super) fn tell(&mut self) {
        for note in self.statistics.iter_mut().flat_map(Statistics::take_notes) {
            self.door.warn(&note);
        }
    }
}
