//! Distributing the intended start times of an open load over targets.
//!
//! Owns: the choice among targets, by weight and seed. Every target goes through the same moments
//! and the same choices and takes its own: so a target that is slow, away or dead holds up no other
//! one, and nothing has to be agreed on while the run goes on.

use std::time::Duration;

use super::arrival_schedule::ArrivalSchedule;
use super::plan::{Arrivals, RunLimits};

/// Draws targets, as often as their weights say.
#[derive(Debug, Clone)]
pub(super) struct WeightedChoice {
    weights: Vec<f64>,
    random: fastrand::Rng,
}

impl WeightedChoice {
    pub(super) fn new(weights: Vec<f64>, seed: u64) -> Self {
        Self { weights, random: fastrand::Rng::with_seed(seed ^ 0x9e37_79b9_7f4a_7c15) }
    }

    /// Draws one of those that `may` be drawn.
    pub(super) fn draw(&mut self, may: impl Fn(usize) -> bool) -> Option<usize> {
        if self.weights.len() == 1 {
            return may(0).then_some(0);
        }
        let all = || self.weights.iter().copied().enumerate().filter(|(at, _)| may(*at));
        let total: f64 = all().map(|(_, weight)| weight).sum();
        let mut point = self.random.f64() * total;
        let mut last = None;
        for (at, weight) in all() {
            last = Some(at);
            if point < weight {
                break;
            }
            point -= weight;
        }
        last
    }
}

/// The moments of one target, as time since the start.
#[derive(Debug, Clone)]
pub(super) struct TargetArrivals {
    schedule: ArrivalSchedule,
    choice: WeightedChoice,
    target: usize,
    limits: RunLimits,
    /// Moments of the whole run that were looked at.
    examined: u64,
    /// The next one of this target, when it was found and not taken.
    due: Option<Duration>,
}

impl TargetArrivals {
    pub(super) fn new(
        arrivals: Arrivals,
        weights: Vec<f64>,
        mine: usize,
        until: RunLimits,
        seed: u64,
    ) -> Self {
        let schedule = ArrivalSchedule::new(arrivals, seed);
        Self {
            schedule,
            choice: WeightedChoice::new(weights, seed),
            target: mine,
            limits: until,
            examined: 0,
            due: None,
        }
    }

    /// The next moment; stays the next one until it is taken.
    pub(super) fn peek(&mut self) -> Option<Duration> {
        while self.due.is_none() {
            if self.limits.requests.is_some_and(|requests| self.examined >= requests) {
                return None;
            }
            let moment = self.schedule.next()?;
            if self.limits.duration.is_some_and(|duration| moment >= duration) {
                return None;
            }
            self.examined += 1;
            if self.choice.draw(|_| true) == Some(self.target) {
                self.due = Some(moment);
            }
        }
        self.due
    }

    pub(super) fn take(&mut self) -> Option<Duration> {
        let due = self.peek();
        self.due = None;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moments_of_all_targets_are_the_moments_of_the_run_each_once() {
        let until = RunLimits { requests: Some(1_000), duration: None };
        let arrivals = Arrivals::Poisson { rate: 50.0 };
        let weights = vec![3.0, 1.0, 1.0];
        let of = |mine| {
            let mut moments =
                TargetArrivals::new(arrivals.clone(), weights.clone(), mine, until, 5);
            std::iter::from_fn(move || moments.take()).collect::<Vec<_>>()
        };
        let mut all: Vec<Duration> = (0..3).flat_map(of).collect();
        all.sort_unstable();
        let whole: Vec<Duration> = ArrivalSchedule::new(arrivals.clone(), 5).take(1_000).collect();
        assert_eq!(all, whole);
        let share = of(0).len();
        assert!((540..660).contains(&share), "{share} of 1000 for a weight of 3 in 5");
    }

    #[test]
    fn who_may_not_be_drawn_is_not() {
        let mut choice = WeightedChoice::new(vec![1.0, 5.0, 1.0], 1);
        assert!((0..100).all(|_| choice.draw(|at| at != 1) != Some(1)));
        assert_eq!(choice.draw(|_| false), None);
    }
}
