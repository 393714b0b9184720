//! The scheduler of one target: the phase of its run, and when its next call is made.

use std::iter::Peekable;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::arrival_schedule::ArrivalSchedule;
use super::control::RunControl;
use super::meter::{Meter, PendingCall};
use super::monitor::{RunMonitor, RunPhase};
use super::plan::{BenchPlan, LoadModel, OverflowPolicy, WarmUp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScheduleDecision {
    Send(PendingCall),
    /// One of its calls is not made: too many are in flight.
    Drop,
    WaitUntil(Instant),
    Wait,
    /// There is nothing more to send.
    Done,
}

pub(super) struct Scheduler {
    plan: BenchPlan,
    control: RunControl,
    watch: RunMonitor,
    meter: Arc<Mutex<Meter>>,
    arrivals: Option<Peekable<ArrivalSchedule>>,
    warm_up_sent: u64,
    counted_sent: u64,
    failures: u64,
    in_flight: usize,
    /// When the first call was handed out, and the first one that counts, as if there had been no
    /// pauses.
    began: Option<Instant>,
    counting_since: Option<Instant>,
    room_since: Option<Instant>,
    paused_at: Option<Instant>,
    paused: Duration,
    aborted: bool,
}

impl Scheduler {
    pub(super) fn new(
        plan: BenchPlan,
        control: RunControl,
        watch: RunMonitor,
        meter: Arc<Mutex<Meter>>,
    ) -> Self {
        let arrivals = match plan.model {
            LoadModel::Open { arrivals, .. } => {
                Some(ArrivalSchedule::new(arrivals, plan.limits, plan.seed).peekable())
            }
            LoadModel::Closed { .. } => None,
        };
        Self {
            plan,
            control,
            watch,
            meter,
            arrivals,
            warm_up_sent: 0,
            counted_sent: 0,
            failures: 0,
            in_flight: 0,
            began: None,
            counting_since: None,
            room_since: None,
            paused_at: None,
            paused: Duration::ZERO,
            aborted: false,
        }
    }

    pub(super) fn drain_timeout(&self) -> Duration {
        self.plan.drain_timeout
    }

    pub(super) fn paused(&self) -> Duration {
        self.paused
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.aborted
    }

    fn is_stopping(&self) -> bool {
        self.control.is_stopped() || self.aborted
    }

    pub(super) fn is_done(&mut self, now: Instant) -> bool {
        if self.is_stopping() {
            return true;
        }
        if self.counting_since.is_none() {
            return false;
        }
        let is_over = match &mut self.arrivals {
            Some(arrivals) => arrivals.peek().is_none(),
            None => self.has_reached_limit(),
        };
        is_over || self.is_past_deadline(now)
    }

    fn has_reached_limit(&self) -> bool {
        self.plan.limits.requests.is_some_and(|requests| self.counted_sent >= requests)
    }

    fn is_past_deadline(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// When no more calls are made, if that is bounded and known.
    fn deadline(&self) -> Option<Instant> {
        self.counting_since?.checked_add(self.plan.limits.duration?)
    }

    /// Nothing can be sent now, but time may run out.
    fn wait(&self) -> ScheduleDecision {
        self.deadline().map_or(ScheduleDecision::Wait, ScheduleDecision::WaitUntil)
    }

    pub(super) fn next(&mut self, now: Instant) -> ScheduleDecision {
        if self.is_stopping() {
            return self.next_when_stopping(now);
        }
        if self.control.is_paused() {
            self.paused_at.get_or_insert(now);
            return ScheduleDecision::Wait;
        }
        self.end_pause(now);
        if self.is_warming_up(now) {
            let lanes = match self.plan.model {
                LoadModel::Closed { concurrency } => concurrency,
                // One after the other: the schedule begins afterwards.
                LoadModel::Open { .. } => 1,
            };
            self.set_phase(RunPhase::WarmUp);
            return if self.in_flight < lanes {
                self.send(now, false, None)
            } else {
                ScheduleDecision::Wait
            };
        }
        if self.counting_since.is_none() {
            // The clock starts when nothing of the warm-up is in the way any more.
            if self.in_flight > 0 {
                return ScheduleDecision::Wait;
            }
            self.counting_since = Some(now);
            self.watch.lock().began = Some(now);
            self.set_phase(RunPhase::Measuring);
        }
        match self.plan.model {
            LoadModel::Open { in_flight, overflow, .. } => self.next_open(now, in_flight, overflow),
            LoadModel::Closed { concurrency } => self.next_closed(now, concurrency),
        }
    }

    /// What is to be done when the run was ended early: nothing, after what was overdue by then is
    /// accounted for.
    fn next_when_stopping(&mut self, now: Instant) -> ScheduleDecision {
        let now = self.paused_at.unwrap_or(now);
        match self.next_moment() {
            Some(moment) if moment <= now => self.drop_due(),
            _ => ScheduleDecision::Done,
        }
    }

    /// The moment of the next call of an open load; it stays the next one until it is taken.
    fn next_moment(&mut self) -> Option<Instant> {
        let due = *self.arrivals.as_mut()?.peek()?;
        self.counting_since?.checked_add(due)
    }

    fn take_due(&mut self) {
        self.arrivals.as_mut().and_then(Iterator::next);
    }

    fn drop_due(&mut self) -> ScheduleDecision {
        self.take_due();
        ScheduleDecision::Drop
    }

    fn next_closed(&mut self, now: Instant, lanes: usize) -> ScheduleDecision {
        if self.has_reached_limit() || self.is_past_deadline(now) {
            return ScheduleDecision::Done;
        }
        if self.in_flight >= lanes {
            return self.wait();
        }
        self.send(now, true, None)
    }

    fn next_open(
        &mut self,
        now: Instant,
        lanes: usize,
        overflow: OverflowPolicy,
    ) -> ScheduleDecision {
        let Some(moment) = self.next_moment() else { return ScheduleDecision::Done };
        if self.is_past_deadline(now) {
            // What could not be made in time is not forgotten.
            return self.drop_due();
        }
        if moment > now {
            return ScheduleDecision::WaitUntil(moment);
        }
        if self.in_flight < lanes {
            self.take_due();
            let ready = self.room_since.map_or(moment, |since| since.max(moment));
            return self.send(now, true, Some((moment, ready)));
        }
        match overflow {
            OverflowPolicy::Queue => self.wait(),
            OverflowPolicy::Drop => self.drop_due(),
        }
    }

    fn send(
        &mut self,
        now: Instant,
        counts: bool,
        planned: Option<(Instant, Instant)>,
    ) -> ScheduleDecision {
        self.began.get_or_insert(now);
        self.in_flight += 1;
        if counts {
            self.counted_sent += 1;
        } else {
            self.warm_up_sent += 1;
        }
        ScheduleDecision::Send(PendingCall { first: false, is_counted: counts, planned })
    }

    pub(super) fn call_ended(&mut self, at: Instant, counts: bool, failed: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let LoadModel::Open { in_flight, .. } = self.plan.model
            && self.in_flight + 1 == in_flight
        {
            self.room_since = Some(at);
        }
        if counts && failed {
            self.failures += 1;
            let limit = self.plan.stop_after_failures;
            self.aborted |= limit.is_some_and(|limit| self.failures >= limit);
        }
    }

    pub(super) fn reconnected(&mut self, now: Instant) {
        // What came due meanwhile could not be sent: that is the tool's doing.
        self.room_since = self.room_since.max(Some(now));
    }

    pub(super) fn begin_draining(&self) {
        if self.counting_since.is_some() {
            self.set_phase(RunPhase::Draining);
        }
    }

    fn is_warming_up(&self, now: Instant) -> bool {
        self.counting_since.is_none()
            && match self.plan.warm_up {
                WarmUp::Calls(calls) => self.warm_up_sent < calls,
                WarmUp::Time(time) => {
                    let past = self.began.map(|began| now.saturating_duration_since(began));
                    past.is_none_or(|past| past < time) && !time.is_zero()
                }
            }
    }

    /// Ends a pause: everything that counts from a moment counts from as much later.
    fn end_pause(&mut self, now: Instant) {
        let Some(since) = self.paused_at.take() else { return };
        let pause = now.saturating_duration_since(since);
        self.paused += pause;
        for moment in [&mut self.began, &mut self.counting_since, &mut self.room_since] {
            *moment = moment.and_then(|moment| moment.checked_add(pause));
        }
        // A call that ended in the pause made room in it.
        self.room_since = self.room_since.map(|since| since.min(now));
        self.meter.lock().unwrap_or_else(PoisonError::into_inner).exclude_pause(pause);
    }

    fn set_phase(&self, phase: RunPhase) {
        self.watch.lock().phase = phase;
    }
}
