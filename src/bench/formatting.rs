//! Formatting plans and figures as text.

use super::plan::{Arrivals, BenchPlan, LoadModel, OverflowPolicy, Sharing, WarmUp};
use super::report::{BenchReport, RunStatus};
use crate::util::histogram::Durations;
use crate::util::units::{float, show_count, show_duration};

/// Calls per second, with about three significant digits.
pub fn per_second(rate: f64) -> String {
    let decimals = match rate {
        ..0.01 => 4,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    let number = format!("{rate:.decimals$}");
    match number.split_once('.') {
        Some((whole, rest)) if rest.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        Some(_) => number,
        None => number.parse::<u64>().map_or(number, show_count),
    }
}

pub fn calls(count: u64) -> String {
    format!("{} {}", show_count(count), if count == 1 { "call" } else { "calls" })
}

/// A part of a whole: `1.25%`.
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.2}%", float(part) * 100.0 / float(whole.max(1)))
}

/// A percentile, or `–` without one; `~` marks one that too few calls lie beyond.
pub fn percentile(times: &Durations, share: f64) -> String {
    match times.quantile(share) {
        Some(time) if times.is_reliable_at(share) => show_duration(time),
        Some(time) => format!("{}~", show_duration(time)),
        None => "–".to_owned(),
    }
}

/// How the load of a whole run was made, and what the times count from.
pub fn load(plan: &BenchPlan) -> String {
    match &plan.sharing {
        Sharing::Steps { in_flight, .. } => {
            format!("closed load in steps: {} calls in flight, timed from sending", list(in_flight))
        }
        Sharing::Single | Sharing::Interleaved { .. } => model(&plan.model),
    }
}

pub fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

pub fn model(model: &LoadModel) -> String {
    match model {
        LoadModel::Closed { concurrency: 1 } => {
            "closed load: one call at a time, timed from sending".to_owned()
        }
        LoadModel::Closed { concurrency } => {
            format!("closed load: {concurrency} calls in flight, timed from sending")
        }
        LoadModel::Open { arrivals, in_flight, overflow: over } => {
            let over = match over {
                OverflowPolicy::Queue => "more wait",
                OverflowPolicy::Drop => "more are dropped",
            };
            format!(
                "open load: {}, at most {in_flight} in flight ({over}), timed from the intended \
                 start",
                self::arrivals(*arrivals)
            )
        }
    }
}

/// Why calls of an open load were not made.
pub fn dropped_reason(model: &LoadModel) -> &'static str {
    match model {
        LoadModel::Open { overflow: OverflowPolicy::Queue, .. } => "still queued at the end",
        LoadModel::Open { overflow: OverflowPolicy::Drop, .. } | LoadModel::Closed { .. } => {
            "dropped"
        }
    }
}

pub fn arrivals(arrivals: Arrivals) -> String {
    match arrivals {
        Arrivals::Constant { rate } => format!("{}/s", per_second(rate)),
        Arrivals::Poisson { rate } => {
            format!("{}/s on average at random times", per_second(rate))
        }
    }
}

/// The limits of a run, as text.
pub fn bounds(plan: &BenchPlan) -> String {
    let until = &plan.limits;
    match (until.requests, until.duration) {
        (Some(requests), Some(duration)) => {
            format!("{} or {}, whichever comes first", calls(requests), show_duration(duration))
        }
        (Some(requests), None) => calls(requests),
        (None, Some(duration)) => show_duration(duration),
        (None, None) => "nothing".to_owned(),
    }
}

/// The warm-up, as text: calls that were made first and not counted.
pub fn warm_up(report: &BenchReport) -> String {
    let made: u64 = report.total(|target| target.warm_up);
    match (report.plan.warm_up, made) {
        (_, 0) => "none: the first calls are measured too".to_owned(),
        (WarmUp::Time(time), made) => {
            format!("{} in {}, not counted", calls(made), show_duration(time))
        }
        (WarmUp::Calls(_), made) => format!("{}, not counted", calls(made)),
    }
}

/// How targets share a run; nothing for one.
pub fn sharing(report: &BenchReport) -> Option<String> {
    match &report.plan.sharing {
        Sharing::Steps { in_flight, .. } => Some(format!(
            "{} of {} steps, one after the other",
            report.targets.len(),
            in_flight.len()
        )),
        Sharing::Single => None,
        Sharing::Interleaved { rounds } => Some(format!(
            "alternately, {rounds} rounds in random order (seed {})",
            report.plan.seed
        )),
    }
}

/// Why a run ended before its plan was done; `None` when it was done.
pub fn ending(report: &BenchReport) -> Option<String> {
    match report.status {
        RunStatus::Complete => match &report.plan.sharing {
            Sharing::Steps { in_flight, error_limit: Some(limit) }
                if report.targets.len() < in_flight.len() =>
            {
                let limit = limit * 100.0;
                Some(format!("stopped: more than {limit}% of the calls failed"))
            }
            _ => None,
        },
        RunStatus::Stopped => {
            Some("stopped early: the figures cover the calls made so far".to_owned())
        }
        RunStatus::Aborted => Some(match report.plan.stop_after_failures {
            None => "ended by a tool error".to_owned(),
            Some(limit) => format!("stopped early (after {limit} failures)"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        for (rate, text) in
            [(0.5, "0.50"), (2.0, "2"), (49.93, "49.9"), (50.0, "50"), (14_322.7, "14,323")]
        {
            assert_eq!(per_second(rate), text);
        }
    }

    #[test]
    fn an_open_load_says_what_becomes_of_too_many() {
        let arrivals = Arrivals::Constant { rate: 20.0 };
        let open = LoadModel::Open { arrivals, in_flight: 8, overflow: OverflowPolicy::Drop };
        assert_eq!(
            model(&open),
            "open load: 20/s, at most 8 in flight (more are dropped), timed from the intended start"
        );
    }
}
