//! Caveats: reasons to distrust the figures of a run.

use std::time::Duration;

use super::formatting::{calls, per_second, percent};
use super::plan::{Arrivals, LoadModel, OverflowPolicy};
use super::report::{BenchReport, RunStatus, TargetReport};
use crate::util::histogram::Durations;
use crate::util::units::{float, show_count, show_duration};

const MIN_RATE_SHARE: f64 = 0.95;
const OUTLIER_MEDIAN_FACTOR: u32 = 10;
/// Deviations from the median, in medians of all deviations, beyond which a duration is an outlier
/// (a modified z-score of 10).
const OUTLIER_DEVIATIONS: f64 = 14.826;
/// If more than one in this many is far off, they are not outliers: the tool has a second mode.
const OUTLIER_SHARE_DIVISOR: u64 = 10;

pub fn collect(report: &BenchReport) -> Vec<String> {
    let mut all = Vec::new();
    for target in &report.targets {
        let lost = connection_lost(target).into_iter();
        let texts = lost.chain(failed_calls(target)).chain(unanswered_calls(target));
        all.extend(texts.map(|text| report.about(target, text)));
    }
    all.extend(rate_not_reached(report));
    all.extend(generator_lag(report));
    all.extend(paused(report));
    for target in &report.targets {
        let texts = [
            unreliable_percentile(target),
            coordinated_omission(report, target),
            outliers(target),
            cold_start(target),
        ];
        all.extend(texts.into_iter().flatten().map(|text| report.about(target, text)));
    }
    all
}

fn connection_lost(target: &TargetReport) -> Vec<String> {
    let mut says = Vec::new();
    if let Some(error) = &target.error {
        says.push(format!("no longer called before the run ended: {error}"));
    }
    if target.restarts > 0 {
        let times = count(target.restarts, "time");
        says.push(format!("the connection to the tool was lost and reopened {times}"));
    }
    says
}

fn failed_calls(target: &TargetReport) -> Option<String> {
    let failed = target.failures();
    (failed > 0).then(|| {
        let share = percent(failed, target.requests);
        format!(
            "{} of {} calls failed ({share}); they are not in the percentiles",
            show_count(failed),
            show_count(target.requests)
        )
    })
}

fn unanswered_calls(target: &TargetReport) -> Option<String> {
    (target.unanswered > 0)
        .then(|| format!("{} had no response when the run ended", calls(target.unanswered)))
}

fn rate_not_reached(report: &BenchReport) -> Option<String> {
    let LoadModel::Open { arrivals, in_flight, overflow: over } = &report.plan.model else {
        return None;
    };
    if report.status != RunStatus::Complete {
        return None;
    }
    let made = report.total(|target| target.requests);
    let dropped = report.total(|target| target.dropped);
    let seconds = report.elapsed.as_secs_f64();
    if made < 20 || seconds == 0.0 {
        return None;
    }
    let (achieved, noise) = (float(made) / seconds, 3.0 / float(made).sqrt());
    let requested = arrivals.rate();
    let floor = match arrivals {
        Arrivals::Poisson { .. } => MIN_RATE_SHARE - noise,
        Arrivals::Constant { .. } => MIN_RATE_SHARE,
    };
    if achieved >= requested * floor && dropped == 0 {
        return None;
    }
    let rates = format!("{} of {} calls/s were made", per_second(achieved), per_second(requested));
    let generator = &report.generator;
    if dropped + generator.queued > (made + dropped) / 100 {
        let lost = match over {
            OverflowPolicy::Drop => format!("; {} not made", count(dropped, "call was")),
            OverflowPolicy::Queue if dropped > 0 => {
                format!("; {} still waiting at the end", count(dropped, "call was"))
            }
            OverflowPolicy::Queue => String::new(),
        };
        return Some(format!(
            "{rates}: the tool cannot handle more with {in_flight} calls in flight{lost}"
        ));
    }
    let late = generator.lag.quantile(0.99).unwrap_or_default();
    Some(format!(
        "{rates}: this machine cannot send them faster (p99 of the delay: {})",
        show_duration(late)
    ))
}

fn generator_lag(report: &BenchReport) -> Option<String> {
    let late = report.generator.lag.quantile(0.99)?;
    let median = report.targets.iter().filter_map(|target| target.response.quantile(0.5)).min()?;
    (late > median / OUTLIER_MEDIAN_FACTOR).then(|| {
        format!(
            "the load generator was {} late (p99), more than a tenth of the median: smaller differences are noise",
            show_duration(late)
        )
    })
}

fn paused(report: &BenchReport) -> Option<String> {
    let paused = report.generator.paused;
    (!paused.is_zero()).then(|| {
        format!("paused for {}, which is excluded from all figures", show_duration(paused))
    })
}

fn unreliable_percentile(target: &TargetReport) -> Option<String> {
    let response = &target.response;
    if response.count() == 0 {
        return None;
    }
    let (share, name, needs) = [(0.9, "p90", 100), (0.99, "p99", 1_000), (0.999, "p99.9", 10_000)]
        .into_iter()
        .find(|(share, ..)| !response.is_reliable_at(*share))?;
    let more = if share < 0.99 { " and beyond" } else { "" };
    Some(format!(
        "only {} for {name}{more}, which needs {}",
        count(response.count(), "answer"),
        show_count(needs)
    ))
}

/// A closed load does not know how long others would have waited.
fn coordinated_omission(report: &BenchReport, target: &TargetReport) -> Option<String> {
    let (median, longest) = (target.response.quantile(0.5)?, target.response.max()?);
    (!report.is_open() && longest > median * OUTLIER_MEDIAN_FACTOR).then(|| {
        format!(
            "one call took {}, during which a closed load sends nothing, so waiting times of other calls are not measured; a load at a fixed rate measures them",
            show_duration(longest)
        )
    })
}

pub fn outlier_count(times: &Durations) -> u64 {
    let Some(median) = times.quantile(0.5).map(|median| median.as_secs_f64()) else { return 0 };
    let mut deviations: Vec<(f64, u64)> = times
        .buckets()
        .map(|(class, count)| ((class.as_secs_f64() - median).abs(), count))
        .collect();
    deviations.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut passed = 0;
    let middle = deviations.iter().find(|(_, count)| {
        passed += count;
        passed * 2 >= times.count()
    });
    // Classes are as wide as a thousandth: nothing can be told apart below that.
    let spread = middle.map_or(0.0, |(deviation, _)| *deviation).max(median / 1_000.0);
    let far = |(deviation, _): &&(f64, u64)| *deviation > OUTLIER_DEVIATIONS * spread;
    let many: u64 = deviations.iter().filter(far).map(|(_, count)| count).sum();
    if many > times.count() / OUTLIER_SHARE_DIVISOR { 0 } else { many }
}

fn outliers(target: &TargetReport) -> Option<String> {
    let many = outlier_count(&target.response);
    (many > 0).then(|| {
        format!(
            "{} ({}), the longest {}: the tool paused, or the machine was busy",
            count(many, "outlier"),
            percent(many, target.response.count()),
            show_duration(target.response.max().unwrap_or_default())
        )
    })
}

fn cold_start(target: &TargetReport) -> Option<String> {
    let (first, median) = (target.cold.first_call?, target.response.quantile(0.5)?);
    (target.warm_up == 0 && first > median * OUTLIER_MEDIAN_FACTOR).then(|| {
        format!(
            "the first call took {}, the median {}: use --warmup to exclude it",
            show_duration(first),
            show_duration(median)
        )
    })
}

pub(super) fn clock_step(wall: Duration, elapsed: Duration) -> Option<String> {
    let apart = wall.abs_diff(elapsed);
    (apart > Duration::from_secs(1)).then(|| {
        format!("the clock was set or the machine was suspended: off by {}", show_duration(apart))
    })
}

fn count(many: u64, what: &str) -> String {
    match (many, what) {
        (1, what) => format!("1 {what}"),
        (many, "call was") => format!("{} calls were", show_count(many)),
        (many, what) => format!("{} {what}s", show_count(many)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::fixtures::{report, target};

    fn times(micros: impl IntoIterator<Item = u64>) -> Durations {
        let mut all = Durations::default();
        for micros in micros {
            all.record(Duration::from_micros(micros));
        }
        all
    }

    #[test]
    fn an_outlier_is_far_from_the_middle_in_units_of_the_usual_distance() {
        let even = || (0..1_000).map(|n| 1_000 + n % 21);
        assert_eq!(outlier_count(&times(even())), 0);
        assert_eq!(outlier_count(&times(even().chain([50_000, 60_000, 2]))), 3);
        assert_eq!(outlier_count(&Durations::default()), 0);
        // Two ways of answering are no outliers of each other.
        assert_eq!(
            outlier_count(&times((0..1_000).map(|n| if n % 2 == 0 { 1_000 } else { 9_000 }))),
            0
        );
    }

    #[test]
    fn a_slow_rate_that_was_not_reached_is_told_with_its_digits() {
        let mut slow = report(vec![target("a", [Duration::from_secs(5); 20])]);
        let arrivals = Arrivals::Constant { rate: 0.4 };
        slow.plan.model =
            LoadModel::Open { arrivals, in_flight: 1, overflow: OverflowPolicy::Queue };
        let caveat = rate_not_reached(&slow).unwrap();
        assert!(caveat.starts_with("0.20 of 0.40 calls/s were made"), "{caveat}");
    }

    #[test]
    fn clocks_that_go_apart_are_noticed() {
        let minute = Duration::from_mins(1);
        assert_eq!(clock_step(minute, minute + Duration::from_millis(3)), None);
        assert!(clock_step(minute * 2, minute).is_some());
    }
}
