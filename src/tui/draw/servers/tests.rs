//! Snapshot tests of the servers view.

use crate::tui::draw::tests::{ASCII, picture};
use crate::tui::event::{AppEvent, UserInput};
use crate::tui::keys::KeyPress;
use crate::tui::state::AppState;
use crate::tui::state::servers_tests::{NOW, ready, sample};
use crate::tui::theme::Theme;
use crate::util::timestamp;

fn sized(width: u16, height: u16, keys: &[KeyPress]) -> AppState {
    let mut state = sample();
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    for key in keys {
        state.update(AppEvent::Input(UserInput::Key(*key)));
    }
    state
}

/// A picture in which it is the same time everywhere.
fn timed(state: &AppState, theme: Theme) -> String {
    let since = NOW.saturating_sub(ready("files").uptime.unwrap());
    let seen = picture(state, theme).replace(&timestamp::time_of_day(since), "13:22:15");
    seen.replace(&timestamp::time_of_day(NOW), "14:03:22")
}

#[test]
fn the_servers_in_120_by_40() {
    insta::assert_snapshot!(timed(&sized(120, 40, &[]), ASCII));
}

#[test]
fn a_dead_server_in_80_by_24() {
    insta::assert_snapshot!(timed(&sized(80, 24, &[KeyPress::Char('j')]), Theme::default()));
}

#[test]
fn declared_against_advertised_in_80_by_24() {
    insta::assert_snapshot!(timed(&sized(80, 24, &[KeyPress::Char('d')]), Theme::default()));
}

#[test]
fn the_log_in_60_by_16() {
    insta::assert_snapshot!(timed(&sized(60, 16, &[KeyPress::Char('l'), KeyPress::Tab]), ASCII));
}

#[test]
fn the_servers_in_40_by_10() {
    insta::assert_snapshot!(timed(&sized(40, 10, &[]), Theme::default()));
}
