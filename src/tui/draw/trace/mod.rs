//! Draws the trace view: one line for each frame, and the selected frame.

mod row;

#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::digits::grouped;
use super::styler::Styler;
use super::{pane, scroll_text};
use crate::tui::keys::Action;
use crate::tui::state::trace::FrameScope;
use crate::tui::state::{AppState, Pane};
use crate::tui::theme::StyleRole;
pub(super) use row::{TraceColumns, row};

pub(super) fn draw(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    state: &AppState,
    shown: Pane,
    area: Rect,
) {
    let focused = state.context.focus == shown;
    if shown == Pane::TraceList {
        lines(frame, styler, state, focused, area);
    } else {
        whole(frame, styler, state, focused, area);
    }
}

pub(super) fn newest_line(styler: &Styler<'_>, state: &AppState, width: u16) -> Line<'static> {
    let key = state.context.keys.key_of(Action::Wire, &state.view_key_contexts());
    let way = key.map(|key| format!("{key} opens  ")).unwrap_or_default();
    let room = usize::from(width).saturating_sub(way.len() + 8);
    let columns = TraceColumns::of(room);
    let (mut items, _) = state.trace.window(1);
    let Some((_, item)) = items.next().filter(|_| width >= 60) else { return Line::default() };
    let line = row(styler, item, columns, None);
    let head = styler.span(StyleRole::Dim, " trace ");
    let tail = styler.span(StyleRole::Dim, format!(" {way}"));
    Line::from([vec![head], line.spans, vec![tail]].concat())
}

/// The newest lines, beside something else.
pub(super) fn newest(frame: &mut Frame<'_>, styler: &Styler<'_>, state: &AppState, area: Rect) {
    let inner = pane::open(frame, styler, area, &format!("{}  (3)", title(state)), false);
    if state.trace.counts().1 == 0 {
        let text = "Messages to and from servers appear here.";
        return frame.render_widget(styler.line(StyleRole::Dim, text), inner);
    }
    let columns = TraceColumns::of(usize::from(inner.width));
    let (items, _) = state.trace.window(usize::from(inner.height));
    for (y, (_, item)) in (inner.y..inner.bottom()).zip(items) {
        frame.render_widget(row(styler, item, columns, None), Rect { y, height: 1, ..inner });
    }
}

fn lines(frame: &mut Frame<'_>, styler: &Styler<'_>, state: &AppState, focused: bool, area: Rect) {
    let trace = &state.trace;
    let inner = pane::open(frame, styler, area, &title(state), focused);
    let has_filter = trace.is_filtering || !trace.filter.text().is_empty();
    let [line, rows] =
        Layout::vertical([Constraint::Length(u16::from(has_filter)), Constraint::Fill(1)])
            .areas(inner);
    if has_filter {
        filter(frame, styler, state, line);
    }
    let (all, found) = trace.counts();
    if found == 0 {
        let text = if all == 0 { "No messages yet." } else { "No matches. Esc clears the filter." };
        return frame.render_widget(styler.line(StyleRole::Dim, text), rows);
    }
    let columns = TraceColumns::of(usize::from(rows.width));
    let (items, chosen) = trace.window(usize::from(rows.height));
    for (y, (number, item)) in (rows.y..rows.bottom()).zip(items) {
        let mark = match (number == chosen, focused) {
            (true, true) => Some(StyleRole::Selected),
            (true, false) => Some(StyleRole::SelectedUnfocused),
            _ => None,
        };
        frame.render_widget(row(styler, item, columns, mark), Rect { y, height: 1, ..rows });
    }
}

/// How many lines there are, and what holds them still.
fn title(state: &AppState) -> String {
    let trace = &state.trace;
    let (all, found) = trace.counts();
    let count =
        if all == found { grouped(all) } else { format!("{}/{}", grouped(found), grouped(all)) };
    let still = match trace.paused_count() {
        Some(waiting) => format!("  PAUSED, {} new", grouped(waiting)),
        None if trace.follows => "  following".to_owned(),
        None => String::new(),
    };
    let lost = state.context.lost;
    let lost = if lost > 0 { format!("  dropped {}", grouped(lost)) } else { String::new() };
    format!("Trace {count}{still}{lost}")
}

fn filter(frame: &mut Frame<'_>, styler: &Styler<'_>, state: &AppState, area: Rect) {
    let trace = &state.trace;
    if !trace.is_filtering {
        let text = format!("/ {}", trace.filter.text());
        return frame.render_widget(styler.line(StyleRole::Dim, text), area);
    }
    let (before, behind) = trace.filter.split();
    let spans = vec![
        styler.span(StyleRole::Key, "/ "),
        styler.span(StyleRole::Plain, before),
        styler.span(StyleRole::Plain, behind),
    ];
    let at = spans[0].width() + spans[1].width();
    frame.render_widget(Line::from(spans), area);
    let x = area.x + u16::try_from(at).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
    frame.set_cursor_position((x, area.y));
}

fn whole(frame: &mut Frame<'_>, styler: &Styler<'_>, state: &AppState, focused: bool, area: Rect) {
    let trace = &state.trace;
    let Some(item) = trace.chosen() else {
        pane::open(frame, styler, area, "Frame", focused);
        return;
    };
    let number = item.glance().and_then(crate::model::traffic::MessageInfo::id_text);
    let mut title = match number {
        Some(number) => format!("Frame #{number}  {}", item.server),
        None => format!("Frame  {}", item.server),
    };
    if item.pair.is_some() {
        let shown = match trace.scope {
            FrameScope::Chosen if item.is_request() => FrameScope::Request,
            FrameScope::Chosen => FrameScope::Answer,
            other => other,
        };
        for (side, word) in [
            (FrameScope::Request, "request"),
            (FrameScope::Answer, "response"),
            (FrameScope::Both, "both"),
        ] {
            let text = if side == shown { format!("  [{word}]") } else { format!("  {word}") };
            title.push_str(&text);
        }
    }
    let inner = pane::open(frame, styler, area, &title, focused);
    scroll_text::draw(frame, styler, &trace.frame, inner);
}
