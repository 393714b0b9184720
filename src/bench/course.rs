//! What the targets of a run have in common: how far it is, and whose call is next.
//!
//! Owns: warm-up, bounds, calls in flight, pauses and the end, for all targets together. Pure: it is
//! told the time. Waking is the only thing it does to others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::control::Control;
use super::meter::Meter;
use super::moments::{Choice, Moments};
use super::plan::{Model, Over, Plan, StopRule, WarmUp};
use super::watch::{Phase, Watch};

/// One of the targets, as the course sees it.
#[derive(Debug, Clone)]
pub(super) struct Runner {
    pub(super) weight: f64,
    pub(super) news: Arc<Notify>,
    pub(super) meter: Arc<Mutex<Meter>>,
}

/// What a target is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    /// Send a call.
    Go(Go),
    /// One of its calls is not made: too many are in flight.
    Drop,
    At(Instant),
    Wait,
    /// There is nothing more to send.
    Over,
}

/// A call that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Go {
    /// Whether it counts, or warms up.
    pub(super) counts: bool,
    /// Open loads: its moment, and from when on it could be sent.
    pub(super) planned: Option<(Instant, Instant)>,
}

pub(super) struct Course {
    plan: Plan,
    control: Control,
    watch: Watch,
    runners: Vec<Runner>,
    up: Vec<bool>,
    choice: Choice,
    /// Closed loads and warm-ups: whose call is next.
    chosen: Option<usize>,
    warm: u64,
    counted: u64,
    ended: u64,
    failures: u64,
    in_flight: usize,
    /// When the first call was handed out, and the first one that counts, as if there had been no
    /// pauses.
    began: Option<Instant>,
    counting: Option<Instant>,
    /// Since when there is room for another call.
    room_since: Option<Instant>,
    paused_at: Option<Instant>,
    paused: Duration,
    aborted: bool,
}

impl Course {
    pub(super) fn new(plan: Plan, control: Control, watch: Watch, runners: Vec<Runner>) -> Self {
        let weights = runners.iter().map(|runner| runner.weight).collect();
        Self {
            choice: Choice::new(weights, plan.seed),
            up: vec![true; runners.len()],
            plan,
            control,
            watch,
            runners,
            chosen: None,
            warm: 0,
            counted: 0,
            ended: 0,
            failures: 0,
            in_flight: 0,
            began: None,
            counting: None,
            room_since: None,
            paused_at: None,
            paused: Duration::ZERO,
            aborted: false,
        }
    }

    /// The moments of one target, when the load is open.
    pub(super) fn moments(&self, of: usize) -> Option<Moments> {
        let Model::Open { arrivals, .. } = &self.plan.model else { return None };
        let weights = self.runners.iter().map(|runner| runner.weight).collect();
        let Plan { until, seed, .. } = self.plan;
        Some(Moments::new(arrivals.clone(), weights, of, until, seed))
    }

    pub(super) fn patience(&self) -> Duration {
        self.plan.patience
    }

    pub(super) fn paused(&self) -> Duration {
        self.paused
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.aborted
    }

    fn is_halted(&self) -> bool {
        self.control.is_stopped() || self.aborted
    }

    /// Whether nothing is left for a target to send.
    pub(super) fn is_over(&self, moments: Option<&mut Moments>, now: Instant) -> bool {
        if self.is_halted() {
            return true;
        }
        match moments {
            _ if self.counting.is_none() => false,
            Some(moments) => moments.due().is_none() || self.is_late(now),
            None => self.is_enough() || self.is_late(now),
        }
    }

    fn is_enough(&self) -> bool {
        self.plan.until.requests.is_some_and(|requests| self.counted >= requests)
    }

    fn is_late(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline)
    }

    /// When no more calls are made, if that is bounded and known.
    fn deadline(&self) -> Option<Instant> {
        self.counting?.checked_add(self.plan.until.duration?)
    }

    /// Nothing can be sent now, but time may run out.
    fn wait(&self) -> Say {
        self.deadline().map_or(Say::Wait, Say::At)
    }

    pub(super) fn next(&mut self, who: usize, moments: Option<&mut Moments>, now: Instant) -> Say {
        if self.is_halted() {
            return self.halted(moments, now);
        }
        if self.control.is_paused() {
            self.paused_at.get_or_insert(now);
            return Say::Wait;
        }
        self.go_on(now);
        if self.warms_up(now) {
            let lanes = match self.plan.model {
                Model::Closed { concurrency } => concurrency,
                // One after the other: the schedule begins afterwards.
                Model::Open { .. } => 1,
            };
            self.enter(Phase::WarmUp);
            return if self.is_next(who, lanes) { self.go(now, false, None) } else { Say::Wait };
        }
        if self.counting.is_none() {
            // The clock starts when nothing of the warm-up is in the way any more.
            if self.in_flight > 0 {
                return Say::Wait;
            }
            self.counting = Some(now);
            self.chosen = None;
            self.watch.stage().began = Some(now);
            self.enter(Phase::Measuring);
            self.wake_others(who);
        }
        match (&self.plan.model, moments) {
            (&Model::Open { in_flight, over, .. }, Some(moments)) => {
                self.open(moments, now, in_flight, over)
            }
            (&Model::Closed { concurrency }, _) => self.closed(who, now, concurrency),
            (Model::Open { .. }, None) => Say::Over,
        }
    }

    /// What is to be done when the run was ended early: nothing, after what was overdue by then is
    /// accounted for.
    fn halted(&self, moments: Option<&mut Moments>, now: Instant) -> Say {
        let Some((start, moments)) = self.counting.zip(moments) else { return Say::Over };
        let now = self.paused_at.unwrap_or(now);
        match moments.due().and_then(|due| start.checked_add(due)) {
            Some(moment) if moment <= now => {
                let _overdue = moments.take();
                Say::Drop
            }
            _ => Say::Over,
        }
    }

    fn closed(&mut self, who: usize, now: Instant, lanes: usize) -> Say {
        if self.is_enough() || self.is_late(now) {
            return Say::Over;
        }
        if !self.is_next(who, lanes) {
            return self.wait();
        }
        let say = self.go(now, true, None);
        if self.is_enough() {
            self.wake_others(who);
        }
        say
    }

    fn open(&mut self, moments: &mut Moments, now: Instant, lanes: usize, over: Over) -> Say {
        let Some(start) = self.counting else { return Say::Wait };
        let Some(moment) = moments.due().and_then(|due| start.checked_add(due)) else {
            return Say::Over;
        };
        if self.is_late(now) {
            // What could not be made in time is not forgotten.
            let _late = moments.take();
            return Say::Drop;
        }
        if moment > now {
            return Say::At(moment);
        }
        if self.in_flight < lanes {
            let _taken = moments.take();
            let ready = self.room_since.map_or(moment, |since| since.max(moment));
            return self.go(now, true, Some((moment, ready)));
        }
        match over {
            Over::Queue => self.wait(),
            Over::Drop => {
                let _dropped = moments.take();
                Say::Drop
            }
        }
    }

    /// Whether the next call may be made and is this target's.
    fn is_next(&mut self, who: usize, lanes: usize) -> bool {
        if self.in_flight >= lanes {
            return false;
        }
        if self.chosen.is_none() {
            let up = &self.up;
            self.chosen = self.choice.draw(|at| up[at]);
            if let Some(chosen) = self.chosen.filter(|chosen| *chosen != who) {
                self.runners[chosen].news.notify_one();
            }
        }
        self.chosen == Some(who)
    }

    fn go(&mut self, now: Instant, counts: bool, planned: Option<(Instant, Instant)>) -> Say {
        self.chosen = None;
        self.began.get_or_insert(now);
        self.in_flight += 1;
        if counts {
            self.counted += 1;
        } else {
            self.warm += 1;
        }
        Say::Go(Go { counts, planned })
    }

    /// A call ended, at this time.
    pub(super) fn ended(&mut self, who: usize, at: Instant, counts: bool, failed: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Model::Open { in_flight, .. } = self.plan.model
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
    pub(super) fn judge(&mut self, row: u64, at: Instant) {
        if self.plan.stop_rules.is_empty() || self.aborted {
            return;
        }
        let past = self.counting.map_or(Duration::ZERO, |from| at.saturating_duration_since(from));
        let grace = self.plan.grace;
        if self.ended < grace.calls || past < grace.time {
            return;
        }
        self.aborted = self.plan.stop_rules.iter().any(|rule| match rule {
            StopRule::FailuresInARow(limit) => row >= *limit,
            StopRule::Failures(limit) => self.failures >= *limit,
        });
        if self.aborted {
            self.wake_others(usize::MAX);
        }
    }

    /// A target went away, or came back.
    pub(super) fn set_up(&mut self, who: usize, up: bool, now: Instant) {
        self.up[who] = up;
        if up {
            // What came due meanwhile could not be sent: that is the tool's doing.
            self.room_since = self.room_since.max(Some(now));
        } else if self.chosen == Some(who) {
            self.chosen = None;
        }
        self.wake_others(who);
    }

    /// Nobody sends any more.
    pub(super) fn drains(&mut self, who: usize) {
        self.up[who] = false;
        if self.counting.is_some() && !self.up.iter().any(|up| *up) {
            self.enter(Phase::Draining);
        }
    }

    fn warms_up(&self, now: Instant) -> bool {
        self.counting.is_none()
            && match self.plan.warm_up {
                WarmUp::Calls(calls) => self.warm < calls,
                WarmUp::Time(time) => {
                    let past = self.began.map(|began| now.saturating_duration_since(began));
                    past.is_none_or(|past| past < time) && !time.is_zero()
                }
            }
    }

    /// Ends a pause: everything that counts from a moment counts from as much later.
    fn go_on(&mut self, now: Instant) {
        let Some(since) = self.paused_at.take() else { return };
        let pause = now.saturating_duration_since(since);
        self.paused += pause;
        for moment in [&mut self.began, &mut self.counting, &mut self.room_since] {
            *moment = moment.and_then(|moment| moment.checked_add(pause));
        }
        // A call that ended in the pause made room in it.
        self.room_since = self.room_since.map(|since| since.min(now));
        for runner in &self.runners {
            runner.meter.lock().unwrap_or_else(PoisonError::into_inner).paused(pause);
        }
        self.wake_others(usize::MAX);
    }

    fn enter(&self, phase: Phase) {
        let mut stage = self.watch.stage();
        if stage.phase != phase {
            stage.phase = phase;
        }
    }

    fn wake_others(&self, who: usize) {
        if self.runners.len() == 1 && who == 0 {
            return;
        }
        for (at, runner) in self.runners.iter().enumerate() {
            if at != who {
                runner.news.notify_one();
            }
        }
    }
}
