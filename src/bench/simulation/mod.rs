//! Simulated tools, the distributions of their delays, and a virtual clock: whole runs in no time, and the
//! same each time. For tests.

#![expect(
    clippy::disallowed_methods,
    clippy::unchecked_time_subtraction,
    clippy::cast_possible_truncation,
    reason = "test code outside of #[test] functions, on times it made itself"
)]

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
use super::control::{RunControl, RunMonitor};
use super::plan::BenchPlan;
use super::report::BenchReport;
use super::target_worker::{BenchTarget, RunHandles, ToolConnector};
use crate::host::load::{CompletedCall, LoadCall, LoadExecutor, LoadOutcome};
use crate::model::{Error, ErrorKind, JsonObject, ToolCall, ToolName};
use crate::util::clock::{Clock, SystemClock};
use crate::util::lock::lock;

mod accuracy;

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

/// How long a tool works on a call.
#[derive(Debug, Clone)]
pub(crate) enum DelayLaw {
    /// Always as long.
    Fixed(Duration),
    /// The first with this chance, else the second.
    Bimodal(Duration, Duration, f64),
    Exponential(Duration),
}

/// A tool that does not exist.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedTool {
    law: DelayLaw,
    random: fastrand::Rng,
    /// When each of its servers is free, when it has only so many.
    servers: Option<Vec<Duration>>,
    /// It works on nothing for the second in every stretch of the first.
    stall: Option<(Duration, Duration)>,
    /// With this chance a call fails: it is refused, times out, or breaks the protocol.
    failure_chance: f64,
    /// It dies after so many answers, each time it was started.
    answers_per_start: Option<u64>,
    left: Option<u64>,
    starts: u64,
}

impl SimulatedTool {
    pub(crate) fn new(law: DelayLaw, seed: u64) -> Self {
        Self {
            law,
            random: fastrand::Rng::with_seed(seed),
            servers: None,
            stall: None,
            failure_chance: 0.0,
            answers_per_start: None,
            left: None,
            starts: u64::MAX,
        }
    }

    /// Limits how many calls are served at once; others wait.
    pub(crate) fn servers(self, servers: usize) -> Self {
        Self { servers: Some(vec![Duration::ZERO; servers]), ..self }
    }

    /// At the beginning of every stretch but the first it stands still for a while.
    pub(crate) fn stalls(self, every: Duration, lasting: Duration) -> Self {
        Self { stall: Some((every, lasting)), ..self }
    }

    pub(crate) fn fails(self, failing: f64) -> Self {
        Self { failure_chance: failing, ..self }
    }

    /// Makes the tool die after `life` answers; it can be started `starts` times.
    pub(crate) fn lives(self, life: u64, starts: u64) -> Self {
        Self { answers_per_start: Some(life), starts, ..self }
    }

    fn starts(&mut self) -> Result<(), Error> {
        if self.starts == 0 {
            return Err(Error::unreachable("it does not start any more"));
        }
        self.starts -= 1;
        self.left = self.answers_per_start;
        Ok(())
    }

    fn answered(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }

    /// Whether it has lived its life.
    fn has_died(&self) -> bool {
        self.left == Some(0)
    }

    /// How long a call takes that comes now, and what becomes of it.
    fn answer(&mut self, now: Duration) -> (Duration, LoadOutcome) {
        let works = match self.law {
            DelayLaw::Fixed(time) => time,
            DelayLaw::Bimodal(first, second, chance) => {
                if self.random.f64() < chance {
                    first
                } else {
                    second
                }
            }
            DelayLaw::Exponential(mean) => mean.mul_f64(-(1.0 - self.random.f64()).ln()),
        };
        let mut begins = now;
        let free = self.servers.as_mut().and_then(|all| all.iter_mut().min());
        if let Some(free) = &free {
            begins = begins.max(**free);
        }
        if let Some((every, lasting)) = self.stall {
            let into = Duration::from_nanos((begins.as_nanos() % every.as_nanos()) as u64);
            if begins >= every && into < lasting {
                begins += lasting - into;
            }
        }
        let ends = begins + works;
        if let Some(free) = free {
            *free = ends;
        }
        let verdict = if self.random.f64() < self.failure_chance {
            match self.random.u8(0..3) {
                0 => LoadOutcome::ToolError("no".into()),
                1 => LoadOutcome::Failed(Box::new(Error::new(ErrorKind::Timeout, "too late"))),
                _ => LoadOutcome::Failed(Box::new(Error::protocol("nonsense"))),
            }
        } else {
            LoadOutcome::Ok
        };
        (ends - now, verdict)
    }
}
