//! What a person is asked: whether a call may be made, and what servers want to know.
//!
//! Owns: the open questions, the oldest first, and what has been written as their answers. A new
//! one is told and counted, and takes no keys; only an approval lies over the screen. Never does:
//! answer by itself, or open an address.

mod approval;
mod question;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{Form, Line, List, Pane, Shell, Stage, Text, View};
use crate::host::validate::Violation;
use crate::model::{JsonObject, Question, Reply};
use crate::tui::event::{AskId, Effect};
use crate::tui::keys::{Action, When};
use crate::util::text::shorten;

pub use approval::{PendingApproval, Shows};
pub use question::{Answer, PendingQuestion};

/// How much of a question is said when it comes, in characters.
const SAID: usize = 60;

/// What a person is asked.
#[derive(Debug, Default)]
pub struct Inbox {
    /// Calls that wait for a person, the oldest first.
    pub approvals: VecDeque<PendingApproval>,
    /// Questions of servers, the oldest first.
    pub questions: Vec<PendingQuestion>,
    /// Which of them is chosen.
    pub list: List,
    /// How far the chosen one is scrolled.
    pub scroll: usize,
    memory: approval::Memory,
}

impl Inbox {
    /// How much waits for a person.
    pub fn len(&self) -> usize {
        self.approvals.len() + self.questions.len()
    }

    /// Whether nothing does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The question that is chosen.
    pub fn chosen(&self) -> Option<&PendingQuestion> {
        self.questions.get(self.list.chosen())
    }

    fn chosen_mut(&mut self) -> Option<&mut PendingQuestion> {
        self.questions.get_mut(self.list.chosen())
    }

    /// A server asks something.
    pub fn question(&mut self, id: AskId, question: Question, shell: &mut Shell) {
        let words = shorten(question.ask.words(), SAID).into_owned();
        let key = shell.keys.key_of(Action::Show(View::Inbox), &[When::Anywhere]);
        let way = match (shell.view, key) {
            (View::Inbox, _) | (_, None) => String::new(),
            (_, Some(key)) => format!(" ({key} answers)"),
        };
        shell.say(format!("{} asks: {words}{way}", question.server));
        self.questions.push(PendingQuestion::new(id, question));
    }

    /// Nobody waits for this answer any more.
    pub fn withdrawn(&mut self, id: AskId, shell: &mut Shell) {
        if let Some(at) = self.approvals.iter().position(|pending| pending.id == id)
            && let Some(pending) = self.approvals.remove(at)
        {
            shell.say(format!("the call of {} is off", pending.asked.tool.name.full()));
        }
        if let Some(pending) = self.take(id, shell) {
            let server = &pending.question.server;
            shell.say(format!("{server} does not wait for an answer any more"));
        }
    }

    /// It is so late.
    pub fn now(&mut self, now: Duration) {
        for pending in &mut self.questions {
            pending.since.get_or_insert(now);
        }
        if let Some(pending) = self.approvals.front_mut() {
            pending.since.get_or_insert(now);
        }
    }

    /// Takes in what a check found, if an answer waits for it; says what is to be done.
    pub fn checked(
        &mut self,
        schema: &Arc<Value>,
        arguments: &JsonObject,
        problems: &[Violation],
        shell: &mut Shell,
    ) -> Option<Vec<Effect>> {
        let about_this = |pending: &mut PendingQuestion| match &mut pending.answer {
            Answer::Form(form) => form.checked(schema, arguments, problems),
            _ => false,
        };
        let at = self.questions.iter_mut().position(about_this)?;
        let pending = &mut self.questions[at];
        let is_sent = std::mem::take(&mut pending.is_sending);
        if !is_sent || !problems.is_empty() {
            return Some(Vec::new());
        }
        let id = pending.id;
        Some(self.reply(id, Reply::Accept(Value::Object(arguments.clone())), shell))
    }

    /// Takes a question out of the list; what was chosen stays so.
    fn take(&mut self, id: AskId, shell: &mut Shell) -> Option<PendingQuestion> {
        let at = self.questions.iter().position(|pending| pending.id == id)?;
        let pending = self.questions.remove(at);
        let chosen = self.list.chosen();
        self.list.choose(if at < chosen { chosen - 1 } else { chosen }, self.questions.len());
        if at == chosen {
            self.scroll = 0;
            if shell.view == View::Inbox && shell.focus == Pane::Question {
                shell.focus = Pane::Questions;
            }
        }
        Some(pending)
    }

    fn reply(&mut self, id: AskId, reply: Reply, shell: &mut Shell) -> Vec<Effect> {
        let Some(pending) = self.take(id, shell) else { return Vec::new() };
        let server = &pending.question.server;
        shell.say(match reply {
            Reply::Accept(_) => format!("answered {server}"),
            Reply::Decline => format!("declined what {server} asks"),
            _ => format!("turned away from {server} without an answer"),
        });
        vec![Effect::Reply(id, Arc::new(reply))]
    }

    /// Answers the chosen question without an answer.
    fn refuse(&mut self, reply: Reply, shell: &mut Shell) -> Vec<Effect> {
        let Some(id) = self.chosen().map(|pending| pending.id) else { return Vec::new() };
        self.reply(id, reply, shell)
    }

    fn send(&mut self, shell: &mut Shell) -> Vec<Effect> {
        let Some(pending) = self.chosen_mut() else { return Vec::new() };
        match pending.send() {
            Ok(question::Sent::Check(effect)) => vec![effect],
            Ok(question::Sent::Reply(id, reply)) => self.reply(id, reply, shell),
            Err(why) => {
                shell.focus = Pane::Question;
                shell.say_bad(why);
                Vec::new()
            }
        }
    }

    fn copied(&self, shell: &mut Shell) -> Vec<Effect> {
        let Some(pending) = self.chosen() else { return Vec::new() };
        shell.say("copied");
        vec![Effect::Copy(pending.copy())]
    }
}

impl Stage for Inbox {
    fn act(&mut self, action: Action, shell: &mut Shell) -> Option<Vec<Effect>> {
        match action {
            Action::Open if self.chosen().is_some() => shell.focus = Pane::Question,
            Action::Run => return Some(self.send(shell)),
            Action::No => return Some(self.refuse(Reply::Decline, shell)),
            Action::Turnaway => return Some(self.refuse(Reply::Cancel, shell)),
            Action::Copy => return Some(self.copied(shell)),
            Action::Back if shell.focus == Pane::Question => shell.focus = Pane::Questions,
            other if shell.focus == Pane::Question => {
                let done = self.chosen_mut().is_some_and(|pending| pending.act(other));
                return done.then(Vec::new);
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn places(&self, focus: Pane) -> Vec<When> {
        let around = [When::Inbox, When::Pane, When::Anywhere];
        match self.chosen().map(|pending| &pending.answer).filter(|_| focus == Pane::Question) {
            Some(Answer::Form(_)) => vec![When::Answer, When::Form],
            Some(Answer::Write(_)) => vec![When::Answer, When::Lines],
            _ => around.to_vec(),
        }
    }

    fn scroll(&mut self, focus: Pane, by: isize) {
        if focus == Pane::Questions {
            self.list.step(by, self.questions.len());
            self.scroll = 0;
        } else {
            self.scroll = self.scroll.saturating_add_signed(by);
        }
    }

    fn line(&mut self, focus: Pane) -> Option<&mut Line> {
        match &mut self.chosen_mut().filter(|_| focus == Pane::Question)?.answer {
            Answer::Form(form) => form.line(),
            Answer::Write(text) => Some(text.line()),
            Answer::Visit(_) => None,
        }
    }

    fn rewritten(&mut self, _shell: &mut Shell) -> Vec<Effect> {
        if let Some(PendingQuestion { answer: Answer::Form(form), is_sending, .. }) =
            self.chosen_mut()
        {
            form.rewritten();
            *is_sending = false;
        }
        Vec::new()
    }

    fn form(&self, focus: Pane) -> Option<&Form> {
        match &self.chosen()?.answer {
            Answer::Form(form) if focus == Pane::Question => Some(form.as_ref()),
            _ => None,
        }
    }

    fn form_mut(&mut self, focus: Pane) -> Option<&mut Form> {
        match &mut self.chosen_mut()?.answer {
            Answer::Form(form) if focus == Pane::Question => Some(form.as_mut()),
            _ => None,
        }
    }

    fn text(&mut self, focus: Pane) -> Option<&mut Text> {
        match &mut self.chosen_mut().filter(|_| focus == Pane::Question)?.answer {
            Answer::Form(form) => form.text(),
            Answer::Write(text) => Some(text),
            Answer::Visit(_) => None,
        }
    }

    fn is_moving(&self) -> bool {
        !self.is_empty()
    }
}
