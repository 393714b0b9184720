//! Approval questions: asking, answering, and remembered decisions.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use ratatui::widgets::Clear;
use serde_json::Value;

use crate::catalogue::fingerprint;
use crate::host::approval::Approval;
use crate::host::describe::claims;
use crate::model::{ToolDefinition, ToolStatus};
use crate::tui::context::MIN_VISIBLE_TIME;
use crate::tui::event::{ApprovalPrompt, AskId};
use crate::tui::layout;
use crate::tui::prelude::*;
use crate::tui::views::inbox::InboxView;
use crate::tui::widgets::reading::Readiness;
use crate::util::diff::{DiffLine, DiffMark};
use crate::util::{diff, json};

#[derive(Debug, Clone)]
pub struct PendingApproval {
    pub id: AskId,
    pub prompt: ApprovalPrompt,
    /// Since when; keys that were typed ahead must not answer it.
    pub since: Option<Duration>,
    /// Whether the end of the request was drawn.
    is_read: bool,
    pub position: ScrollPosition,
    pub tab: ApprovalTab,
    /// What of the definition is not what it was when a call of this tool was last allowed here.
    pub changed: Vec<String>,
    pub difference: Vec<DiffLine>,
}

/// Why a yes is not taken yet.
const UNREAD: &str = "scroll to the end of the request first";

impl PendingApproval {
    /// Takes in what was drawn, before the text moves.
    pub fn note(&mut self) {
        self.is_read |= self.tab == ApprovalTab::Request && self.position.is_end_visible();
    }

    /// Scrolls by this many rows; negative moves up.
    pub fn scroll(&mut self, by: isize) {
        self.note();
        self.position.scroll(by);
    }

    fn readiness(&self, now: Duration) -> Readiness {
        let is_end_visible = self.tab == ApprovalTab::Request && self.position.is_end_visible();
        if self.since.is_none_or(|since| since + MIN_VISIBLE_TIME > now) {
            Readiness::TooSoon
        } else if self.is_read || is_end_visible {
            Readiness::Ready
        } else {
            Readiness::Unread
        }
    }
}

/// The maximum number of lines of a difference that are kept; the whole definition is a key away.
const MAX_DIFF_LINES: usize = 200;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalTab {
    #[default]
    Request,
    /// What the tool says about itself, whole.
    Definition,
}

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

    fn changed(&self, tool: &ToolDefinition) -> Vec<String> {
        let Some(before) = self.allowed_definitions.get(&tool.name.full()) else {
            return Vec::new();
        };
        let now = fingerprint::content(tool);
        let keys = |content: &Value| -> Vec<String> {
            content.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
        };
        let mut changed = keys(&now);
        changed.extend(keys(before));
        changed.sort_unstable();
        changed.dedup();
        changed.retain(|key| now.get(key) != before.get(key));
        changed
    }

    fn difference(&self, tool: &ToolDefinition) -> Vec<DiffLine> {
        let Some(before) = self.allowed_definitions.get(&tool.name.full()) else {
            return Vec::new();
        };
        let text = |content: &Value| json::pretty(content) + "\n";
        let hunks = diff::hunks(&text(before), &text(&fingerprint::content(tool)), 1);
        hunks.into_iter().flat_map(|hunk| hunk.lines).take(MAX_DIFF_LINES).collect()
    }
}

impl InboxView {
    /// Whether a call may be made is asked. What was allowed for the session is not asked again.
    pub fn approval(
        &mut self,
        id: AskId,
        asked: ApprovalPrompt,
        context: &mut AppContext,
    ) -> Effects {
        if self.session_approvals.allowed_calls.contains(&asked.identity) {
            let name = asked.tool.name.full();
            context.show_status(format!("allowed {name} with these arguments for this session"));
            return vec![AppEffect::AnswerApproval(id, Approval::Granted)];
        }
        let changed = self.session_approvals.changed(&asked.tool);
        let difference = self.session_approvals.difference(&asked.tool);
        self.approvals.push_back(PendingApproval {
            id,
            prompt: asked,
            since: None,
            is_read: false,
            position: ScrollPosition::default(),
            tab: ApprovalTab::default(),
            changed,
            difference,
        });
        Vec::new()
    }

    /// Whether the approval that is shown can be answered with a yes now; nothing is shown when
    /// there is none.
    pub fn approval_readiness(&self, now: Duration) -> Option<Readiness> {
        self.approvals.front().map(|pending| pending.readiness(now))
    }

    /// Performs an action while an approval is shown; `None` when the window has no use for it.
    pub fn decide(&mut self, action: Action, context: &mut AppContext) -> Option<Effects> {
        let front = self.approvals.front_mut()?;
        front.note();
        match action {
            Action::Yes | Action::YesForSession
                if front.readiness(context.now) != Readiness::Ready =>
            {
                context.show_error(UNREAD);
                Some(Vec::new())
            }
            Action::Yes => Some(self.grant()),
            Action::YesForSession => Some(self.grant_for_session()),
            Action::No => Some(self.deny()),
            Action::Fill => Some(self.deny_and_edit(context)),
            Action::ChangeFormat => {
                front.position.reset();
                front.tab = match front.tab {
                    ApprovalTab::Request => ApprovalTab::Definition,
                    ApprovalTab::Definition => ApprovalTab::Request,
                };
                Some(Vec::new())
            }
            Action::CancelQuestion | Action::Cancel => Some(self.cancel_call(context)),
            _ => None,
        }
    }

    fn grant(&mut self) -> Effects {
        let Some(pending) = self.approvals.pop_front() else { return Vec::new() };
        self.session_approvals.allow(&pending.prompt.tool);
        vec![AppEffect::AnswerApproval(pending.id, Approval::Granted)]
    }

    /// This call and every one that is the same, also of those that already wait.
    fn grant_for_session(&mut self) -> Effects {
        let Some(front) = self.approvals.front() else { return Vec::new() };
        let identity = front.prompt.identity.clone();
        self.session_approvals.allow(&front.prompt.tool);
        let (same, others): (VecDeque<_>, VecDeque<_>) =
            self.approvals.drain(..).partition(|pending| pending.prompt.identity == identity);
        self.approvals = others;
        self.session_approvals.allowed_calls.insert(identity);
        same.iter()
            .map(|pending| AppEffect::AnswerApproval(pending.id, Approval::Granted))
            .collect()
    }

    fn deny(&mut self) -> Effects {
        let pending = self.approvals.pop_front();
        pending
            .map(|pending| AppEffect::AnswerApproval(pending.id, Approval::Refused))
            .into_iter()
            .collect()
    }

    /// Not this call, but perhaps another one: its arguments are filled in again.
    fn deny_and_edit(&mut self, context: &AppContext) -> Effects {
        let Some(asked) = self.approvals.front().map(|pending| pending.prompt.clone()) else {
            return Vec::new();
        };
        // What is shown is masked; what was typed here is known as it was.
        let made = context.calls.running().find(|call| call.id.is_some() && call.id == asked.call);
        let arguments = made.map_or(asked.arguments, |call| call.arguments.clone());
        let mut effects = self.deny();
        let tool = asked.tool.name.full();
        effects.push(AppEffect::Navigate(Navigation::FillArguments {
            tool,
            arguments: Some(arguments),
        }));
        effects
    }

    /// The whole call is off, where it was made here; what others made of it is refused.
    fn cancel_call(&mut self, context: &AppContext) -> Effects {
        let call = self.approvals.front().and_then(|pending| pending.prompt.call.clone());
        let made = context.calls.running().find(|made| call.is_some() && made.id == call);
        match made.map(|made| made.run) {
            Some(run) => {
                self.approvals.pop_front();
                vec![AppEffect::Cancel(run)]
            }
            None => self.deny(),
        }
    }
}

pub fn draw(pen: &mut Pen<'_>, state: &AppState, pending: &PendingApproval, area: Rect) {
    let place = layout::window(area, 76, area.height.saturating_sub(4).clamp(5, 30));
    pen.put(Clear, place);
    let title = format!("Approval needed  1 of {}", state.inbox.approvals.len());
    let inner = pen.window(place, &title, Role::Warning);
    let answers = answers(pen.styler, state);
    let height = u16::try_from(answers.len()).unwrap_or(u16::MAX);
    // Where there is little room what is asked goes before what can be answered.
    let height = height.min(inner.height.saturating_sub(4)).max(1);
    let [above, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(height)]).areas(inner);
    let lines = match pending.tab {
        ApprovalTab::Request => request(pen.styler, pending),
        ApprovalTab::Definition => definition(pen.styler, pending),
    };
    pen.page(&lines, &pending.position, above);
    let seen: Vec<Line<'static>> = answers.into_iter().take(usize::from(height)).collect();
    pen.paragraph(below, &seen);
}

/// The possible answers, from the key table; none while what was typed ahead may still come in.
fn answers(styler: Styler, state: &AppState) -> Vec<Line<'static>> {
    let readiness = state.inbox.approval_readiness(state.context.now);
    if readiness == Some(Readiness::TooSoon) {
        return vec![styler.line(Role::Dim, "One moment… (ignoring keys typed ahead)")];
    }
    let is_ready = readiness == Some(Readiness::Ready);
    let shown = state.context.keys.bindings(KeyContext::Approval).iter();
    let answers = shown.filter_map(|binding| {
        let word = match binding.action {
            Action::Yes | Action::YesForSession if !is_ready => {
                format!("{} (after reading to the end)", binding.label?)
            }
            _ => binding.label?.to_owned(),
        };
        Some(Line::from(vec![
            styler.span(Role::Key, format!("{:>5} ", binding.key.to_string())),
            styler.plain(word),
        ]))
    });
    answers.collect()
}

fn request(styler: Styler, pending: &PendingApproval) -> Vec<Line<'static>> {
    let asked = &pending.prompt;
    let tool = &asked.tool;
    let mut lines =
        vec![styler.line(Role::Name, tool.name.full()), styler.fact("why", &asked.reason)];
    let status = match tool.status {
        ToolStatus::Changed => Some("the definition differs from its pin"),
        ToolStatus::Drifted => Some("the definition differs from the declared one"),
        ToolStatus::Unchecked => Some("arguments cannot be checked"),
        ToolStatus::Live
        | ToolStatus::Declared
        | ToolStatus::Unavailable
        | ToolStatus::Untrusted => None,
    };
    if let Some(status) = status {
        lines.push(styler.line(Role::Warning, format!("! {status}")));
    }
    if !pending.changed.is_empty() {
        let names = pending.changed.join(", ");
        let text = format!("! changed since it was last allowed here: {names}");
        lines.push(styler.line(Role::Warning, text));
        lines.extend(pending.difference.iter().map(|line| {
            let role = match line.mark {
                DiffMark::Same => Role::Dim,
                DiffMark::Removed => Role::Error,
                DiffMark::Added => Role::Success,
            };
            styler.line(role, format!("  {} {}", line.mark.sign(), line.text))
        }));
    }
    lines.extend(tool.warnings.iter().map(|text| styler.line(Role::Warning, format!("! {text}"))));
    let claimed = claims(&tool.annotations);
    if !claimed.is_empty() {
        lines.push(styler.fact("claims", claimed.join(", ")));
    }
    lines.extend(tool.touches.iter().map(|touched| styler.fact("touches", touched)));
    if !tool.calls.is_empty() {
        lines.push(styler.fact("calls", tool.calls.join(", ")));
    }
    let arguments = Value::Object(asked.arguments.clone());
    let size = arguments.to_string().len();
    lines.push(Line::default());
    lines.push(styler.line(Role::Title, format!("arguments ({size} bytes)")));
    lines.extend(styler.lines(Role::Plain, &format!("{arguments:#}")));
    lines.push(Line::default());
    lines.push(styler.line(Role::Title, "request"));
    match &asked.preview {
        Ok(text) => lines.extend(styler.lines(Role::Plain, text)),
        Err(error) => {
            let text = format!("cannot be shown: {}", error.message());
            lines.push(styler.line(Role::Warning, text));
        }
    }
    lines
}

fn definition(styler: Styler, pending: &PendingApproval) -> Vec<Line<'static>> {
    let tool = &pending.prompt.tool;
    let mut lines = vec![
        styler.line(Role::Name, tool.name.full()),
        styler.line(Role::Dim, "definition, as the server describes it"),
        Line::default(),
    ];
    if let Some(text) = &tool.description {
        lines.extend(styler.lines(Role::Plain, text));
        lines.push(Line::default());
    }
    let content = format!("{:#}", fingerprint::content(tool));
    lines.extend(styler.lines(Role::Plain, &content));
    lines
}
