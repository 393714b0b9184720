//! Reads the statistics on a thread that may wait, one look at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::Surroundings;
use crate::model::Fault;
use crate::stats::{Patience, Query, Statistics, Summary};
use crate::tui::event::Event;
use crate::tui::event::stats::{Look, News, Seen, Window, Wish};
use crate::util::clock::Clock;

/// What a look may wait for: somebody looks again in a moment.
const PATIENCE: Patience = Patience { locks: Duration::from_millis(300), chunks: 16 };
/// A course covers that much at least, because a slice of it is a minute or more.
const LEAST: Duration = Duration::from_mins(30);
/// Slices of a course at most.
const SLICES: usize = 60;

/// Whoever reads the statistics.
pub(super) struct Reader {
    keeper: Option<Arc<Mutex<Keeper>>>,
    clock: Arc<dyn Clock>,
}

struct Keeper {
    statistics: Statistics,
    opened: Duration,
    /// When a person began to count anew, and what had been counted then.
    anew: Option<Summary>,
}

impl Reader {
    /// Names the place; nothing is opened yet.
    pub(super) fn new(around: &Surroundings) -> Self {
        let clock = Arc::clone(&around.clock);
        let keeper = around.statistics.clone().map(|(place, retention)| {
            let statistics = Statistics::new(place, retention, PATIENCE);
            Arc::new(Mutex::new(Keeper { statistics, opened: clock.unix(), anew: None }))
        });
        Self { keeper, clock }
    }

    /// Does what is wanted.
    pub(super) fn perform(&self, wish: Wish) -> impl Future<Output = Event> + Send + 'static {
        let (keeper, clock) = (self.keeper.clone(), Arc::clone(&self.clock));
        async move {
            Event::Stats(match looked(keeper, clock, wish).await {
                Ok(seen) => News::Seen(Box::new(seen)),
                Err(fault) => News::Failed(fault),
            })
        }
    }
}

async fn looked(
    keeper: Option<Arc<Mutex<Keeper>>>,
    clock: Arc<dyn Clock>,
    wish: Wish,
) -> Result<Seen, Fault> {
    let nowhere = || {
        Fault::internal("there is no home directory, and so no statistics")
            .hint("stats: { path: FILE } in tools.yaml names a place")
    };
    let mut keeper = keeper.ok_or_else(nowhere)?.lock_owned().await;
    let work = move || {
        let now = clock.unix();
        match wish {
            Wish::Look(look) => keeper.look(&look, now),
            Wish::Begin(look) => keeper.begin(now).and_then(|()| keeper.look(&look, now)),
        }
    };
    let lost = |_panicked| Fault::internal("the thread that reads statistics ended early");
    tokio::task::spawn_blocking(work).await.map_err(lost)?
}

impl Keeper {
    fn begin(&mut self, now: Duration) -> Result<(), Fault> {
        self.statistics.refresh(now)?;
        let query = Query { since: Some(now), tools: None };
        self.anew = Some(self.statistics.summary(&query, now)?);
        Ok(())
    }

    fn look(&mut self, look: &Look, now: Duration) -> Result<Seen, Fault> {
        self.statistics.refresh(now)?;
        let since = match (look.window, look.window.length(), &self.anew) {
            (_, Some(length), _) => Some(now.saturating_sub(length)),
            (Window::Session, ..) => Some(self.opened),
            (Window::Anew, _, Some(before)) => Some(before.now),
            _ => None,
        };
        let summary = self.statistics.summary(&Query { since, tools: None }, now)?;
        let summary = match (look.window, &self.anew) {
            (Window::Anew, Some(before)) => summary.since(before),
            _ => summary,
        };
        let query = Query {
            since: since.map(|since| since.min(now.saturating_sub(LEAST))),
            tools: Some(look.courses_of.clone()),
        };
        let courses = self.statistics.courses(&query, now, SLICES, look.by_server)?;
        Ok(Seen {
            window: look.window,
            summary,
            courses,
            notes: self.statistics.take_notes(),
            place: self.statistics.place().store.path.display().to_string(),
            size: self.statistics.size(),
        })
    }
}
