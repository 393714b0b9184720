//! A question of a server, and its answer while it is written.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::host::form::{self, Schema};
use crate::host::questions::sample;
use crate::host::questions::visit::Visit;
use crate::model::{Ask, Question, Reply};
use crate::tui::event::{AskId, Effect};
use crate::tui::keys::Action;
use crate::tui::state::{Form, Text};

/// A question that waits for an answer.
#[derive(Debug, Clone)]
pub struct PendingQuestion {
    /// To be named in the answer.
    pub id: AskId,
    /// What is asked.
    pub question: Question,
    /// Since when, once somebody said how late it is.
    pub since: Option<Duration>,
    /// What has been written.
    pub answer: Answer,
    /// Whether it is sent as soon as it is known to fit.
    pub is_sending: bool,
}

/// The answer to a question, while it is written.
#[derive(Debug, Clone)]
pub enum Answer {
    /// A form is filled in.
    Form(Box<Form>),
    /// An address is visited, by the person.
    Visit(Visit),
    /// A person writes in a model's place.
    Write(Text),
}

/// What sending an answer comes to.
#[derive(Debug)]
pub(super) enum Sent {
    /// First it is checked.
    Check(Effect),
    /// It goes out.
    Reply(AskId, Reply),
}

impl PendingQuestion {
    pub(super) fn new(id: AskId, question: Question) -> Self {
        let answer = match &question.ask {
            Ask::Form { schema, .. } => {
                let schema = Arc::new(schema.clone());
                // A server that asks knows nothing of defaults that are left out: they are filled in.
                let fields = form::fields(&Schema::of(&schema), form::FIELDS);
                let known = form::defaults(&fields);
                let form = Form::of_schema(question.server.as_str(), &schema, Some(&known));
                Answer::Form(Box::new(form))
            }
            Ask::Open { url, .. } => Answer::Visit(Visit::of(url)),
            Ask::Sample { .. } => Answer::Write(Text::default()),
        };
        Self { id, question, since: None, answer, is_sending: false }
    }

    /// Sends the answer.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(super) fn send(&mut self) -> Result<Sent, String> {
        match &mut self.answer {
            Answer::Form(form) => {
                if !form.is_ready() {
                    return Err(form.problem.clone().unwrap_or_default());
                }
                self.is_sending = true;
                Ok(Sent::Check(form.check()))
            }
            Answer::Visit(_) => Ok(Sent::Reply(self.id, Reply::Accept(json!({})))),
            Answer::Write(text) if text.is_empty() => Err("nothing was written".to_owned()),
            Answer::Write(text) => {
                Ok(Sent::Reply(self.id, Reply::Accept(sample::reply(&text.text()))))
            }
        }
    }

    /// Does what a key stands for, when it is about the answer.
    pub(super) fn act(&mut self, action: Action) -> bool {
        self.is_sending = false;
        let text = match &mut self.answer {
            Answer::Form(form) => return form.act(action),
            Answer::Visit(_) => return false,
            Answer::Write(text) => text,
        };
        match action {
            Action::Add => text.break_line(),
            Action::Remove => text.erase(),
            Action::Up => text.step(-1),
            Action::Down => text.step(1),
            _ => return false,
        }
        true
    }

    /// How long the call that waits may still take, when that is known.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        Some((self.since? + self.question.left?).saturating_sub(now))
    }

    /// How long it has waited.
    pub fn waited(&self, now: Duration) -> Duration {
        now.saturating_sub(self.since.unwrap_or(now))
    }

    /// What of it is worth a copy.
    pub(super) fn copy(&self) -> String {
        match &self.question.ask {
            Ask::Open { url, .. } => url.clone(),
            ask => ask.words().to_owned(),
        }
    }
}
