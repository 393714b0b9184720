//! Questions of servers, asked on the terminal.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::TerminalSession;
use crate::cli::output::Output;
use crate::cli::questionnaire::{self, FormField, Questionnaire};
use crate::host::questions;
use crate::model::{JsonObject, Question, QuestionBody, QuestionHandler, QuestionReply};
use crate::present::{Line, Page, Role, plural, question};

/// Maximum number of attempts per question, and of edits of a whole answer.
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
        let reply = match &question.body {
            QuestionBody::Form { message, schema } => {
                session.print(&question::heading(&question, message));
                ask_form(&session, who, schema).await
            }
            QuestionBody::Url { message, url } => {
                session.print(&question::heading(&question, message));
                session.print(&question::address(url));
                ask_url(&session, who).await
            }
            QuestionBody::Sampling { params } => {
                session.print(&question::heading(&question, "Write the reply of the model."));
                session.print(&question::conversation(params));
                ask_sampling(&session, who).await
            }
        };
        reply.unwrap_or_else(|refusal| refusal)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InboxChoice {
    Continue,
    Edit,
}

/// Asks `about` until one of the single-letter answers in `rest` is typed; `go` are those that
/// continue. Declining and cancelling are the error.
async fn choose(
    session: &TerminalSession,
    about: String,
    rest: &str,
    go: &[&str],
) -> Result<InboxChoice, QuestionReply> {
    let line = Line::styled(Role::Title, about).then(Role::Plain, format!(" {rest}:"));
    for _ in 0..MAX_ATTEMPTS {
        let Ok(Some(typed)) = session.ask(Page::from(line.clone())).await else { break };
        match typed.trim().to_lowercase().as_str() {
            "d" | "decline" => return Err(QuestionReply::Decline),
            "c" | "cancel" => break,
            "e" | "edit" => return Ok(InboxChoice::Edit),
            word if go.contains(&word) => return Ok(InboxChoice::Continue),
            _ => {}
        }
    }
    Err(QuestionReply::Cancel)
}

async fn ask_url(session: &TerminalSession, who: &str) -> Result<QuestionReply, QuestionReply> {
    let about = format!("'{who}' asks to open this page.");
    let rest = "toolhost does not open it: visit it yourself if you trust it. Type done, d to \
                decline, or c to cancel";
    match choose(session, about, rest, &["done"]).await? {
        InboxChoice::Continue => Ok(QuestionReply::Accept(json!({}))),
        InboxChoice::Edit => Err(QuestionReply::Cancel),
    }
}

async fn ask_sampling(
    session: &TerminalSession,
    who: &str,
) -> Result<QuestionReply, QuestionReply> {
    let about = format!("Answer '{who}' in place of a model?");
    choose(session, about, "Enter to write, d to decline, c to cancel", &[""]).await?;
    for _ in 0..MAX_ATTEMPTS {
        let text = read_lines(session).await;
        if text.is_empty() {
            session.warn("The reply is empty.");
        } else {
            let mut page = Page::from(Line::styled(Role::Dim, "This will be sent:"));
            page.text(Role::Plain, 2, &text);
            session.print(&page);
        }
        let about = format!("Send it to '{who}'?");
        let rest = "s to send, e to rewrite, d to decline, c to cancel";
        let choice = choose(session, about, rest, &["s", "send"]).await?;
        if choice == InboxChoice::Continue && !text.is_empty() {
            return Ok(QuestionReply::Accept(questions::text_result(&text)));
        }
    }
    Err(QuestionReply::Cancel)
}

/// Reads lines up to an empty one or the end of input.
async fn read_lines(session: &TerminalSession) -> String {
    let mut page = Page::from(Line::styled(Role::Dim, "The reply, up to an empty line:"));
    let mut lines = Vec::new();
    while lines.len() < REPLY_LINES {
        match session.read(std::mem::take(&mut page)).await {
            Ok(Some(line)) if !line.is_empty() => lines.push(line),
            _ => break,
        }
    }
    lines.join("\n")
}

/// Asks for the fields of a form, one by one, until the person sends what they filled in.
async fn ask_form(
    session: &TerminalSession,
    who: &str,
    schema: &Value,
) -> Result<QuestionReply, QuestionReply> {
    let form = Questionnaire::of(schema).map_err(|why| {
        session.warn(&format!("Declined, because the form cannot be shown: {why}."));
        QuestionReply::Decline
    })?;
    if form.fields.iter().any(|field| field.secret) {
        session.print(&question::secret_warning(who));
    }
    if !form.fields.is_empty() {
        let fields = plural(form.fields.len(), "field", "fields");
        let about = format!("Answer '{who}'? It asks for {fields}.");
        choose(session, about, "Enter to fill in, d to decline, c to cancel", &[""]).await?;
    }
    let mut answer = fill_in(session, &form, &JsonObject::new()).await?;
    for _ in 0..MAX_ATTEMPTS {
        let errors = form.violations(&answer).await;
        session.print(&question::review(&form.fields, &answer, &errors));
        let about = format!("Send this to '{who}'?");
        let send = if errors.is_empty() { "s to send, " } else { "" };
        let rest = format!("{send}e to edit, d to decline, c to cancel");
        match choose(session, about, &rest, &["s", "send"]).await? {
            InboxChoice::Edit => answer = fill_in(session, &form, &answer).await?,
            InboxChoice::Continue if errors.is_empty() => {
                return Ok(QuestionReply::Accept(Value::Object(answer)));
            }
            InboxChoice::Continue => {}
        }
    }
    Err(QuestionReply::Cancel)
}

/// Asks for each field; in an edit, Enter keeps the earlier input.
async fn fill_in(
    session: &TerminalSession,
    form: &Questionnaire,
    before: &JsonObject,
) -> Result<JsonObject, QuestionReply> {
    let mut answer = JsonObject::new();
    for field in &form.fields {
        let mut field = field.clone();
        field.default = before.get(&field.key).cloned().or(field.default);
        let value = ask_field(session, &field).await.ok_or(QuestionReply::Cancel)?;
        answer.extend(value.map(|value| (field.key, value)));
    }
    Ok(answer)
}

async fn ask_field(session: &TerminalSession, field: &FormField) -> Option<Option<Value>> {
    let mut page = question::field(field);
    for _ in 0..MAX_ATTEMPTS {
        let typed = if field.secret {
            session.ask_hidden(page).await
        } else {
            session.ask(page).await.ok().flatten()
        }?;
        match questionnaire::read(field, &typed).await {
            Ok(value) => return Some(value),
            Err(why) => {
                page = Page::from(Line::styled(Role::Warning, format!("{}: {why}.", field.title)));
                page.push(question::entry(field));
            }
        }
    }
    None
}
