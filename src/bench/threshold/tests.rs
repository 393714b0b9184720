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

fn flaws(text: &str, targets: usize) -> Vec<(usize, String)> {
    let flaws = parse::expression(text, targets).unwrap_err();
    flaws.into_iter().map(|flaw| (flaw.at, flaw.message)).collect()
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
    assert_eq!(said("50ms < p99", &report), ["50 ms < p99 990 ms: FAIL"]);
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
        "p50*2>=p99",
        "p50+1s>p99",
    ] {
        assert!(fails(held, &report), "{held}: {:?}", said(held, &report));
    }
}

#[test]
fn figures_of_two_targets_are_compared() {
    let slow = (1..=1_000).map(|n| Duration::from_millis(n * 2));
    let report =
        report(vec![target("a", (1..=1_000).map(Duration::from_millis)), target("b", slow)]);
    let lines = said("B.p95>A.p95*1.05", &report);
    assert_eq!(lines, ["B.p95 1.90 s > A.p95*1.05 998 ms: FAIL"]);
    assert!(!fails("B.p95>A.p95*2.1", &report));
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
fn all_that_is_wrong_is_said_with_its_place() {
    assert_eq!(
        flaws("p99.x>50", 1),
        [(0, "'p99.x' is not known; did you mean 'p99.9'?".to_owned())]
    );
    assert_eq!(flaws("p99>50", 1), [(4, "a time needs a unit: write 50ms or 50s".to_owned())]);
    let both = flaws("B.throughptu > 5 parsecs", 1);
    assert_eq!(both[0].0, 0);
    assert!(both[0].1.contains("--vs"), "{both:?}");
    assert!(both[1].1.contains("did you mean 'throughput'?"), "{both:?}");
    assert!(both.iter().any(|(at, _)| *at == 17), "{both:?}");
    for (text, words) in [
        ("", "expected a comparison"),
        ("p99", "expected a comparison"),
        (">", "expected a figure or"),
        ("1s>2s", "one side must be a figure"),
        ("p99>throughput", "do not measure the same"),
        ("error_rate>1", "a share as 1%"),
        ("error_rate>5ms", "not a percentage"),
        ("p100>1s", "use max"),
        ("p0>1s", "not a percentile"),
        ("latency>1s", "series of times"),
        ("p99=>1s", "not a comparison"),
        ("p99>1s>2s", "only one comparison"),
        ("p99>1s/0", "division by 0"),
        ("p99>1lightyear", "not a unit"),
        ("timeouts>1%", "not a count"),
        ("p99>1.2.3ms", "not a number"),
        ("p99 $ > 1s", "unexpected"),
        ("p99*2ms>1s", "without a unit"),
    ] {
        let found = flaws(text, 1);
        assert!(found.iter().any(|(_, said)| said.contains(words)), "{text}: {found:?}");
    }
}

#[test]
fn the_error_shows_each_expression_with_carets() {
    let texts = ["p99>50ms", "p9q>1s", "throughput<1ms"].map(str::to_owned);
    let error = parse(&texts, 1).unwrap_err();
    assert_eq!(error.message(), "invalid --fail-if: 2 errors");
    let details = error.details();
    assert_eq!(details[0], "  p9q>1s");
    assert!(details[1].starts_with("  ^^^ 'p9q' is not known"), "{details:?}");
    assert!(details[3].starts_with("             ^^^ '1ms' is not a rate"), "{details:?}");
}

proptest::proptest! {
    #[test]
    fn anything_can_be_typed(text in "[ -~µ≥]{0,40}") {
        let _read = parse(&[text], 2);
    }
}
