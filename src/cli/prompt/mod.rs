//! Questions to a person on the terminal.
//!
//! Owns: approval of a call, trust in a project, and what servers ask. Answers
//! are read from the terminal itself, never from stdin, so piped input cannot approve anything, and
//! the question is shown there too, wherever stderr goes. The default, the end of input and an
//! interrupt all mean no.

mod choice;
mod dialogue;
mod form;
mod inbox;
mod terminal_session;

pub use inbox::TerminalInbox;

use std::fs::{File, OpenOptions};
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio_util::sync::CancellationToken;

use self::dialogue::DialogueReply;
use self::terminal_session::{TerminalInput, TerminalSession};
use super::output::Output;
use crate::config::consent::TrustRequest;
use crate::host::approval::{Approval, ApprovalRequest, Approver};
use crate::model::Error;
use crate::present;
use crate::present::{Line, Page, Role};

/// The terminal of this process, whatever stdin is.
const TERMINAL: &str = "/dev/tty";

pub fn is_possible() -> bool {
    terminal().is_ok()
}

fn terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(TERMINAL)
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAnswer {
    /// It is trusted as it was shown.
    Trusted,
    /// The same, by its author: code below its root may change.
    Author,
    /// It is not trusted in this state.
    Refused,
    /// There is no terminal to ask on, or nothing that was typed there was an answer.
    Unavailable,
}

/// Asks whether a project is trusted from now on.
pub async fn ask_trust(output: Arc<Output>, request: &TrustRequest) -> TrustAnswer {
    let whole = request.previous.is_some().then(|| present::trust::whole(request));
    let question = YesNoQuestion {
        page: present::trust::question(request),
        details: whole,
        words: "Trust this project?",
        offers_author: true,
    };
    match ask_on_thread(output, question).await {
        Some(DialogueReply::Yes) => TrustAnswer::Trusted,
        Some(DialogueReply::Author) => TrustAnswer::Author,
        Some(DialogueReply::No) => TrustAnswer::Refused,
        Some(DialogueReply::Unanswered) | None => TrustAnswer::Unavailable,
    }
}

pub async fn confirm(output: Arc<Output>, page: Page, question: &'static str) -> Approval {
    ask(output, YesNoQuestion::short(page, question)).await
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
        typed = session.ask_hidden(question) => match typed {
            TerminalInput::Line(secret) if !secret.is_empty() => Some(secret),
            _ => None,
        },
    }
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

struct YesNoQuestion {
    page: Page,
    /// The long form, if there is more to show.
    details: Option<Page>,
    words: &'static str,
    offers_author: bool,
}

impl YesNoQuestion {
    fn short(page: Page, words: &'static str) -> Self {
        Self { page, details: None, words, offers_author: false }
    }
}

/// Asks a question with only yes and no as answers.
async fn ask(output: Arc<Output>, question: YesNoQuestion) -> Approval {
    match ask_on_thread(output, question).await {
        Some(DialogueReply::Yes) => Approval::Granted,
        Some(DialogueReply::Author | DialogueReply::No | DialogueReply::Unanswered) => {
            Approval::Refused
        }
        None => Approval::Unavailable,
    }
}

/// Shows a question and waits for the answer; `None` if there is no terminal to ask on. The wait is
/// on its own thread, which a signal leaves behind: reading from a terminal cannot be cancelled.
async fn ask_on_thread(output: Arc<Output>, question: YesNoQuestion) -> Option<DialogueReply> {
    let terminal = terminal().ok()?;
    let answer =
        tokio::task::spawn_blocking(move || dialogue::ask(&output, terminal, question).ok());
    answer.await.unwrap_or(Some(DialogueReply::No))
}
