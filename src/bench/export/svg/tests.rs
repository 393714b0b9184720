//! Tests that pictures are well-formed, small, and escape their text.

use super::*;
use crate::bench::fixtures::{noisy, report, target};

fn failing(mut of: TargetReport) -> TargetReport {
    for slice in of.timeline.iter_mut().skip(5).step_by(9) {
        slice.failed = slice.ok % 5 + 1;
        of.requests += slice.failed;
        of.errors += slice.failed;
    }
    of
}

fn two() -> BenchReport {
    report(vec![
        failing(target("notes-search", noisy(0.004, 2_500, 1))),
        target("memory-search <b>&\u{202e}", noisy(0.006, 1_600, 2)),
    ])
}

/// The elements are closed and nothing comes from elsewhere.
#[track_caller]
fn is_sound(picture: &str) {
    assert!(picture.len() <= 100 * 1024, "{} bytes", picture.len());
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    for foreign in ["href", "url(", "<script", "<image", "NaN", "inf", "\u{202e}"] {
        assert!(!picture.contains(foreign), "{foreign}");
    }
    let opened = picture.matches("<text").count();
    assert_eq!(opened, picture.matches("</text>").count());
}

#[test]
fn a_picture_is_self_contained_and_its_text_is_escaped() {
    let picture = svg(&two());
    is_sound(&picture);
    assert!(picture.contains("<title>notes-search vs memory-search &lt;b&gt;&amp;"));
    assert!(picture.contains("A failed") && !picture.contains("B failed"));
    assert!(picture.contains("class=\"line c1 d1\""), "the second one has dashes and a colour");
}

#[test]
fn targets_that_took_turns_have_times_of_their_own() {
    let mut report = two();
    assert!(svg(&report).contains("since the first counted call"));
    report.elapsed *= 2;
    report.rounds = crate::bench::fixtures::rounds(&[4, 6], 5);
    let picture = svg(&report);
    is_sound(&picture);
    assert!(picture.contains("each tool&#39;s own rounds"));
    assert!(picture.contains(">10 s<") && !picture.contains(">20 s<"), "no empty half");
}

#[test]
fn nothing_and_very_little_can_be_drawn() {
    for times in [vec![], vec![Duration::ZERO], vec![Duration::from_millis(3)]] {
        is_sound(&svg(&report(vec![target("a", times)])));
    }
    is_sound(&svg(&report(Vec::new())));
    assert!(svg(&report(vec![target("a", [])])).contains("no successful calls"));
}

#[test]
fn many_targets_stay_below_the_bound() {
    let all = (0..6).map(|n| failing(target(&"long".repeat(50), noisy(0.004, 3_000, n))));
    is_sound(&svg(&report(all.collect())));
}
