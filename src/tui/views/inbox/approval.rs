//! Approval questions: asking, answering, and remembered decisions.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use serde_json::Value;

use crate::catalogue::fingerprint;
use crate::host::policy::Approval;
use crate::model::{ToolDefinition, ToolSource};
use crate::present::Line as PageLine;
use crate::tui::event::{ApprovalPrompt, AskId};
use crate::tui::prelude::*;
use crate::tui::views::inbox::{APPROVAL, InboxView, held};
use crate::tui::widgets::reading::{QuestionText, Readiness};
use crate::util::{diff, json};

#[derive(Debug)]
pub struct PendingApproval {
    pub id: AskId,
    pub prompt: ApprovalPrompt,
    pub request: QuestionText,
    definition: ScrollText,
    pub shows_definition: bool,
}

/// How far the rest of a broken line is indented: more than any line of ours begins with.
const CONTINUED: usize = 13;

impl PendingApproval {
    pub fn new(id: AskId, prompt: ApprovalPrompt, request: ScrollText) -> Self {
        let (request, definition) = (QuestionText::new(request), definition(&prompt.tool));
        Self { id, prompt, request, definition, shows_definition: false }
    }

    pub fn key_context(&self) -> KeyContext {
        match self.prompt.held {
            Some(_) => &held::BREAKPOINT,
            None => &APPROVAL,
        }
    }

    pub fn text(&self) -> &ScrollText {
        if self.shows_definition { &self.definition } else { &self.request.text }
    }

    pub fn text_mut(&mut self) -> &mut ScrollText {
        if self.shows_definition { &mut self.definition } else { &mut self.request.text }
    }
}

/// The maximum number of lines of a difference that are kept; the whole definition is a key away.
const MAX_DIFF_LINES: usize = 200;

/// The calls that were allowed until the console closes.
#[derive(Debug, Default)]
pub struct SessionApprovals {
    /// Calls that need not be asked about again, by their identity.
    allowed_calls: HashSet<String>,
    allowed_definitions: HashMap<String, Value>,
}

impl SessionApprovals {
    fn allow(&mut self, tool: &ToolDefinition) {
        self.allowed_definitions.insert(tool.name.full(), fingerprint::content(tool));
    }

    /// How the definition differs from what it was when a call of this tool was last allowed here.
    fn difference(&self, tool: &ToolDefinition) -> Page {
        let mut page = Page::default();
        let Some(before) = self.allowed_definitions.get(&tool.name.full()) else { return page };
        let now = fingerprint::content(tool);
        let parts = [&now, before].into_iter().filter_map(Value::as_object).flatten();
        let names = parts.map(|(key, _)| key.as_str());
        let changed: BTreeSet<&str> = names.filter(|key| now.get(key) != before.get(key)).collect();
        if changed.is_empty() {
            return page;
        }
        let names = changed.into_iter().collect::<Vec<_>>().join(", ");
        let text = format!("! changed since it was last allowed here: {names}");
        page.push(PageLine::styled(Role::Warning, text));
        let text = |content: &Value| json::pretty(content) + "\n";
        for mut hunk in diff::hunks(&text(before), &text(&now), 1) {
            hunk.lines.truncate(MAX_DIFF_LINES);
            present::difference::lines(&mut page, &hunk, 2);
        }
        page
    }
}

impl InboxView {
    /// Whether a call may be made is asked. What was allowed for the session is not asked again.
    pub fn approval(&mut self, id: AskId, prompt: ApprovalPrompt, context: &mut AppContext) {
        if self.session_approvals.allowed_calls.contains(&prompt.identity) {
            let name = prompt.tool.name.full();
            context.show_status(format!("allowed {name} with these arguments for this session"));
            return context.emit(AppEffect::AnswerApproval(id, Approval::Granted));
        }
        let mut request = ScrollText::with_indent(CONTINUED);
        if prompt.held.is_none() {
            request.page(&self.session_approvals.difference(&prompt.tool));
        }
        request.page(&prompt.page);
        self.approvals.push_back(PendingApproval::new(id, prompt, request));
    }

    /// Performs an action while an approval is shown; `false` when the window has no use for it.
    pub fn decide(&mut self, action: Action, context: &mut AppContext) -> bool {
        let Some(front) = self.approvals.front_mut() else { return false };
        if front.prompt.held.is_some() && action != Action::ChangeFormat {
            return self.decide_held(action, context);
        }
        let readiness = front.request.readiness(context.now);
        // The call, where it was made here: what was typed is known as it was.
        let call = front.prompt.call.as_ref();
        let made = context.calls.running().find(|made| call.is_some() && made.id.as_ref() == call);
        match (action, made) {
            (Action::Yes | Action::YesForSession, _) if readiness != Readiness::Ready => {
                context.show_error(match readiness {
                    Readiness::TooLong => "too long to be read here: it can only be denied",
                    _ => "scroll to the end of the request first",
                });
            }
            (Action::Yes, _) => {
                self.session_approvals.allow(&front.prompt.tool);
                self.answer(Approval::Granted, context);
            }
            (Action::YesForSession, _) => self.grant_for_session(context),
            (Action::No, _) | (Action::CancelQuestion | Action::Cancel, None) => {
                self.answer(Approval::Refused, context);
            }
            // Not this call, but perhaps another one: its arguments are filled in again.
            (Action::Fill, made) => {
                let arguments =
                    made.map_or(&front.prompt.arguments, |made| &made.arguments).clone();
                let tool = front.prompt.tool.name.full();
                self.answer(Approval::Refused, context);
                context.emit(Navigation::FillArguments { tool, arguments: Some(arguments) });
            }
            (Action::ChangeFormat, _) => front.shows_definition = !front.shows_definition,
            (Action::CancelQuestion | Action::Cancel, Some(made)) => {
                let run = made.run;
                self.approvals.pop_front();
                context.emit(AppEffect::Cancel(run));
            }
            _ => return false,
        }
        true
    }

    fn answer(&mut self, approval: Approval, context: &mut AppContext) {
        if let Some(pending) = self.approvals.pop_front() {
            context.emit(AppEffect::AnswerApproval(pending.id, approval));
        }
    }

    /// This call and every one that is the same, also of those that already wait.
    fn grant_for_session(&mut self, context: &mut AppContext) {
        let Some(front) = self.approvals.front() else { return };
        let identity = front.prompt.identity.clone();
        self.session_approvals.allow(&front.prompt.tool);
        let (same, others): (VecDeque<_>, VecDeque<_>) =
            self.approvals.drain(..).partition(|pending| pending.prompt.identity == identity);
        self.approvals = others;
        self.session_approvals.allowed_calls.insert(identity);
        for pending in same {
            context.emit(AppEffect::AnswerApproval(pending.id, Approval::Granted));
        }
    }
}

const WIDTH: u16 = 76;

pub fn draw(pen: &mut Pen<'_>, state: &AppState, pending: &PendingApproval, area: Rect) {
    // There is room for all answers from the start: what is read before them does not move then.
    let keys = state.context.keys.bindings(pending.key_context()).iter();
    let answers = keys.filter(|binding| binding.label.is_some()).count();
    let width = WIDTH.min(area.width);
    let rows = pen.rows_of(pending.text(), width.saturating_sub(4)) + answers + 3;
    let height = cells(rows).min(area.height.saturating_sub(4).max(5));
    let (title, role) = match pending.prompt.held {
        Some(_) => ("Stopped at a breakpoint", Role::Question),
        None => ("Approval needed", Role::Warning),
    };
    let title = format!("{title}  1 of {}", state.inbox.approvals.len());
    let inner = pen.ask_over(area, (width, height), &title, role);
    // Where there is little room what is asked goes before what can be answered.
    let height = answers.min(usize::from(inner.height).saturating_sub(4)).max(1);
    let [above, below] = bottom(inner, height);
    if pending.shows_definition {
        pen.text(&pending.definition, above);
    } else {
        pending.request.draw_text(pen, above);
    }
    let shown_answers: Vec<Line<'static>> =
        self::answers(pen.styler, state, pending).into_iter().take(height).collect();
    pen.paragraph(below, &shown_answers);
}

/// The possible answers, from the key table; none while what was typed ahead may still come in.
fn answers(styler: Styler, state: &AppState, pending: &PendingApproval) -> Vec<Line<'static>> {
    let readiness = pending.request.readiness(state.context.now);
    if readiness == Readiness::TooSoon {
        return vec![styler.line(Role::Dim, "One moment… (ignoring keys typed ahead)")];
    }
    let is_ready = readiness == Readiness::Ready || pending.prompt.held.is_some();
    let shown = state.context.keys.bindings(pending.key_context()).iter();
    let has_result = pending.prompt.held.as_ref().is_some_and(|held| held.result.is_some());
    let answers = shown.filter(|binding| !(has_result && binding.action == Action::Answer));
    let answers = answers.filter_map(|binding| {
        let word = match binding.action {
            Action::Yes | Action::YesForSession if !is_ready => {
                format!("{} (after reading to the end)", binding.label?)
            }
            _ => binding.label?.to_owned(),
        };
        Some(styler.answer(binding.key, 5, &word))
    });
    answers.collect()
}

fn definition(tool: &ToolDefinition) -> ScrollText {
    let mut text = ScrollText::with_indent(CONTINUED);
    text.line(Role::Name, tool.name.full());
    text.line(
        Role::Dim,
        match tool.source {
            ToolSource::Mcp => "definition, as the server describes it",
            ToolSource::Internal => "definition, as declared",
        },
    );
    text.gap();
    if let Some(description) = &tool.description {
        text.text(Role::Plain, description);
        text.gap();
    }
    text.text(Role::Plain, &json::pretty(&fingerprint::content(tool)));
    text
}
