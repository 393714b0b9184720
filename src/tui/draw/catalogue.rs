//! The list of tools.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::words::Words;
use super::{pane, trust};
use crate::tui::state::{Pane, Row, Sort, State};
use crate::tui::theme::Meaning;
use crate::util::text;

pub(super) fn draw(frame: &mut Frame<'_>, words: &Words<'_>, state: &State, area: Rect) {
    let catalogue = &state.tools.catalogue;
    let found = catalogue.found().len();
    let title = if found == catalogue.len() {
        format!("Catalogue {found}")
    } else {
        format!("Catalogue {found}/{}", catalogue.len())
    };
    let title = if catalogue.sort == Sort::default() {
        title
    } else {
        format!("{title}  by {}", catalogue.sort.title())
    };
    let focused = state.shell.focus == Pane::Catalogue;
    let inner = pane::open(frame, words, area, &title, focused);
    let [line, rows] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(inner);
    if catalogue.is_filtering {
        let (before, behind) = catalogue.filter.split();
        let prompt = words.span(Meaning::Key, "/ ");
        let written = words.span(Meaning::Plain, before);
        let at = prompt.width() + written.width();
        let spans = vec![prompt, written, words.span(Meaning::Plain, behind)];
        frame.render_widget(Line::from(spans), line);
        let x = line.x + u16::try_from(at).unwrap_or(0).min(line.width.saturating_sub(1));
        frame.set_cursor_position((x, line.y));
    } else if !catalogue.filter.text().is_empty() {
        let said = format!("/ {}", catalogue.filter.text());
        frame.render_widget(words.line(Meaning::Dim, said), line);
    }
    let rows = trust::notice(frame, words, state, rows);
    if catalogue.is_empty() {
        return frame.render_widget(words.line(Meaning::Dim, "no tools yet"), rows);
    }
    if found == 0 {
        return frame
            .render_widget(words.line(Meaning::Dim, "nothing is found; Esc shows all"), rows);
    }
    let height = usize::from(rows.height);
    let first = catalogue.list.first(height, found);
    for (line, row) in catalogue.found_from(first).take(height).enumerate() {
        let y = rows.y + u16::try_from(line).unwrap_or(0);
        let place = Rect { y, height: 1, ..rows };
        let chosen = first + line == catalogue.list.chosen();
        frame.render_widget(tool(words, row, chosen, focused, rows.width), place);
    }
}

/// One tool: its mark, name and source.
fn tool(words: &Words<'_>, row: &Row, chosen: bool, focused: bool, width: u16) -> Line<'static> {
    let width = usize::from(width);
    let pointer = if chosen { words.theme.pointer() } else { "  " };
    // Where there is hardly room for names, they are all there is.
    let most = match width {
        56.. => 18,
        28.. => 10,
        _ => 0,
    };
    let source = text::cut(row.source(), most).into_owned();
    let room = width.saturating_sub(text::width(&source) + 5);
    let name = words.span(Meaning::Plain, text::cut(&row.name, room));
    let gap = room.saturating_sub(name.width()) + 1;
    let mark = row.mark();
    let said = format!("{pointer}{}{}{mark} {source}", name.content, " ".repeat(gap));
    let meaning = match (chosen, focused, mark) {
        (true, true, _) => Meaning::Chosen,
        (true, false, _) => Meaning::Marked,
        (false, _, 'x') => Meaning::Dim,
        _ => Meaning::Plain,
    };
    words.line(meaning, said)
}
