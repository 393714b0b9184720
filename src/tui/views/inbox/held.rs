//! Calls that a breakpoint stopped: deciding about them, and what is written in place of something.

use serde_json::Value;

use crate::host::breakpoints::{HeldCall, HoldAnswer};
use crate::model::{Question, QuestionBody, QuestionReply};
use crate::tui::event::{ApprovalPrompt, AskId};
use crate::tui::keys::KeyPress::{Char, Ctrl, Esc};
use crate::tui::prelude::*;
use crate::tui::tasks::blocking;
use crate::tui::views::history::tasks::newest_result as newest_recorded;
use crate::tui::views::inbox::{AnswerDraft, InboxView, PendingQuestion};
use crate::util::json;

/// What is written about a stopped call.
#[derive(Debug, Clone)]
pub struct HoldDraft {
    pub held: Box<HeldCall>,
    pub kind: DraftKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftKind {
    Arguments,
    /// The result as JSON.
    Result,
    /// The result as text, which it was.
    Text,
    /// Why it is refused.
    Reason,
}

impl HoldDraft {
    pub fn title(&self) -> String {
        format!("Stopped at a breakpoint  {}", self.held.definition.name.full())
    }

    /// What becomes of the text.
    pub fn heading(&self) -> &'static str {
        match self.kind {
            DraftKind::Arguments => "",
            DraftKind::Result => "The caller gets this JSON as the result:",
            DraftKind::Text => "The caller gets this text as the result:",
            DraftKind::Reason => "The call is refused, and the caller gets this reason:",
        }
    }

    /// The value that was written.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        match self.kind {
            DraftKind::Result => {
                serde_json::from_str(text).map_err(|error| format!("this is not JSON: {error}"))
            }
            _ => Ok(Value::String(text.to_owned())),
        }
    }
}

impl PendingQuestion {
    fn of_held(id: AskId, held: Box<HeldCall>, kind: DraftKind, text: &str) -> Self {
        let answer = match kind {
            DraftKind::Arguments => {
                let tool = Arc::new(held.definition.clone());
                let form = SchemaForm::of(&tool, Some(&held.arguments));
                AnswerDraft::Form(Box::new(form))
            }
            _ => AnswerDraft::Text(TextInput::at_start(text)),
        };
        let question = Question {
            server: held.client.clone().unwrap_or_default(),
            call: Some(held.call.clone()),
            round: None,
            key: None,
            time_left: Some(held.time_left),
            body: QuestionBody::Form {
                message: format!("{} was stopped", held.definition.name.full()),
                schema: Value::Null,
            },
        };
        let hold = Some(HoldDraft { held, kind });
        Self { id, question, since: None, answer, is_sending: false, hold }
    }
}

impl InboxView {
    /// A decision about the stopped call that is shown; `false` when it is none.
    pub fn decide_held(&mut self, action: Action, context: &mut AppContext) -> bool {
        let front = self.approvals.front().map(|pending| (pending.id, pending.prompt.held.clone()));
        let Some((id, Some(held))) = front else { return false };
        let kind = match action {
            Action::Yes | Action::No => {
                let refused = HoldAnswer::Refuse(None);
                let answer = if action == Action::Yes { HoldAnswer::Continue } else { refused };
                self.approvals.pop_front();
                release(&held, answer, context);
                return true;
            }
            Action::NoBecause => DraftKind::Reason,
            Action::Answer => DraftKind::Result,
            Action::Fill | Action::CancelQuestion | Action::Cancel => match held.result {
                Some(_) => DraftKind::Result,
                None => DraftKind::Arguments,
            },
            _ => return false,
        };
        self.approvals.pop_front();
        let value = match (kind, &held.result) {
            (DraftKind::Result, Some(result)) => result.value.clone(),
            (DraftKind::Result, None) => {
                let newest = newest_result(&held, context);
                if newest.is_none() {
                    context.emit(recorded_result(id, &held));
                }
                newest
            }
            _ => None,
        };
        let (kind, text) = value.map_or_else(|| (kind, String::new()), written);
        let name = held.definition.name.full();
        self.add(PendingQuestion::of_held(id, held, kind, &text));
        if matches!(action, Action::CancelQuestion | Action::Cancel) {
            let key = context.keys.key_of(Action::Show(ViewId::Inbox), &[&ANYWHERE]);
            let way = key.map(|key| format!(": {key} opens it")).unwrap_or_default();
            context.show_status(format!("{name} still waits in the inbox{way}"));
        } else {
            context.emit(Navigation::OpenQuestion(id));
        }
        true
    }

    /// What the history has of the tool's results is where one begins, unless something is there.
    fn begin_result(&mut self, id: AskId, value: Value) {
        let Some(pending) = self.questions.iter_mut().find(|pending| pending.id == id) else {
            return;
        };
        let (Some(hold), AnswerDraft::Text(input)) = (&mut pending.hold, &mut pending.answer)
        else {
            return;
        };
        if hold.kind == DraftKind::Result && input.text().is_empty() {
            let (kind, text) = written(value);
            hold.kind = kind;
            *input = TextInput::at_start(&text);
        }
    }

    /// What was written about a stopped call, or that nothing was.
    pub fn reply_held(
        &mut self,
        id: AskId,
        draft: HoldDraft,
        reply: QuestionReply,
        context: &mut AppContext,
    ) {
        let HoldDraft { held, kind } = draft;
        let answer = match (reply, kind) {
            (QuestionReply::Accept(Value::Object(arguments)), DraftKind::Arguments) => {
                HoldAnswer::Arguments(arguments)
            }
            (QuestionReply::Accept(Value::String(reason)), DraftKind::Reason) => {
                HoldAnswer::Refuse(Some(reason).filter(|reason| !reason.trim().is_empty()))
            }
            (QuestionReply::Accept(value), _) => HoldAnswer::Result(value),
            (QuestionReply::Decline, _) => HoldAnswer::Refuse(None),
            // Back to what can be decided.
            _ => return self.approval(id, ApprovalPrompt::of_held(*held), context),
        };
        release(&held, answer, context);
    }

    /// A stopped call waits no more.
    pub fn release(&mut self, hold: u64, context: &mut AppContext) {
        let is_it = |held: &HeldCall| held.hold == hold;
        let before = self.len();
        self.approvals.retain(|pending| !pending.prompt.held.as_deref().is_some_and(is_it));
        let is_draft = |hold: &Option<HoldDraft>| hold.as_ref().is_some_and(|it| is_it(&it.held));
        let draft = self.questions.iter().find(|pending| is_draft(&pending.hold));
        if let Some(id) = draft.map(|pending| pending.id) {
            self.remove_question(id, context);
            self.leave_if_empty(context);
        }
        if self.len() < before {
            context.show_status("the stopped call waits no more");
        }
    }

    /// The host that stopped calls is gone.
    pub fn forget_held(&mut self) {
        self.approvals.retain(|pending| pending.prompt.held.is_none());
        self.questions.retain(|pending| pending.hold.is_none());
        self.list.cursor = ListCursor::default();
        self.list.show(self.find(), None);
    }
}

fn release(held: &HeldCall, answer: HoldAnswer, context: &mut AppContext) {
    let (hold, name) = (held.hold, held.definition.name.full());
    let became = match &answer {
        HoldAnswer::Continue => "goes on",
        HoldAnswer::Arguments(_) => "goes on with the edited arguments",
        HoldAnswer::Result(_) if held.result.is_some() => "goes on with the edited result",
        HoldAnswer::Result(_) => "was answered by you",
        HoldAnswer::Refuse(_) => "was refused",
    };
    context.show_status(format!("{name} {became}"));
    let by = format!("console (pid {})", std::process::id());
    let what = ("release", hold, answer.clone());
    let work = async move |context: TaskContext| context.deps.host.release(hold, answer, by).await;
    let task = Task::new(what, work, move |state, waited| {
        if !waited {
            state.context.show_error(format!("{name} waited no more"));
        }
    });
    context.emit(task.before_quitting());
}

fn recorded_result(id: AskId, held: &HeldCall) -> Task {
    let (tool, arguments) = (held.definition.name.full(), held.arguments.clone());
    let what = ("recorded result", held.hold);
    let work = async move |context: TaskContext| {
        blocking(move || newest_recorded(&context.deps, tool, &arguments)).await
    };
    Task::new(what, work, move |state, value| {
        // Without a history one begins with nothing.
        if let Ok(Some(value)) = value {
            state.inbox.begin_result(id, value);
        }
    })
}

/// A result as it is edited.
fn written(value: Value) -> (DraftKind, String) {
    match value {
        Value::String(text) => (DraftKind::Text, text),
        value => (DraftKind::Result, json::pretty(&value)),
    }
}

/// What the tool last answered here, to begin with.
fn newest_result(held: &HeldCall, context: &AppContext) -> Option<Value> {
    let call = context.calls.newest_of(&held.definition.name.full())?;
    let result = call.outcome.as_deref()?.as_ref().ok()?.result.as_ref().ok()?;
    Some(result.structured.as_ref().unwrap_or(&result.output).clone())
}

#[rustfmt::skip]
pub const BREAKPOINT: KeyTable = KeyTable { name: "breakpoint", title: "Breakpoint", rows: &[
    row(&[Char('y')], Action::Yes, "go on", "let the call go on unchanged"),
    row(&[Char('e')], Action::Fill, "edit", "edit the arguments, or the result, and go on"),
    row(&[Char('r')], Action::Answer, "answer", "write the result, and do not call the tool"),
    row(&[Char('n')], Action::No, "refuse", "refuse the call"),
    row(&[Char('N')], Action::NoBecause, "refuse, and say why", "refuse the call, with a reason"),
    row(&[Char('v')], Action::ChangeFormat, "definition", "show the tool's definition"),
    row(&[Esc], Action::CancelQuestion, "later", "leave it in the inbox"),
    row(&[Ctrl('l')], Action::Redraw, "", "redraw"),
] };
