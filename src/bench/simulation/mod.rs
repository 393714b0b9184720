//! Simulated tools on a virtual clock: whole runs in no time, and the same each time. For tests.

#![expect(
    clippy::disallowed_methods,
    clippy::unchecked_time_subtraction,
    clippy::cast_possible_truncation,
    reason = "test code outside of #[test] functions, on times it made itself"
)]

mod accuracy;
mod simulated_tool;

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::bench_runner::run_targets;
use super::control::RunControl;
use super::driver::lock;
use super::monitor::RunMonitor;
use super::plan::BenchPlan;
use super::report::BenchReport;
use super::target_worker::BenchTarget;
use super::target_worker::ToolConnector;
use crate::host::load::{CompletedRequest, Load, LoadDecision, LoadExecutor, LoadOutcome};
use crate::model::{Error, JsonObject};
use crate::util::clock::{Clock, SystemClock};
pub(crate) use simulated_tool::{DelayLaw, SimulatedTool};

#[derive(Debug)]
pub(crate) struct SimulatedClock {
    start: Instant,
    now: Mutex<Duration>,
    /// The moments at which a waiting task wakes.
    alarms: Mutex<BTreeSet<Duration>>,
    /// Things that happened.
    steps: AtomicU64,
}

impl SimulatedClock {
    pub(crate) fn new() -> Arc<Self> {
        let (start, steps) = (SystemClock.now(), AtomicU64::new(0));
        Arc::new(Self { start, now: Mutex::default(), alarms: Mutex::default(), steps })
    }

    fn at(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.start)
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs something to its end; time goes on whenever it waits.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let before = self.steps.load(Ordering::Relaxed);
            if let Poll::Ready(outcome) = work.as_mut().poll(&mut context) {
                return outcome;
            }
            if self.steps.load(Ordering::Relaxed) == before {
                let next = self.alarms.lock().unwrap().pop_first();
                let mut now = self.now.lock().unwrap();
                *now = next.expect("everybody waits for nothing").max(*now);
            }
        }
    }

    pub(crate) async fn until(&self, moment: Instant) {
        let moment = self.at(moment);
        poll_fn(|_| {
            if *self.now.lock().unwrap() >= moment {
                self.step();
                return Poll::Ready(());
            }
            self.alarms.lock().unwrap().insert(moment);
            Poll::Pending
        })
        .await;
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Instant {
        self.start + *self.now.lock().unwrap()
    }

    fn unix(&self) -> Duration {
        Duration::from_hours(500_000) + *self.now.lock().unwrap()
    }
}

#[derive(Debug)]
struct SimulatedCall {
    ends: Instant,
    ticket: u64,
    sent: Instant,
    verdict: LoadOutcome,
}

struct SimulatedRepeater {
    world: Arc<SimulatedClock>,
    tool: Arc<Mutex<SimulatedTool>>,
    in_flight: Vec<SimulatedCall>,
}

impl SimulatedRepeater {
    /// Tells the call that has ended first by now.
    fn deliver_next(&mut self, load: &mut dyn Load) -> bool {
        let now = load.now();
        let ended = self.in_flight.iter().enumerate().filter(|(_, flight)| flight.ends <= now);
        let Some((at, _)) = ended.min_by_key(|(_, flight)| (flight.ends, flight.ticket)) else {
            return false;
        };
        let SimulatedCall { ends: at, ticket, sent, verdict } = self.in_flight.swap_remove(at);
        load.on_completed(CompletedRequest {
            ticket,
            sent_at: sent,
            ended_at: at,
            bytes_out: 10,
            bytes_in: 20,
            outcome: verdict,
        });
        lock(&self.tool).answered();
        self.world.step();
        true
    }

    fn give_up(&mut self, load: &mut dyn Load) {
        let now = load.now();
        for flight in self.in_flight.drain(..) {
            load.on_completed(CompletedRequest::unanswered(flight.ticket, flight.sent, now));
        }
        self.world.step();
    }
}

#[async_trait]
impl LoadExecutor for SimulatedRepeater {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Error> {
        let news = load.wakeup();
        loop {
            while self.deliver_next(load) {}
            if lock(&self.tool).has_died() {
                self.give_up(load);
                return Err(Error::unreachable("it died"));
            }
            let planned = match load.next(load.now()) {
                LoadDecision::Send(request) => {
                    let sent = load.now();
                    let (takes, verdict) = lock(&self.tool).answer(self.world.at(sent));
                    self.in_flight.push(SimulatedCall {
                        ends: sent + takes,
                        ticket: request.ticket,
                        sent,
                        verdict,
                    });
                    self.world.step();
                    continue;
                }
                LoadDecision::Drain(_) if self.in_flight.is_empty() => return Ok(()),
                LoadDecision::Drain(moment) if load.now() >= moment => {
                    self.give_up(load);
                    return Ok(());
                }
                LoadDecision::WaitUntil(moment) | LoadDecision::Drain(moment) => Some(moment),
                LoadDecision::WaitForWakeup => None,
            };
            let first = self.in_flight.iter().map(|flight| flight.ends).min();
            let wake = [planned, first].into_iter().flatten().min();
            let world = Arc::clone(&self.world);
            let woken = async {
                news.notified().await;
                world.step();
            };
            match wake {
                None => woken.await,
                Some(moment) => {
                    let alarm = pin!(self.world.until(moment));
                    futures_util::future::select(alarm, pin!(woken)).await;
                }
            }
        }
    }
}

/// A way to a tool that does not exist.
struct SimulatedConnector {
    name: String,
    world: Arc<SimulatedClock>,
    tool: Arc<Mutex<SimulatedTool>>,
}

#[async_trait]
impl ToolConnector for SimulatedConnector {
    fn tool(&self) -> String {
        self.name.clone()
    }

    async fn open(&self) -> Result<Box<dyn LoadExecutor>, Error> {
        lock(&self.tool).starts()?;
        let (world, tool) = (Arc::clone(&self.world), Arc::clone(&self.tool));
        Ok(Box::new(SimulatedRepeater { world, tool, in_flight: Vec::new() }))
    }
}

/// Runs a plan on these tools, which are called `a`, `b`, …
pub(crate) fn simulate(plan: &BenchPlan, tools: Vec<SimulatedTool>) -> BenchReport {
    simulate_with(plan, tools, |_, _| std::future::pending())
}

/// As [`simulate`], with a future beside it that may pause and stop the run.
pub(crate) fn simulate_with<F: Future<Output = ()>>(
    plan: &BenchPlan,
    tools: Vec<SimulatedTool>,
    beside: impl FnOnce(RunControl, Arc<SimulatedClock>) -> F,
) -> BenchReport {
    let world = SimulatedClock::new();
    let control = RunControl::default();
    let bench_target = |(name, tool): (char, SimulatedTool)| {
        let tool = Arc::new(Mutex::new(tool));
        let way = SimulatedConnector { name: name.to_string(), world: Arc::clone(&world), tool };
        let arguments = JsonObject::new().into();
        BenchTarget { connector: Arc::new(way), arguments }
    };
    let bench_targets = ('a'..='z').zip(tools).map(bench_target).collect();
    let watch = RunMonitor::default();
    let work =
        run_targets(plan, bench_targets, Arc::<SimulatedClock>::clone(&world), &control, &watch);
    let beside = beside(control.clone(), Arc::clone(&world));
    world
        .run(async {
            let mut work = pin!(work);
            let mut beside = pin!(futures_util::FutureExt::fuse(beside));
            poll_fn(|context| {
                let _done = beside.as_mut().poll(context);
                work.as_mut().poll(context)
            })
            .await
        })
        .expect("every way opens")
}
