//! The scheduler that all targets of a run share: the phase of the run, and which target calls
//! next.
//!
//! Owns: warm-up, bounds, calls in flight, pauses and the end, for all targets together. Pure: it is
//! told the time. Waking is the only thing it does to others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::control::RunControl;
use super::meter::Meter;
use super::monitor::{RunMonitor, RunPhase};
use super::plan::{BenchPlan, LoadModel, OverflowPolicy, StopRule, WarmUp};
use super::target_arrivals::{TargetArrivals, WeightedChoice};

/// One of the targets, as the scheduler sees it.
#[derive(Debug, Clone)]
pub(super) struct ScheduledTarget {
    pub(super) weight: f64,
    pub(super) wake: Arc<Notify>,
    pub(super) meter: Arc<Mutex<Meter>>,
}

/// What a target is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScheduleDecision {
    /// Send a call.
    Send(ScheduledCall),
    /// One of its calls is not made: too many are in flight.
    Drop,
    WaitUntil(Instant),
    Wait,
    /// There is nothing more to send.
    Done,
}

/// A call that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScheduledCall {
    /// Whether it counts, or warms up.
    pub(super) is_counted: bool,
    /// Open loads: its moment, and from when on it could be sent.
    pub(super) planned: Option<(Instant, Instant)>,
}

pub(super) struct Scheduler {
    plan: BenchPlan,
    control: RunControl,
    watch: RunMonitor,
    targets: Vec<ScheduledTarget>,
    connected: Vec<bool>,
    target_choice: WeightedChoice,
    /// Closed loads and warm-ups: whose call is next.
    chosen: Option<usize>,
    warm_up_sent: u64,
    counted_sent: u64,
    ended: u64,
    failures: u64,
    in_flight: usize,
    /// When the first call was handed out, and the first one that counts, as if there had been no
    /// pauses.
    began: Option<Instant>,
    counting_since: Option<Instant>,
    /// Since when there is room for another call.
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
        targets: Vec<ScheduledTarget>,
    ) -> Self {
        let weights = targets.iter().map(|target| target.weight).collect();
        Self {
            target_choice: WeightedChoice::new(weights, plan.seed),
            connected: vec![true; targets.len()],
            plan,
            control,
            watch,
            targets,
            chosen: None,
            warm_up_sent: 0,
            counted_sent: 0,
            ended: 0,
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

    /// The moments of one target, when the load is open.
    pub(super) fn arrivals_of(&self, of: usize) -> Option<TargetArrivals> {
        let LoadModel::Open { arrivals, .. } = &self.plan.model else { return None };
        let weights = self.targets.iter().map(|target| target.weight).collect();
        let BenchPlan { limits: until, seed, .. } = self.plan;
        Some(TargetArrivals::new(arrivals.clone(), weights, of, until, seed))
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

    /// Whether nothing is left for a target to send.
    pub(super) fn is_done(&self, moments: Option<&mut TargetArrivals>, now: Instant) -> bool {
        if self.is_stopping() {
            return true;
        }
        match moments {
            _ if self.counting_since.is_none() => false,
            Some(moments) => moments.peek().is_none() || self.is_past_deadline(now),
            None => self.has_reached_limit() || self.is_past_deadline(now),
        }
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

    pub(super) fn next(
        &mut self,
        who: usize,
        moments: Option<&mut TargetArrivals>,
        now: Instant,
    ) -> ScheduleDecision {
        if self.is_stopping() {
            return self.next_when_stopping(moments, now);
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
            return if self.may_send(who, lanes) {
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
            self.chosen = None;
            self.watch.lock().began = Some(now);
            self.set_phase(RunPhase::Measuring);
            self.wake_others(who);
        }
        match (&self.plan.model, moments) {
            (&LoadModel::Open { in_flight, overflow: over, .. }, Some(moments)) => {
                self.next_open(moments, now, in_flight, over)
            }
            (&LoadModel::Closed { concurrency }, _) => self.next_closed(who, now, concurrency),
            (LoadModel::Open { .. }, None) => ScheduleDecision::Done,
        }
    }

    /// What is to be done when the run was ended early: nothing, after what was overdue by then is
    /// accounted for.
    fn next_when_stopping(
        &self,
        moments: Option<&mut TargetArrivals>,
        now: Instant,
    ) -> ScheduleDecision {
        let Some((start, moments)) = self.counting_since.zip(moments) else {
            return ScheduleDecision::Done;
        };
        let now = self.paused_at.unwrap_or(now);
        match moments.peek().and_then(|due| start.checked_add(due)) {
            Some(moment) if moment <= now => {
                let _overdue = moments.take();
                ScheduleDecision::Drop
            }
            _ => ScheduleDecision::Done,
        }
    }

    fn next_closed(&mut self, who: usize, now: Instant, lanes: usize) -> ScheduleDecision {
        if self.has_reached_limit() || self.is_past_deadline(now) {
            return ScheduleDecision::Done;
        }
        if !self.may_send(who, lanes) {
            return self.wait();
        }
        let say = self.send(now, true, None);
        if self.has_reached_limit() {
            self.wake_others(who);
        }
        say
    }

    fn next_open(
        &mut self,
        moments: &mut TargetArrivals,
        now: Instant,
        lanes: usize,
        over: OverflowPolicy,
    ) -> ScheduleDecision {
        let Some(start) = self.counting_since else { return ScheduleDecision::Wait };
        let Some(moment) = moments.peek().and_then(|due| start.checked_add(due)) else {
            return ScheduleDecision::Done;
        };
        if self.is_past_deadline(now) {
            // What could not be made in time is not forgotten.
            let _late = moments.take();
            return ScheduleDecision::Drop;
        }
        if moment > now {
            return ScheduleDecision::WaitUntil(moment);
        }
        if self.in_flight < lanes {
            let _taken = moments.take();
            let ready = self.room_since.map_or(moment, |since| since.max(moment));
            return self.send(now, true, Some((moment, ready)));
        }
        match over {
            OverflowPolicy::Queue => self.wait(),
            OverflowPolicy::Drop => {
                let _dropped = moments.take();
                ScheduleDecision::Drop
            }
        }
    }

    /// Whether the next call may be made and is this target's.
    fn may_send(&mut self, who: usize, lanes: usize) -> bool {
        if self.in_flight >= lanes {
            return false;
        }
        if self.chosen.is_none() {
            let up = &self.connected;
            self.chosen = self.target_choice.draw(|at| up[at]);
            if let Some(chosen) = self.chosen.filter(|chosen| *chosen != who) {
                self.targets[chosen].wake.notify_one();
            }
        }
        self.chosen == Some(who)
    }

    fn send(
        &mut self,
        now: Instant,
        counts: bool,
        planned: Option<(Instant, Instant)>,
    ) -> ScheduleDecision {
        self.chosen = None;
        self.began.get_or_insert(now);
        self.in_flight += 1;
        if counts {
            self.counted_sent += 1;
        } else {
            self.warm_up_sent += 1;
        }
        ScheduleDecision::Send(ScheduledCall { is_counted: counts, planned })
    }

    /// A call ended, at this time.
    pub(super) fn call_ended(&mut self, who: usize, at: Instant, counts: bool, failed: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let LoadModel::Open { in_flight, .. } = self.plan.model
            && self.in_flight + 1 == in_flight
        {
            self.room_since = Some(at);
            self.wake_others(who);
        }
        if counts {
            self.ended += 1;
            self.failures += u64::from(failed);
        } else if self.in_flight == 0 {
            self.wake_others(who);
        }
    }

    /// Whether the run has to end early, after `row` failures of one target in a row.
    pub(super) fn apply_stop_rules(&mut self, row: u64, at: Instant) {
        if self.plan.stop_rules.is_empty() || self.aborted {
            return;
        }
        let past =
            self.counting_since.map_or(Duration::ZERO, |from| at.saturating_duration_since(from));
        let grace = self.plan.minimum_sample;
        if self.ended < grace.calls || past < grace.time {
            return;
        }
        self.aborted = self.plan.stop_rules.iter().any(|rule| match rule {
            StopRule::ConsecutiveFailures(limit) => row >= *limit,
            StopRule::Failures(limit) => self.failures >= *limit,
        });
        if self.aborted {
            self.wake_others(usize::MAX);
        }
    }

    /// A target went away, or came back.
    pub(super) fn set_connected(&mut self, who: usize, up: bool, now: Instant) {
        self.connected[who] = up;
        if up {
            // What came due meanwhile could not be sent: that is the tool's doing.
            self.room_since = self.room_since.max(Some(now));
        } else if self.chosen == Some(who) {
            self.chosen = None;
        }
        self.wake_others(who);
    }

    /// Takes a target out of the run. After the last one only answers of calls in flight are
    /// awaited.
    pub(super) fn begin_draining(&mut self, who: usize) {
        self.connected[who] = false;
        if self.counting_since.is_some() && !self.connected.iter().any(|up| *up) {
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
        for target in &self.targets {
            target.meter.lock().unwrap_or_else(PoisonError::into_inner).exclude_pause(pause);
        }
        self.wake_others(usize::MAX);
    }

    fn set_phase(&self, phase: RunPhase) {
        let mut stage = self.watch.lock();
        if stage.phase != phase {
            stage.phase = phase;
        }
    }

    fn wake_others(&self, who: usize) {
        if self.targets.len() == 1 && who == 0 {
            return;
        }
        for (at, target) in self.targets.iter().enumerate() {
            if at != who {
                target.wake.notify_one();
            }
        }
    }
}
