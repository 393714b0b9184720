//! Rendering frames to bytes: only changed cells, in one write, and nothing when nothing changed.

use std::cell::RefCell;
use std::io;
use std::io::Write;
use std::rc::Rc;

use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

use crate::tui::app::AppState;
use crate::tui::draw;

#[derive(Debug, Clone, Default)]
struct SharedBuffer(Rc<RefCell<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the bytes that lead from one picture to the next.
pub struct Painter {
    terminal: Terminal<CrosstermBackend<SharedBuffer>>,
    buffer: SharedBuffer,
    size: (u16, u16),
    /// The frame that led to the picture that is shown.
    last: Vec<u8>,
    /// The same frame as it is written to the terminal.
    bytes: Vec<u8>,
    needs_full_redraw: bool,
}

impl Painter {
    /// A painter that assumes nothing about the screen's content.
    pub fn new() -> io::Result<Self> {
        let size = (0, 0);
        let gathered = SharedBuffer::default();
        let terminal = terminal(&gathered, size)?;
        Ok(Self {
            terminal,
            buffer: gathered,
            size,
            last: Vec::new(),
            bytes: Vec::new(),
            needs_full_redraw: true,
        })
    }

    /// Forgets what is on the screen: everything is redrawn next time.
    pub fn invalidate(&mut self) {
        self.needs_full_redraw = true;
    }

    /// The bytes that make the screen show this; empty when it already does.
    pub fn paint(&mut self, state: &AppState) -> io::Result<&[u8]> {
        let anew = std::mem::take(&mut self.needs_full_redraw) || self.size != state.context.size;
        if anew {
            self.size = state.context.size;
            // One that knows nothing of what is there draws all of it.
            self.terminal = terminal(&self.buffer, self.size)?;
            // The terminal that is dropped has written a sequence that shows the cursor; it is not
            // wanted.
            self.buffer.0.borrow_mut().clear();
        }
        let theme = state.context.appearance.theme();
        self.terminal.draw(|frame| draw::console(frame, state, theme))?;
        let frame = self.buffer.0.take();
        // A picture that is the same as before comes to a reset of the style and the place of the
        // cursor, which is how the last frame ended, too. One that differs begins with a cell that
        // was another one before, so it cannot be the end of what made it what it is.
        let is_shown = !anew && self.last.ends_with(&frame);
        self.bytes.clear();
        if is_shown {
            return Ok(&self.bytes);
        }
        queue!(self.bytes, BeginSynchronizedUpdate)?;
        if anew {
            queue!(self.bytes, Clear(ClearType::All))?;
        }
        self.bytes.extend_from_slice(&frame);
        queue!(self.bytes, EndSynchronizedUpdate)?;
        self.last = frame;
        Ok(&self.bytes)
    }
}

fn terminal(
    gathered: &SharedBuffer,
    (width, height): (u16, u16),
) -> io::Result<Terminal<CrosstermBackend<SharedBuffer>>> {
    let backend = CrosstermBackend::new(gathered.clone());
    let viewport = Viewport::Fixed(Rect::new(0, 0, width, height));
    Terminal::with_options(backend, TerminalOptions { viewport })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tui::event::AppEvent;
    use crate::tui::event::UserInput;
    use crate::tui::keys::KeyPress;
    use crate::tui::tests::listed;
    use crate::tui::tests::sample;
    use crate::tui::tests::tool;
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
        let mut painter = Painter::new().unwrap();
        let first = text(painter.paint(&state).unwrap());
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
        let mut painter = Painter::new().unwrap();
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
        let mut painter = Painter::new().unwrap();
        let mut shown = blank();
        for key in "jjk/cal?q:dt".chars() {
            pressed(&mut state, key);
            shown.process(painter.paint(&state).unwrap());
            let mut fresh = Painter::new().unwrap();
            let mut anew = blank();
            anew.process(fresh.paint(&state).unwrap());
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
        let mut painter = Painter::new().unwrap();
        let bytes = text(painter.paint(&state).unwrap());
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
