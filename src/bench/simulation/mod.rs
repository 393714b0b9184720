//! Tools that do not exist, in a time that does not pass: whole runs in no time, and the same each
//! time.
//!
//! Owns: a world with one clock, which goes to the next thing that happens when nobody has anything
//! to do; repeaters that answer by a law of delays. For tests.

#![expect(
    clippy::disallowed_methods,
    clippy::unchecked_time_subtraction,
    clippy::cast_possible_truncation,
    reason = "test code outside of #[test] functions, on times it made itself"
)]

mod law;
mod truth;

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::carry::Way;
use super::control::Control;
use super::driver::{Arguments, locked};
use super::plan::Plan;
use super::report::Report;
use super::run::{Leg, drive};
use super::watch::Watch;
use crate::model::{Fault, JsonObject};
use crate::provider::repeat::{End, Load, Next, Payload, Repeater, Verdict};
use crate::util::clock::{Clock, SystemClock};
pub(crate) use law::{Law, Tool};

/// The time of a simulation.
#[derive(Debug)]
pub(crate) struct World {
    start: Instant,
    now: Mutex<Duration>,
    /// When somebody wants to go on.
    alarms: Mutex<BTreeSet<Duration>>,
    /// Things that happened.
    steps: AtomicU64,
}

impl World {
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
            if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
                return done;
            }
            if self.steps.load(Ordering::Relaxed) == before {
                let next = self.alarms.lock().unwrap().pop_first();
                let mut now = self.now.lock().unwrap();
                *now = next.expect("everybody waits for nothing").max(*now);
            }
        }
    }

    /// Waits until a moment.
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

impl Clock for World {
    fn now(&self) -> Instant {
        self.start + *self.now.lock().unwrap()
    }

    fn unix(&self) -> Duration {
        Duration::from_hours(500_000) + *self.now.lock().unwrap()
    }
}

/// A call on its way.
#[derive(Debug)]
struct Flight {
    ends: Instant,
    ticket: u64,
    sent: Instant,
    verdict: Verdict,
}

struct Simulated {
    world: Arc<World>,
    tool: Arc<Mutex<Tool>>,
    flying: Vec<Flight>,
}

impl Simulated {
    /// Tells the call that has ended first by now.
    fn tell(&mut self, load: &mut dyn Load) -> bool {
        let now = load.now();
        let ended = self.flying.iter().enumerate().filter(|(_, flight)| flight.ends <= now);
        let Some((at, _)) = ended.min_by_key(|(_, flight)| (flight.ends, flight.ticket)) else {
            return false;
        };
        let Flight { ends: at, ticket, sent, verdict } = self.flying.swap_remove(at);
        load.ended(End { ticket, sent, at, bytes_out: 10, bytes_in: 20, verdict });
        locked(&self.tool).answered();
        self.world.step();
        true
    }

    fn give_up(&mut self, load: &mut dyn Load) {
        let now = load.now();
        for flight in self.flying.drain(..) {
            load.ended(End::unanswered(flight.ticket, flight.sent, now));
        }
        self.world.step();
    }
}

#[async_trait]
impl Repeater for Simulated {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Fault> {
        let news = load.news();
        loop {
            while self.tell(load) {}
            if locked(&self.tool).dies() {
                self.give_up(load);
                return Err(Fault::unreachable("it died"));
            }
            let wanted = match load.next(load.now()) {
                Next::Shot(shot) => {
                    let sent = load.now();
                    let (takes, verdict) = locked(&self.tool).answer(self.world.at(sent));
                    self.flying.push(Flight {
                        ends: sent + takes,
                        ticket: shot.ticket,
                        sent,
                        verdict,
                    });
                    self.world.step();
                    continue;
                }
                Next::Drain(_) if self.flying.is_empty() => return Ok(()),
                Next::Drain(moment) if load.now() >= moment => {
                    self.give_up(load);
                    return Ok(());
                }
                Next::At(moment) | Next::Drain(moment) => Some(moment),
                Next::Wait => None,
            };
            let first = self.flying.iter().map(|flight| flight.ends).min();
            let wake = [wanted, first].into_iter().flatten().min();
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
struct Imagined {
    name: String,
    world: Arc<World>,
    tool: Arc<Mutex<Tool>>,
}

#[async_trait]
impl Way for Imagined {
    fn tool(&self) -> String {
        self.name.clone()
    }

    async fn open(&self, _lanes: usize) -> Result<Box<dyn Repeater>, Fault> {
        locked(&self.tool).starts()?;
        let (world, tool) = (Arc::clone(&self.world), Arc::clone(&self.tool));
        Ok(Box::new(Simulated { world, tool, flying: Vec::new() }))
    }
}

/// The same arguments for every call: none.
struct Nothing(Arc<Payload>);

impl Arguments for Nothing {
    fn of(&mut self, _ticket: u64) -> Arc<Payload> {
        Arc::clone(&self.0)
    }
}

/// Runs a plan on tools `a`, `b`, … of these weights.
pub(crate) fn simulate(plan: &Plan, tools: Vec<(Tool, f64)>) -> Report {
    simulate_with(plan, tools, |_, _| std::future::pending())
}

/// As [`simulate`], with somebody beside it who may turn the switches.
pub(crate) fn simulate_with<F: Future<Output = ()>>(
    plan: &Plan,
    tools: Vec<(Tool, f64)>,
    beside: impl FnOnce(Control, Arc<World>) -> F,
) -> Report {
    let world = World::new();
    let control = Control::default();
    let leg = |(name, (tool, weight)): (char, (Tool, f64))| {
        let tool = Arc::new(Mutex::new(tool));
        let way = Imagined { name: name.to_string(), world: Arc::clone(&world), tool };
        let arguments = Box::new(Nothing(Arc::new(Payload::new(JsonObject::new()))));
        Leg { way: Arc::new(way), arguments, weight }
    };
    let legs = ('a'..='z').zip(tools).map(leg).collect();
    let watch = Watch::default();
    let work = drive(plan, legs, Arc::<World>::clone(&world), &control, &watch);
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
