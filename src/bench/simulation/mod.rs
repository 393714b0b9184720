//! Simulated tools on a virtual clock: whole runs in no time, and the same each time. For tests.

#![expect(
    clippy::disallowed_methods,
    clippy::unchecked_time_subtraction,
    clippy::cast_possible_truncation,
    reason = "test code outside of #[test] functions, on times it made itself"
)]

mod accuracy;
mod simulated_tool;

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::bench_runner::run_targets;
use super::control::RunControl;
use super::monitor::RunMonitor;
use super::plan::BenchPlan;
use super::report::BenchReport;
use super::target_worker::{BenchTarget, RunHandles, ToolConnector};
use crate::host::load::{CompletedCall, LoadCall, LoadExecutor};
use crate::model::{Error, JsonObject, ToolCall, ToolName};
use crate::util::clock::{Clock, SystemClock};
use crate::util::lock::lock;
pub(crate) use simulated_tool::{DelayLaw, SimulatedTool};

#[derive(Debug)]
pub(crate) struct SimulatedClock {
    start: Instant,
    now: Mutex<Duration>,
    /// The moments at which waiting tasks wake.
    alarms: Mutex<BTreeMap<Duration, Vec<Waker>>>,
}

/// Whether the work was woken.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl SimulatedClock {
    pub(crate) fn new() -> Arc<Self> {
        let start = SystemClock.now();
        Arc::new(Self { start, now: Mutex::default(), alarms: Mutex::default() })
    }

    fn at(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.start)
    }

    /// Runs something to its end; time goes on whenever it waits.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut work = pin!(work);
        loop {
            if let Poll::Ready(outcome) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return outcome;
            }
            while !woken.0.swap(false, Ordering::Relaxed) {
                let next = self.alarms.lock().unwrap().pop_first();
                let (moment, wakers) = next.expect("everybody waits for nothing");
                let mut now = self.now.lock().unwrap();
                *now = moment.max(*now);
                wakers.into_iter().for_each(Waker::wake);
            }
        }
    }

    pub(crate) async fn until(&self, moment: Instant) {
        let moment = self.at(moment);
        poll_fn(|context| {
            if *self.now.lock().unwrap() >= moment {
                return Poll::Ready(());
            }
            let mut alarms = self.alarms.lock().unwrap();
            alarms.entry(moment).or_default().push(context.waker().clone());
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

struct SimulatedExecutor {
    world: Arc<SimulatedClock>,
    tool: Arc<Mutex<SimulatedTool>>,
}

#[async_trait]
impl LoadExecutor for SimulatedExecutor {
    fn call(&mut self, call: &Arc<LoadCall>) -> (Instant, BoxFuture<'static, CompletedCall>) {
        let sent_at = self.world.now();
        let (takes, outcome) = lock(&self.tool).answer(self.world.at(sent_at));
        let (world, tool) = (Arc::clone(&self.world), Arc::clone(&self.tool));
        let bytes_out = call.bytes;
        let call = async move {
            let ended_at = sent_at + takes;
            world.until(ended_at).await;
            lock(&tool).answered();
            CompletedCall { ended_at, bytes_out, bytes_in: 20, outcome }
        };
        (sent_at, Box::pin(call))
    }

    fn lost(&self) -> Option<Error> {
        lock(&self.tool).has_died().then(|| Error::unreachable("it died"))
    }

    async fn until(&mut self, moment: Instant) {
        self.world.until(moment).await;
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
        Ok(Box::new(SimulatedExecutor { world, tool }))
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
        let call = ToolCall { name: ToolName::plain(name), arguments: JsonObject::new() };
        let arguments = LoadCall { call, bytes: 10 }.into();
        BenchTarget { connector: Arc::new(way), arguments }
    };
    let bench_targets = ('a'..='z').zip(tools).map(bench_target).collect();
    let clock = Arc::<SimulatedClock>::clone(&world);
    let handles = RunHandles { clock, control: control.clone(), monitor: RunMonitor::default() };
    let work = run_targets(plan, bench_targets, handles);
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
