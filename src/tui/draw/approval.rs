//! Draws the approval dialog: the call, and the possible answers.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Clear;
use serde_json::Value;

use super::styler::Styler;
use super::{pane, scroll_text};
use crate::catalogue::fingerprint;
use crate::host::describe::claims;
use crate::model::ToolStatus;
use crate::tui::keys::{Action, KeyContext};
use crate::tui::layout;
use crate::tui::state::{AppState, ApprovalTab, PendingApproval, Readiness};
use crate::tui::theme::StyleRole;
use crate::util::diff::DiffMark;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    state: &AppState,
    pending: &PendingApproval,
    area: Rect,
) {
    let place = layout::window(area, 76, area.height.saturating_sub(4).clamp(5, 30));
    frame.render_widget(Clear, place);
    let title = format!("Approval needed  1 of {}", state.inbox.approvals.len());
    let inner = pane::window(frame, styler, place, &title, StyleRole::Warning);
    let answers = answers(styler, state);
    let height = u16::try_from(answers.len()).unwrap_or(u16::MAX);
    // Where there is little room what is asked goes before what can be answered.
    let height = height.min(inner.height.saturating_sub(4)).max(1);
    let [above, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(height)]).areas(inner);
    let lines = match pending.tab {
        ApprovalTab::Request => request(styler, pending),
        ApprovalTab::Definition => definition(styler, pending),
    };
    scroll_text::draw_lines(frame, styler, &lines, &pending.position, above);
    let seen: Vec<Line<'static>> = answers.into_iter().take(usize::from(height)).collect();
    pane::paragraph(frame, styler, below, &seen);
}

/// The possible answers, from the key table; none while what was typed ahead may still come in.
fn answers(styler: &Styler<'_>, state: &AppState) -> Vec<Line<'static>> {
    let readiness = state.inbox.approval_readiness(state.context.now);
    if readiness == Some(Readiness::TooSoon) {
        return vec![styler.line(StyleRole::Dim, "One moment… (ignoring keys typed ahead)")];
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
            styler.span(StyleRole::Key, format!("{:>5} ", binding.key.to_string())),
            styler.span(StyleRole::Plain, word),
        ]))
    });
    answers.collect()
}

fn request(styler: &Styler<'_>, pending: &PendingApproval) -> Vec<Line<'static>> {
    let asked = &pending.prompt;
    let tool = &asked.tool;
    let mut lines =
        vec![styler.line(StyleRole::Name, tool.name.full()), styler.fact("why", &asked.reason)];
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
        lines.push(styler.line(StyleRole::Warning, format!("! {status}")));
    }
    if !pending.changed.is_empty() {
        let names = pending.changed.join(", ");
        let text = format!("! changed since it was last allowed here: {names}");
        lines.push(styler.line(StyleRole::Warning, text));
        lines.extend(pending.difference.iter().map(|line| {
            let role = match line.mark {
                DiffMark::Same => StyleRole::Dim,
                DiffMark::Removed => StyleRole::Error,
                DiffMark::Added => StyleRole::Success,
            };
            styler.line(role, format!("  {} {}", line.mark.sign(), line.text))
        }));
    }
    lines.extend(
        tool.warnings.iter().map(|text| styler.line(StyleRole::Warning, format!("! {text}"))),
    );
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
    lines.push(styler.line(StyleRole::Title, format!("arguments ({size} bytes)")));
    lines.extend(styler.lines(StyleRole::Plain, &format!("{arguments:#}")));
    lines.push(Line::default());
    lines.push(styler.line(StyleRole::Title, "request"));
    match &asked.preview {
        Ok(text) => lines.extend(styler.lines(StyleRole::Plain, text)),
        Err(error) => {
            let text = format!("cannot be shown: {}", error.message());
            lines.push(styler.line(StyleRole::Warning, text));
        }
    }
    lines
}

fn definition(styler: &Styler<'_>, pending: &PendingApproval) -> Vec<Line<'static>> {
    let tool = &pending.prompt.tool;
    let mut lines = vec![
        styler.line(StyleRole::Name, tool.name.full()),
        styler.line(StyleRole::Dim, "definition, as the server describes it"),
        Line::default(),
    ];
    if let Some(text) = &tool.description {
        lines.extend(styler.lines(StyleRole::Plain, text));
        lines.push(Line::default());
    }
    let content = format!("{:#}", fingerprint::content(tool));
    lines.extend(styler.lines(StyleRole::Plain, &content));
    lines
}
