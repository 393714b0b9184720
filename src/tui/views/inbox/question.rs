//! A server's question, and its answer being written.

use serde_json::json;

use crate::host::form;
use crate::host::form::ResolvedSchema;
use crate::host::questions::sampling;
use crate::model::{Question, QuestionBody, QuestionReply};
use crate::tui::event::AskId;
use crate::tui::prelude::*;
use crate::tui::views::inbox::held::HoldDraft;

#[derive(Debug, Clone)]
pub struct PendingQuestion {
    pub id: AskId,
    pub question: Question,
    /// When the question came, as of the first tick after it.
    pub since: Option<Duration>,
    pub answer: AnswerDraft,
    /// Whether it is sent as soon as it is known to fit.
    pub is_sending: bool,
    /// What is made of a call that a breakpoint stopped, which is no question of a server.
    pub hold: Option<HoldDraft>,
}

#[derive(Debug, Clone)]
pub enum AnswerDraft {
    Form(Box<SchemaForm>),
    /// An address is visited, by the person.
    OpenUrl,
    /// A person writes in a model's place.
    Text(TextInput),
}

#[derive(Debug)]
pub enum AnswerSubmission {
    /// The form is checked first; its result decides whether it is sent.
    Check(AppEffect),
    Reply(QuestionReply),
}

impl PendingQuestion {
    pub fn new(id: AskId, question: Question) -> Self {
        let answer = match &question.body {
            QuestionBody::Form { schema, .. } => {
                let schema = Arc::new(schema.clone());
                // A server that asks knows nothing of defaults that are left out: they are filled in.
                let fields = form::fields(&ResolvedSchema::of(&schema), form::MAX_FIELDS);
                let defaults = form::defaults(&fields);
                let form =
                    SchemaForm::of_schema(question.server.as_str(), &schema, Some(&defaults));
                AnswerDraft::Form(Box::new(form))
            }
            QuestionBody::Url { .. } => AnswerDraft::OpenUrl,
            QuestionBody::Sampling { .. } => AnswerDraft::Text(TextInput::default()),
        };
        Self { id, question, since: None, answer, is_sending: false, hold: None }
    }

    /// The answer, or what is still wrong with it.
    pub fn send(&mut self) -> Result<AnswerSubmission, String> {
        match &mut self.answer {
            AnswerDraft::Form(form) => {
                if !form.is_ready() {
                    return Err(form.problem.clone().unwrap_or_default());
                }
                self.is_sending = true;
                Ok(AnswerSubmission::Check(form.check()))
            }
            AnswerDraft::OpenUrl => Ok(AnswerSubmission::Reply(QuestionReply::Accept(json!({})))),
            AnswerDraft::Text(text) => {
                let answer = match &self.hold {
                    Some(hold) => hold.read(text.text())?,
                    None if text.text().trim_matches('\n').is_empty() => {
                        return Err("Nothing to send: the answer is empty.".to_owned());
                    }
                    None => sampling::text_result(text.text()),
                };
                Ok(AnswerSubmission::Reply(QuestionReply::Accept(answer)))
            }
        }
    }

    /// Performs an action on the answer; `false` when it does not apply.
    pub fn act(&mut self, action: Action) -> bool {
        self.is_sending = false;
        match &mut self.answer {
            AnswerDraft::Form(form) => form.act(action),
            AnswerDraft::OpenUrl => false,
            // The keys for pages scroll the question.
            AnswerDraft::Text(_) if matches!(action, Action::PageUp | Action::PageDown) => false,
            AnswerDraft::Text(text) => text.act(action),
        }
    }

    /// How long the call that waits may still take, when that is known.
    pub fn time_left(&self, now: Duration) -> Option<Duration> {
        Some((self.since? + self.question.time_left?).saturating_sub(now))
    }

    pub fn time_waiting(&self, now: Duration) -> Duration {
        now.saturating_sub(self.since.unwrap_or(now))
    }
}
