//! Rendering frames to bytes: only changed cells, in one write, and nothing when nothing changed.

use std::io;

use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use crate::tui::app::AppState;
use crate::tui::draw;

/// Makes the bytes that lead from one picture to the next.
#[derive(Default)]
pub struct Painter {
    /// The picture on the screen and the place of its cursor; `None` when they are not known.
    shown: Option<(Buffer, Option<Position>)>,
}

impl Painter {
    /// Forgets what is on the screen: everything is redrawn next time.
    pub fn invalidate(&mut self) {
        self.shown = None;
    }

    /// The bytes that make the screen show this; none when it already does.
    pub fn paint(&mut self, state: &AppState) -> io::Result<Vec<u8>> {
        let (width, height) = state.context.size;
        let area = Rect::new(0, 0, width, height);
        let mut picture = Buffer::empty(area);
        let cursor = draw::console(&mut picture, state, state.context.appearance.theme());
        let before = self.shown.take().filter(|(before, _)| before.area == area);
        let next = (picture, cursor);
        let mut bytes = Vec::new();
        if before.as_ref() != Some(&next) {
            queue!(bytes, BeginSynchronizedUpdate)?;
            if before.is_none() {
                queue!(bytes, Clear(ClearType::All))?;
            }
            let before = before.map_or_else(|| Buffer::empty(area), |(before, _)| before);
            let mut backend = CrosstermBackend::new(&mut bytes);
            backend.draw(before.diff(&next.0).into_iter())?;
            match cursor {
                Some(place) => {
                    backend.show_cursor()?;
                    backend.set_cursor_position(place)?;
                }
                None => backend.hide_cursor()?,
            }
            queue!(bytes, EndSynchronizedUpdate)?;
        }
        self.shown = Some(next);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tui::event::{AppEvent, UserInput};
    use crate::tui::keys::KeyPress;
    use crate::tui::tests::{listed, sample, tool};
    use crate::tui::theme::ColourScheme;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// A terminal that shows nothing yet.
    fn blank() -> vt100::Parser {
        let size = |cells| std::num::NonZeroU16::new(cells).unwrap();
        vt100::Parser::new(size(40), size(120), 0)
    }

    fn pressed(state: &mut AppState, key: char) {
        state.update(AppEvent::Input(UserInput::Key(KeyPress::Char(key))));
    }

    #[test]
    fn what_is_shown_already_is_not_written_again() {
        let mut state = sample();
        let mut painter = Painter::default();
        let first = text(&painter.paint(&state).unwrap());
        assert!(first.starts_with("\u{1b}[?2026h\u{1b}[2J"), "{first:?}");
        assert!(first.ends_with("\u{1b}[?2026l"));
        assert!(painter.paint(&state).unwrap().is_empty());
        pressed(&mut state, 'j');
        let change = painter.paint(&state).unwrap().len();
        assert!(0 < change && change < first.len() / 2, "{change} of {}", first.len());
        assert!(painter.paint(&state).unwrap().is_empty());
        painter.invalidate();
        assert!(painter.paint(&state).unwrap().len() > change);
    }

    #[test]
    fn the_cursor_alone_is_a_change() {
        let mut state = sample();
        let mut painter = Painter::default();
        painter.paint(&state).unwrap();
        for key in ['/', 'a', 'b'] {
            pressed(&mut state, key);
            assert!(!painter.paint(&state).unwrap().is_empty(), "{key}");
        }
        let home = AppEvent::Input(UserInput::Key(KeyPress::Home));
        state.update(home);
        assert!(!painter.paint(&state).unwrap().is_empty());
        assert!(painter.paint(&state).unwrap().is_empty());
    }

    #[test]
    fn a_terminal_shows_what_was_meant_at_every_step() {
        let mut state = sample();
        let mut painter = Painter::default();
        let mut shown = blank();
        for key in "jjk/cal?q:dt".chars() {
            pressed(&mut state, key);
            shown.process(&painter.paint(&state).unwrap());
            let mut fresh = Painter::default();
            let mut anew = blank();
            anew.process(&fresh.paint(&state).unwrap());
            let seen = |screen: &vt100::Screen| {
                let rows = screen.rows(0, 120).map(|row| row.trim_end().to_owned());
                rows.collect::<Vec<_>>()
            };
            assert_eq!(seen(shown.screen()), seen(anew.screen()), "after {key}");
        }
    }

    #[test]
    fn no_word_of_a_tool_steers_the_terminal_and_mono_has_no_colour() {
        let mut hostile = tool("web-x", json!({ "type": "object" }));
        let evil = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}2J\u{202e}back";
        hostile.description = Some(evil.to_owned());
        hostile.title = Some(evil.to_owned());
        hostile.warnings = vec![evil.to_owned()];
        let mut state = sample();
        state.context.appearance.palette = ColourScheme::Mono;
        state.update(listed(vec![hostile]));
        let mut painter = Painter::default();
        let bytes = text(&painter.paint(&state).unwrap());
        assert!(!bytes.contains("\u{1b}[31m") && !bytes.contains("\u{1b}]0"), "{bytes:?}");
        assert!(!bytes.contains(['\u{7}', '\u{9b}', '\u{202e}']));
        assert!(bytes.contains("\u{1b}[7m"), "the chosen line is told apart without colour");
        // Colours are set back and never set.
        let codes = bytes.split("\u{1b}[").skip(1);
        let styles = codes.filter_map(|code| code.split_once('m').map(|(style, _)| style));
        let coloured = styles.filter(|style| {
            let numbers: Option<Vec<u32>> = style.split(';').map(|n| n.parse().ok()).collect();
            numbers.is_some_and(|all| all.iter().any(|n| matches!(n, 30..=38 | 40..=48 | 90..=107)))
        });
        assert_eq!(coloured.collect::<Vec<_>>(), [""; 0]);
    }
}
