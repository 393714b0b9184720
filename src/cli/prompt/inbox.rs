//! Questions of servers, asked on the terminal.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::choice::{InboxChoice, choices, choose};
use super::form;
use super::terminal_session::{TerminalInput, TerminalSession};
use crate::cli::output::Output;
use crate::host::questions::sampling;
use crate::model::{Question, QuestionBody, QuestionHandler, QuestionReply};
use crate::present::{Line, Page, Role, question};

const MAX_ATTEMPTS: usize = 20;
/// Maximum number of lines of a reply in place of a model.
const REPLY_LINES: usize = 5_000;

/// Asks on the terminal; without one, every question is declined.
pub struct TerminalInbox {
    output: Arc<Output>,
}

impl TerminalInbox {
    pub fn new(output: Arc<Output>) -> Self {
        Self { output }
    }
}

#[async_trait]
impl QuestionHandler for TerminalInbox {
    async fn ask(&self, question: Question) -> QuestionReply {
        let Some(session) = TerminalSession::begin(Arc::clone(&self.output)) else {
            return QuestionReply::Unattended;
        };
        let who = question.server.as_str();
        match &question.body {
            QuestionBody::Form { message, schema } => {
                session.show(&question::heading(&question, message));
                form::fill_in(&session, who, schema).await
            }
            QuestionBody::Url { message, url } => {
                session.show(&question::heading(&question, message));
                session.show(&question::address(url));
                ask_url(&session, who).await
            }
            QuestionBody::Sampling { params } => {
                session.show(&question::heading(&question, "Write the reply of the model."));
                session.show(&question::conversation(params));
                ask_sampling(&session, who).await
            }
        }
    }
}

async fn ask_url(session: &TerminalSession, who: &str) -> QuestionReply {
    let choices_line = choices(
        &format!("'{who}' asks to open this page."),
        "toolhost does not open it: visit it yourself if you trust it. Type done, d to decline, or \
         c to cancel",
    );
    match choose(session, &choices_line, &["done"], false).await {
        InboxChoice::Continue => QuestionReply::Accept(json!({})),
        InboxChoice::Decline => QuestionReply::Decline,
        InboxChoice::Edit | InboxChoice::Cancel => QuestionReply::Cancel,
    }
}

async fn ask_sampling(session: &TerminalSession, who: &str) -> QuestionReply {
    let begin = choices(
        &format!("Answer '{who}' in place of a model?"),
        "Enter to write, d to decline, c to cancel",
    );
    match choose(session, &begin, &[], true).await {
        InboxChoice::Continue | InboxChoice::Edit => {}
        InboxChoice::Decline => return QuestionReply::Decline,
        InboxChoice::Cancel => return QuestionReply::Cancel,
    }
    for _ in 0..MAX_ATTEMPTS {
        let text = read_lines(session).await;
        if text.is_empty() {
            session.show(&Page::from(Line::styled(Role::Warning, "The reply is empty.")));
        } else {
            let mut page = Page::from(Line::styled(Role::Dim, "This will be sent:"));
            page.text(Role::Plain, 2, &text);
            session.show(&page);
        }
        let send = choices(
            &format!("Send it to '{who}'?"),
            "s to send, e to rewrite, d to decline, c to cancel",
        );
        match choose(session, &send, &["s", "send"], false).await {
            InboxChoice::Continue if text.is_empty() => {}
            InboxChoice::Continue => return QuestionReply::Accept(sampling::text_result(&text)),
            InboxChoice::Edit => {}
            InboxChoice::Decline => return QuestionReply::Decline,
            InboxChoice::Cancel => return QuestionReply::Cancel,
        }
    }
    QuestionReply::Cancel
}

/// Reads lines up to an empty one or the end of input.
async fn read_lines(session: &TerminalSession) -> String {
    let mut page = Page::from(Line::styled(Role::Dim, "The reply, up to an empty line:"));
    let mut lines = Vec::new();
    while lines.len() < REPLY_LINES {
        match session.read(std::mem::take(&mut page)).await {
            TerminalInput::Line(line) if !line.is_empty() => lines.push(line),
            TerminalInput::Line(_) | TerminalInput::EndOfInput => break,
        }
    }
    lines.join("\n")
}
