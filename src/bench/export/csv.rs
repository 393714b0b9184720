//! CSV export of a run: one row for each figure of each target.

use std::fmt::Write as _;

use super::{PERCENTILES, millis};
use crate::bench::report::{BenchReport, TargetReport};
use crate::util::histogram::Durations;

const HEAD: &str = "tool,of,statistic,value,unit,sure\n";

/// The figures of all targets (RFC 4180, with line feeds only). A figure that was not measured has
/// no row; `sure` is `no` for a percentile of too few calls.
pub fn csv(report: &BenchReport) -> String {
    let mut out = HEAD.to_owned();
    for target in &report.targets {
        rows(&mut out, report, target);
    }
    out
}

fn rows(out: &mut String, report: &BenchReport, target: &TargetReport) {
    let tool = cell(&target.label());
    let mut row = |of: &str, statistic: &str, value: &str, unit: &str, sure: bool| {
        let (of, statistic) = (cell(of), cell(statistic));
        let sure = if sure { "yes" } else { "no" };
        let _infallible = writeln!(out, "{tool},{of},{statistic},{value},{unit},{sure}");
    };
    let counts = [
        ("requests", target.requests),
        ("ok", target.ok),
        ("tool_errors", target.tool_errors),
        ("errors", target.errors),
        ("timeouts", target.timeouts),
        ("unanswered", target.unanswered),
        ("dropped", target.dropped),
        ("warm_up", target.warm_up),
        ("peak_in_flight", target.peak_in_flight),
        ("restarts", target.restarts),
    ];
    for (name, count) in counts {
        row("calls", name, &count.to_string(), "count", true);
    }
    for (kind, error) in &target.errors_by_kind {
        row("errors", kind, &error.count.to_string(), "count", true);
    }
    row("run", "elapsed", &report.elapsed.as_secs_f64().to_string(), "s", true);
    row("run", "throughput", &target.throughput.to_string(), "per_second", true);
    row("bytes", "in", &target.bytes_in.to_string(), "bytes", true);
    row("bytes", "out", &target.bytes_out.to_string(), "bytes", true);
    let cold = [("connect", target.cold.connect), ("first_call", target.cold.first_call)];
    for (name, took) in cold {
        if let Some(took) = took {
            row("cold_start", name, &millis(took).to_string(), "ms", true);
        }
    }
    let mut times = |of: &str, durations: &Durations| {
        let single = [
            ("min", durations.min()),
            ("mean", durations.mean()),
            ("stddev", durations.stddev()),
            ("max", durations.max()),
        ];
        for (name, value) in single {
            if let Some(value) = value {
                row(of, name, &millis(value).to_string(), "ms", true);
            }
        }
        for (name, share) in PERCENTILES {
            if let Some(value) = durations.quantile(share) {
                let sure = durations.is_reliable_at(share);
                row(of, name, &millis(value).to_string(), "ms", sure);
            }
        }
    };
    times("latency", &target.response);
    times("service", &target.service);
    times("failed", &target.failed);
}

/// A cell of text: quoted where it has to be, and with an apostrophe before what a spreadsheet would
/// compute.
fn cell(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '|', '%']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r', '\'']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::fixtures::{report, target};

    #[test]
    fn every_figure_has_a_row() {
        let report = report(vec![target("a", (1..=1_000).map(Duration::from_micros))]);
        let text = csv(&report);
        for row in [
            "tool,of,statistic,value,unit,sure",
            "a,calls,requests,1000,count,yes",
            "a,latency,max,1,ms,yes",
        ] {
            assert!(text.lines().any(|line| line == row), "{row} in {text}");
        }
        assert!(
            text.lines().any(|line| line.starts_with("a,latency,p999,") && line.ends_with(",no"))
        );
        assert!(text.contains("\na,service,p50,0.500"), "{text}");
        assert!(!text.contains("failed,p50"), "nothing failed");
        assert!(text.lines().all(|line| line.split(',').count() == 6));
    }

    #[test]
    fn no_cell_is_a_formula() {
        for (text, safe) in [
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("@x", "\"'@x\""),
            ("-1+2", "\"'-1+2\""),
            ("a,b", "\"a,b\""),
            ("two\nlines", "\"two\nlines\""),
            ("plain", "plain"),
        ] {
            assert_eq!(cell(text), safe);
        }
    }
}
