//! Draws a running call: progress, messages, and what it waits for.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Clear;

use super::pane;
use super::styler::Styler;
use crate::tui::layout;
use crate::tui::state::{AppState, CallProgress, ConsoleCall, ListCursor, OtherCall};
use crate::tui::theme::StyleRole;
use crate::util::text;
use crate::util::units::show_duration;

/// The maximum number of cells of a progress bar.
const BAR: usize = 40;

/// `running` with the seconds since its start, and a spinner.
pub(super) fn status_text(styler: &Styler<'_>, state: &AppState, call: &ConsoleCall) -> String {
    let now = state.context.now;
    let since = call.activity.since.map(|since| now.saturating_sub(since));
    // Whole seconds: what changes less often is read more easily.
    let time = since.map(|since| format!(" {} s", since.as_secs())).unwrap_or_default();
    if state.context.appearance.has_reduced_motion {
        return format!("running{time}");
    }
    let turns =
        if styler.theme.ascii { ["|", "/", "-", "\\"] } else { ["◐", "◓", "◑", "◒"] };
    let turn = turns.get(
        usize::from(now.subsec_millis() >= 250)
            + usize::from(now.subsec_millis() >= 500)
            + usize::from(now.subsec_millis() >= 750),
    );
    format!("running{time} {}", turn.copied().unwrap_or_default())
}

/// Everything reported for the call so far.
pub(super) fn lines(
    styler: &Styler<'_>,
    state: &AppState,
    call: &ConsoleCall,
    width: usize,
) -> Vec<Line<'static>> {
    let live = &call.activity;
    let mut lines = Vec::new();
    if let Some(progress) = &live.progress {
        lines.push(styler.line(StyleRole::Success, bar(styler, progress, width)));
        if let Some(message) = &progress.message {
            lines.push(styler.line(StyleRole::Plain, message));
        }
    }
    if let Some(retry) = &live.retry {
        let left = retry.remaining(state.context.now);
        let text = format!("attempt {} failed: {}", retry.attempt, retry.reason);
        lines.push(styler.line(StyleRole::Warning, text));
        let next = format!("attempt {} in {}", retry.attempt + 1, show_duration(left));
        lines.push(styler.line(StyleRole::Plain, next));
    }
    if lines.is_empty() {
        let stop = cancel_key(state);
        lines.push(styler.line(StyleRole::Dim, format!("waiting for a response; {stop} cancels")));
    }
    for nested in &live.children {
        let indent = "  ".repeat(nested.depth);
        let (meaning, text) = match nested.ended {
            None => (StyleRole::Plain, "running".to_owned()),
            Some((true, took)) => (StyleRole::Dim, format!("ok {}", show_duration(took))),
            Some((false, took)) => (StyleRole::Error, format!("failed {}", show_duration(took))),
        };
        lines.push(styler.line(meaning, format!("{indent}{}  {text}", nested.tool)));
    }
    for (level, text) in &live.log {
        lines.push(styler.line(StyleRole::Dim, format!("{level}: {text}")));
    }
    lines
}

fn cancel_key(state: &AppState) -> String {
    use crate::tui::keys::{Action, KeyContext};
    let key = state.context.keys.key_of(Action::Cancel, &[KeyContext::Anywhere]);
    key.map_or_else(|| "^C".to_owned(), |key| key.to_string())
}

fn bar(styler: &Styler<'_>, progress: &CallProgress, width: usize) -> String {
    let Some(share) = progress.share() else {
        return format!("progress {}", number(progress.at));
    };
    let (done, left) = if styler.theme.ascii { ("#", ".") } else { ("█", "░") };
    let whole = width.saturating_sub(24).min(BAR);
    // Between 0 and the width of the bar.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a few cells"
    )]
    let cells = (share * whole as f64).round() as usize;
    let total = progress.total.map(number).unwrap_or_default();
    format!(
        "[{}{}] {:.0}%  {} of {total}",
        done.repeat(cells),
        left.repeat(whole.saturating_sub(cells)),
        share * 100.0,
        number(progress.at),
    )
}

/// A number without what says nothing.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

/// The calls that run, to stop one of them.
pub(super) fn list(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    state: &AppState,
    list: ListCursor,
    area: Rect,
) {
    let running: Vec<&ConsoleCall> = state.context.calls.running().collect();
    let others: Vec<&OtherCall> = state.others.running().collect();
    let count = running.len() + others.len();
    let rows = u16::try_from(count).unwrap_or(u16::MAX).clamp(1, 16);
    let place = layout::window(area, 76, rows.saturating_add(4));
    frame.render_widget(Clear, place);
    let inner = pane::open(frame, styler, place, &format!("Running {count}"), true);
    let [above, below] =
        Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(inner);
    frame.render_widget(styler.line(StyleRole::Key, "Enter cancel call   Esc close"), below);
    if count == 0 {
        return frame.render_widget(styler.line(StyleRole::Dim, "No running calls."), above);
    }
    let height = usize::from(above.height);
    let mut list = list;
    list.choose(list.chosen(), running.len());
    let first = list.first(height, running.len());
    // Those of other clients come below: only their clients can cancel them.
    let below = running.len().saturating_sub(first);
    for (row, call) in (below..height).zip(others) {
        let y = above.y + u16::try_from(row).unwrap_or(0);
        let seconds = state.context.now.saturating_sub(call.since).as_secs();
        let name = text::cut(&call.tool, 30).into_owned();
        let pad = " ".repeat(32_usize.saturating_sub(text::width(&name)));
        let line = format!("  {name}{pad}{:<14}[{}]", format!("running {seconds}s"), call.client);
        frame.render_widget(styler.line(StyleRole::Dim, line), Rect { y, height: 1, ..above });
    }
    for (at, call) in running.iter().enumerate().skip(first).take(height) {
        let y = above.y + u16::try_from(at - first).unwrap_or(0);
        let chosen = at == list.chosen();
        let pointer = if chosen { styler.theme.pointer() } else { "  " };
        let text = match (&call.activity.retry, &call.activity.progress) {
            (Some(retry), _) => format!(
                "attempt {} in {}",
                retry.attempt + 1,
                show_duration(retry.remaining(state.context.now))
            ),
            (None, Some(progress)) => {
                let share = progress.share().map(|share| format!("{:.0}% ", share * 100.0));
                let share = share.unwrap_or_default();
                format!("{share}{}", progress.message.as_deref().unwrap_or_default())
            }
            (None, None) => String::new(),
        };
        let name = text::cut(&call.tool, 30).into_owned();
        let pad = " ".repeat(32_usize.saturating_sub(text::width(&name)));
        let meaning = if chosen { StyleRole::Selected } else { StyleRole::Plain };
        let line = format!("{pointer}{name}{pad}{:<14}{text}", status_text(styler, state, call));
        frame.render_widget(styler.line(meaning, line), Rect { y, height: 1, ..above });
    }
}
