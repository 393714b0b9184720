//! A dialogue on the terminal that can be cancelled at any time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cli::output::Output;
use crate::present::{Line, Page, Role};

/// The terminal of this process, whatever stdin is.
const TERMINAL: &str = "/dev/tty";
const MAX_LINE: usize = 64 * 1024;
const CANCEL_POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

pub(super) fn terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(TERMINAL)
}

/// One session. Dropping it ends any read in progress.
pub(super) struct TerminalSession {
    output: Arc<Output>,
    terminal: Arc<File>,
    cancelled: CancellationToken,
    _ends_with_this: DropGuard,
}

impl TerminalSession {
    /// Begins a session; `None` if there is no terminal to ask on.
    pub(super) fn begin(output: Arc<Output>) -> Option<Self> {
        let cancelled = CancellationToken::new();
        let guard = cancelled.clone().drop_guard();
        let terminal = Arc::new(terminal().ok()?);
        Some(Self { output, terminal, cancelled, _ends_with_this: guard })
    }

    pub(super) fn terminal(&self) -> &File {
        &self.terminal
    }

    /// Shows a page and reads the line typed after it; `None` at the end of input. Input typed before
    /// the page was shown is not an answer to it. A page that could not be shown has none.
    pub(super) async fn ask(&self, page: Page) -> io::Result<Option<String>> {
        let _typed_ahead = tcflush(&*self.terminal, QueueSelector::IFlush);
        self.read(page).await
    }

    pub(super) async fn ask_hidden(&self, page: Page) -> Option<String> {
        let hidden = HiddenInput::on(self.terminal.try_clone().ok()?)?;
        let typed = self.ask(page).await.ok().flatten();
        drop(hidden);
        // The line break that ended it was not shown either.
        self.print(&Page::from(Line::default()));
        typed
    }

    /// Shows a page and reads the next line, which may already be there: pasted text arrives all at
    /// once.
    pub(super) async fn read(&self, page: Page) -> io::Result<Option<String>> {
        let (output, terminal, over) =
            (Arc::clone(&self.output), Arc::clone(&self.terminal), self.cancelled.clone());
        let line = tokio::task::spawn_blocking(move || {
            if !page.is_empty() {
                output.ask(&page, &mut &*terminal)?;
            }
            let line = read_line(&terminal, &over)?;
            if line.is_some() {
                output.question_answered();
            }
            Ok(line)
        });
        line.await?
    }

    pub(super) fn show(&self, page: &Page) -> io::Result<()> {
        self.output.show(page, &mut &*self.terminal)
    }

    /// As [`Self::show`]. If the terminal cannot be written to, the next read fails as well.
    pub(super) fn print(&self, page: &Page) {
        let _gone = self.show(page);
    }

    pub(super) fn warn(&self, message: &str) {
        self.print(&Page::from(Line::styled(Role::Warning, message)));
    }
}

/// Reads up to a line break; `None` at the end of input or of the session.
fn read_line(terminal: &File, over: &CancellationToken) -> io::Result<Option<String>> {
    let mut typed = Vec::new();
    let mut byte = [0];
    loop {
        let mut watched = [PollFd::new(terminal, PollFlags::IN)];
        let ready = match poll(&mut watched, Some(&CANCEL_POLL_INTERVAL)) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        if over.is_cancelled() {
            return Ok(None);
        }
        if ready == 0 {
            continue;
        }
        // A terminal returns at most one line per read; the rest stays for the next.
        match (&*terminal).read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) if byte == *b"\n" => break,
            Ok(_) if typed.len() < MAX_LINE => typed.push(byte[0]),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(String::from_utf8_lossy(&typed).into_owned()))
}

struct HiddenInput {
    terminal: File,
    before: Termios,
}

impl HiddenInput {
    fn on(terminal: File) -> Option<Self> {
        let before = tcgetattr(&terminal).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &quiet).ok()?;
        Some(Self { terminal, before })
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _gone = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
