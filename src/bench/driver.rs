//! Drives the load of one target: sends calls when the scheduler allows and meters their results.
//!
//! Owns: the calls of this target that are in flight. Pure but for the clock it is given.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::model::JsonObject;
use crate::provider::load::{
    BenchRequest, CompletedRequest, EncodedArguments, Load, LoadDecision, LoadOutcome,
};
use crate::util::clock::Clock;

pub use super::control::RunControl;
use super::meter::{Meter, PendingCall};
use super::monitor::RunMonitor;
use super::plan::BenchPlan;
use super::scheduler::{ScheduleDecision, ScheduledTarget, Scheduler};
use super::target_arrivals::TargetArrivals;

/// The arguments of the calls, one after the other.
pub trait ArgumentStream: Send {
    /// The arguments of the call with this number; the same ones whenever it is asked for.
    fn payload(&mut self, ticket: u64) -> Arc<EncodedArguments>;
}

/// The arguments of a load that is over.
struct NoArguments;

impl ArgumentStream for NoArguments {
    fn payload(&mut self, _ticket: u64) -> Arc<EncodedArguments> {
        Arc::new(EncodedArguments::new(JsonObject::new()))
    }
}

/// Tickets are numbered by this program, so their hash needs no protection from chosen keys.
type TicketHash = BuildHasherDefault<TicketHasher>;

/// Spreads a number over all bits.
#[derive(Debug, Default)]
struct TicketHasher(u64);

impl Hasher for TicketHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Multiplicative hashing: 2^64 divided by the golden ratio.
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }
}

/// The load of one target.
pub struct LoadDriver {
    clock: Arc<dyn Clock>,
    arguments: Box<dyn ArgumentStream>,
    meter: Arc<Mutex<Meter>>,
    wake: Arc<Notify>,
    scheduler: Arc<Mutex<Scheduler>>,
    /// Which one of the targets of the scheduler it is.
    target: usize,
    arrivals: Option<TargetArrivals>,
    /// Calls that were handed out, ever and before the current repeater.
    sent: u64,
    first_number: u64,
    in_flight: HashMap<u64, PendingCall, TicketHash>,
    /// When patience with what is in flight ends.
    drain_deadline: Option<Instant>,
}

impl LoadDriver {
    /// A load that has nothing to do before it enters a scheduler.
    pub(super) fn idle(
        clock: Arc<dyn Clock>,
        control: &RunControl,
        arguments: Box<dyn ArgumentStream>,
    ) -> Self {
        let news = Arc::new(Notify::new());
        control.listen(Arc::clone(&news));
        let nothing = Scheduler::new(
            BenchPlan::default(),
            control.clone(),
            RunMonitor::default(),
            Vec::new(),
        );
        Self {
            clock,
            arguments,
            meter: Arc::default(),
            wake: news,
            scheduler: Arc::new(Mutex::new(nothing)),
            target: 0,
            arrivals: None,
            sent: 0,
            first_number: 0,
            in_flight: HashMap::default(),
            drain_deadline: None,
        }
    }

    /// The scheduler's view of this target.
    pub(super) fn scheduled_target(&self, weight: f64) -> ScheduledTarget {
        ScheduledTarget { weight, wake: Arc::clone(&self.wake), meter: Arc::clone(&self.meter) }
    }

    /// Takes part in a scheduler from now on, as the target with this number.
    pub(super) fn join(&mut self, scheduler: &Arc<Mutex<Scheduler>>, who: usize) {
        self.scheduler = Arc::clone(scheduler);
        self.target = who;
        self.arrivals = lock(scheduler).arrivals_of(who);
        self.drain_deadline = None;
    }

    /// The meter, shared so that it can be read while the run goes on.
    pub fn meter(&self) -> Arc<Mutex<Meter>> {
        Arc::clone(&self.meter)
    }

    /// The arguments, for another load of the same calls; this one is over.
    pub(super) fn take_arguments(&mut self) -> Box<dyn ArgumentStream> {
        std::mem::replace(&mut self.arguments, Box::new(NoArguments))
    }

    /// The arguments of the call with this number.
    pub(super) fn arguments_of(&mut self, number: u64) -> Arc<EncodedArguments> {
        self.arguments.payload(number)
    }

    /// Whether nothing is left to send.
    pub(super) fn is_done(&mut self) -> bool {
        let now = self.clock.now();
        self.drain_deadline.is_some() || lock(&self.scheduler).is_done(self.arrivals.as_mut(), now)
    }

    /// How many calls the tool answered, with a result or an error.
    pub(super) fn answered(&self) -> u64 {
        let meter = self.lock_meter();
        meter.ok + meter.tool_errors + meter.warm_up_answered
    }

    /// The connection that carried the calls is gone: how those in flight ended stays unknown.
    /// Calls of the next repeater are numbered from 0 again.
    pub(super) fn give_up_in_flight(&mut self) {
        let at = self.clock.now();
        let mut lost: Vec<u64> = self.in_flight.keys().copied().collect();
        lost.sort_unstable();
        for number in lost {
            self.on_completed(CompletedRequest::unanswered(number - self.first_number, at, at));
        }
    }

    /// A new repeater begins.
    pub(super) fn restart_numbering(&mut self) {
        self.first_number = self.sent;
    }

    /// The way to the tool is closed, or open again.
    pub(super) fn set_connected(&self, up: bool) {
        self.lock_scheduler().set_connected(self.target, up, self.clock.now());
    }

    fn lock_scheduler(&self) -> MutexGuard<'_, Scheduler> {
        lock(&self.scheduler)
    }

    fn lock_meter(&self) -> MutexGuard<'_, Meter> {
        lock(&self.meter)
    }

    fn drain(&mut self, now: Instant, patience: Duration) -> LoadDecision {
        if self.drain_deadline.is_none() {
            self.lock_scheduler().begin_draining(self.target);
        }
        LoadDecision::Drain(*self.drain_deadline.get_or_insert(now + patience))
    }
}

/// A scheduler that several can take part in.
pub(super) fn shared_scheduler(
    plan: BenchPlan,
    control: &RunControl,
    watch: &RunMonitor,
    targets: Vec<ScheduledTarget>,
) -> Arc<Mutex<Scheduler>> {
    Arc::new(Mutex::new(Scheduler::new(plan, control.clone(), watch.clone(), targets)))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Load for LoadDriver {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn next(&mut self, now: Instant) -> LoadDecision {
        if let Some(over) = self.drain_deadline {
            return LoadDecision::Drain(over);
        }
        loop {
            let mut scheduler = lock(&self.scheduler);
            let say = scheduler.next(self.target, self.arrivals.as_mut(), now);
            let patience = scheduler.drain_timeout();
            drop(scheduler);
            match say {
                ScheduleDecision::WaitUntil(moment) => return LoadDecision::WaitUntil(moment),
                ScheduleDecision::Wait => return LoadDecision::WaitForWakeup,
                ScheduleDecision::Done => return self.drain(now, patience),
                ScheduleDecision::Drop => self.lock_meter().dropped += 1,
                ScheduleDecision::Send(go) => {
                    let number = self.sent;
                    self.sent += 1;
                    let from = go.planned.map_or(now, |(intended, _)| intended);
                    let call = PendingCall {
                        first: number == 0,
                        is_counted: go.is_counted,
                        planned: go.planned,
                    };
                    self.in_flight.insert(number, call);
                    self.lock_meter().call_sent(from, go.is_counted);
                    let arguments = self.arguments.payload(number);
                    return LoadDecision::Send(BenchRequest {
                        ticket: number - self.first_number,
                        arguments,
                    });
                }
            }
        }
    }

    fn on_completed(&mut self, end: CompletedRequest) {
        let Some(call) = self.in_flight.remove(&(self.first_number + end.ticket)) else { return };
        let failed = !matches!(end.outcome, LoadOutcome::Ok | LoadOutcome::Unanswered);
        let mut meter = self.lock_meter();
        meter.call_ended(&end, call);
        let row = meter.consecutive_failures;
        drop(meter);
        let mut scheduler = self.lock_scheduler();
        scheduler.call_ended(self.target, end.ended_at, call.is_counted, failed);
        if failed && call.is_counted {
            scheduler.apply_stop_rules(row, end.ended_at);
        }
    }

    fn wakeup(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }
}
