//! What the servers look like, at the sizes they are made for.

use crate::tui::draw::tests::{ASCII, picture};
use crate::tui::event::{Event, Input};
use crate::tui::keys::Key;
use crate::tui::state::State;
use crate::tui::state::servers_tests::{NOW, ready, sample};
use crate::tui::theme::Theme;
use crate::util::moment;

fn sized(width: u16, height: u16, keys: &[Key]) -> State {
    let mut state = sample();
    state.update(Event::Input(Input::Resize { width, height }));
    for key in keys {
        state.update(Event::Input(Input::Key(*key)));
    }
    state
}

/// A picture in which it is the same time everywhere.
fn timed(state: &State, theme: Theme) -> String {
    let since = NOW.saturating_sub(ready("files").uptime.unwrap());
    let seen = picture(state, theme).replace(&moment::time(since), "13:22:15");
    seen.replace(&moment::time(NOW), "14:03:22")
}

#[test]
fn the_servers_in_120_by_40() {
    insta::assert_snapshot!(timed(&sized(120, 40, &[]), ASCII));
}

#[test]
fn a_dead_server_in_80_by_24() {
    insta::assert_snapshot!(timed(&sized(80, 24, &[Key::Char('j')]), Theme::default()));
}

#[test]
fn declared_against_advertised_in_80_by_24() {
    insta::assert_snapshot!(timed(&sized(80, 24, &[Key::Char('d')]), Theme::default()));
}

#[test]
fn the_log_in_60_by_16() {
    insta::assert_snapshot!(timed(&sized(60, 16, &[Key::Char('l'), Key::Tab]), ASCII));
}

#[test]
fn the_servers_in_40_by_10() {
    insta::assert_snapshot!(timed(&sized(40, 10, &[]), Theme::default()));
}
