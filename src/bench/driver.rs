//! Makes the load of one target: hands out calls when the course says so, and meters their ends.
//!
//! Owns: the calls of this target that are in flight. Pure but for the clock it is given.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::provider::repeat::{End, Load, Next, Payload, Shot, Verdict};
use crate::util::clock::Clock;

pub use super::control::Control;
use super::course::{Course, Runner, Say};
use super::meter::{Meter, Metered};
use super::moments::Moments;
use super::plan::Plan;
use super::watch::Watch;

/// The arguments of the calls, one after the other.
pub trait Arguments: Send {
    /// The arguments of the call with this number; the same ones whenever it is asked for.
    fn of(&mut self, ticket: u64) -> Arc<Payload>;
}

/// Numbers that nobody else chooses need no protection from those who would choose them badly.
type Numbered = BuildHasherDefault<Spread>;

/// Spreads a number over all bits.
#[derive(Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
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
pub struct Driver {
    clock: Arc<dyn Clock>,
    arguments: Box<dyn Arguments>,
    meter: Arc<Mutex<Meter>>,
    news: Arc<Notify>,
    course: Arc<Mutex<Course>>,
    /// Which one of the targets of the course it is.
    who: usize,
    moments: Option<Moments>,
    /// Calls that were handed out, ever and before the current repeater.
    made: u64,
    before: u64,
    flying: HashMap<u64, Metered, Numbered>,
    /// When patience with what is in flight ends.
    over: Option<Instant>,
}

impl Driver {
    /// A load that has nothing to do before it enters a course.
    pub(super) fn idle(
        clock: Arc<dyn Clock>,
        control: &Control,
        arguments: Box<dyn Arguments>,
    ) -> Self {
        let news = Arc::new(Notify::new());
        control.listen(Arc::clone(&news));
        let nothing = Course::new(Plan::default(), control.clone(), Watch::default(), Vec::new());
        Self {
            clock,
            arguments,
            meter: Arc::default(),
            news,
            course: Arc::new(Mutex::new(nothing)),
            who: 0,
            moments: None,
            made: 0,
            before: 0,
            flying: HashMap::default(),
            over: None,
        }
    }

    /// What a course has to know of it.
    pub(super) fn runner(&self, weight: f64) -> Runner {
        Runner { weight, news: Arc::clone(&self.news), meter: Arc::clone(&self.meter) }
    }

    /// Takes part in a course from now on, as the target with this number.
    pub(super) fn enter(&mut self, course: &Arc<Mutex<Course>>, who: usize) {
        self.course = Arc::clone(course);
        self.who = who;
        self.moments = locked(course).moments(who);
        self.over = None;
    }

    /// What was metered so far, to be looked at while the run goes on.
    pub fn meter(&self) -> Arc<Mutex<Meter>> {
        Arc::clone(&self.meter)
    }

    /// The arguments of the call with this number.
    pub(super) fn arguments_of(&mut self, number: u64) -> Arc<Payload> {
        self.arguments.of(number)
    }

    /// Whether nothing is left to send.
    pub(super) fn is_over(&mut self) -> bool {
        let now = self.clock.now();
        self.over.is_some() || locked(&self.course).is_over(self.moments.as_mut(), now)
    }

    /// How many calls the tool answered in whatever way.
    pub(super) fn answered(&self) -> u64 {
        let meter = self.metered();
        meter.ok + meter.tool_errors + meter.warmed
    }

    /// What carried the calls is gone: nobody will tell how those in flight ended. Calls of the next
    /// repeater are numbered from 0 again.
    pub(super) fn abandon(&mut self) {
        let at = self.clock.now();
        let mut lost: Vec<u64> = self.flying.keys().copied().collect();
        lost.sort_unstable();
        for number in lost {
            self.ended(End::unanswered(number - self.before, at, at));
        }
    }

    /// A new repeater begins.
    pub(super) fn renew(&mut self) {
        self.before = self.made;
    }

    /// The way to the tool is closed, or open again.
    pub(super) fn set_up(&self, up: bool) {
        self.on_course().set_up(self.who, up, self.clock.now());
    }

    fn on_course(&self) -> MutexGuard<'_, Course> {
        locked(&self.course)
    }

    fn metered(&self) -> MutexGuard<'_, Meter> {
        locked(&self.meter)
    }

    fn finish(&mut self, now: Instant, patience: Duration) -> Next {
        if self.over.is_none() {
            self.on_course().drains(self.who);
        }
        Next::Drain(*self.over.get_or_insert(now + patience))
    }
}

/// A course that several can take part in.
pub(super) fn shared(
    plan: Plan,
    control: &Control,
    watch: &Watch,
    runners: Vec<Runner>,
) -> Arc<Mutex<Course>> {
    Arc::new(Mutex::new(Course::new(plan, control.clone(), watch.clone(), runners)))
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Load for Driver {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn next(&mut self, now: Instant) -> Next {
        if let Some(over) = self.over {
            return Next::Drain(over);
        }
        loop {
            let mut course = locked(&self.course);
            let say = course.next(self.who, self.moments.as_mut(), now);
            let patience = course.patience();
            drop(course);
            match say {
                Say::At(moment) => return Next::At(moment),
                Say::Wait => return Next::Wait,
                Say::Over => return self.finish(now, patience),
                Say::Drop => self.metered().dropped += 1,
                Say::Go(go) => {
                    let number = self.made;
                    self.made += 1;
                    let from = go.planned.map_or(now, |(intended, _)| intended);
                    let call =
                        Metered { first: number == 0, counts: go.counts, planned: go.planned };
                    self.flying.insert(number, call);
                    self.metered().sent(from, go.counts);
                    let arguments = self.arguments.of(number);
                    return Next::Shot(Shot { ticket: number - self.before, arguments });
                }
            }
        }
    }

    fn ended(&mut self, end: End) {
        let Some(call) = self.flying.remove(&(self.before + end.ticket)) else { return };
        let failed = !matches!(end.verdict, Verdict::Ok | Verdict::Unanswered);
        let mut meter = self.metered();
        meter.ended(&end, call);
        let row = meter.failures_in_a_row;
        drop(meter);
        let mut course = self.on_course();
        course.ended(self.who, end.at, call.counts, failed);
        if failed && call.counts {
            course.judge(row, end.at);
        }
    }

    fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.news)
    }
}
