//! Pictures in the protocols of terminals.
//!
//! Owns: the bytes of each protocol. All of them are made here from pixels: nothing of what a server
//! sent is passed on.

use std::fmt::Write as _;
use std::io::Cursor;

use image::{ImageFormat, RgbaImage};

use super::PictureError;
use crate::util::base64;

/// The character that kitty draws a part of a picture over.
pub const PLACEHOLDER: char = '\u{10EEEE}';
/// The marks that tell kitty a row of the picture, the first ones of its list.
const ROW_MARKS: &str = "\u{305}\u{30D}\u{30E}\u{310}\u{312}\u{33D}\u{33E}\u{33F}\u{346}\u{34A}\u{34B}\u{34C}\u{350}\u{351}\u{352}\u{357}\u{35B}\u{363}\u{364}\u{365}\u{366}\u{367}\u{368}\u{369}\u{36A}\u{36B}\u{36C}\u{36D}\u{36E}\u{36F}\u{483}\u{484}\u{485}\u{486}\u{487}\u{592}\u{593}\u{594}\u{595}\u{597}\u{598}\u{599}\u{59C}\u{59D}\u{59E}\u{59F}\u{5A0}\u{5A1}\u{5A8}\u{5A9}\u{5AB}\u{5AC}\u{5AF}\u{5C4}\u{610}\u{611}\u{612}\u{613}\u{614}\u{615}\u{616}\u{617}\u{657}\u{658}";
/// The number of the first picture of a result in kitty; it is also the colour of its placeholders.
const FIRST_ID: u32 = 0x74_6800;
/// The maximum number of bytes of base64 in one sequence of kitty.
const CHUNK: usize = 4096;
/// Ordered dithering: a threshold for each cell of a 4x4 matrix.
const THRESHOLDS: [[u32; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];

/// What is sent to the terminal to show a picture.
#[derive(Debug)]
pub enum EncodedPicture {
    /// This once, and then placeholders in the colour of this number.
    Placeholders {
        /// Hands the pixels over.
        transmission: String,
        /// The number of the picture, of 24 bits.
        id: u32,
    },
    /// This, at its upper left corner; the cursor goes on by one cell.
    Sequence(String),
}

/// The mark of a row, from 0; `None` past the last one that can be encoded.
pub fn row_mark(row: u16) -> Option<char> {
    ROW_MARKS.chars().nth(usize::from(row))
}

/// The picture as PNG.
pub(super) fn png(picture: &RgbaImage) -> Result<Vec<u8>, PictureError> {
    let mut bytes = Vec::new();
    let written = picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png);
    written.map_err(|_unwritten| PictureError::Broken)?;
    Ok(bytes)
}

/// Hands a PNG to kitty, for placeholders that are written as text.
pub(super) fn kitty(png: &[u8], number: u8, (columns, rows): (u16, u16)) -> EncodedPicture {
    let id = FIRST_ID + u32::from(number);
    let text = base64::encode(png);
    let mut chunks = text.as_bytes().chunks(CHUNK).peekable();
    let mut head = format!("a=T,U=1,q=2,f=100,i={id},c={columns},r={rows},");
    let mut transmission = String::new();
    while let Some(chunk) = chunks.next() {
        let more = u8::from(chunks.peek().is_some());
        let chunk = String::from_utf8_lossy(chunk);
        // Writing into a string cannot fail.
        let _written = write!(transmission, "\u{1b}_G{head}m={more};{chunk}\u{1b}\\");
        "q=2,".clone_into(&mut head);
    }
    EncodedPicture::Placeholders { transmission, id }
}

/// A PNG as an iTerm2 inline image of this many cells; the cursor advances by one cell.
pub(super) fn iterm2(png: &[u8], (columns, rows): (u16, u16)) -> EncodedPicture {
    let (size, text) = (png.len(), base64::encode(png));
    let place = format!("width={columns};height={rows};preserveAspectRatio=0;doNotMoveCursor=1");
    let file = format!("\u{1b}]1337;File=inline=1;size={size};{place}:{text}\u{7}");
    EncodedPicture::Sequence(format!("\u{1b}7{file}\u{1b}8\u{1b}[C"))
}

/// Pixels as sixels in 216 colours, dithered; the cursor goes on by one cell.
pub(super) fn sixel(picture: &RgbaImage) -> EncodedPicture {
    let (width, height) = picture.dimensions();
    let mut out = format!("\u{1b}7\u{1b}P0;1;0q\"1;1;{width};{height}");
    for colour in 0..216_u32 {
        let percent = |level: u32| level * 20;
        let (red, green, blue) = (colour / 36, colour / 6 % 6, colour % 6);
        let (red, green, blue) = (percent(red), percent(green), percent(blue));
        let _written = write!(out, "#{colour};2;{red};{green};{blue}");
    }
    let colour = |x: u32, y: u32| -> Option<u8> {
        let pixel = picture.get_pixel_checked(x, y)?.0;
        let threshold = THRESHOLDS[(y % 4) as usize][(x % 4) as usize] * 51 / 16;
        let level = |part: u8| u8::try_from((u32::from(part) + threshold) / 51).unwrap_or(5).min(5);
        let [red, green, blue, alpha] = pixel;
        (alpha >= 128).then(|| level(red) * 36 + level(green) * 6 + level(blue))
    };
    for band in (0..height).step_by(6) {
        let mut lines: Vec<Option<Vec<u8>>> = vec![None; 216];
        for (x, y) in (band..band + 6).flat_map(|y| (0..width).map(move |x| (x, y))) {
            if let Some(found) = colour(x, y) {
                let line = &mut lines[usize::from(found)];
                let line = line.get_or_insert_with(|| vec![0; width as usize]);
                line[x as usize] |= 1 << (y - band);
            }
        }
        for (colour, line) in lines.iter().enumerate() {
            let Some(line) = line else { continue };
            let _written = write!(out, "#{colour}");
            for run in line.chunk_by(|a, b| a == b) {
                let sign = char::from(63 + run[0]);
                let _written = match run.len() {
                    1..=3 => run.iter().try_for_each(|_| out.write_char(sign)),
                    length => write!(out, "!{length}{sign}"),
                };
            }
            out.push('$');
        }
        out.push('-');
    }
    out.push_str("\u{1b}\\\u{1b}8\u{1b}[C");
    EncodedPicture::Sequence(out)
}
