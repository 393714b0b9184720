//! The intended start times of calls in an open-loop load.

use std::time::Duration;

use super::plan::{Arrivals, RunLimits};
use crate::util::units::float;

/// The intended starts of the calls of an open load, as times since its beginning.
pub(super) fn starts(
    arrivals: Arrivals,
    limits: RunLimits,
    seed: u64,
) -> impl Iterator<Item = Duration> + Send {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut last = 0.0;
    let seconds = (0..).map(move |call| match arrivals {
        Arrivals::Constant { rate } => float(call) / rate,
        Arrivals::Poisson { rate } => {
            // 1 − [0, 1) is never 0, so the logarithm is finite.
            last -= (1.0 - random.f64()).ln() / rate;
            last
        }
    });
    let most = limits.requests.and_then(|requests| usize::try_from(requests).ok());
    seconds
        .map_while(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .take(most.unwrap_or(usize::MAX))
        .take_while(move |start| limits.duration.is_none_or(|duration| *start < duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(arrivals: Arrivals, count: u64) -> Vec<u128> {
        let limits = RunLimits { requests: Some(count), duration: None };
        starts(arrivals, limits, 7).map(|moment| moment.as_millis()).collect()
    }

    #[test]
    fn constant_moments_are_evenly_apart_and_end_with_the_limits() {
        assert_eq!(moments(Arrivals::Constant { rate: 100.0 }, 4), [0, 10, 20, 30]);
        let limits = RunLimits { requests: None, duration: Some(Duration::from_millis(25)) };
        let within = starts(Arrivals::Constant { rate: 100.0 }, limits, 7);
        assert_eq!(within.count(), 3);
    }

    #[test]
    fn poisson_moments_have_the_rate_on_average_and_follow_from_the_seed() {
        let all = moments(Arrivals::Poisson { rate: 1_000.0 }, 20_000);
        assert!((19_000..21_000).contains(all.last().unwrap()), "{:?}", all.last());
        assert_eq!(all, moments(Arrivals::Poisson { rate: 1_000.0 }, 20_000));
    }
}
