//! The intended start times of calls in an open-loop load.
//!
//! Owns: arithmetic. A moment follows from its number and the seed, never from when the one before
//! was really met, so that lateness does not add up and is not hidden.

use std::time::Duration;

use super::plan::Arrivals;

/// Gives the intended starts, one after another, as time since the start.
#[derive(Debug, Clone)]
pub struct ArrivalSchedule {
    arrivals: Arrivals,
    random: fastrand::Rng,
    /// Moments given so far (of the current step).
    emitted: u64,
    /// Seconds: the last Poisson moment, or the beginning of the current step.
    base: f64,
    /// The current step.
    step: usize,
}

impl ArrivalSchedule {
    /// The moments of these arrivals.
    pub fn new(arrivals: Arrivals, seed: u64) -> Self {
        Self { arrivals, random: fastrand::Rng::with_seed(seed), emitted: 0, base: 0.0, step: 0 }
    }
}

impl Iterator for ArrivalSchedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52 calls")]
        let number = self.emitted as f64;
        let seconds = match &self.arrivals {
            Arrivals::Constant { rate } => number / rate,
            Arrivals::Poisson { rate } => {
                // 1 − [0, 1) is never 0, so the logarithm is finite.
                self.base += -(1.0 - self.random.f64()).ln() / rate;
                self.base
            }
            Arrivals::Steps(steps) => {
                let step = steps.get(self.step)?;
                let within = number / step.rate;
                if within >= step.lasting.as_secs_f64() {
                    self.base += step.lasting.as_secs_f64();
                    self.step += 1;
                    self.emitted = 0;
                    return self.next();
                }
                self.base + within
            }
        };
        self.emitted += 1;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plan::RateStep;

    fn moments(arrivals: Arrivals, count: usize) -> Vec<u128> {
        ArrivalSchedule::new(arrivals, 7).take(count).map(|moment| moment.as_millis()).collect()
    }

    #[test]
    fn constant_moments_are_evenly_apart() {
        assert_eq!(moments(Arrivals::Constant { rate: 100.0 }, 4), [0, 10, 20, 30]);
    }

    #[test]
    fn steps_follow_each_other_and_end() {
        let second = Duration::from_secs(1);
        let steps =
            vec![RateStep { rate: 2.0, lasting: second }, RateStep { rate: 4.0, lasting: second }];
        let expected = [0, 500, 1_000, 1_250, 1_500, 1_750];
        assert_eq!(moments(Arrivals::Steps(steps), 100), expected);
    }

    #[test]
    fn poisson_moments_have_the_rate_on_average_and_follow_from_the_seed() {
        let count = 20_000;
        let all = moments(Arrivals::Poisson { rate: 1_000.0 }, count);
        assert!((19_000..21_000).contains(all.last().unwrap()), "{:?}", all.last());
        assert_eq!(all, moments(Arrivals::Poisson { rate: 1_000.0 }, count));
    }
}
