//! The intended start times of calls in an open-loop load.

use std::time::Duration;

use super::plan::{Arrivals, RunLimits};

/// Gives the intended starts, one after another, as time since the start.
#[derive(Debug, Clone)]
pub struct ArrivalSchedule {
    arrivals: Arrivals,
    limits: RunLimits,
    random: fastrand::Rng,
    emitted: u64,
    /// The last random moment, in seconds.
    last: f64,
}

impl ArrivalSchedule {
    pub fn new(arrivals: Arrivals, limits: RunLimits, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { arrivals, limits, random, emitted: 0, last: 0.0 }
    }
}

impl Iterator for ArrivalSchedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        if self.limits.requests.is_some_and(|requests| self.emitted >= requests) {
            return None;
        }
        let seconds = match self.arrivals {
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52 calls")]
            Arrivals::Constant { rate } => self.emitted as f64 / rate,
            Arrivals::Poisson { rate } => {
                // 1 − [0, 1) is never 0, so the logarithm is finite.
                self.last += -(1.0 - self.random.f64()).ln() / rate;
                self.last
            }
        };
        let moment = Duration::try_from_secs_f64(seconds).ok()?;
        if self.limits.duration.is_some_and(|duration| moment >= duration) {
            return None;
        }
        self.emitted += 1;
        Some(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(arrivals: Arrivals, count: u64) -> Vec<u128> {
        let limits = RunLimits { requests: Some(count), duration: None };
        ArrivalSchedule::new(arrivals, limits, 7).map(|moment| moment.as_millis()).collect()
    }

    #[test]
    fn constant_moments_are_evenly_apart_and_end_with_the_limits() {
        assert_eq!(moments(Arrivals::Constant { rate: 100.0 }, 4), [0, 10, 20, 30]);
        let limits = RunLimits { requests: None, duration: Some(Duration::from_millis(25)) };
        let within = ArrivalSchedule::new(Arrivals::Constant { rate: 100.0 }, limits, 7);
        assert_eq!(within.count(), 3);
    }

    #[test]
    fn poisson_moments_have_the_rate_on_average_and_follow_from_the_seed() {
        let all = moments(Arrivals::Poisson { rate: 1_000.0 }, 20_000);
        assert!((19_000..21_000).contains(all.last().unwrap()), "{:?}", all.last());
        assert_eq!(all, moments(Arrivals::Poisson { rate: 1_000.0 }, 20_000));
    }
}
