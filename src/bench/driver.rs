//! Drives the load of one target: sends calls when the scheduler allows and meters their results.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::host::load::{BenchRequest, CompletedRequest, Load, LoadDecision, LoadOutcome};
use crate::util::clock::Clock;

use super::arguments::ArgumentRows;
pub use super::control::RunControl;
use super::meter::{Meter, PendingCall};
use super::monitor::RunMonitor;
use super::plan::BenchPlan;
use super::scheduler::{ScheduleDecision, Scheduler};

pub struct LoadDriver {
    clock: Arc<dyn Clock>,
    arguments: ArgumentRows,
    meter: Arc<Mutex<Meter>>,
    wake: Arc<Notify>,
    pub(super) scheduler: Scheduler,
    /// Calls that were handed out, ever and before the current executor.
    sent: u64,
    first_number: u64,
    in_flight: HashMap<u64, PendingCall>,
    /// When patience with what is in flight ends.
    drain_deadline: Option<Instant>,
}

impl LoadDriver {
    /// A load that has nothing to do before it gets a plan.
    pub(super) fn idle(
        clock: Arc<dyn Clock>,
        control: &RunControl,
        arguments: ArgumentRows,
    ) -> Self {
        let news = Arc::new(Notify::new());
        control.listen(Arc::clone(&news));
        let meter = Arc::default();
        let scheduler = Scheduler::new(
            BenchPlan::default(),
            control.clone(),
            RunMonitor::default(),
            Arc::clone(&meter),
        );
        Self {
            clock,
            arguments,
            meter,
            wake: news,
            scheduler,
            sent: 0,
            first_number: 0,
            in_flight: HashMap::default(),
            drain_deadline: None,
        }
    }

    pub(super) fn follow(&mut self, plan: BenchPlan, control: &RunControl, watch: &RunMonitor) {
        let meter = Arc::clone(&self.meter);
        self.scheduler = Scheduler::new(plan, control.clone(), watch.clone(), meter);
        self.drain_deadline = None;
    }

    /// The meter, shared so that it can be read while the run goes on.
    pub fn meter(&self) -> Arc<Mutex<Meter>> {
        Arc::clone(&self.meter)
    }

    pub(super) fn is_done(&mut self) -> bool {
        let now = self.clock.now();
        self.drain_deadline.is_some() || self.scheduler.is_done(now)
    }

    /// How many calls the tool answered, with a result or an error.
    pub(super) fn answered(&self) -> u64 {
        let meter = self.lock_meter();
        meter.report.ok + meter.report.tool_errors + meter.warm_up_answered
    }

    /// The connection that carried the calls is gone: how those in flight ended stays unknown.
    pub(super) fn give_up_in_flight(&mut self) {
        let at = self.clock.now();
        let mut lost: Vec<u64> = self.in_flight.keys().copied().collect();
        lost.sort_unstable();
        for number in lost {
            self.on_completed(CompletedRequest::unanswered(number - self.first_number, at, at));
        }
    }

    /// The way to the tool is open again: calls of the next executor are numbered from 0.
    pub(super) fn reconnected(&mut self) {
        self.first_number = self.sent;
        self.scheduler.reconnected(self.clock.now());
    }

    fn lock_meter(&self) -> MutexGuard<'_, Meter> {
        lock(&self.meter)
    }

    fn drain(&mut self, now: Instant, patience: Duration) -> LoadDecision {
        if self.drain_deadline.is_none() {
            self.scheduler.begin_draining();
        }
        LoadDecision::Drain(*self.drain_deadline.get_or_insert(now + patience))
    }
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
            match self.scheduler.next(now) {
                ScheduleDecision::WaitUntil(moment) => return LoadDecision::WaitUntil(moment),
                ScheduleDecision::Wait => return LoadDecision::WaitForWakeup,
                ScheduleDecision::Done => {
                    return self.drain(now, self.scheduler.drain_timeout());
                }
                ScheduleDecision::Drop => self.lock_meter().report.dropped += 1,
                ScheduleDecision::Send(call) => {
                    let number = self.sent;
                    self.sent += 1;
                    let from = call.planned.map_or(now, |(intended, _)| intended);
                    // The first one ever, not of each plan.
                    let call = PendingCall { first: number == 0, ..call };
                    self.in_flight.insert(number, call);
                    self.lock_meter().call_sent(from, call.is_counted);
                    let arguments = Arc::clone(self.arguments.of_call(number));
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
        drop(meter);
        self.scheduler.call_ended(end.ended_at, call.is_counted, failed);
    }

    fn wakeup(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }
}
