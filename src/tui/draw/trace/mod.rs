//! What crosses the wires: a line each, and one frame whole.

mod row;

#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::words::Words;
use super::{pages, pane};
use crate::tui::state::trace::{Part, Side};
use crate::tui::state::{Pane, State};
use crate::tui::theme::Meaning;
pub(super) use row::{Columns, row};

pub(super) fn draw(
    frame: &mut Frame<'_>,
    words: &Words<'_>,
    state: &State,
    shown: Pane,
    area: Rect,
) {
    let focused = state.shell.focus == shown;
    if shown == Pane::Wire {
        lines(frame, words, state, focused, area);
    } else {
        whole(frame, words, state, focused, area);
    }
}

/// The newest lines, beside something else.
pub(super) fn newest(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let inner = pane::open(frame, words, area, &format!("{}  (3)", title(state)), false);
    if state.trace.counts().1 == 0 {
        let said = "what crosses the wires of servers is shown here";
        return frame.render_widget(words.line(Meaning::Dim, said), inner);
    }
    let columns = Columns::of(usize::from(inner.width));
    let (items, _) = state.trace.window(usize::from(inner.height));
    for (y, (_, item)) in (inner.y..inner.bottom()).zip(items) {
        frame.render_widget(row(words, item, columns, None), Rect { y, height: 1, ..inner });
    }
}

/// The lines that are shown.
fn lines(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, focused: bool, area: Rect) {
    let trace = &state.trace;
    let inner = pane::open(frame, words, area, &title(state), focused);
    let has_filter = trace.is_filtering || !trace.filter.text().is_empty();
    let [line, rows] =
        Layout::vertical([Constraint::Length(u16::from(has_filter)), Constraint::Fill(1)])
            .areas(inner);
    if has_filter {
        filter(frame, words, state, line);
    }
    let (all, found) = trace.counts();
    if found == 0 {
        let said =
            if all == 0 { "nothing crossed a wire yet" } else { "nothing is found; Esc shows all" };
        return frame.render_widget(words.line(Meaning::Dim, said), rows);
    }
    let columns = Columns::of(usize::from(rows.width));
    let (items, chosen) = trace.window(usize::from(rows.height));
    for (y, (number, item)) in (rows.y..rows.bottom()).zip(items) {
        let mark = match (number == chosen, focused) {
            (true, true) => Some(Meaning::Chosen),
            (true, false) => Some(Meaning::Marked),
            _ => None,
        };
        frame.render_widget(row(words, item, columns, mark), Rect { y, height: 1, ..rows });
    }
}

/// How many lines there are, and what holds them still.
fn title(state: &State) -> String {
    let trace = &state.trace;
    let (all, found) = trace.counts();
    let count = if all == found { all.to_string() } else { format!("{found}/{all}") };
    let still = match trace.waiting() {
        Some(waiting) => format!("  PAUSED, {waiting} new"),
        None if trace.follows => "  following".to_owned(),
        None => String::new(),
    };
    let lost = state.shell.lost;
    let lost = if lost > 0 { format!("  dropped {lost}") } else { String::new() };
    format!("Trace {count}{still}{lost}")
}

fn filter(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let trace = &state.trace;
    if !trace.is_filtering {
        let said = format!("/ {}", trace.filter.text());
        return frame.render_widget(words.line(Meaning::Dim, said), area);
    }
    let (before, behind) = trace.filter.split();
    let spans = vec![
        words.span(Meaning::Key, "/ "),
        words.span(Meaning::Plain, before),
        words.span(Meaning::Plain, behind),
    ];
    let at = spans[0].width() + spans[1].width();
    frame.render_widget(Line::from(spans), area);
    let x = area.x + u16::try_from(at).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
    frame.set_cursor_position((x, area.y));
}

/// The chosen frame, or its pair.
fn whole(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, focused: bool, area: Rect) {
    let trace = &state.trace;
    let Some(item) = trace.chosen() else {
        pane::open(frame, words, area, "Frame", focused);
        return;
    };
    let number = item.glance().and_then(crate::model::traffic::Glance::number);
    let mut title = match number {
        Some(number) => format!("Frame #{number}  {}", item.server),
        None => format!("Frame  {}", item.server),
    };
    if item.pair.is_some() {
        let shown = match trace.side {
            Side::Chosen if item.is_request() => Side::Request,
            Side::Chosen => Side::Answer,
            other => other,
        };
        for (side, word) in
            [(Side::Request, "request"), (Side::Answer, "response"), (Side::Both, "both")]
        {
            let said = if side == shown { format!("  [{word}]") } else { format!("  {word}") };
            title.push_str(&said);
        }
    }
    let inner = pane::open(frame, words, area, &title, focused);
    let lines = &trace.frame.lines;
    pages::draw(frame, words, inner, lines.len(), trace.scroll, |at| {
        let Some((part, said)) = lines.get(at) else { return Line::default() };
        let meaning = match part {
            Part::Heading => Meaning::Title,
            Part::Text => Meaning::Plain,
            Part::Note => Meaning::Dim,
        };
        words.line(meaning, said)
    });
}
