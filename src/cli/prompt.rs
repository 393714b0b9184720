//! Questions to the person at the terminal.
//!
//! Owns: approval of a call, trust in what a project's file would start, and what servers ask. Answers
//! are read from the terminal itself, never from stdin, so nothing that is piped in can say yes, and the question
//! is shown there too, wherever stderr goes. The default, the end of input and an interruption are
//! all No.

mod approval;
mod dialogue;
mod form;
mod inbox;
mod talk;

pub use inbox::TerminalInbox;

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::sync::Arc;

use async_trait::async_trait;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio_util::sync::CancellationToken;

use super::output::{Door, Label, Line, Page};
use crate::config::spec::TrustRequest;
use crate::host::approval::{Approval, ApprovalRequest, Approver};

/// The terminal of this process, whatever stdin is.
const TERMINAL: &str = "/dev/tty";
/// The longest secret that is read.
const MAX_SECRET: u64 = 64 * 1024;

/// Whether there is a person to ask.
pub fn is_possible() -> bool {
    terminal().is_ok()
}

fn terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(TERMINAL)
}

/// Asks about calls on the terminal.
pub struct TerminalApprover {
    door: Arc<Door>,
}

impl TerminalApprover {
    /// Shows its questions through `door`.
    pub fn new(door: Arc<Door>) -> Self {
        Self { door }
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval {
        ask(Arc::clone(&self.door), approval::question(request)).await
    }
}

/// Asks whether something may be started, now and from now on.
pub async fn ask_trust(door: Arc<Door>, request: TrustRequest) -> Approval {
    ask(door, Question::short(trust_page(&request), "Allow exactly this from now on?")).await
}

/// Asks a yes or no question below a page.
pub async fn confirm(door: Arc<Door>, page: Page, question: &'static str) -> Approval {
    ask(door, Question::short(page, question)).await
}

/// Asks for a secret; what is typed is not shown. `None` when nothing was given, nobody is there,
/// or `cancel` fired.
pub async fn ask_secret(
    door: &Arc<Door>,
    name: &str,
    cancel: &CancellationToken,
) -> Option<String> {
    let mut terminal = terminal().ok()?;
    // Ends with this future, however that ends.
    let _hidden = Hidden::on(terminal.try_clone().ok()?)?;
    let question = Page::from(Line::of(Label::Heading, name).then(Label::Plain, " (secret):"));
    let door = Arc::clone(door);
    let answer = tokio::task::spawn_blocking(move || {
        let _typed_ahead =
            rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush);
        door.ask(&question, &mut terminal).ok()?;
        let mut line = String::new();
        BufReader::new((&terminal).take(MAX_SECRET)).read_line(&mut line).ok()?;
        // The line break that ended it was not shown either.
        terminal.write_all(b"\n").ok()?;
        door.answered();
        let secret = line.strip_suffix('\n')?;
        (!secret.is_empty()).then(|| secret.to_owned())
    });
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        answer = answer => answer.ok().flatten(),
    }
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Hidden {
    terminal: File,
    before: Termios,
}

impl Hidden {
    fn on(terminal: File) -> Option<Self> {
        let before = tcgetattr(&terminal).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&terminal, OptionalActions::Now, &quiet).ok()?;
        Some(Self { terminal, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // There is nothing else to be done about a terminal that is gone.
        let _gone = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Something a person says yes or no to.
struct Question {
    /// What it is about.
    page: Page,
    /// The same at length, when there is more to know.
    whole: Option<Page>,
    /// The question itself.
    words: &'static str,
}

impl Question {
    /// A question about which there is no more to know than `page` says.
    fn short(page: Page, words: &'static str) -> Self {
        Self { page, whole: None, words }
    }
}

/// Shows a question and waits for the answer. The wait is on a thread of its own, which a signal
/// leaves behind: reading a terminal cannot be called off.
async fn ask(door: Arc<Door>, question: Question) -> Approval {
    let Ok(terminal) = terminal() else { return Approval::Nobody };
    let answer = tokio::task::spawn_blocking(move || {
        dialogue::hold(&door, terminal, question).unwrap_or(Approval::Nobody)
    });
    answer.await.unwrap_or(Approval::Refused)
}

fn trust_page(request: &TrustRequest) -> Page {
    let mut page = Page::from(
        Line::of(Label::Name, &request.name)
            .then(Label::Plain, format!(" in {} wants to start", request.file.display())),
    );
    for line in &request.lines {
        page.push(Line::plain(line).indented(2));
    }
    if let Some(previous) = &request.previous {
        page.push(Line::of(Label::Warning, "This changed since it was allowed. Before:"));
        for line in previous {
            page.push(Line::of(Label::Dim, line).indented(2));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use insta::assert_snapshot;

    use super::super::output::Palette;
    use super::*;

    #[test]
    fn a_changed_entry_shows_what_was_allowed_before() {
        let request = TrustRequest {
            key: "k".to_owned(),
            name: "github".to_owned(),
            file: PathBuf::from("/project/mcp.yaml"),
            lines: vec!["command: npx -y server@2".to_owned()],
            previous: Some(vec!["command: npx -y server@1".to_owned()]),
        };
        assert_snapshot!(Palette::default().page(&trust_page(&request)), @r"
        github in /project/mcp.yaml wants to start
          command: npx -y server@2
        This changed since it was allowed. Before:
          command: npx -y server@1
        ");
    }
}
