//! Reports with a known bottleneck, and whether it is named.

use super::*;
use crate::bench::fixtures::{report, target};
use crate::bench::plan::Arrivals;
use crate::bench::report::ErrorReport;

/// 1000 calls of about so many microseconds.
fn steady(micros: u64) -> BenchReport {
    report(vec![target("a", (0..1_000).map(|n| Duration::from_micros(micros + n % 20)))])
}

fn open(micros: u64, in_flight: usize, over: OverflowPolicy) -> BenchReport {
    let mut report = steady(micros);
    report.plan.model =
        LoadModel::Open { arrivals: Arrivals::Constant { rate: 100.0 }, in_flight, overflow: over };
    report.generator.lag.record_many(Duration::from_micros(20), 1_000);
    report
}

#[track_caller]
fn says(report: &BenchReport, text: &str) {
    let sentences = find(report).join("\n");
    assert!(sentences.contains(text), "'{text}' in {sentences}");
}

#[test]
fn one_call_at_a_time_is_limited_by_latency() {
    says(
        &steady(5_000),
        "Limited by latency: one call at a time, each takes 5.01 ms (median), spent",
    );
    says(&steady(60), "so short that scheduling");
}

#[test]
fn many_at_once_are_limited_by_the_tool_and_it_is_told_how_to_find_out_why() {
    let mut report = steady(5_000);
    report.plan.model = LoadModel::Closed { concurrency: 10 };
    report.targets[0].throughput = 1_990.0;
    says(&report, "all 10 calls in flight waited for it, 5.01 ms each");
    says(&report, "-c 5");
    assert!(!find(&report).join(" ").contains("queueing behind"));
    report.targets[0].service.record(Duration::from_micros(600));
    says(&report, "The fastest call took 600 µs, so most of the median is probably queueing");
}

#[test]
fn lanes_that_were_not_kept_full_are_the_generators_error() {
    let mut report = steady(5_000);
    report.plan.model = LoadModel::Closed { concurrency: 10 };
    report.targets[0].throughput = 500.0;
    says(&report, "Limited by the load generator or the connection");
}

#[test]
fn a_generator_without_time_left_is_named() {
    let mut report = steady(5_000);
    report.plan.model = LoadModel::Closed { concurrency: 10 };
    report.targets[0].throughput = 1_990.0;
    report.elapsed = Duration::from_secs(10);
    report.generator.cpu = Some(Duration::from_secs(5));
    says(&report, "all 10 calls in flight waited");
    report.generator.cpu = Some(Duration::from_secs(9));
    says(&report, "Limited by toolhost itself, which used 90% of a processor: 1,990 calls/s");
}

#[test]
fn a_rate_that_is_kept_is_limited_by_nothing() {
    says(&open(1_000, 50, OverflowPolicy::Queue), "Not limited at this rate");
}

#[test]
fn waiting_for_a_place_is_saturation() {
    let mut report = open(1_000, 50, OverflowPolicy::Queue);
    report.targets[0].peak_in_flight = 50;
    report.targets[0].response = Durations::default();
    report.targets[0].response.record_many(Duration::from_millis(400), 1_000);
    report.generator.queued = 900;
    report.targets[0].throughput = 50.0;
    says(&report, "Saturated: calls wait for one of the 50 slots in flight");
    says(&report, "400 ms from the intended start, of which the tool takes 1.01 ms");
    says(&report, "of 100 requested");
}

#[test]
fn dropped_calls_are_saturation() {
    let mut report = open(1_000, 50, OverflowPolicy::Drop);
    report.targets[0].peak_in_flight = 50;
    report.targets[0].dropped = 500;
    says(&report, "500 of 1,500 calls were dropped because 50 were in flight");
}

#[test]
fn lateness_with_room_is_the_generators_error() {
    let mut report = open(1_000, 50, OverflowPolicy::Queue);
    report.generator.lag.record_many(Duration::from_millis(3), 50);
    says(&report, "Limited by the load generator: 1% of calls were sent 3");
}

#[test]
fn errors_come_first() {
    let mut report = steady(1_000);
    report.targets[0].requests = 2_000;
    report.targets[0].unanswered = 1;
    let error = ErrorReport { count: 999, first_seen: Duration::ZERO, sample: "gone".to_owned() };
    report.targets[0].errors_by_kind.insert("unreachable".to_owned(), error);
    let sentences = find(&report);
    assert!(
        sentences[0].starts_with(
            "Errors first: 1,000 of 2,000 calls failed, mostly 'unreachable' (999); \
             1 had no response"
        ),
        "{sentences:?}"
    );
    report.targets[0] = target("a", []);
    assert_eq!(find(&report), ["No call was made."]);
    report.targets[0].requests = 10;
    assert_eq!(find(&report).len(), 1);
    says(&report, "no latencies");
}

#[test]
fn tails_cold_starts_and_changes_are_told() {
    let mut report = steady(1_000);
    report.targets[0].response.record_many(Duration::from_millis(50), 30);
    says(&report, "1% of calls take 50 ms or more, 49 times the median");
    report.targets[0].cold.connect = Some(Duration::from_millis(300));
    report.targets[0].cold.first_call = Some(Duration::from_millis(20));
    says(&report, "connecting took 300 ms and the first call 20 ms, 317 times a warm call");
    let slower = (0..2_000).map(|n| Duration::from_micros(if n < 1_000 { 1_000 } else { 3_000 }));
    says(&super::super::fixtures::report(vec![target("a", slower)]), "Calls became slower");
}

#[test]
fn several_targets_are_told_apart() {
    let mut report = report(vec![target("a", []), target("b", [])]);
    assert!(find(&report)[1].starts_with("b: No call was made"));
    report.targets.clear();
    assert!(find(&report).is_empty());
}
