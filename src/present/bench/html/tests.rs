//! Tests that a page is whole, needs nothing else and keeps text of others text.

use std::time::Duration;

use super::*;
use crate::bench::bench_result::AcceptanceCriteria;
use crate::bench::compare::compare;
use crate::bench::fixtures::{noisy, report, rounds, target};
use crate::bench::json::RunJson;
use crate::bench::report::ErrorReport;
use crate::bench::{baseline, threshold};

const EVIL: &str = "x\"><script src=https://evil.test/a.js></script>\u{1b}[31m\u{202e}";

fn page(report: &BenchReport, demands: &AcceptanceCriteria) -> String {
    let environment = BenchEnvironment { os: EVIL.to_owned(), ..BenchEnvironment::default() };
    let findings = BenchFindings::conclude(report, &environment, demands);
    html(report, &environment, &findings)
}

/// Elements are closed, and nothing is fetched, run or drawn in the wrong direction.
#[track_caller]
fn is_sound(page: &str) {
    for foreign in ["<script", "src=", "href", "url(", "@import", "NaN", "\u{1b}", "\u{202e}"] {
        // What stands in the text of others is escaped, and its words may be there.
        let is_there = page.replace("&lt;script", "").replace("src=https:", "").contains(foreign);
        assert!(!is_there, "{foreign}\n{page}");
    }
    for element in ["pre", "span", "ul", "li", "svg", "text", "style", "figure", "h2"] {
        let opened = page.matches(&format!("<{element}>")).count()
            + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
}

#[test]
fn a_page_says_first_what_came_of_it_and_escapes_what_others_wrote() {
    let mut bad = target(EVIL, noisy(0.004, 2_500, 1));
    bad.requests += 5;
    bad.errors = 5;
    let cause = ErrorReport { count: 5, first_seen: Duration::ZERO, sample: EVIL.to_owned() };
    bad.errors_by_kind.insert("protocol".to_owned(), cause);
    let mut run = report(vec![bad, target("other", noisy(0.008, 2_500, 2))]);
    run.rounds = rounds(&[1, 2], 10);
    assert_eq!(compare(&run).len(), 1);
    let demands = AcceptanceCriteria {
        thresholds: threshold::parse(&["p99>1ms".to_owned()], 2).unwrap(),
        ..AcceptanceCriteria::default()
    };
    let page = page(&run, &demands);
    is_sound(&page);
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}\n{page}"));
    assert!(at("B is slower than A") < at("<figure>"), "the verdict comes first");
    for heading in ["B  other", "B compared with A", "Thresholds (fail if true)", "Run"] {
        at(&format!("<h2>{heading}</h2>"));
    }
    at("protocol");
    assert_eq!(page.matches("<svg ").count(), 4);
    at("prefers-color-scheme:dark");
}

#[test]
fn a_comparison_with_a_saved_run_is_on_the_page() {
    let was = report(vec![target("a", noisy(0.002, 2_000, 1))]);
    let environment = BenchEnvironment::default();
    let text =
        crate::util::json::compact(&RunJson::from((&was, &environment, &BenchFindings::default())));
    let demands = AcceptanceCriteria {
        baseline: Some(baseline::parse(&text, "<before>.json").unwrap()),
        max_regression: Some(0.1),
        ..AcceptanceCriteria::default()
    };
    let page = page(&report(vec![target("a", noisy(0.004, 2_000, 2))]), &demands);
    is_sound(&page);
    for expected in ["<h2>Compared with &lt;before&gt;.json", "FAIL", "since &lt;before&gt;.json"] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
}

#[test]
fn nothing_and_very_little_make_a_page_too() {
    for times in [vec![], vec![Duration::ZERO], vec![Duration::from_millis(3)]] {
        is_sound(&page(&report(vec![target("a", times)]), &AcceptanceCriteria::default()));
    }
    is_sound(&page(&report(Vec::new()), &AcceptanceCriteria::default()));
}
