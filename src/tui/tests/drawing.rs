//! Snapshot tests of the console, at all supported sizes.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use serde_json::json;

use crate::tui::app::AppState;
use crate::tui::draw::*;
use crate::tui::event::{AppEvent, UserInput};
use crate::tui::keys::KeyPress;
use crate::tui::tests::{listed, sample, tool};
use crate::tui::theme::{ColourScheme, OwnColours, Theme};

pub fn picture(state: &AppState, theme: Theme) -> String {
    let (width, height) = state.context.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| {
            console(frame.buffer_mut(), state, theme);
        })
        .unwrap();
    terminal.backend().to_string()
}

/// The screen as cells.
pub fn cells(state: &AppState, theme: Theme) -> Buffer {
    let (width, height) = state.context.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    console(&mut buffer, state, theme);
    buffer
}

/// The cells of the first place in an area where this stands.
pub fn cells_of(buffer: &Buffer, area: Rect, words: &str) -> Vec<Cell> {
    for row in area.rows() {
        let row: Vec<Cell> = row.positions().map(|at| buffer[at].clone()).collect();
        let text: String = row.iter().map(Cell::symbol).collect();
        if let Some((before, _)) = text.split_once(words) {
            let first = before.chars().count();
            return row[first..first + words.chars().count()].to_vec();
        }
    }
    panic!("'{words}' is not on the screen")
}

pub fn sized(width: u16, height: u16) -> AppState {
    let mut state = sample();
    state.update(AppEvent::Input(UserInput::Resize { width, height }));
    state
}

pub const ASCII: Theme = Theme {
    palette: ColourScheme::Mono,
    ascii: true,
    depth: crate::tui::theme::ColourDepth::Sixteen,
    own: OwnColours::NONE,
};

#[test]
fn the_tools_in_120_by_40() {
    insta::assert_snapshot!(picture(&sized(120, 40), ASCII));
}

#[test]
fn the_tools_in_80_by_24() {
    insta::assert_snapshot!(picture(&sized(80, 24), Theme::default()));
}

#[test]
fn the_form_in_80_by_24() {
    let mut state = sized(80, 24);
    state.update(AppEvent::Input(UserInput::Key(KeyPress::Enter)));
    insta::assert_snapshot!(picture(&state, Theme::default()));
}

#[test]
fn the_tools_in_40_by_10() {
    insta::assert_snapshot!(picture(&sized(40, 10), ASCII));
}

#[test]
fn the_help_in_80_by_24() {
    let mut state = sized(80, 24);
    state.update(AppEvent::Input(UserInput::Key(KeyPress::Char('?'))));
    insta::assert_snapshot!(picture(&state, ASCII));
}

#[test]
fn too_little_room_is_said() {
    let seen = picture(&sized(50, 4), ASCII);
    assert!(seen.contains("terminal too small (50x4), need 20x5"), "{seen}");
}

#[test]
fn what_a_server_says_steers_nothing() {
    let mut hostile = tool("web-x", json!({ "type": "object" }));
    hostile.description = Some("\u{1b}[31mred\u{1b}]0;title\u{7}\u{202e}evil\u{9b}2J".to_owned());
    let mut state = sized(120, 40);
    state.update(listed(vec![hostile]));
    let seen = picture(&state, Theme::default());
    assert!(seen.contains(r"␛[31mred␛]0;title\x07⟨U+202E⟩evil⟨U+009B⟩2J"), "{seen}");
    assert!(!seen.chars().any(|c| c.is_control() && c != '\n'), "{seen}");
    assert!(!seen.contains('\u{202e}'));
}
