//! Draws a list of objects as a table: as many columns as fit, the chosen one among them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::styler::Styler;
use super::{columns, scroll_text};
use crate::tui::state::{ResultColumn, ResultTable, cell_text, json_role};
use crate::tui::theme::StyleRole;
use crate::util::text;

/// The blanks between two columns.
const GAP: usize = 2;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    styler: &Styler<'_>,
    table: &ResultTable,
    focused: bool,
    area: Rect,
) {
    let shown = columns_in(table, usize::from(area.width));
    let mut places = (area.y..area.bottom()).map(|y| Rect { y, height: 1, ..area });
    let Some(head) = places.next() else { return };
    frame.render_widget(titles(styler, table, shown.clone(), focused), head);
    let height = usize::from(area.height).saturating_sub(1);
    let first = table.list.first(height, table.row_count());
    for ((number, row), place) in table.rows_from(first).enumerate().zip(places) {
        let is_chosen = first + number == table.list.chosen();
        let role = match (is_chosen, focused) {
            (true, true) => Some(StyleRole::Selected),
            (true, false) => Some(StyleRole::SelectedUnfocused),
            (false, _) => None,
        };
        let cells = table.columns()[shown.clone()].iter();
        let spans = cells.flat_map(|column| cell(styler, column, row, role));
        frame.render_widget(spans.collect::<Line<'static>>(), place);
    }
    let left = table.row_count().saturating_sub(first + height) + table.left_out();
    scroll_text::more(frame, styler, area, left);
}

/// What the title of the pane says of the table: which column of how many, and its order.
pub(super) fn summary(table: &ResultTable) -> String {
    let (column, all) = (table.column() + 1, table.columns().len());
    format!("{} rows  col {column}/{all}", super::digits::grouped(table.row_count()))
}

/// The columns that are seen: from the first one on where the chosen one fits, else as few are left
/// out on the left as that needs.
fn columns_in(table: &ResultTable, width: usize) -> std::ops::Range<usize> {
    let all = table.columns();
    let taken = |from: usize, to: usize| -> usize {
        all[from..to].iter().map(|column| column.width + GAP).sum()
    };
    let chosen = table.column();
    let mut first = 0;
    while first < chosen && taken(first, chosen + 1) > width + GAP {
        first += 1;
    }
    let mut end = (chosen + 1).min(all.len());
    // The last one may be cut.
    while end < all.len() && taken(first, end) < width {
        end += 1;
    }
    first..end
}

fn titles(
    styler: &Styler<'_>,
    table: &ResultTable,
    shown: std::ops::Range<usize>,
    focused: bool,
) -> Line<'static> {
    let chosen = if focused { StyleRole::Selected } else { StyleRole::SelectedUnfocused };
    let title = |at: usize| {
        let column = &table.columns()[at];
        let mark = match table.order().filter(|order| order.column == at) {
            Some(order) if order.is_descending => {
                if styler.theme.ascii {
                    " v"
                } else {
                    " ▼"
                }
            }
            Some(_) => {
                if styler.theme.ascii {
                    " ^"
                } else {
                    " ▲"
                }
            }
            None => "",
        };
        let role = if at == table.column() { chosen } else { StyleRole::Title };
        let text = format!("{}{mark}", column.key);
        [styler.span(role, fitted(styler, column, &text)), Span::raw(" ".repeat(GAP))]
    };
    shown.flat_map(title).collect()
}

fn cell(
    styler: &Styler<'_>,
    column: &ResultColumn,
    row: &Value,
    chosen: Option<StyleRole>,
) -> [Span<'static>; 2] {
    let value = row.get(&column.key);
    let text = value.map(cell_text).unwrap_or_default();
    let role = chosen.unwrap_or_else(|| match value {
        Some(Value::String(_)) | None => StyleRole::Plain,
        Some(_) => json_role(&text),
    });
    [
        styler.span(role, fitted(styler, column, &text)),
        styler.span(chosen.unwrap_or(StyleRole::Plain), " ".repeat(GAP)),
    ]
}

/// A cell in the width of its column, as it is on the screen: what is not ASCII may be longer there.
fn fitted(styler: &Styler<'_>, column: &ResultColumn, text: &str) -> String {
    let shown = styler.span(StyleRole::Plain, text).content;
    let is_cut = text::width(&shown) > column.width;
    let mark = text::width(styler.theme.more()).saturating_sub(1);
    let cells = column.width.saturating_sub(if is_cut { mark } else { 0 });
    if is_cut || !column.is_number {
        return columns::align_left(&shown, cells);
    }
    format!("{}{shown}", " ".repeat(column.width - text::width(&shown)))
}
