//! A run as hyperfine writes it with `--export-json`, so that its scripts (whisker plots, Welch's
//! test, histograms) can be used.
//!
//! Owns: the shape. Times are in seconds. What hyperfine knows and a run of calls does not (the
//! processor time of a command) is `null`.

use serde_json::{Value, json};

use crate::bench::report::{BenchReport, TargetReport};
use crate::util::number::float_len;

/// Maximum number of times written for a target.
const MAX_TIMES: usize = 1_000;

/// The targets as hyperfine's `results`. `times` are not the single calls, which are not kept, but
/// at most a thousand evenly spaced quantiles of them, shortest first; `exit_codes` has a 0 for
/// each. Calls that were not answered are left out, as `calls` shows.
pub fn hyperfine(report: &BenchReport) -> Value {
    let results: Vec<Value> = report.targets.iter().map(result).collect();
    json!({ "results": results })
}

fn result(target: &TargetReport) -> Value {
    let durations = &target.response;
    let seconds = |value: Option<std::time::Duration>| value.map(|value| value.as_secs_f64());
    let many = usize::try_from(durations.count()).unwrap_or(usize::MAX).min(MAX_TIMES);
    let share = |at: usize| (float_len(at) + 0.5) / float_len(many);
    let times: Vec<f64> =
        (0..many).filter_map(|at| seconds(durations.quantile(share(at)))).collect();
    json!({
        "command": target.label(),
        "mean": seconds(durations.mean()),
        "stddev": seconds(durations.stddev()),
        "median": seconds(durations.quantile(0.5)),
        "user": null,
        "system": null,
        "min": seconds(durations.min()),
        "max": seconds(durations.max()),
        "exit_codes": vec![0; times.len()],
        "times": times,
        "calls": { "made": target.requests, "answered": target.ok },
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::fixtures::{report, target};

    #[test]
    fn the_shape_is_hyperfines() {
        let times = (1..=5_000).map(Duration::from_micros);
        let report = report(vec![target("a", times), target("b", [Duration::from_millis(2)])]);
        let value = hyperfine(&report);
        let first = &value["results"][0];
        assert_eq!(first["command"], "a");
        assert_eq!(first["times"].as_array().unwrap().len(), 1_000);
        assert_eq!(first["exit_codes"].as_array().unwrap().len(), 1_000);
        let of = |key: &str| first[key].as_f64().unwrap();
        assert!((of("median") - 0.0025).abs() < 1e-5 && (of("mean") - 0.0025).abs() < 1e-5);
        let sum: f64 = first["times"].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
        assert!((sum / 1_000.0 - of("mean")).abs() < 1e-5, "the sample has the mean of all");
        assert_eq!(value["results"][1]["times"].as_array().unwrap().len(), 1);
    }
}
