//! The terminal while the console runs: entering and leaving raw mode and the alternate screen.

use std::io::{self, Write as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    EventStream, MouseButton, MouseEvent, MouseEventKind,
};
use crossterm::terminal::{
    self, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{cursor, execute};
use futures_util::StreamExt as _;

use crate::model::Signal;
use crate::tui::app::AppState;
use crate::tui::event::{AppEvent, UserInput};
use crate::tui::keys::KeyPress;
use crate::tui::painter::Painter;
use crate::util::text;

/// The longest text that is put on the clipboard; terminals refuse longer ones in silence.
const CLIPBOARD: usize = 64 * 1024;

/// How long the thread that reads the terminal may take to end.
const READER_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(50);

static IS_TERMINAL_ACQUIRED: AtomicBool = AtomicBool::new(false);

/// The message of the newest panic while the screen was in use.
static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

pub struct Screen {
    painter: Painter,
    input: Option<EventStream>,
    has_mouse: bool,
}

impl Screen {
    pub fn open() -> io::Result<Self> {
        install_panic_hook();
        acquire_terminal()?;
        Ok(Self { painter: Painter::default(), input: Some(EventStream::new()), has_mouse: false })
    }

    /// The next user input. The end of the terminal is reported as a hang-up.
    pub async fn input(&mut self) -> io::Result<AppEvent> {
        let Some(stream) = &mut self.input else { return std::future::pending().await };
        loop {
            let event = match stream.next().await {
                None => return Ok(AppEvent::Signal(Signal::Hangup)),
                Some(event) => event?,
            };
            let input = match event {
                crossterm::event::Event::Key(key) => KeyPress::from_event(&key).map(UserInput::Key),
                crossterm::event::Event::Paste(text) => Some(UserInput::Paste(text)),
                crossterm::event::Event::Resize(width, height) => {
                    Some(UserInput::Resize { width, height })
                }
                crossterm::event::Event::Mouse(mouse) => mouse_input(mouse),
                _ => None,
            };
            if let Some(input) = input {
                return Ok(AppEvent::Input(input));
            }
        }
    }

    /// Draws what changed since the last time, in one write; nothing is written when nothing did.
    pub fn draw(&mut self, state: &AppState) -> io::Result<()> {
        if self.input.is_none() {
            return Ok(());
        }
        self.set_mouse_capture(state.context.appearance.mouse)?;
        let bytes = self.painter.paint(state)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(&bytes)?;
        out.flush()
    }

    fn set_mouse_capture(&mut self, has_mouse: bool) -> io::Result<()> {
        if self.has_mouse == has_mouse {
            return Ok(());
        }
        self.has_mouse = has_mouse;
        if has_mouse {
            execute!(io::stdout(), EnableMouseCapture)
        } else {
            execute!(io::stdout(), DisableMouseCapture)
        }
    }

    pub fn clear(&mut self) {
        self.painter.invalidate();
    }

    /// Puts a text on the clipboard of the terminal's user (OSC 52).
    pub fn copy(text: &str) -> io::Result<()> {
        let text = text.get(..text.floor_char_boundary(CLIPBOARD)).unwrap_or_default();
        execute!(io::stdout(), CopyToClipboard::to_clipboard_from(text))
    }

    /// Gives the terminal back to the shell until the process is continued.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.release();
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        self.reacquire()
    }

    /// Gives the terminal to another program: nothing is drawn or read until [`Screen::reacquire`].
    pub fn release(&mut self) {
        // A stream that is still there would go on reading what is typed for others, and one that
        // ends later would take the first key of the time after.
        self.input = None;
        let _what_comes_is_kept = crossterm::event::poll(READER_SHUTDOWN_TIMEOUT);
        restore_terminal();
    }

    pub fn reacquire(&mut self) -> io::Result<()> {
        acquire_terminal()?;
        self.has_mouse = false;
        self.clear();
        self.input = Some(EventStream::new());
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.input = None;
        restore_terminal();
        let message = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(message) = message.filter(|_| std::thread::panicking()) {
            // If that fails too, it cannot be reported.
            let _unheard = writeln!(io::stderr(), "{}", text::safe(&message));
        }
    }
}

/// Turns a mouse event into input; `None` when the console has no use for it.
fn mouse_input(mouse: MouseEvent) -> Option<UserInput> {
    let (x, y) = (mouse.column, mouse.row);
    Some(match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => UserInput::Click { x, y },
        MouseEventKind::ScrollDown => UserInput::Wheel { x, y, by: 1 },
        MouseEventKind::ScrollUp => UserInput::Wheel { x, y, by: -1 },
        _ => return None,
    })
}

fn acquire_terminal() -> io::Result<()> {
    terminal::enable_raw_mode()?;
    IS_TERMINAL_ACQUIRED.store(true, Ordering::SeqCst);
    let entered = execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide);
    entered.inspect_err(|_| restore_terminal())
}

fn restore_terminal() {
    if !IS_TERMINAL_ACQUIRED.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    // A terminal that is gone needs nothing back.
    let _left = execute!(
        out,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _flushed = out.flush();
    let _raw = terminal::disable_raw_mode();
}

/// While the console owns the terminal, panics print nothing: if caught, the message becomes the
/// error of a call; if not, it is printed once the shell's screen is back.
fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if IS_TERMINAL_ACQUIRED.load(Ordering::SeqCst) {
                *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = Some(info.to_string());
            } else {
                before(info);
            }
        }));
    });
}
