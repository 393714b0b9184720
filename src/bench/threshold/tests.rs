//! Tests of threshold expressions: parsing, and evaluation against reports.

use std::time::Duration;

use super::*;
use crate::bench::fixtures::{report, target};

fn read(text: &str, targets: usize) -> Threshold {
    parse(&[text.to_owned()], targets).unwrap().remove(0)
}

fn said(text: &str, report: &BenchReport) -> Vec<String> {
    read(text, report.targets.len()).judge(report).lines.into_iter().map(|l| l.text).collect()
}

fn fails(text: &str, report: &BenchReport) -> bool {
    read(text, report.targets.len()).judge(report).failed()
}

/// Latencies of 1 to 1000 ms, evenly.
fn even() -> BenchReport {
    report(vec![target("a", (1..=1_000).map(Duration::from_millis))])
}

#[test]
fn a_threshold_says_the_values() {
    let report = even();
    assert_eq!(said("p99>50ms", &report), ["p99 990 ms > 50 ms: FAIL"]);
    assert_eq!(said("p50 > 600ms", &report), ["p50 500 ms <= 600 ms: pass"]);
    assert_eq!(said("error_rate>1%", &report), ["error_rate 0% <= 1%: pass"]);
    assert_eq!(said("timeouts>0", &report), ["timeouts 0 <= 0: pass"]);
}

#[test]
fn every_figure_can_be_named() {
    let mut report = even();
    let a = &mut report.targets[0];
    (a.requests, a.ok, a.tool_errors, a.errors, a.timeouts) = (1_020, 1_000, 5, 4, 3);
    (a.unanswered, a.dropped, a.restarts, a.throughput) = (8, 2, 1, 99.5);
    a.cold.connect = Some(Duration::from_millis(120));
    a.cold.first_call = Some(Duration::from_millis(9));
    a.failed.record(Duration::from_secs(2));
    for held in [
        "min<=1ms",
        "max>=1s",
        "mean>500ms",
        "stddev>280ms",
        "p99.9>998ms",
        "p999>998ms",
        "latency.p95>=949ms",
        "service.p50>499ms",
        "failed.max>1s",
        "requests==1020",
        "ok!=1020",
        "tool_errors>4",
        "errors>3",
        "timeouts>=3",
        "unanswered>7",
        "dropped>1",
        "restarts>0",
        "error_rate>0.019",
        "error_rate<=2%",
        "throughput<100",
        "throughput<100/s",
        "connect>100ms",
        "first_call<10ms",
    ] {
        assert!(fails(held, &report), "{held}: {:?}", said(held, &report));
    }
}

#[test]
fn a_threshold_holds_for_each_target_or_the_one_that_is_named() {
    let slow = (1..=1_000).map(|n| Duration::from_millis(n * 2));
    let report =
        report(vec![target("a", (1..=1_000).map(Duration::from_millis)), target("b", slow)]);
    assert_eq!(said("B.p95>1s", &report), ["B.p95 1.90 s > 1 s: FAIL"]);
    assert!(!fails("A.p95>1s", &report));
    let lines = said("p95>1s", &report);
    assert_eq!(lines, ["A: p95 950 ms <= 1 s: pass", "B: p95 1.90 s > 1 s: FAIL"]);
}

#[test]
fn a_percentile_of_too_few_calls_is_marked() {
    let report = report(vec![target("a", (1..=200).map(Duration::from_millis))]);
    let judged = read("p99.9>50ms", 1).judge(&report);
    assert!(judged.lines[0].is_unreliable && judged.failed());
    assert!(judged.lines[0].text.ends_with("(p99.9 of 200 calls; it takes 10000 to be sure)"));
    assert!(!read("p90>50ms", 1).judge(&report).lines[0].is_unreliable);
}

#[test]
fn what_was_not_measured_fails() {
    let nothing = report(vec![target("a", [])]);
    for text in ["p99>50ms", "p99<50ms", "timeouts>0", "error_rate>1%", "throughput<1"] {
        assert!(fails(text, &nothing), "{text}");
    }
    assert_eq!(said("p99>50ms", &nothing), ["p99>50ms: p99: no call was made: FAIL"]);
    assert!(fails("lag.p99>1ms", &even()), "closed loads have none");
    assert!(!fails("failed.p99>1ms", &even()), "no failure is good");
    let mut dropped = nothing;
    dropped.targets[0].dropped = 3;
    assert!(fails("dropped>0", &dropped));
    assert!(read("p99>1s", 1).judge(&report(Vec::new())).failed());
}

#[test]
fn what_is_wrong_is_said_with_what_to_write_instead() {
    for (text, reason) in [
        ("", "expected a comparison"),
        ("p99", "expected a comparison"),
        (">", "'' is not known"),
        ("p99.x>50ms", "did you mean 'p99.9'?"),
        ("p99>50", "write 50ms or 50s"),
        ("throughptu>5", "did you mean 'throughput'?"),
        ("B.p99>1s", "--vs adds a second tool"),
        ("1s>2s", "'1s' is not known"),
        ("p99>throughput", "expected a time"),
        ("error_rate>1", "expected a share such as 1%"),
        ("error_rate>5ms", "expected a share"),
        ("p100>1s", "use max"),
        ("p1000>1s", "use max"),
        ("p0>1s", "not a percentile"),
        ("latency>1s", "series of times"),
        ("p99=>1s", "expected a time"),
        ("p99!1s", "expected one of > >="),
        ("p99>1s>2s", "expected a time"),
        ("p99>1lightyear", "expected a time"),
        ("timeouts>1%", "expected a number"),
        ("throughput<1ms", "expected calls per second"),
        ("p99>1.2.3ms", "expected a time"),
        ("B.p95>A.p95*1.05", "--vs"),
    ] {
        let error = parse(&[text.to_owned()], 1).unwrap_err();
        assert!(error.message().starts_with(&format!("--fail-if '{text}': ")), "{error}");
        assert!(error.message().contains(reason), "{text}: {error}");
    }
    assert!(parse(&["B.p95>A.p95".to_owned()], 2).unwrap_err().message().contains("a time"));
}

proptest::proptest! {
    #[test]
    fn anything_can_be_typed(text in "[ -~µ≥]{0,40}") {
        let _read = parse(&[text], 2);
    }
}
