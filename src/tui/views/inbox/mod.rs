//! The inbox: approval questions and questions of servers.

pub mod approval;
pub mod draw;
#[cfg(test)]
pub mod draw_tests;
pub mod held;
#[cfg(test)]
pub mod tests;

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::host::form::{self, ResolvedSchema};
use crate::host::questions;
use crate::host::validate::Violation;
use crate::model::{Question, QuestionBody, QuestionReply};
use crate::tui::event::AskId;
use crate::tui::keys::KeyPress::{self, AltEnter, Char, Ctrl, Enter, Esc, F, PageDown, PageUp};
use crate::tui::prelude::*;
use crate::tui::views::form::{FORM, LINES};
use crate::tui::views::inbox::approval::PendingApproval;
use crate::tui::views::inbox::held::HoldDraft;
use crate::tui::widgets::filter::{FilteredList, WordMatcher};

/// How much of a question is said when it comes, in characters.
const MAX_SUMMARY_CHARS: usize = 60;

/// Questions from servers and approvals.
#[derive(Debug, Default)]
pub struct InboxView {
    /// Calls that wait for a person, the oldest first.
    pub approvals: VecDeque<PendingApproval>,
    pub questions: Vec<PendingQuestion>,
    pub list: FilteredList,
    pub position: ScrollPosition,
    session_approvals: approval::SessionApprovals,
}

impl InboxView {
    /// The number of questions and approvals that wait for a person.
    pub fn len(&self) -> usize {
        self.approvals.len() + self.questions.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn chosen(&self) -> Option<&PendingQuestion> {
        self.questions.get(self.list.chosen()?)
    }

    fn chosen_mut(&mut self) -> Option<&mut PendingQuestion> {
        self.questions.get_mut(self.list.chosen()?)
    }

    fn find(&self) -> Vec<usize> {
        let mut words = WordMatcher::read(self.list.filter.text());
        let found = self.questions.iter().enumerate().filter(|(_, pending)| {
            let PendingQuestion { question, .. } = pending;
            let texts = [&question.server, pending.kind(), question.body.message()];
            words.admits(&question.server, &texts.join("\n"))
        });
        found.map(|(at, _)| at).collect()
    }

    /// Adds a question to the list; what was chosen stays so.
    fn add(&mut self, pending: PendingQuestion) {
        self.questions.push(pending);
        self.list.show(self.find(), self.list.chosen());
    }

    /// The answer being written, where it has the focus.
    fn draft(&mut self, focus: Pane) -> Option<&mut AnswerDraft> {
        let pending = self.chosen_mut().filter(|_| focus == Pane::Question);
        pending.map(|pending| &mut pending.answer)
    }

    /// A server asks something. During a call that somebody waits for it is shown at once, if it
    /// `may_open`. While something is typed only a key that writes nothing leads here.
    pub fn push_question(
        &mut self,
        id: AskId,
        question: Question,
        is_typing: bool,
        may_open: bool,
        context: &mut AppContext,
    ) {
        let call = question.call.as_ref();
        let has_call = call
            .is_some_and(|call| context.calls.running().any(|made| made.id.as_ref() == Some(call)));
        if may_open && has_call && context.view != ViewId::Inbox {
            context.overlay = Some(Overlay::Question(id));
        } else {
            let words = shorten(question.body.message(), MAX_SUMMARY_CHARS);
            let key = context.keys.bindings(&ANYWHERE).iter().find(|binding| {
                let writes = matches!(binding.key, KeyPress::Char(_));
                binding.action == Action::Show(ViewId::Inbox) && !(writes && is_typing)
            });
            let key = key.filter(|_| context.view != ViewId::Inbox);
            let way = key.map(|binding| format!(" (press {} to answer)", binding.key));
            let way = way.unwrap_or_default();
            context.show_status(format!("{} asks: {words}{way}", question.server));
        }
        self.add(PendingQuestion::new(id, question));
    }

    /// Goes from the window of a question to its answer.
    pub fn open(&mut self, id: AskId, context: &mut AppContext) {
        let at = self.questions.iter().position(|pending| pending.id == id);
        self.list.filter.set("");
        self.list.show(self.find(), at);
        context.focus = Pane::Question;
    }

    /// Removes a question that nothing waits for any more.
    pub fn withdraw(&mut self, id: AskId, context: &mut AppContext) {
        if let Some(at) = self.approvals.iter().position(|pending| pending.id == id)
            && let Some(pending) = self.approvals.remove(at)
        {
            context.show_status(format!(
                "{} is no longer waiting for approval",
                pending.prompt.tool.name.full()
            ));
        }
        let is_answering = context.focus == Pane::Question;
        if let Some(pending) = self.remove_question(id, context) {
            let server = &pending.question.server;
            context.show_status(format!("{server} is no longer waiting for an answer"));
            if is_answering {
                self.leave_if_empty(context);
            }
        }
    }

    /// Takes in the current time.
    pub fn on_tick(&mut self, now: Duration) {
        for pending in &mut self.questions {
            pending.since.get_or_insert(now);
        }
        if let Some(pending) = self.approvals.front_mut() {
            pending.request.tick(now, false);
        }
    }

    /// Takes in what a check found; whether an answer waits for it.
    pub fn checked(
        &mut self,
        schema: &Arc<Value>,
        arguments: &JsonObject,
        problems: &[Violation],
        context: &mut AppContext,
    ) -> bool {
        let about_this = |pending: &mut PendingQuestion| match &mut pending.answer {
            AnswerDraft::Form(form) => form.checked(schema, arguments, problems),
            _ => false,
        };
        let Some(at) = self.questions.iter_mut().position(about_this) else { return false };
        let pending = &mut self.questions[at];
        if std::mem::take(&mut pending.is_sending) && problems.is_empty() {
            let id = pending.id;
            self.reply(id, QuestionReply::Accept(Value::Object(arguments.clone())), context);
        }
        true
    }

    /// Takes a question out of the list; what was chosen stays so.
    fn remove_question(&mut self, id: AskId, context: &mut AppContext) -> Option<PendingQuestion> {
        let at = self.questions.iter().position(|pending| pending.id == id)?;
        let chosen = self.list.chosen();
        let pending = self.questions.remove(at);
        let again = chosen.filter(|chosen| *chosen != at);
        self.list.show(self.find(), again.map(|chosen| chosen - usize::from(at < chosen)));
        if context.overlay == Some(Overlay::Question(id)) {
            context.overlay = None;
        }
        if chosen == Some(at) {
            self.position.reset();
            if context.view == ViewId::Inbox && context.focus == Pane::Question {
                context.focus = Pane::Questions;
            }
        }
        Some(pending)
    }

    fn reply(&mut self, id: AskId, reply: QuestionReply, context: &mut AppContext) {
        let Some(mut pending) = self.remove_question(id, context) else { return };
        let server = &pending.question.server;
        if let Some(draft) = pending.hold.take() {
            self.reply_held(id, draft, reply, context);
            return self.leave_if_empty(context);
        }
        context.show_status(match reply {
            QuestionReply::Accept(_) => format!("answered {server}"),
            QuestionReply::Decline => format!("declined the question from {server}"),
            _ => format!("dismissed the question from {server}"),
        });
        context.emit(AppEffect::AnswerQuestion(id, Arc::new(reply)));
        self.leave_if_empty(context);
    }

    fn leave_if_empty(&self, context: &mut AppContext) {
        if self.questions.is_empty() && context.view == ViewId::Inbox {
            context.emit(Navigation::LeaveInbox);
        }
    }

    /// Answers the chosen question without an answer.
    fn refuse(&mut self, reply: QuestionReply, context: &mut AppContext) {
        if let Some(id) = self.chosen().map(|pending| pending.id) {
            self.reply(id, reply, context);
        }
    }

    fn send(&mut self, context: &mut AppContext) {
        let Some(pending) = self.chosen_mut() else { return };
        let id = pending.id;
        match pending.send() {
            Ok(AnswerSubmission::Check(effect)) => context.emit(effect),
            Ok(AnswerSubmission::Reply(reply)) => self.reply(id, reply, context),
            Err(error) => {
                context.focus = Pane::Question;
                context.show_error(error);
            }
        }
    }

    fn copy_selection(&self, context: &mut AppContext) {
        match self.chosen().map(|pending| &pending.question.body) {
            Some(QuestionBody::Url { url, .. }) => context.copy("address", url.clone()),
            Some(body) => context.copy("question", body.message().to_owned()),
            None => {}
        }
    }
}

impl View for InboxView {
    fn act(&mut self, action: Action, context: &mut AppContext) -> bool {
        match action {
            Action::Open if self.chosen().is_some() => context.focus = Pane::Question,
            Action::Run => self.send(context),
            Action::No => self.refuse(QuestionReply::Decline, context),
            Action::CancelQuestion => self.refuse(QuestionReply::Cancel, context),
            Action::Copy => self.copy_selection(context),
            Action::Back if context.focus == Pane::Question => context.focus = Pane::Questions,
            other => {
                let pending = self.chosen_mut().filter(|_| context.focus == Pane::Question);
                return pending.is_some_and(|pending| pending.act(other));
            }
        }
        true
    }

    fn key_contexts(&self, focus: Pane) -> Vec<KeyContext> {
        let around = [&INBOX, &PANE, &ANYWHERE];
        match self.chosen().map(|pending| &pending.answer).filter(|_| focus == Pane::Question) {
            Some(AnswerDraft::Form(_)) => vec![&ANSWER, &FORM],
            Some(AnswerDraft::Text(_)) => vec![&ANSWER, &LINES],
            _ => around.to_vec(),
        }
    }

    fn scroll(&mut self, pane: Pane, by: isize, _context: &mut AppContext) {
        if pane == Pane::Questions {
            self.list.step(by);
            self.position.reset();
        } else {
            self.position.scroll(by);
        }
    }

    fn filter(&self) -> Option<&ListFilter> {
        Some(&self.list.filter)
    }

    fn filter_mut(&mut self) -> Option<&mut ListFilter> {
        Some(&mut self.list.filter)
    }

    fn is_list_empty(&self) -> bool {
        self.chosen().is_none()
    }

    fn on_text_changed(&mut self, context: &mut AppContext) {
        if context.focus == Pane::Questions {
            self.list.narrow(self.find());
            self.position.reset();
        } else if let Some(PendingQuestion {
            answer: AnswerDraft::Form(form), is_sending, ..
        }) = self.chosen_mut()
        {
            form.on_text_changed();
            *is_sending = false;
        }
    }

    fn form(&self, focus: Pane) -> Option<&SchemaForm> {
        match &self.chosen()?.answer {
            AnswerDraft::Form(form) if focus == Pane::Question => Some(form.as_ref()),
            _ => None,
        }
    }

    fn form_mut(&mut self, focus: Pane) -> Option<&mut SchemaForm> {
        match self.draft(focus)? {
            AnswerDraft::Form(form) => Some(form.as_mut()),
            _ => None,
        }
    }

    fn text(&mut self, focus: Pane) -> Option<&mut TextInput> {
        match self.draft(focus)? {
            AnswerDraft::Form(form) => form.text(),
            AnswerDraft::Text(text) => Some(text),
            AnswerDraft::OpenUrl => None,
        }
    }

    fn is_animating(&self) -> bool {
        !self.is_empty()
    }
}

#[rustfmt::skip]
pub const INBOX: KeyTable = KeyTable { name: "inbox", title: "Inbox", rows: &[
    on_row(&[Enter], Action::Open, "answer", "open the question"),
    on_row(&[F(5), Ctrl('r')], Action::Run, "send", "send the answer, or confirm the visit"),
    on_row(&[Char('d')], Action::No, "decline", "decline the question"),
    on_row(&[Char('x')], Action::CancelQuestion, "no reply",
        "cancel the question without an answer"),
    row(&[Char('/')], Action::Filter, "filter", "filter by server and text: words !word"),
] };

// Nothing that is typed somewhere else answers.
#[rustfmt::skip]
pub const QUESTION: KeyTable = KeyTable { name: "question", title: "Question", rows: &[
    row(&[Enter], Action::Open, "answer", "answer the question"),
    row(&[Esc], Action::Back, "later", "leave it in the inbox"),
    row(&[Char('8'), Ctrl('q')], Action::Show(ViewId::Inbox), "", "show the inbox"),
] };

#[rustfmt::skip]
pub const ANSWER: KeyTable = KeyTable { name: "answer", title: "Answer", rows: &[
    row(&[F(5), AltEnter, Ctrl('j'), Ctrl('r')], Action::Run, "send", "send the answer"),
    row(&[Ctrl('d')], Action::No, "decline", "decline the question; refuse a stopped call"),
    row(&[Ctrl('x')], Action::CancelQuestion, "no reply",
        "cancel the question without an answer; leave the draft of a stopped call"),
    row(&[PageDown], Action::PageDown, "", "scroll the question down"),
    row(&[PageUp], Action::PageUp, "", "scroll the question up"),
] };

#[rustfmt::skip]
pub const APPROVAL: KeyTable = KeyTable { name: "approval", title: "Approval", rows: &[
    row(&[Enter, Char('n')], Action::No, "deny", "deny the call"),
    row(&[Char('y')], Action::Yes, "allow once", "allow this call once"),
    row(&[Char('s')], Action::YesForSession, "allow these arguments",
        "allow this tool with these arguments until the console closes"),
    row(&[Char('e')], Action::Fill, "edit", "deny and edit the arguments"),
    row(&[Char('v')], Action::ChangeFormat, "definition", "show the tool's definition"),
    row(&[Esc], Action::CancelQuestion, "cancel the call", "cancel the call"),
    row(&[Ctrl('l')], Action::Redraw, "", "redraw"),
] };

#[rustfmt::skip]
pub const TRUST: KeyTable = KeyTable { name: "trust", title: "Trust", rows: &[
    row(&[Char('y')], Action::Yes, "trust", "trust exactly this (after reading to the end)"),
    row(&[Char('n'), Char('N')], Action::No, "refuse",
        "do not trust it (remembered until it changes)"),
    row(&[Char('a')], Action::YesAsAuthor, "author",
        "trust as the author: do not ask again when its code changes"),
    row(&[Char('v')], Action::ChangeFormat, "whole", "show the whole project or the difference"),
    row(&[Esc], Action::Back, "later", "decide later"),
    row(&[Char('q')], Action::Quit, "quit", "quit without an answer"),
    row(&[Char(' ')], Action::PageDown, "", "page down"),
    row(&[Ctrl('l')], Action::Redraw, "", "redraw"),
] };

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
    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        if self.hold.is_some() { "stopped" } else { self.question.body.kind() }
    }

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
                    None => questions::text_result(text.text()),
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
