//! Makes benchmark runs, one at a time, and looks at them while they go on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Surroundings;
use crate::bench::account::Account;
use crate::bench::driver::Control;
use crate::bench::environment::{BenchEnvironment, ThisMachine};
use crate::bench::findings::{Demands, Findings};
use crate::bench::plan::Plan;
use crate::bench::report::Report;
use crate::bench::seen::Seen;
use crate::bench::targets::{self, Given, Terms, Wanted, identities, prepared, servers};
use crate::bench::watch::Watch;
use crate::bench::{baseline, run};
use crate::host::request::Arguments;
use crate::model::{Fault, Shutter};
use crate::tui::event::Event;
use crate::tui::event::bench::{News, Order, Wish};
use crate::util::private;

/// The time between two looks at a run.
const LOOK: Duration = Duration::from_millis(250);
/// How long answers are waited for when a run was told to end.
const DRAIN: Duration = Duration::from_millis(800);

/// Makes benchmark runs.
#[derive(Default)]
pub(super) struct Rig {
    control: Control,
    /// Waits for no more answers.
    abort: CancellationToken,
}

impl Rig {
    /// Does what is wanted; `shutter` is closed while a run goes on, because whoever looks at each
    /// message slows them all down.
    pub(super) fn perform(
        &mut self,
        wish: Wish,
        around: &Surroundings,
        send: &mpsc::Sender<Event>,
        shutter: &Shutter,
    ) {
        match wish {
            Wish::Pause(true) => self.control.pause(),
            Wish::Pause(false) => self.control.resume(),
            Wish::Stop => self.stop(),
            Wish::Keep { path, text } => {
                let (cwd, send) = (around.cwd.clone(), send.clone());
                tokio::spawn(async move {
                    let event = tokio::task::spawn_blocking(move || kept(&cwd, path, &text)).await;
                    if let Ok(event) = event {
                        let _unheard = send.send(event).await;
                    }
                });
            }
            Wish::Start { run, order } => {
                *self = Self::default();
                let (control, abort) = (self.control.clone(), self.abort.clone());
                let conduct = Conduct {
                    number: run,
                    around: around.clone(),
                    send: send.clone(),
                    control,
                    abort,
                    watch: Watch::default(),
                };
                let shutter = shutter.clone();
                tokio::spawn(async move {
                    let closed = shutter.close();
                    conduct.perform(*order).await;
                    drop(closed);
                });
            }
        }
    }

    pub(super) fn stop(&self) {
        self.control.stop();
        let abort = self.abort.clone();
        tokio::spawn(async move {
            tokio::time::sleep(DRAIN).await;
            abort.cancel();
        });
    }
}

/// One run, from its tools to its account.
struct Conduct {
    number: u64,
    around: Surroundings,
    send: mpsc::Sender<Event>,
    control: Control,
    abort: CancellationToken,
    watch: Watch,
}

impl Conduct {
    async fn perform(self, order: Order) {
        let plan = order.plan.clone();
        let outcome = self.account(order).await;
        let seen = Box::new(Seen::of(&self.watch, &plan, self.around.clock.now()));
        let news = News::Ended { run: self.number, seen, outcome: Box::new(outcome) };
        let _unheard = self.send.send(Event::Bench(news)).await;
    }

    async fn account(&self, order: Order) -> Result<Account, Fault> {
        let plan = order.plan;
        let demands = Demands {
            thresholds: order.thresholds,
            baseline: read(&self.around.cwd, order.baseline).await?,
            max_regression: order.max_regression,
        };
        let terms = Terms {
            timeout: order.timeout,
            allow_writes: order.allow_writes,
            seed: plan.seed,
            cancel: self.abort.clone(),
            ..Terms::default()
        };
        let wanted = order.targets.into_iter().map(|(name, arguments)| Wanted {
            name,
            given: Given::One(Arguments::Object(arguments)),
            weight: 1.0,
        });
        let (host, clock) = (&self.around.host, Arc::clone(&self.around.clock));
        let mut warnings = Vec::new();
        let warn = |warning: &str| warnings.push(warning.to_owned());
        let found = tokio::select! {
            biased;
            () = self.abort.cancelled() => Err(Fault::timeout("stopped before a call was made")),
            found = targets::find(wanted.collect(), &terms, host, &clock, warn) => found,
        }?;
        let servers = servers(&found);
        let began = News::Began { run: self.number, warnings };
        let _unheard = self.send.send(Event::Bench(began)).await;
        let environment = BenchEnvironment::before(&ThisMachine);
        let work = run::run(&plan, prepared(found), clock, &self.control, &self.watch);
        let report = self.watched(work, &plan).await?;
        let environment = BenchEnvironment {
            servers: identities(&report, &servers, host),
            ..environment.after(&ThisMachine)
        };
        // Intervals take a while to be calculated: the screen does not wait for them.
        let concluded = move || {
            let findings = Findings::of(&report, &environment, &demands);
            Account { report, environment, findings }
        };
        let lost = |_panicked| Fault::internal("the thread that draws conclusions ended early");
        tokio::task::spawn_blocking(concluded).await.map_err(lost)
    }

    /// Drives a run to its report, and tells meanwhile what is seen of it. What nobody has time to
    /// look at is not waited with.
    async fn watched(
        &self,
        work: impl Future<Output = Result<Report, Fault>>,
        plan: &Plan,
    ) -> Result<Report, Fault> {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                report = &mut work => return report,
                _ = looks.tick() => {
                    let seen = Seen::of(&self.watch, plan, self.around.clock.now());
                    let news = News::Seen { run: self.number, seen: Box::new(seen) };
                    let _lost = self.send.try_send(Event::Bench(news));
                }
            }
        }
    }
}

async fn read(cwd: &Path, file: Option<PathBuf>) -> Result<Option<baseline::Saved>, Fault> {
    let Some(file) = file else { return Ok(None) };
    let path = cwd.join(file);
    let lost = |_panicked| Fault::internal("the thread that reads the baseline ended early");
    tokio::task::spawn_blocking(move || baseline::read(&path)).await.map_err(lost)?.map(Some)
}

/// Writes a run that later ones are compared with; replaces nothing but such a run.
fn kept(cwd: &Path, path: PathBuf, text: &str) -> Event {
    let whole = cwd.join(&path);
    let said = |text: String| Event::Said { text, is_bad: true };
    if whole.exists() && baseline::read(&whole).is_err() {
        let shown = path.display();
        return said(format!("{shown} is something else than a run: name another file"));
    }
    match private::replace(&whole, text.as_bytes()) {
        Ok(()) => Event::Bench(News::Kept(path)),
        Err(error) => said(format!("{} was not written: {error}", path.display())),
    }
}
