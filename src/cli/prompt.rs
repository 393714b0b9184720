//! Questions to the person at the terminal.
//!
//! Owns: approval of a call, and trust in what a project's file would start. Answers are read from
//! the terminal itself, never from stdin, so nothing that is piped in can say yes, and the question
//! is shown there too, wherever stderr goes. The default, the end of input and an interruption are
//! all No.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::sync::Arc;

use async_trait::async_trait;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio_util::sync::CancellationToken;

use super::output::{Door, Label, Line, Page, json};
use crate::config::spec::TrustRequest;
use crate::host::approval::{Approval, ApprovalRequest, Approver};

/// The terminal of this process, whatever stdin is.
const TERMINAL: &str = "/dev/tty";
/// The longest secret that is read.
const MAX_SECRET: u64 = 64 * 1024;
/// The longest answer that is read.
const MAX_ANSWER: u64 = 256;

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
        ask(Arc::clone(&self.door), approval_page(request)).await
    }
}

/// Asks whether something may be started, now and from now on.
pub async fn ask_trust(door: Arc<Door>, request: TrustRequest) -> Approval {
    ask(door, trust_page(&request)).await
}

/// Asks a yes or no question below a page.
pub async fn confirm(door: Arc<Door>, mut page: Page, question: &str) -> Approval {
    page.push(answers(question));
    ask(door, page).await
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

/// Shows a question and waits for the answer. The wait is on a thread of its own, which a signal
/// leaves behind: reading a terminal cannot be called off.
async fn ask(door: Arc<Door>, question: Page) -> Approval {
    let Ok(mut terminal) = terminal() else { return Approval::Nobody };
    let answer = tokio::task::spawn_blocking(move || {
        // What was typed before the question was shown is no answer to it.
        let _typed_ahead =
            rustix::termios::tcflush(&terminal, rustix::termios::QueueSelector::IFlush);
        if door.ask(&question, &mut terminal).is_err() {
            return Approval::Nobody;
        }
        let mut line = String::new();
        let read = BufReader::new(terminal.take(MAX_ANSWER)).read_line(&mut line);
        if line.ends_with('\n') {
            door.answered();
        }
        if read.is_ok() && is_yes(&line) { Approval::Granted } else { Approval::Refused }
    });
    answer.await.unwrap_or(Approval::Refused)
}

/// Only a whole, explicit yes counts.
fn is_yes(line: &str) -> bool {
    // Without its line break the line was cut short by the end of input.
    line.ends_with('\n') && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

fn approval_page(request: &ApprovalRequest<'_>) -> Page {
    let mut page = Page::from(
        Line::plain("Call ")
            .then(Label::Name, request.definition.name.full())
            .then(Label::Plain, "?"),
    );
    page.push(Line::of(Label::Dim, "because ").then(Label::Plain, &request.reason).indented(2));
    for touch in &request.definition.touches {
        page.push(Line::of(Label::Dim, "touches ").then(Label::Plain, touch).indented(2));
    }
    if request.arguments.is_empty() {
        page.push(Line::of(Label::Dim, "without arguments").indented(2));
    }
    for (key, value) in request.arguments {
        // Every character of what would be sent is shown.
        let value = json::pretty(value);
        let mut lines = value.lines();
        let first = lines.next().unwrap_or_default();
        page.push(Line::of(Label::Name, key).then(Label::Plain, format!(" = {first}")).indented(2));
        for line in lines {
            page.push(Line::plain(line).indented(2));
        }
    }
    page.push(answers("Call it?"));
    page
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
    page.push(answers("Allow exactly this from now on?"));
    page
}

fn answers(question: &str) -> Line {
    Line::of(Label::Heading, question).then(Label::Plain, " Type yes or no [no]:")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use insta::assert_snapshot;
    use serde_json::json;

    use super::super::output::Palette;
    use super::*;
    use crate::model::{Origin, Source, ToolDefinition, ToolName};

    #[test]
    fn only_an_explicit_yes_counts() {
        for yes in ["y\n", "Yes\n", " YES \n"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "y", "yes please\n", "yy\n", "ja\n"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }

    #[test]
    fn the_question_shows_everything_that_would_be_sent() {
        let origin = Origin::Server("files".to_owned());
        let name = ToolName::of("files", "delete");
        let mut definition = ToolDefinition::new(name, Source::Mcp, "mcp", origin);
        definition.touches = vec!["the server 'files'".to_owned()];
        let arguments = json!({ "path": "/tmp/\u{1b}[8mx", "options": { "force": true } });
        let request = ApprovalRequest {
            definition: &definition,
            arguments: arguments.as_object().unwrap(),
            reason: "the server says it is destructive".to_owned(),
        };
        assert_snapshot!(Palette::default().page(&approval_page(&request)), @r#"
        Call files-delete?
          because the server says it is destructive
          touches the server 'files'
          path = "/tmp/\u001b[8mx"
          options = {
            "force": true
          }
        Call it? Type yes or no [no]:
        "#);
    }

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
        Allow exactly this from now on? Type yes or no [no]:
        ");
    }
}
