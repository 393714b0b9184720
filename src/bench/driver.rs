//! Makes the load of one target: hands out calls when the plan says so, and meters their ends.
//!
//! Owns: which call is next, which ones are in flight, and when the run is over. Pure but for the
//! clock it is given.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::provider::repeat::{End, Load, Next, Payload, Shot};
use crate::util::clock::Clock;

use super::meter::Meter;
use super::plan::{Model, Over, Plan, StopRule, WarmUp};
use super::schedule::Schedule;

/// Stops and pauses a run from outside.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<Switches>);

#[derive(Debug, Default)]
struct Switches {
    stopped: AtomicBool,
    news: Arc<Notify>,
}

impl Control {
    /// Makes no more calls; what is in flight may end.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
        self.0.news.notify_one();
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }
}

/// The arguments of the calls, one after the other.
pub trait Arguments: Send {
    /// The arguments of the call with this number.
    fn of(&mut self, ticket: u64) -> Arc<Payload>;
}

/// The load of one target.
pub struct Driver {
    plan: Plan,
    clock: Arc<dyn Clock>,
    control: Control,
    arguments: Box<dyn Arguments>,
    meter: Arc<Mutex<Meter>>,
    schedule: Option<Schedule>,
    /// The next intended moment that was not met yet.
    due: Option<Duration>,
    /// When the first call was handed out, and the first one that counts.
    began: Option<Instant>,
    counting: Option<Instant>,
    next_ticket: u64,
    warm: u64,
    counted: u64,
    flying: VecDeque<Option<Flight>>,
    first_flying: u64,
    in_flight: usize,
    over: Option<Instant>,
    aborted: bool,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    intended: Option<Instant>,
    counts: bool,
}

impl Driver {
    /// The load of a plan.
    pub fn new(
        plan: Plan,
        clock: Arc<dyn Clock>,
        control: Control,
        arguments: Box<dyn Arguments>,
    ) -> Self {
        let schedule = match &plan.model {
            Model::Closed { .. } => None,
            Model::Open { arrivals, .. } => Some(Schedule::new(arrivals.clone(), plan.seed)),
        };
        Self {
            plan,
            clock,
            control,
            arguments,
            meter: Arc::default(),
            schedule,
            due: None,
            began: None,
            counting: None,
            next_ticket: 0,
            warm: 0,
            counted: 0,
            flying: VecDeque::new(),
            first_flying: 0,
            in_flight: 0,
            over: None,
            aborted: false,
        }
    }

    /// What was metered so far, to be looked at while the run goes on.
    pub fn meter(&self) -> Arc<Mutex<Meter>> {
        Arc::clone(&self.meter)
    }

    /// Whether a stop rule ended it.
    pub fn is_aborted(&self) -> bool {
        self.aborted
    }

    fn metered(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next call is one to warm up.
    fn warms_up(&self, now: Instant) -> bool {
        match self.plan.warm_up {
            WarmUp::Calls(calls) => self.warm < calls,
            WarmUp::Time(time) => {
                self.began.is_none_or(|began| now.saturating_duration_since(began) < time)
                    && !time.is_zero()
            }
        }
    }

    /// Whether all calls were made that are to be made.
    fn is_enough(&self, now: Instant) -> bool {
        let until = &self.plan.until;
        self.control.is_stopped()
            || self.aborted
            || until.requests.is_some_and(|requests| self.counted >= requests)
            || until.duration.is_some_and(|duration| {
                self.counting.is_some_and(|from| now.saturating_duration_since(from) >= duration)
            })
    }

    fn finish(&mut self, now: Instant) -> Next {
        let over = *self.over.get_or_insert(now + self.plan.patience);
        Next::Drain(over)
    }

    fn shoot(&mut self, now: Instant, intended: Option<Instant>, counts: bool) -> Next {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.began.get_or_insert(now);
        if counts {
            self.counting.get_or_insert(intended.unwrap_or(now));
            self.counted += 1;
        } else {
            self.warm += 1;
        }
        self.in_flight += 1;
        self.flying.push_back(Some(Flight { intended, counts }));
        self.metered().sent(counts);
        Next::Shot(Shot { ticket, arguments: self.arguments.of(ticket) })
    }

    fn next_closed(&mut self, now: Instant, concurrency: usize) -> Next {
        if self.in_flight >= concurrency {
            return Next::Wait;
        }
        let warm = self.warms_up(now);
        // The clock starts when nothing of the warm-up is in the way any more.
        if !warm && self.counting.is_none() && self.in_flight > 0 {
            return Next::Wait;
        }
        self.shoot(now, None, !warm)
    }

    fn next_open(&mut self, now: Instant, in_flight: usize, over: Over) -> Next {
        let warm = self.warms_up(now);
        if warm {
            // As fast as one after the other goes: the schedule begins afterwards.
            return if self.in_flight > 0 { Next::Wait } else { self.shoot(now, None, false) };
        }
        if self.counting.is_none() && self.in_flight > 0 {
            return Next::Wait;
        }
        loop {
            let start = *self.counting.get_or_insert(now);
            let due = match self.due.or_else(|| self.schedule.as_mut()?.next()) {
                Some(due) => due,
                None => return self.finish(now),
            };
            self.due = Some(due);
            let Some(moment) = start.checked_add(due) else { return self.finish(now) };
            if self.plan.until.duration.is_some_and(|duration| due >= duration) {
                return self.finish(now);
            }
            if moment > now {
                return Next::At(moment);
            }
            if self.in_flight < in_flight {
                self.due = None;
                return self.shoot(now, Some(moment), true);
            }
            if over == Over::Queue {
                return Next::Wait;
            }
            self.due = None;
            self.counted += 1;
            self.metered().dropped += 1;
            if self.is_enough(now) {
                return self.finish(now);
            }
        }
    }

    fn land(&mut self, ticket: u64) -> Option<Flight> {
        let at = usize::try_from(ticket.checked_sub(self.first_flying)?).ok()?;
        let flight = self.flying.get_mut(at)?.take()?;
        while self.flying.front().is_some_and(Option::is_none) {
            self.flying.pop_front();
            self.first_flying += 1;
        }
        Some(flight)
    }
}

impl Load for Driver {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn next(&mut self) -> Next {
        let now = self.clock.now();
        if self.over.is_some() || self.is_enough(now) {
            return self.finish(now);
        }
        match self.plan.model {
            Model::Closed { concurrency } => self.next_closed(now, concurrency),
            Model::Open { in_flight, over, .. } => self.next_open(now, in_flight, over),
        }
    }

    fn ended(&mut self, end: End) {
        let Some(flight) = self.land(end.ticket) else { return };
        self.in_flight = self.in_flight.saturating_sub(1);
        let mut meter = self.metered();
        meter.ended(&end, flight.intended, flight.counts);
        let (row, all) = (meter.failures_in_a_row, meter.failures());
        drop(meter);
        self.aborted |= self.plan.stop_rules.iter().any(|rule| match rule {
            StopRule::FailuresInARow(limit) => row >= *limit,
            StopRule::Failures(limit) => all >= *limit,
        });
    }

    fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.control.0.news)
    }
}
