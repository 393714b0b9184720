//! Snapshot tests of the benchmark view.

use crate::tui::draw::tests::{ASCII, picture};
use crate::tui::event::{AppEvent, UserInput};
use crate::tui::state::AppState;
use crate::tui::state::bench::tests::{ended, middle};
use crate::tui::state::tests::{press, sample};
use crate::tui::theme::Theme;

fn sized(mut state: AppState, width: u16, height: u16) -> AppState {
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    state
}

#[test]
fn a_plan_in_80_by_24() {
    let mut state = sized(sample(), 80, 24);
    press(&mut state, &["5", "a", "calc", "<enter>", "j", "j", "j", "j", "e", "8"]);
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn a_choice_of_tools_in_80_by_24() {
    let mut state = sized(sample(), 80, 24);
    press(&mut state, &["5", "b", "c"]);
    insta::assert_snapshot!(picture(&state, ASCII));
}

#[test]
fn a_run_in_120_by_40() {
    insta::assert_snapshot!(picture(&sized(middle(), 120, 40), Theme::default()));
}

#[test]
fn a_verdict_in_120_by_40() {
    insta::assert_snapshot!(picture(&sized(ended(), 120, 40), ASCII));
}

#[test]
fn a_run_in_80_by_24() {
    insta::assert_snapshot!(picture(&sized(ended(), 80, 24), ASCII));
}

#[test]
fn a_run_in_60_by_16() {
    let mut state = sized(ended(), 60, 16);
    let run = picture(&state, ASCII);
    press(&mut state, &["<tab>"]);
    insta::assert_snapshot!(format!("{run}\n{}", picture(&state, ASCII)));
}

#[test]
fn a_run_in_40_by_10() {
    let mut state = sized(middle(), 40, 10);
    let run = picture(&state, ASCII);
    press(&mut state, &["<tab>", "<tab>"]);
    insta::assert_snapshot!(format!("{run}\n{}", picture(&state, ASCII)));
}

#[test]
fn no_size_is_too_small() {
    for (width, height) in [(20, 5), (21, 6), (30, 5), (500, 6), (25, 200)] {
        let mut state = sized(ended(), width, height);
        for _ in 0..3 {
            picture(&state, ASCII);
            press(&mut state, &["<tab>"]);
        }
        press(&mut state, &["E"]);
        picture(&state, ASCII);
        press(&mut state, &["<esc>", "a"]);
        picture(&state, ASCII);
    }
}
