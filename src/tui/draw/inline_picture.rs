//! Draws pictures within text.
//!
//! Owns: the cells of a picture in the frame. Whatever is written of one was made in
//! [`pictures`](crate::tui::pictures) from its pixels.

use std::num::NonZeroU16;

use ratatui::Frame;
use ratatui::buffer::CellDiffOption;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use crate::tui::pictures::{EncodedPicture, PLACEHOLDER, Picture, row_mark};

/// A row of cells with two colours each.
pub(super) fn cells(row: &[[Option<Color>; 2]]) -> Line<'static> {
    let span = |[upper, lower]: &[Option<Color>; 2]| match (*upper, *lower) {
        (Some(upper), Some(lower)) => Span::styled("▀", Style::new().fg(upper).bg(lower)),
        (Some(upper), None) => Span::styled("▀", Style::new().fg(upper)),
        (None, Some(lower)) => Span::styled("▄", Style::new().fg(lower)),
        (None, None) => Span::raw(" "),
    };
    row.iter().map(span).collect()
}

/// Draws a picture in the protocol it is encoded in, over its cells; nothing where it is not or does
/// not fit.
pub(super) fn draw(frame: &mut Frame<'_>, picture: &Picture, area: Rect) {
    let Some(encoded) = &picture.encoded else { return };
    let place = Rect { width: picture.columns, height: picture.rows, ..area };
    if picture.columns > area.width
        || !frame.area().contains((place.right() - 1, place.bottom() - 1).into())
    {
        return;
    }
    let buffer = frame.buffer_mut();
    for position in place.positions() {
        let Some(cell) = buffer.cell_mut(position) else { continue };
        let (x, y) = (position.x - place.x, position.y - place.y);
        cell.set_style(Style::reset());
        cell.set_diff_option(CellDiffOption::ForcedWidth(NonZeroU16::MIN));
        match encoded {
            EncodedPicture::Placeholders { transmission, id } => {
                let [_, red, green, blue] = id.to_be_bytes();
                let mut symbol = String::new();
                if (x, y) == (0, 0) {
                    symbol.push_str(transmission);
                }
                symbol.push(PLACEHOLDER);
                // The cells to the right go on in the same row.
                if let Some(mark) = row_mark(y).filter(|_| x == 0) {
                    symbol.extend(std::iter::once(mark).chain(row_mark(0)));
                }
                cell.set_symbol(&symbol).set_fg(Color::Rgb(red, green, blue));
            }
            EncodedPicture::Sequence(sequence) if (x, y) == (0, 0) => {
                cell.set_symbol(sequence);
            }
            // Never written, and unlike all text, so that any text that follows is.
            EncodedPicture::Sequence(_) => {
                cell.set_char(PLACEHOLDER).set_diff_option(CellDiffOption::Skip);
            }
        }
    }
}
