//! Draws the list of tools.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::digits::grouped;
use super::styler::Styler;
use super::{pane, trust};
use crate::tui::state::{AppState, Pane, ToolRow, ToolSort};
use crate::tui::theme::StyleRole;
use crate::util::text;

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
        frame.render_widget(tool(styler, row, is_slow, (chosen, focused), rows.width), place);
    }
}

/// One tool: its mark, name and source.
fn tool(
    styler: &Styler<'_>,
    row: &ToolRow,
    is_slow: bool,
    (chosen, focused): (bool, bool),
    width: u16,
) -> Line<'static> {
    let width = usize::from(width);
    let pointer = if chosen { styler.theme.pointer() } else { "  " };
    // Where there is hardly room for names, they are all there is.
    let most = match width {
        56.. => 18,
        28.. => 10,
        _ => 0,
    };
    let source = text::cut(row.source(), most).into_owned();
    let room = width.saturating_sub(text::width(&source) + 5);
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
