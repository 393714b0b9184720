//! Questions to a person on the terminal.
//!
//! Owns: approval of a call, trust in a project, and what servers ask. Answers
//! are read from the terminal itself, never from stdin, so piped input cannot approve anything, and
//! the question is shown there too, wherever stderr goes. The default, the end of input and an
//! interrupt all mean no.
//!
//! A dialogue on the terminal that can be cancelled at any time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::sync::Arc;

use async_trait::async_trait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::output::Output;
use crate::config::consent::TrustRequest;
use crate::host::policy::{Approval, ApprovalRequest, Approver};
use crate::model::Error;
use crate::present::{self, Line, Page, Role};
pub use dialogue::DialogueReply;
pub use inbox::TerminalInbox;

mod dialogue;
mod inbox;

pub fn is_possible() -> bool {
    terminal().is_ok()
}

pub struct TerminalApprover {
    output: Arc<Output>,
}

impl TerminalApprover {
    pub fn new(output: Arc<Output>) -> Self {
        Self { output }
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval {
        let question = YesNoQuestion {
            page: present::approval::page(request, false),
            details: Some(present::approval::page(request, true)),
            words: "Call it?",
            offers_author: false,
        };
        ask(Arc::clone(&self.output), question).await
    }
}

/// Asks whether a project is trusted from now on, as its author or not; `None` if there is no
/// terminal to ask on.
pub async fn ask_trust(output: Arc<Output>, request: &TrustRequest) -> Option<DialogueReply> {
    let whole = request.previous.is_some().then(|| present::trust::whole(request));
    let question = YesNoQuestion {
        page: present::trust::question(request),
        details: whole,
        words: "Trust this project?",
        offers_author: true,
    };
    dialogue::ask(&TerminalSession::begin(output)?, question).await.ok()
}

pub async fn confirm(output: Arc<Output>, page: Page, question: &'static str) -> Approval {
    ask(output, YesNoQuestion { page, details: None, words: question, offers_author: false }).await
}

/// Asks before something that cannot be undone. `unchanged` is the result of a no, such as `nothing
/// was removed`; `yes_flag` describes `--yes`.
///
/// # Errors
/// Denied when the answer is no, or no person can be asked.
pub async fn require_confirmation(
    output: Arc<Output>,
    page: Page,
    question: &'static str,
    (unchanged, yes_flag): (&str, &str),
) -> Result<(), Error> {
    match confirm(output, page, question).await {
        Approval::Granted => Ok(()),
        Approval::Refused => Err(Error::denied(unchanged)),
        Approval::Unavailable => {
            Err(Error::denied(format!("{unchanged}: no person can be asked")).with_hint(yes_flag))
        }
    }
}

/// Shows what would be written and asks; with `--yes` only shows it.
pub async fn agree_to_write(output: &Arc<Output>, page: Page, yes: bool) -> Result<(), Error> {
    if yes {
        output.stderr_page(&page);
        return Ok(());
    }
    let refusal = ("nothing was written", "--yes writes what --dry-run shows");
    require_confirmation(Arc::clone(output), page, "Write this?", refusal).await
}

/// Asks for a secret; input is not shown. `None` if nothing was entered, there is no terminal, or
/// `cancel` fired.
pub async fn ask_secret(
    output: &Arc<Output>,
    name: &str,
    cancel: &CancellationToken,
) -> Option<String> {
    let session = TerminalSession::begin(Arc::clone(output))?;
    let question = Page::from(Line::styled(Role::Title, name).then(Role::Plain, " (secret):"));
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        typed = session.ask_hidden(question) => typed.filter(|secret| !secret.is_empty()),
    }
}

struct YesNoQuestion {
    page: Page,
    /// The long form, if there is more to show.
    details: Option<Page>,
    words: &'static str,
    offers_author: bool,
}

/// Asks a question with only yes and no as answers.
async fn ask(output: Arc<Output>, question: YesNoQuestion) -> Approval {
    let Some(session) = TerminalSession::begin(output) else { return Approval::Unavailable };
    match dialogue::ask(&session, question).await {
        Ok(DialogueReply::Yes) => Approval::Granted,
        Ok(DialogueReply::Author | DialogueReply::No | DialogueReply::Unanswered) => {
            Approval::Refused
        }
        Err(_not_shown) => Approval::Unavailable,
    }
}

/// The terminal of this process, whatever stdin is.
const TERMINAL: &str = "/dev/tty";
const MAX_LINE: usize = 64 * 1024;
const CANCEL_POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

fn terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(TERMINAL)
}

/// One session. Dropping it ends any read in progress.
struct TerminalSession {
    output: Arc<Output>,
    terminal: Arc<File>,
    cancelled: CancellationToken,
    _ends_with_this: DropGuard,
}

impl TerminalSession {
    /// Begins a session; `None` if there is no terminal to ask on.
    fn begin(output: Arc<Output>) -> Option<Self> {
        let cancelled = CancellationToken::new();
        let guard = cancelled.clone().drop_guard();
        let terminal = Arc::new(terminal().ok()?);
        Some(Self { output, terminal, cancelled, _ends_with_this: guard })
    }

    fn terminal(&self) -> &File {
        &self.terminal
    }

    /// Shows a page and reads the line typed after it; `None` at the end of input. Input typed before
    /// the page was shown is not an answer to it. A page that could not be shown has none.
    async fn ask(&self, page: Page) -> io::Result<Option<String>> {
        let _typed_ahead = tcflush(&*self.terminal, QueueSelector::IFlush);
        self.read(page).await
    }

    async fn ask_hidden(&self, page: Page) -> Option<String> {
        let hidden = HiddenInput::on(self.terminal.try_clone().ok()?)?;
        let typed = self.ask(page).await.ok().flatten();
        drop(hidden);
        // The line break that ended it was not shown either.
        self.print(&Page::from(Line::default()));
        typed
    }

    /// Shows a page and reads the next line, which may already be there: pasted text arrives all at
    /// once.
    async fn read(&self, page: Page) -> io::Result<Option<String>> {
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

    fn show(&self, page: &Page) -> io::Result<()> {
        self.output.show(page, &mut &*self.terminal)
    }

    /// As [`Self::show`]. If the terminal cannot be written to, the next read fails as well.
    fn print(&self, page: &Page) {
        let _gone = self.show(page);
    }

    fn warn(&self, message: &str) {
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
