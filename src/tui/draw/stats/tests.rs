//! Snapshot tests of the statistics view.

use crate::tui::draw::tests::{ASCII, picture};
use crate::tui::event::stats::{StatsEvent, StatsWindow};
use crate::tui::event::{AppEvent, UserInput};
use crate::tui::keys::KeyPress;
use crate::tui::state::AppState;
use crate::tui::state::stats::tests::measured;
use crate::tui::state::tests::{press, sample};
use crate::tui::theme::Theme;

fn sized(mut state: AppState, width: u16, height: u16) -> AppState {
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    state
}

#[test]
fn the_statistics_in_120_by_40() {
    let mut state = sized(measured(), 120, 40);
    press(&mut state, &["<down>"]);
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn the_statistics_in_80_by_24() {
    insta::assert_snapshot!(picture(&sized(measured(), 80, 24), ASCII));
}

#[test]
fn the_servers_in_80_by_24() {
    let mut state = sized(measured(), 80, 24);
    press(&mut state, &["t", "H", " "]);
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn the_statistics_in_60_by_16() {
    let mut state = sized(measured(), 60, 16);
    let table = picture(&state, ASCII);
    press(&mut state, &["<tab>"]);
    insta::assert_snapshot!(format!("{table}\n{}", picture(&state, ASCII)));
}

#[test]
fn the_statistics_in_40_by_10() {
    let mut state = sized(measured(), 40, 10);
    let table = picture(&state, ASCII);
    press(&mut state, &["<tab>"]);
    insta::assert_snapshot!(format!("{table}\n{}", picture(&state, ASCII)));
}

#[test]
fn without_calls_it_is_said_what_to_do() {
    let mut state = sized(sample(), 80, 24);
    press(&mut state, &["4"]);
    assert!(picture(&state, ASCII).contains("Loading..."));
    let mut seen = crate::tui::state::stats::tests::seen(StatsWindow::default());
    seen.summary.tools.clear();
    seen.notes.push("/state/stats.db cannot be written: it is locked".to_owned());
    state.update(AppEvent::Stats(StatsEvent::Loaded(Box::new(seen))));
    let shown = picture(&state, ASCII);
    assert!(shown.contains("No calls in this window. Press w for another window"), "{shown}");
    assert!(shown.contains("! /state/stats.db cannot be written: it is locked"), "{shown}");
}

#[test]
fn a_store_that_cannot_be_read_is_said_above_what_was_seen_before() {
    let mut state = sized(measured(), 80, 24);
    let error = crate::model::Error::unreachable("it is locked by process 7").with_hint("end that");
    state.update(AppEvent::Stats(StatsEvent::Failed(error)));
    let shown = picture(&state, ASCII);
    for part in
        ["cannot read statistics: it is locked by process 7", "hint: end that", "calculator"]
    {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
}

#[test]
fn a_tool_tells_its_use_in_its_detail() {
    let mut state = sized(measured(), 120, 40);
    press(&mut state, &["1"]);
    let shown = picture(&state, ASCII);
    assert!(shown.contains("used      2,000 calls, 100.0% ok, p50 16.9 ms"), "{shown}");
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(20, 5), (21, 6), (30, 5), (500, 6), (25, 200)] {
        let mut state = sized(measured(), width, height);
        picture(&state, ASCII);
        press(&mut state, &["<tab>", "E"]);
        picture(&state, ASCII);
        state.update(AppEvent::Input(UserInput::Key(KeyPress::Esc)));
    }
}

#[test]
fn what_changed_since_the_period_before_is_told() {
    let mut seen = crate::tui::state::stats::tests::seen(StatsWindow::Hour);
    let mut earlier = crate::tui::state::stats::tests::seen(StatsWindow::Hour).summary;
    for usage in &mut earlier.tools {
        usage.counts.failures.clear();
    }
    seen.earlier = Some(earlier.tools);
    let mut state = sized(measured(), 120, 40);
    state.update(AppEvent::Stats(StatsEvent::Loaded(Box::new(seen))));
    press(&mut state, &["s", "k"]);
    let drawn = picture(&state, ASCII);
    assert!(drawn.contains("change  calls +23%  errors +18.4 pp"), "{drawn}");
}
