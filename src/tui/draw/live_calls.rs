//! Draws the calls of the chosen tool as they end, below its result.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::digits::grouped;
use super::styler::Styler;
use super::{chart, pane};
use crate::bench::formatting::per_second;
use crate::tui::state::{AppState, LIVE_SECONDS, LiveToolCalls};
use crate::tui::theme::StyleRole;
use crate::util::number::float;
use crate::util::units::show_duration;

/// From how many calls on their rate is drawn, too.
const ENOUGH: u64 = 10;

/// Says above a result how its tool was called in this session; gives the rows below that.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    state: &AppState,
    area: Rect,
) -> Rect {
    let tool = state.tools.subject().unwrap_or_default();
    let Some(calls) = state.live.of(tool).filter(|_| area.height >= 8) else { return area };
    let running = state.context.calls.running().filter(|call| call.tool == tool).count()
        + state.others.running().filter(|call| call.tool == tool).count();
    let now = calls.by_second(state.context.now);
    let mut lines = vec![counts(styler, calls, running)];
    if calls.count() >= ENOUGH {
        lines.push(rate(styler, &now, usize::from(area.width)));
    }
    let height = u16::try_from(lines.len()).unwrap_or(1);
    let [above, below] =
        Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(area);
    pane::paragraph(frame, styler, above, &lines);
    below
}

fn counts(styler: &Styler<'_>, calls: &LiveToolCalls, running: usize) -> Line<'static> {
    let mut spans =
        vec![styler.span(StyleRole::Plain, format!("calls {}", grouped(calls.count())))];
    let role = if calls.failed > 0 { StyleRole::Error } else { StyleRole::Dim };
    spans.push(styler.span(role, format!("  errors {}", grouped(calls.failed))));
    if calls.cancelled > 0 {
        let text = format!("  cancelled {}", grouped(calls.cancelled));
        spans.push(styler.span(StyleRole::Dim, text));
    }
    for (name, share) in [("p50", 0.5), ("p95", 0.95)] {
        if let Some(time) = calls.durations.quantile(share) {
            let is_sure = calls.durations.is_reliable_at(share);
            let (role, mark) = if is_sure { (StyleRole::Plain, "") } else { (StyleRole::Dim, "?") };
            spans.push(styler.span(StyleRole::Dim, format!("  {name} ")));
            spans.push(styler.span(role, format!("{}{mark}", show_duration(time))));
        }
    }
    if running > 0 {
        spans.push(styler.span(StyleRole::Success, format!("  running {running}")));
    }
    for (client, count) in &calls.clients {
        spans.push(styler.span(StyleRole::Name, format!("  [{client}] ")));
        spans.push(styler.span(StyleRole::Plain, grouped(*count)));
    }
    Line::from(spans)
}

fn rate(styler: &Styler<'_>, seconds: &[u64], width: usize) -> Line<'static> {
    let numbers: Vec<f64> = seconds.iter().map(|count| float(*count)).collect();
    let mean = float(seconds.iter().sum()) / float(LIVE_SECONDS);
    let text = format!(" {}/s in the last minute", per_second(mean));
    let cells = width.saturating_sub(5 + text.len()).min(seconds.len());
    Line::from(vec![
        styler.span(StyleRole::Dim, "rate "),
        styler.span(StyleRole::Success, chart::sparkline(&numbers, cells, styler.theme.ascii)),
        styler.span(StyleRole::Plain, text),
    ])
}
