//! Draws the list of tools.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::digits::grouped;
use super::styler::Styler;
use super::{columns, pane, trust};
use crate::tui::state::{AppState, Pane, ToolListState, ToolRow, ToolSort};
use crate::tui::theme::StyleRole;
use crate::util::text;
use crate::util::units::show_duration;

pub(super) fn draw(frame: &mut Frame<'_>, styler: &Styler<'_>, state: &AppState, area: Rect) {
    let catalogue = &state.tools.catalogue;
    let found = catalogue.found().len();
    let title = if found == catalogue.len() {
        format!("Catalogue {}", grouped(found))
    } else {
        format!("Catalogue {}/{}", grouped(found), grouped(catalogue.len()))
    };
    let title = if catalogue.sort == ToolSort::default() {
        title
    } else {
        format!("{title}  by {}", catalogue.sort.title())
    };
    let focused = state.context.focus == Pane::Catalogue;
    let inner = pane::open(frame, styler, area, &title, focused);
    let [line, rows] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(inner);
    if catalogue.is_filtering {
        let (before, behind) = catalogue.filter.split();
        let prompt = styler.span(StyleRole::Key, "/ ");
        let written = styler.span(StyleRole::Plain, before);
        let at = prompt.width() + written.width();
        let spans = vec![prompt, written, styler.span(StyleRole::Plain, behind)];
        frame.render_widget(Line::from(spans), line);
        let x = line.x + u16::try_from(at).unwrap_or(0).min(line.width.saturating_sub(1));
        frame.set_cursor_position((x, line.y));
    } else if !catalogue.filter.text().is_empty() {
        let said = format!("/ {}", catalogue.filter.text());
        frame.render_widget(styler.line(StyleRole::Dim, said), line);
    }
    let rows = trust::notice(frame, styler, state, rows);
    if catalogue.is_empty() {
        return frame.render_widget(styler.line(StyleRole::Dim, "No tools yet."), rows);
    }
    if found == 0 {
        return frame.render_widget(
            styler.line(StyleRole::Dim, "No matches. Esc clears the filter."),
            rows,
        );
    }
    let height = usize::from(rows.height);
    let first = catalogue.list.first(height, found);
    for (line, row) in catalogue.found_from(first).take(height).enumerate() {
        let y = rows.y + u16::try_from(line).unwrap_or(0);
        let place = Rect { y, height: 1, ..rows };
        let chosen = first + line == catalogue.list.chosen();
        let is_slow = state.stats.exceeded_speed_of(&row.tool).is_some();
        let source = last_columns(catalogue, row, usize::from(rows.width));
        let line = tool(styler, row, &source, is_slow, (chosen, focused), rows.width);
        frame.render_widget(line, place);
    }
}

/// What is shown of a tool behind its name: where it is from, and what the list is sorted by; with
/// room for it the 95th percentile and the errors in any order.
fn last_columns(catalogue: &ToolListState, row: &ToolRow, width: usize) -> String {
    let usage = catalogue.usage_of(row);
    let p95 = || {
        let time = usage.and_then(|usage| usage.p95).map(show_duration);
        format!("{:>7}", time.unwrap_or_else(|| "-".to_owned()))
    };
    let errors = || {
        let failed = usage.map(|usage| grouped(usage.failed));
        format!("{:>5}", failed.unwrap_or_else(|| "-".to_owned()))
    };
    // Where there is hardly room for names, they are all there is.
    match (width, catalogue.sort) {
        (56.., _) => {
            format!("{} {} {}", p95(), errors(), columns::align_left(row.source(), 18))
        }
        (28.., ToolSort::P95) => p95(),
        (28.., ToolSort::Errors) => errors() + " err",
        (28.., _) => text::cut(row.source(), 10).into_owned(),
        _ => String::new(),
    }
}

/// One tool: its mark, its name and the columns after it.
fn tool(
    styler: &Styler<'_>,
    row: &ToolRow,
    source: &str,
    is_slow: bool,
    (chosen, focused): (bool, bool),
    width: u16,
) -> Line<'static> {
    let width = usize::from(width);
    let pointer = if chosen { styler.theme.pointer() } else { "  " };
    let room = width.saturating_sub(text::width(source) + 5);
    let name = styler.span(StyleRole::Plain, text::cut(&row.name, room));
    let gap = room.saturating_sub(name.width()) + 1;
    let mark = row.status_mark();
    let slow = if is_slow { '!' } else { ' ' };
    let gap = " ".repeat(gap - 1);
    let said = format!("{pointer}{}{gap}{slow}{mark} {source}", name.content);
    let meaning = match (chosen, focused, mark) {
        (true, true, _) => StyleRole::Selected,
        (true, false, _) => StyleRole::SelectedUnfocused,
        (false, _, 'x') => StyleRole::Dim,
        _ => StyleRole::Plain,
    };
    styler.line(meaning, said)
}
