//! Tests with saved runs that are read back and compared, and with files that are not saved runs.

use super::*;
use crate::bench::bench_result::{AcceptanceCriteria, BenchFindings};
use crate::bench::fixtures::{noisy, report, target};
use crate::bench::json::RunJson;
use crate::bench::plan::LoadModel;

fn environment() -> BenchEnvironment {
    BenchEnvironment { toolhost: "1.2.3".to_owned(), ..BenchEnvironment::default() }
}

fn text(report: &BenchReport) -> String {
    let (environment, findings) = (environment(), BenchFindings::default());
    crate::util::json::compact(&RunJson::from((report, &environment, &findings)))
}

fn saved(report: &BenchReport) -> SavedRun {
    parse(&text(report), "before.json").unwrap()
}

fn run(base: f64, seed: u64) -> BenchReport {
    report(vec![target("a", noisy(base, 2_000, seed))])
}

fn against(was: &BenchReport, now: &BenchReport, most: Option<f64>) -> BaselineReport {
    super::compare_with_baseline(&saved(was), now, &environment(), most)
}

#[test]
fn what_was_saved_comes_back() {
    let run = run(0.002, 1);
    let saved = saved(&run);
    let (was, now) = (&saved.targets[0].report, &run.targets[0]);
    assert_eq!(was.response.encode(), now.response.encode());
    assert_eq!((was.requests, was.ok, was.bytes_in), (now.requests, now.ok, now.bytes_in));
    assert!((was.throughput - now.throughput).abs() < 1e-9);
    assert!(saved.targets[0].blocks.len() > 10);
    assert_eq!(saved.began.as_deref(), Some("2027-01-15T08:00:00Z"));
    assert_eq!(saved.toolhost.as_deref(), Some("1.2.3"));
}

#[test]
fn the_same_tool_passes_and_a_much_slower_one_fails() {
    let (mut passed, mut failed) = (0, 0);
    for seed in 0..20 {
        let was = run(0.002, seed);
        let same = against(&was, &run(0.002, seed + 100), Some(0.1));
        passed += usize::from(!same.failed());
        let slower = against(&was, &run(0.0026, seed + 100), Some(0.1));
        failed += usize::from(slower.failed());
    }
    assert_eq!((passed, failed), (20, 20));
}

#[test]
fn a_change_is_told_with_its_interval_and_its_verdict() {
    let comparison = against(&run(0.002, 1), &run(0.004, 2), Some(0.1));
    let lines = comparison.targets[0].lines();
    assert_eq!(lines.len(), 6);
    let p95 = lines.iter().find(|line| line.starts_with("p95 ")).unwrap();
    assert!(p95.contains(", was ") && p95.ends_with(", slower: FAIL"), "{p95}");
    let p50 = lines.iter().find(|line| line.starts_with("p50 ")).unwrap();
    assert!(p50.ends_with(", slower"), "it is not judged: {p50}");
    let demands = AcceptanceCriteria {
        baseline: Some(saved(&run(0.002, 1))),
        max_regression: Some(0.1),
        ..AcceptanceCriteria::default()
    };
    let error =
        BenchFindings::conclude(&run(0.004, 2), &environment(), &demands).failure().unwrap();
    assert_eq!(error.message(), "failed: the comparison with before.json");
    assert_eq!(error.details().len(), 3);
}

#[test]
fn without_a_limit_nothing_is_judged() {
    let comparison = against(&run(0.002, 1), &run(0.004, 2), None);
    assert!(!comparison.failed() && comparison.targets[0].verdicts.is_empty());
}

#[test]
fn a_short_run_establishes_nothing_and_does_not_fail() {
    let was = report(vec![target("a", noisy(0.002, 100, 1))]);
    let now = report(vec![target("a", noisy(0.004, 100, 2))]);
    let comparison = against(&was, &now, Some(0.1));
    assert_eq!(comparison.targets[0].verdict(), Some(RegressionVerdict::NotEstablished));
    let few = RatioVerdict::NotEstablished(Inconclusive::TooFewBlocks);
    assert_eq!(comparison.targets[0].ratios[0].verdict, few);
    assert!(!comparison.failed());
}

#[test]
fn a_run_without_answers_fails() {
    let mut now = report(vec![target("a", [])]);
    now.targets[0].requests = 10;
    assert!(against(&run(0.002, 1), &now, Some(0.1)).failed());
}

#[test]
fn other_circumstances_are_told() {
    let was = run(0.002, 1);
    let mut now = run(0.002, 2);
    now.targets[0].tool = "b".to_owned();
    now.targets[0].requests += 200;
    now.plan.model = LoadModel::Closed { concurrency: 10 };
    let other = BenchEnvironment { toolhost: "2.0.0".to_owned(), ..BenchEnvironment::default() };
    let comparison = super::compare_with_baseline(&saved(&was), &now, &other, None);
    let all = comparison.warnings.join("\n");
    for text in [
        "different concurrency: 1, not 10",
        "by toolhost 1.2.3, this one by 2.0.0",
        "'b' is compared with 'a'",
        "9.09% of this one",
    ] {
        assert!(all.contains(text), "{text} in {all}");
    }
    let several = report(vec![target("b", []), target("c", [])]);
    let comparison = super::compare_with_baseline(&saved(&was), &several, &other, Some(0.1));
    assert!(comparison.targets.is_empty() && comparison.failed());
    assert!(
        comparison.warnings.iter().any(|warning| warning.contains("'c' is not in before.json"))
    );
}

#[test]
fn what_is_not_ours_is_refused_with_a_reason() {
    let good = text(&run(0.002, 1));
    let refused = |text: &str| parse(text, "f.json").unwrap_err().message().to_owned();
    assert!(refused("{").contains("f.json is not JSON: EOF"));
    assert!(refused("[]").contains("no format_version"));
    assert!(refused(r#"{"results": []}"#).contains("hyperfine"));
    let newer = good.replacen("\"format_version\":1", "\"format_version\":2", 1);
    assert!(refused(&newer).contains("newer toolhost (format 2; this one reads up to 1)"));
    let broken = good.replacen("\"data\":\"A", "\"data\":\"!", 1);
    assert!(refused(&broken).contains("unreadable histogram for 'a'"), "{}", refused(&broken));
    let lacking = good.replacen("\"requests\"", "\"request\"", 1);
    assert!(refused(&lacking).contains("no usable 'requests' for 'a'"));
    assert!(refused(r#"{"format_version":1,"targets":[]}"#).contains("0 targets"));
}

#[test]
fn a_file_that_is_not_there_is_named_with_a_way_out() {
    let error = read(Path::new("/nonexistent/before.json")).unwrap_err();
    assert!(error.message().contains("cannot read '/nonexistent/before.json'"));
    assert_eq!(error.kind().exit_code(), 9);
    assert!(error.hint().is_some_and(|hint| hint.contains("--save FILE")));
}
