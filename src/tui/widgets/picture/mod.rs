//! Pictures in results: decoded within bounds and drawn as half blocks, which every terminal with
//! colours shows.
//!
//! Never asks the terminal anything, which may never answer and whose answers look like keys. Takes
//! time; to be called away from the loop of the console.
//! The bounds of a picture are checked before memory is taken.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder as _, ImageError, ImageReader, Limits, RgbaImage};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use crate::util::base64;

#[cfg(test)]
pub mod tests;

/// A character cell is about twice as high as it is wide.
const CELL_RATIO: f64 = 2.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureBox {
    pub columns: u16,
    pub rows: u16,
    /// Whether the terminal knows 16 million colours; 256 otherwise.
    pub has_true_colour: bool,
}

#[derive(Debug)]
pub struct Picture {
    pub width: u32,
    pub height: u32,
    /// The width in cells.
    pub columns: u16,
    /// The height in cells.
    pub rows: u16,
    /// The upper and the lower half of each cell, row by row; `None` is the background.
    cells: Vec<[Option<Color>; 2]>,
}

impl Picture {
    pub fn of(base64: &str, within: PictureBox) -> Result<Self, PictureError> {
        let original = decode(base64)?;
        let (width, height) = original.dimensions();
        let (columns, rows) = fit((width, height), within);
        let small = scaled(&original, (u32::from(columns), u32::from(rows) * 2));
        let colour = |x, y| {
            let [red, green, blue, alpha] = small.get_pixel(x, y).0;
            (alpha >= 128).then(|| cell_colour([red, green, blue], within.has_true_colour))
        };
        let places =
            (0..u32::from(rows)).flat_map(|y| (0..u32::from(columns)).map(move |x| (x, y)));
        let cells = places.map(|(x, y)| [colour(x, y * 2), colour(x, y * 2 + 1)]).collect();
        Ok(Self { width, height, columns, rows, cells })
    }

    /// The cells of a row from left to right, each with its upper and its lower half.
    pub fn row(&self, row: u16) -> &[[Option<Color>; 2]] {
        let start = usize::from(row) * usize::from(self.columns);
        self.cells.get(start..start + usize::from(self.columns)).unwrap_or_default()
    }
}

/// The columns and rows that a picture takes: no more than it has pixels for, in its proportions.
fn fit((width, height): (u32, u32), within: PictureBox) -> (u16, u16) {
    let rows_per_column = f64::from(height) / f64::from(width) / CELL_RATIO;
    let most = f64::from(within.columns).min(f64::from(within.rows) / rows_per_column);
    let columns = f64::from(width).min(most).max(1.0);
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

pub fn cell_colour([red, green, blue]: [u8; 3], has_true_colour: bool) -> Color {
    if has_true_colour {
        return Color::Rgb(red, green, blue);
    }
    // The cube of 6 by 6 by 6 colours: 0, 95, 135, 175, 215, 255.
    let level = |part: u8| match part {
        0..48 => 0,
        48..115 => 1,
        _ => (part - 35) / 40,
    };
    Color::Indexed(16 + 36 * level(red) + 6 * level(green) + level(blue))
}

pub fn cells(row: &[[Option<Color>; 2]]) -> Line<'static> {
    let span = |[upper, lower]: &[Option<Color>; 2]| match (*upper, *lower) {
        (Some(upper), Some(lower)) => Span::styled("▀", Style::new().fg(upper).bg(lower)),
        (Some(upper), None) => Span::styled("▀", Style::new().fg(upper)),
        (None, Some(lower)) => Span::styled("▄", Style::new().fg(lower)),
        (None, None) => Span::raw(" "),
    };
    row.iter().map(span).collect()
}

/// The maximum size of a received picture, in bytes of base64.
const MAX_ENCODED_BYTES: usize = 32 << 20;
const MAX_SIDE: u32 = 16_384;
const MAX_DECODED_BYTES: u64 = 128 << 20;

/// Why a picture is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    /// The block is larger than is read.
    #[error("more than 32 MiB")]
    TooManyBytes,
    #[error("too many pixels: {width}x{height}")]
    TooManyPixels { width: u32, height: u32 },
    /// Its text is not base64.
    #[error("not base64")]
    NotBase64,
    #[error("neither PNG nor JPEG")]
    UnknownFormat,
    /// It starts like a picture but is not one.
    #[error("broken")]
    Broken,
}

pub fn decode(text: &str) -> Result<RgbaImage, PictureError> {
    if text.len() > MAX_ENCODED_BYTES {
        return Err(PictureError::TooManyBytes);
    }
    let bytes = base64::decode(text).ok_or(PictureError::NotBase64)?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let mut reader = reader.map_err(|_unread| PictureError::Broken)?;
    // Too many pixels is detected below, where the size can be reported.
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(|error| refused(&error, (0, 0)))?;
    let (width, height) = decoder.dimensions();
    let size = (width, height);
    (limits.max_image_width, limits.max_image_height) = (Some(MAX_SIDE), Some(MAX_SIDE));
    limits.check_dimensions(width, height).map_err(|error| refused(&error, size))?;
    // Once as it is stored, and once with four bytes a pixel.
    let upright = u64::from(width) * u64::from(height) * 4;
    let needed = decoder.total_bytes().saturating_add(upright);
    limits.reserve(needed).map_err(|error| refused(&error, size))?;
    decoder.set_limits(limits).map_err(|error| refused(&error, size))?;
    if width == 0 || height == 0 {
        return Err(PictureError::Broken);
    }
    let orientation = decoder.orientation().map_err(|error| refused(&error, size))?;
    let decoded = DynamicImage::from_decoder(decoder);
    let mut picture = decoded.map_err(|error| refused(&error, size))?;
    picture.apply_orientation(orientation);
    Ok(picture.into_rgba8())
}

fn refused(error: &ImageError, (width, height): (u32, u32)) -> PictureError {
    match error {
        ImageError::Limits(_) => PictureError::TooManyPixels { width, height },
        ImageError::Unsupported(_) => PictureError::UnknownFormat,
        _ => PictureError::Broken,
    }
}
