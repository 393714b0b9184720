//! A dialogue on the terminal that can be cancelled at any time.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{HiddenInput, terminal};
use crate::cli::output::Output;
use crate::present::{Line, Page};

const MAX_LINE: usize = 64 * 1024;
const CANCEL_POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// One session. Dropping it ends any read in progress.
pub(super) struct TerminalSession {
    output: Arc<Output>,
    terminal: Arc<File>,
    cancelled: CancellationToken,
    _ends_with_this: DropGuard,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TerminalInput {
    Line(String),
    EndOfInput,
}

impl TerminalSession {
    pub(super) fn begin(output: Arc<Output>) -> Option<Self> {
        let over = CancellationToken::new();
        let guard = over.clone().drop_guard();
        Some(Self {
            output,
            terminal: Arc::new(terminal().ok()?),
            cancelled: over,
            _ends_with_this: guard,
        })
    }

    /// Shows a page and reads the line typed after it. Input typed before it was shown is not an
    /// answer to it.
    pub(super) async fn ask(&self, page: Page) -> TerminalInput {
        let _typed_ahead = tcflush(&*self.terminal, QueueSelector::IFlush);
        self.read(page).await
    }

    pub(super) async fn ask_hidden(&self, page: Page) -> TerminalInput {
        let hidden = self.terminal.try_clone().ok().and_then(HiddenInput::on);
        if hidden.is_none() {
            return TerminalInput::EndOfInput;
        }
        let typed = self.ask(page).await;
        drop(hidden);
        // The line break that ended it was not shown either.
        self.show(&Page::from(Line::default()));
        typed
    }

    /// Shows a page and reads the next line, which may already be there: pasted text arrives all at
    /// once.
    pub(super) async fn read(&self, page: Page) -> TerminalInput {
        let (output, terminal, over) =
            (Arc::clone(&self.output), Arc::clone(&self.terminal), self.cancelled.clone());
        let line = tokio::task::spawn_blocking(move || {
            if !page.is_empty() {
                output.ask(&page, &mut &*terminal).ok()?;
            }
            let line = read_line(&terminal, &over).ok()??;
            output.question_answered();
            Some(line)
        });
        line.await.ok().flatten().map_or(TerminalInput::EndOfInput, TerminalInput::Line)
    }

    pub(super) fn show(&self, page: &Page) {
        // If the terminal cannot be written to, the next read fails as well.
        let _gone = self.output.show(page, &mut &*self.terminal);
    }
}

/// Reads up to a line break; `None` at the end of input or of the session.
pub(super) fn read_line(terminal: &File, over: &CancellationToken) -> io::Result<Option<String>> {
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
