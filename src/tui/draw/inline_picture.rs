//! Pictures within text: cells with two colours each.

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

pub(super) fn cells(row: &[[Option<Color>; 2]]) -> Line<'static> {
    let span = |[upper, lower]: &[Option<Color>; 2]| match (*upper, *lower) {
        (Some(upper), Some(lower)) => Span::styled("▀", Style::new().fg(upper).bg(lower)),
        (Some(upper), None) => Span::styled("▀", Style::new().fg(upper)),
        (None, Some(lower)) => Span::styled("▄", Style::new().fg(lower)),
        (None, None) => Span::raw(" "),
    };
    row.iter().map(span).collect()
}
