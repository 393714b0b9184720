//! Questions to a person on the terminal.
//!
//! Owns: approval of a call, trust in a project, and what servers ask. Answers
//! are read from the terminal itself, never from stdin, so piped input cannot approve anything, and
//! the question is shown there too, wherever stderr goes. The default, the end of input and an
//! interrupt all mean no.

mod dialogue;
mod inbox;
mod terminal_session;

pub use dialogue::DialogueReply;
pub use inbox::TerminalInbox;

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use self::terminal_session::TerminalSession;
use super::output::Output;
use crate::config::consent::TrustRequest;
use crate::host::policy::{Approval, ApprovalRequest, Approver};
use crate::model::Error;
use crate::present;
use crate::present::{Line, Page, Role};

pub fn is_possible() -> bool {
    terminal_session::terminal().is_ok()
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
