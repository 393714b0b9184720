//! Pictures to bytes: only what changed, in one piece, and nothing at all when nothing did.
//!
//! Owns: the bytes of a frame. Never does: write to a terminal.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::draw;
use super::state::State;

/// Where a frame is gathered.
#[derive(Debug, Clone, Default)]
struct Gathered(Rc<RefCell<Vec<u8>>>);

impl Write for Gathered {
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
    terminal: Terminal<CrosstermBackend<Gathered>>,
    gathered: Gathered,
    size: (u16, u16),
    /// The frame that led to the picture that is shown.
    last: Vec<u8>,
    /// That frame as it is written.
    bytes: Vec<u8>,
    /// Whether what is on the screen is unknown.
    is_blank: bool,
}

impl Painter {
    /// One whose screen shows nothing that is known.
    ///
    /// # Errors
    /// Never, in fact: what is drawn is gathered in memory.
    pub fn new() -> io::Result<Self> {
        let size = (0, 0);
        let gathered = Gathered::default();
        let terminal = terminal(&gathered, size)?;
        Ok(Self { terminal, gathered, size, last: Vec::new(), bytes: Vec::new(), is_blank: true })
    }

    /// Forgets what is on the screen: everything is drawn anew next time.
    pub fn forget(&mut self) {
        self.is_blank = true;
    }

    /// What is to be written so that this is shown; nothing when it is shown already.
    ///
    /// # Errors
    /// Never, in fact: what is drawn is gathered in memory.
    pub fn paint(&mut self, state: &State) -> io::Result<&[u8]> {
        let anew = std::mem::take(&mut self.is_blank) || self.size != state.shell.size;
        if anew {
            self.size = state.shell.size;
            // One that knows nothing of what is there draws all of it.
            self.terminal = terminal(&self.gathered, self.size)?;
        }
        let theme = state.shell.look.theme();
        self.terminal.draw(|frame| draw::console(frame, state, &theme))?;
        let frame = self.gathered.0.take();
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
    gathered: &Gathered,
    (width, height): (u16, u16),
) -> io::Result<Terminal<CrosstermBackend<Gathered>>> {
    let backend = CrosstermBackend::new(gathered.clone());
    let viewport = Viewport::Fixed(Rect::new(0, 0, width, height));
    Terminal::with_options(backend, TerminalOptions { viewport })
}
