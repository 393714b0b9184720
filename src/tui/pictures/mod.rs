//! Pictures in results: decoded within bounds, fitted to a pane, and encoded for the terminal.
//!
//! Owns: what of a picture is written, as cells that every terminal shows or in one of the protocols
//! for graphics. Never does: ask the terminal anything, which may never answer and whose answers look
//! like keys: what it can do is known from the variables that it sets. Takes time; to be called away
//! from the loop of the console.

mod decode;
mod graphics;
mod terminal;

use image::RgbaImage;
use ratatui::style::Color;

pub use decode::PictureError;
pub use graphics::{EncodedPicture, PLACEHOLDER, row_mark};
pub use terminal::{GraphicsProtocol, TerminalGraphics};

/// The maximum number of pixels that are sent to a terminal for one picture.
const MAX_SENT_PIXELS: u32 = 1_000_000;
/// The size of a character cell in pixels, where the terminal does not tell.
const USUAL_CELL: (u16, u16) = (10, 20);

/// Whether pictures are shown in results: `image.inline` in `console.yaml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InlineImages {
    /// In the way that the terminal is known to understand; as coloured cells in all others.
    #[default]
    Auto,
    /// Pictures are described in one line and not decoded.
    Never,
    /// In this format, regardless of what is known about the terminal.
    As(GraphicsProtocol),
}

impl InlineImages {
    /// The values of the setting, with the names that stand for them.
    pub const ALL: [(&'static str, Self); 6] = [
        ("auto", Self::Auto),
        ("never", Self::Never),
        ("kitty", Self::As(GraphicsProtocol::Kitty)),
        ("iterm2", Self::As(GraphicsProtocol::Iterm2)),
        ("sixel", Self::As(GraphicsProtocol::Sixel)),
        ("blocks", Self::As(GraphicsProtocol::Blocks)),
    ];
}

/// The room for a picture, and how the terminal shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureBox {
    /// The maximum number of columns.
    pub columns: u16,
    /// The maximum number of rows.
    pub rows: u16,
    /// The width and height of a cell in pixels; `None` where the terminal does not tell.
    pub cell: Option<(u16, u16)>,
    /// What the terminal understands.
    pub graphics: TerminalGraphics,
}

/// A picture that is ready to be shown.
#[derive(Debug)]
pub struct Picture {
    /// The width of the original in pixels.
    pub width: u32,
    /// The height of the original in pixels.
    pub height: u32,
    /// The width in cells.
    pub columns: u16,
    /// The height in cells.
    pub rows: u16,
    /// The upper and the lower half of each cell, row by row; `None` is the background.
    cells: Vec<[Option<Color>; 2]>,
    /// What shows it in the protocol of the terminal; `None` where cells are all there is.
    pub encoded: Option<EncodedPicture>,
}

impl Picture {
    /// Decodes a picture, fits it into the box, and encodes it for the terminal. `number` tells it
    /// from the others of the same result.
    ///
    /// # Errors
    /// When it is not a picture, of an unknown format, broken, or too large to show.
    pub fn of(base64: &str, number: u8, within: PictureBox) -> Result<Self, PictureError> {
        let original = decode::decode(base64)?;
        let (width, height) = original.dimensions();
        let (columns, rows) = fit((width, height), within);
        let small = scaled(&original, (u32::from(columns), u32::from(rows) * 2));
        let colour = |x, y| {
            let [red, green, blue, alpha] = small.get_pixel(x, y).0;
            (alpha >= 128).then(|| within.graphics.colour([red, green, blue]))
        };
        let places =
            (0..u32::from(rows)).flat_map(|y| (0..u32::from(columns)).map(move |x| (x, y)));
        let cells = places.map(|(x, y)| [colour(x, y * 2), colour(x, y * 2 + 1)]).collect();
        let encoded = encode(&original, number, (columns, rows), within)?;
        Ok(Self { width, height, columns, rows, cells, encoded })
    }

    /// The cells of a row from left to right, each with its upper and its lower half.
    pub fn row(&self, row: u16) -> &[[Option<Color>; 2]] {
        let start = usize::from(row) * usize::from(self.columns);
        self.cells.get(start..start + usize::from(self.columns)).unwrap_or_default()
    }
}

/// The columns and rows that a picture takes: no more than it has pixels for, in its proportions.
fn fit((width, height): (u32, u32), within: PictureBox) -> (u16, u16) {
    let cell = within.cell.unwrap_or(USUAL_CELL);
    let (cell_width, cell_height) = (f64::from(cell.0.max(1)), f64::from(cell.1.max(1)));
    // As cells a pixel takes half of one, for it would not be seen otherwise.
    let natural = match within.graphics.protocol {
        GraphicsProtocol::Blocks => f64::from(width),
        _ => (f64::from(width) / cell_width).ceil(),
    };
    let rows_per_column = f64::from(height) / f64::from(width) * cell_width / cell_height;
    let most = f64::from(within.columns).min(f64::from(within.rows) / rows_per_column);
    let columns = natural.min(most).max(1.0);
    let rows = (columns * rows_per_column).round();
    let within_range = |cells: f64, most: u16| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is kept between 1 and a u16 before"
        )]
        let cells = cells.clamp(1.0, f64::from(most.max(1))) as u16;
        cells
    };
    (within_range(columns, within.columns), within_range(rows, within.rows))
}

/// The picture scaled to this many pixels: averaged when it shrinks, repeated when it grows.
fn scaled(picture: &RgbaImage, (width, height): (u32, u32)) -> RgbaImage {
    image::imageops::thumbnail(picture, width.max(1), height.max(1))
}

fn encode(
    original: &RgbaImage,
    number: u8,
    (columns, rows): (u16, u16),
    within: PictureBox,
) -> Result<Option<EncodedPicture>, PictureError> {
    let protocol = within.graphics.protocol;
    let cell = match (within.cell, protocol) {
        // Sixels are pixels: without the size of a cell nothing says where such a picture ends.
        (_, GraphicsProtocol::Blocks) | (None, GraphicsProtocol::Sixel) => return Ok(None),
        (cell, _) => cell.unwrap_or(USUAL_CELL),
    };
    let full = [u32::from(columns) * u32::from(cell.0), u32::from(rows) * u32::from(cell.1)];
    let (width, height) = match protocol {
        GraphicsProtocol::Sixel => (full[0], full[1]),
        _ => (full[0].min(original.width()), full[1].min(original.height())),
    };
    let excess = (f64::from(width) * f64::from(height) / f64::from(MAX_SENT_PIXELS)).sqrt();
    if protocol == GraphicsProtocol::Sixel && excess > 1.0 {
        return Ok(None);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is smaller than a number of pixels"
    )]
    let shrunk = |pixels: u32| (f64::from(pixels) / excess.max(1.0)) as u32;
    let sent = scaled(original, (shrunk(width), shrunk(height)));
    let size = (columns, rows);
    let encoded = match protocol {
        GraphicsProtocol::Kitty => graphics::kitty(&graphics::png(&sent)?, number, size),
        GraphicsProtocol::Iterm2 => graphics::iterm2(&graphics::png(&sent)?, size),
        _ => graphics::sixel(&sent),
    };
    Ok(Some(encoded))
}

#[cfg(test)]
mod tests;
