//! Draws the command palette.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Clear;

use super::pane;
use super::styler::Styler;
use crate::tui::layout;
use crate::tui::state::PaletteWindow;
use crate::tui::theme::StyleRole;
use crate::util::text;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    palette: &PaletteWindow,
    area: Rect,
) {
    let place = layout::window(area, 78, area.height.saturating_sub(4).clamp(5, 22));
    frame.render_widget(Clear, place);
    let title = format!("Commands ({})", palette.len());
    let inner = pane::open(frame, styler, place, &title, true);
    let [line, rows] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(inner);
    let (before, behind) = palette.line.split();
    let spans = [("> ", StyleRole::Key), (before, StyleRole::Plain), (behind, StyleRole::Plain)];
    let spans: Vec<_> = spans.into_iter().map(|(text, how)| styler.span(how, text)).collect();
    let at: usize = spans.iter().take(2).map(ratatui::text::Span::width).sum();
    frame.render_widget(Line::from(spans), line);
    let x = line.x + u16::try_from(at).unwrap_or(0).min(line.width.saturating_sub(1));
    frame.set_cursor_position((x, line.y));
    if palette.is_empty() {
        let text = "No matching command. Esc closes.";
        return frame.render_widget(styler.line(StyleRole::Dim, text), rows);
    }
    let height = usize::from(rows.height);
    let first = palette.list.first(height, palette.len());
    for (number, entry) in palette.from(first).take(height).enumerate() {
        let y = rows.y + u16::try_from(number).unwrap_or(0);
        let chosen = first + number == palette.list.chosen();
        let pointer = if chosen { styler.theme.pointer() } else { "  " };
        let key = entry.key.map(|key| key.to_string()).unwrap_or_default();
        let name = text::cut(&entry.name, 20).into_owned();
        let pad = " ".repeat(22_usize.saturating_sub(text::width(&name)));
        let meaning = |other| if chosen { StyleRole::Selected } else { other };
        let line = Line::from(vec![
            styler.span(meaning(StyleRole::Key), format!("{pointer}{key:<10}")),
            styler.span(meaning(StyleRole::Name), format!("{name}{pad}")),
            styler.span(meaning(StyleRole::Plain), &entry.about),
        ]);
        frame.render_widget(line, Rect { y, height: 1, ..rows });
    }
}
