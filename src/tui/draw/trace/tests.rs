//! Snapshot tests of the trace view.

use bytes::Bytes;

use crate::model::traffic::{Direction, MessageInfo, TrafficKind};
use crate::tui::draw::tests::{ASCII, picture};
use crate::tui::event::{AppEvent, UserInput};
use crate::tui::keys::KeyPress;
use crate::tui::state::AppState;
use crate::tui::state::trace_tests::{AT, crossed, sample};
use crate::tui::theme::Theme;
use crate::util::timestamp;

fn sized(width: u16, height: u16, keys: &str) -> AppState {
    let mut state = sample();
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    for c in keys.chars() {
        let key = if c == '\r' { KeyPress::Enter } else { KeyPress::Char(c) };
        state.update(AppEvent::Input(UserInput::Key(key)));
    }
    state
}

/// A picture in which it is the same time everywhere.
fn timed(state: &AppState, theme: Theme) -> String {
    let seen = picture(state, theme).replace(&timestamp::time_of_day_millis(AT), "14:03:21.118");
    seen.replace(&timestamp::time_of_day(AT), "14:03:21")
}

#[test]
fn the_trace_in_120_by_40() {
    insta::assert_snapshot!(timed(&sized(120, 40, "gj\r"), ASCII));
}

#[test]
fn the_trace_in_80_by_24() {
    insta::assert_snapshot!(timed(&sized(80, 24, "/srv:web"), Theme::default()));
}

#[test]
fn the_trace_in_60_by_16() {
    insta::assert_snapshot!(timed(&sized(60, 16, ""), ASCII));
}

#[test]
fn the_trace_in_40_by_10() {
    insta::assert_snapshot!(timed(&sized(40, 10, " "), Theme::default()));
}

#[test]
fn what_crosses_a_wire_steers_nothing() {
    let evil = "\u{1b}[2J\u{9b}31m\u{202e}evil\u{1b}]0;title\u{7}";
    let mut state = sized(120, 40, "");
    let glance = MessageInfo::Request { id: evil.into(), method: evil.to_owned() };
    for what in [
        TrafficKind::Stderr(evil.to_owned()),
        TrafficKind::HttpHead {
            direction: Direction::Received,
            line: evil.to_owned(),
            headers: vec![(evil.to_owned(), evil.to_owned())],
            latency: None,
        },
        TrafficKind::Message {
            direction: Direction::Received,
            bytes: Bytes::copy_from_slice(evil.as_bytes()),
            info: glance,
            latency: None,
        },
    ] {
        state.update(crossed(evil, what));
        state.update(AppEvent::Tick(AT));
        let seen = picture(&state, Theme::default());
        assert!(seen.contains("␛[2J⟨U+009B⟩31m⟨U+202E⟩evil"), "{seen}");
        assert!(!seen.chars().any(|c| c.is_control() && c != '\n'), "{seen}");
        assert!(!seen.contains('\u{202e}'));
    }
}
