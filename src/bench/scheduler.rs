//! The schedule of a plan for one target: the phase of its run, and when its next call is made.

use std::iter::Peekable;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::arrival_schedule;
use super::control::{RunControl, RunMonitor, RunPhase};
use super::meter::Meter;
use super::plan::{BenchPlan, LoadModel, OverflowPolicy};
use crate::util::lock::lock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScheduleDecision {
    Send(PlannedCall),
    /// Nothing is sent before this moment, if there is one, or a call ends.
    Wait(Option<Instant>),
    /// Nothing more is sent; calls in flight may end until then.
    Drain(Instant),
}

/// A call that is to be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedCall {
    /// Whether it counts; warm-up calls do not.
    pub is_counted: bool,
    /// Open loads: its moment, and from when on it could be sent.
    pub moments: Option<(Instant, Instant)>,
}

#[derive(Default)]
pub(super) struct Scheduler {
    plan: BenchPlan,
    /// Whether the calls count; those of a warm-up do not.
    is_counted: bool,
    control: RunControl,
    monitor: RunMonitor,
    meter: Arc<Mutex<Meter>>,
    /// The intended starts of an open load.
    starts: Option<Peekable<Box<dyn Iterator<Item = Duration> + Send>>>,
    sent: u64,
    failures: u64,
    /// When it began, as if there had been no pauses.
    began: Option<Instant>,
    room_since: Option<Instant>,
    paused_at: Option<Instant>,
    pub(super) paused: Duration,
    /// Whether too many calls failed.
    pub(super) is_aborted: bool,
    drain_deadline: Option<Instant>,
}

impl Scheduler {
    pub(super) fn new(
        (plan, is_counted): (BenchPlan, bool),
        control: RunControl,
        monitor: RunMonitor,
        meter: Arc<Mutex<Meter>>,
    ) -> Self {
        let mut scheduler = Self { is_counted, control, monitor, meter, ..Self::default() };
        if let LoadModel::Open { arrivals, .. } = plan.model {
            let starts: Box<dyn Iterator<Item = _> + Send> =
                Box::new(arrival_schedule::starts(arrivals, plan.limits, plan.seed));
            scheduler.starts = Some(starts.peekable());
        }
        Self { plan, ..scheduler }
    }

    fn is_stopping(&self) -> bool {
        self.control.is_stopped() || self.is_aborted
    }

    /// Whether there is no more to do. What counts may still follow a warm-up.
    pub(super) fn is_done(&mut self, now: Instant) -> bool {
        self.is_stopping() || (self.is_counted && self.is_over(now))
    }

    fn is_over(&mut self, now: Instant) -> bool {
        let has_calls = match &mut self.starts {
            Some(starts) => starts.peek().is_some(),
            None => self.plan.limits.requests.is_none_or(|requests| self.sent < requests),
        };
        !has_calls || self.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// When no more calls are made, if that is bounded and known.
    fn deadline(&self) -> Option<Instant> {
        self.began?.checked_add(self.plan.limits.duration?)
    }

    /// What is to be done now, with so many calls in flight. Asked again after each call that is
    /// sent, each that ended, and when what it said to wait for has come.
    pub(super) fn next(&mut self, now: Instant, in_flight: usize) -> ScheduleDecision {
        if let Some(deadline) = self.drain_deadline {
            return ScheduleDecision::Drain(deadline);
        }
        if self.is_stopping() {
            return self.drain(now, self.paused_at.unwrap_or(now));
        }
        if self.control.is_paused() {
            self.paused_at.get_or_insert(now);
            return ScheduleDecision::Wait(None);
        }
        self.end_pause(now);
        if self.began.is_none() {
            self.began = Some(now);
            let mut state = self.monitor.lock();
            if self.is_counted {
                (state.phase, state.began) = (RunPhase::Measuring, Some(now));
            } else {
                state.phase = RunPhase::WarmUp;
            }
        }
        if self.is_over(now) {
            // The clock starts when nothing of the warm-up is in the way any more.
            if !self.is_counted && in_flight > 0 {
                return ScheduleDecision::Wait(None);
            }
            return self.drain(now, now);
        }
        let moments = match self.plan.model {
            LoadModel::Closed { concurrency } if in_flight < concurrency => None,
            LoadModel::Closed { .. } => return ScheduleDecision::Wait(self.deadline()),
            LoadModel::Open { in_flight: lanes, overflow, .. } => {
                if in_flight >= lanes && overflow == OverflowPolicy::Drop {
                    self.drop_due(now);
                }
                match self.next_moment() {
                    None => return self.drain(now, now),
                    Some(moment) if moment > now => {
                        return ScheduleDecision::Wait(Some(moment));
                    }
                    Some(_) if in_flight >= lanes => {
                        return ScheduleDecision::Wait(self.deadline());
                    }
                    Some(moment) => {
                        self.take_moment();
                        Some((moment, self.room_since.map_or(moment, |since| since.max(moment))))
                    }
                }
            }
        };
        self.sent += 1;
        ScheduleDecision::Send(PlannedCall { is_counted: self.is_counted, moments })
    }

    /// Ends the sending. What was overdue by `until` and could not be made is accounted for.
    fn drain(&mut self, now: Instant, until: Instant) -> ScheduleDecision {
        self.drop_due(until);
        if self.is_counted && self.began.is_some() {
            self.monitor.lock().phase = RunPhase::Draining;
        }
        let deadline = now + self.plan.drain_timeout;
        self.drain_deadline = Some(deadline);
        ScheduleDecision::Drain(deadline)
    }

    /// The moment of the next call of an open load; it stays the next one until it is taken.
    fn next_moment(&mut self) -> Option<Instant> {
        let due = *self.starts.as_mut()?.peek()?;
        self.began?.checked_add(due)
    }

    fn take_moment(&mut self) {
        self.starts.as_mut().and_then(Iterator::next);
    }

    fn drop_due(&mut self, now: Instant) {
        while self.next_moment().is_some_and(|moment| moment <= now) {
            self.take_moment();
            lock(&self.meter).report.dropped += 1;
        }
    }

    /// A call ended, and left so many in flight; `has_failed` of one that counts.
    pub(super) fn call_ended(&mut self, at: Instant, has_failed: bool, in_flight: usize) {
        if let LoadModel::Open { in_flight: lanes, .. } = self.plan.model
            && in_flight + 1 == lanes
        {
            self.room_since = Some(at);
        }
        if has_failed {
            self.failures += 1;
            let limit = self.plan.stop_after_failures;
            self.is_aborted |= limit.is_some_and(|limit| self.failures >= limit);
        }
    }

    pub(super) fn reconnected(&mut self, now: Instant) {
        // What came due meanwhile could not be sent: that is the tool's doing.
        self.room_since = self.room_since.max(Some(now));
    }

    /// Ends a pause: everything that counts from a moment counts from as much later.
    fn end_pause(&mut self, now: Instant) {
        let Some(since) = self.paused_at.take() else { return };
        let pause = now.saturating_duration_since(since);
        self.paused += pause;
        for moment in [&mut self.began, &mut self.room_since] {
            *moment = moment.and_then(|moment| moment.checked_add(pause));
        }
        // A call that ended in the pause made room in it.
        self.room_since = self.room_since.map(|since| since.min(now));
        lock(&self.meter).exclude_pause(pause);
    }
}
