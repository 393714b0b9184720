//! Pictures that fit, are encoded, are broken, or only claim to be large.

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage, Rgba};

use super::GraphicsProtocol::{Blocks, Iterm2, Kitty, Sixel};
use super::*;
use crate::util::base64;

/// A picture whose upper half is red and whose lower half is blue.
fn flag(width: u32, height: u32, format: ImageFormat) -> String {
    let colour = |y| if y < height / 2 { Rgb([255_u8, 0, 0]) } else { Rgb([0, 0, 255]) };
    let picture = RgbImage::from_fn(width, height, |_, y| colour(y));
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    base64::encode(&bytes)
}

fn boxed(protocol: GraphicsProtocol) -> PictureBox {
    let graphics = TerminalGraphics { protocol, has_true_colour: true };
    PictureBox { columns: 40, rows: 10, cell: Some((10, 20)), graphics }
}

/// A PNG that says it has so many pixels, and has none.
fn claiming(width: u32, height: u32) -> String {
    let head = [b"IHDR".as_slice(), &width.to_be_bytes(), &height.to_be_bytes(), &[8, 6, 0, 0, 0]];
    let head = head.concat();
    let crc = !head.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 }
        })
    });
    let start = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".as_slice();
    let parts = [start, &head, &crc.to_be_bytes(), b"\0\0\0\x0aIDATx\x9c\x01\0\0\xff\xff"];
    base64::encode(&parts.concat())
}

#[test]
fn a_picture_is_fitted_in_its_proportions_and_never_grows_past_its_pixels() {
    let size = |width, height, protocol| {
        let picture = Picture::of(&flag(width, height, ImageFormat::Png), 0, boxed(protocol));
        let picture = picture.unwrap();
        assert_eq!((picture.width, picture.height), (width, height));
        (picture.columns, picture.rows)
    };
    // As cells a pixel is half a cell; in pixels a cell has 10 by 20.
    assert_eq!(size(16, 16, GraphicsProtocol::Blocks), (16, 8));
    assert_eq!(size(16, 16, GraphicsProtocol::Kitty), (2, 1));
    assert_eq!(size(800, 100, GraphicsProtocol::Blocks), (40, 3));
    assert_eq!(size(100, 2_000, GraphicsProtocol::Kitty), (1, 10));
    assert_eq!(size(1, 1, GraphicsProtocol::Iterm2), (1, 1));
}

#[test]
fn cells_have_the_colours_of_the_picture_and_transparent_ones_none() {
    let red = Some(Color::Rgb(255, 0, 0));
    let blue = Some(Color::Rgb(0, 0, 255));
    for format in [ImageFormat::Png, ImageFormat::Jpeg] {
        let picture = Picture::of(&flag(16, 16, format), 0, boxed(GraphicsProtocol::Blocks));
        let picture = picture.unwrap();
        assert_eq!((picture.row(0).len(), picture.row(8).len()), (16, 0));
        if format == ImageFormat::Png {
            assert_eq!((picture.row(0)[3], picture.row(7)[3]), ([red; 2], [blue; 2]));
        }
        assert!(picture.encoded.is_none());
    }
    let clear = RgbaImage::from_fn(2, 2, |_, y| Rgba([0, 255, 0, if y == 0 { 0 } else { 255 }]));
    let mut bytes = Vec::new();
    clear.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
    let within =
        PictureBox { graphics: TerminalGraphics::default(), ..boxed(GraphicsProtocol::Blocks) };
    let picture = Picture::of(&base64::encode(&bytes), 0, within).unwrap();
    assert_eq!(picture.row(0)[0], [None, Some(Color::Indexed(46))]);
}

#[test]
fn a_picture_that_only_claims_to_be_large_takes_no_memory() {
    let refused = |text: &str| {
        Picture::of(text, 0, boxed(GraphicsProtocol::Blocks)).map(|picture| picture.rows)
    };
    let too_many = |width, height| Err(PictureError::TooManyPixels { width, height });
    assert_eq!(refused(&claiming(60_000, 60_000)), too_many(60_000, 60_000));
    assert_eq!(refused(&claiming(16_000, 16_000)), too_many(16_000, 16_000));
    assert_eq!(refused(&claiming(100, 100)), Err(PictureError::Broken));
    assert_eq!(refused(&claiming(0, 100)), Err(PictureError::Broken));
    assert_eq!(refused(&"A".repeat((32 << 20) + 1)), Err(PictureError::TooManyBytes));
}

#[test]
fn what_is_no_picture_is_told_apart() {
    let refused = |text: &str| {
        Picture::of(text, 0, boxed(GraphicsProtocol::Kitty)).map(|picture| picture.rows)
    };
    assert_eq!(refused("!!"), Err(PictureError::NotBase64));
    assert_eq!(refused(&base64::encode(b"<svg/>")), Err(PictureError::UnknownFormat));
    assert_eq!(refused(&base64::encode(b"GIF89a\x01\0\x01\0")), Err(PictureError::UnknownFormat));
    assert_eq!(refused(""), Err(PictureError::UnknownFormat));
    let whole = base64::decode(&flag(64, 64, ImageFormat::Png)).unwrap();
    for length in [8, 20, 40, whole.len() / 2] {
        let cut = base64::encode(&whole[..length]);
        assert_eq!(refused(&cut), Err(PictureError::Broken), "{length}");
    }
}

/// The pixels of a PNG in base64.
fn pixels(text: &str) -> RgbaImage {
    image::load_from_memory(&base64::decode(text).unwrap()).unwrap().into_rgba8()
}

#[test]
fn kitty_and_iterm2_are_given_a_png_made_here() {
    let original = flag(300, 200, ImageFormat::Jpeg);
    let picture = Picture::of(&original, 3, boxed(GraphicsProtocol::Kitty)).unwrap();
    let Some(EncodedPicture::Placeholders { transmission, id }) = picture.encoded else { panic!() };
    assert_eq!(id & 0xFF, 3);
    let parts: Vec<&str> = transmission.split("\u{1b}_G").skip(1).collect();
    let (head, _) = parts[0].split_once(';').unwrap();
    assert_eq!(head, format!("a=T,U=1,q=2,f=100,i={id},c=30,r=10,m={}", u8::from(parts.len() > 1)));
    let data = parts.iter().map(|part| {
        let (_, data) = part.split_once(';').unwrap();
        data.strip_suffix("\u{1b}\\").unwrap()
    });
    assert_eq!(pixels(&data.collect::<String>()).dimensions(), (300, 200));

    let picture = Picture::of(&original, 0, boxed(GraphicsProtocol::Iterm2)).unwrap();
    let Some(EncodedPicture::Sequence(sequence)) = picture.encoded else { panic!() };
    let (head, rest) = sequence.split_once(':').unwrap();
    assert!(head.starts_with("\u{1b}7\u{1b}]1337;File=inline=1;size="), "{head:?}");
    assert!(head.ends_with("width=30;height=10;preserveAspectRatio=0;doNotMoveCursor=1"));
    let data = rest.strip_suffix("\u{7}\u{1b}8\u{1b}[C").unwrap();
    assert_eq!(pixels(data).dimensions(), (300, 200));
}

/// The colours of the pixels that sixels draw.
fn read_sixels(sequence: &str, width: usize, height: usize) -> Vec<Option<u32>> {
    let body = sequence.strip_prefix(&format!("\u{1b}7\u{1b}P0;1;0q\"1;1;{width};{height}"));
    let body = body.unwrap().strip_suffix("\u{1b}\\\u{1b}8\u{1b}[C").unwrap();
    let mut drawn = vec![None; width * height];
    let (mut x, mut band, mut colour, mut repeat) = (0, 0, 0, 1);
    let mut signs = body.chars().peekable();
    while let Some(sign) = signs.next() {
        let mut number = || {
            let mut all = String::new();
            while let Some(digit) = signs.next_if(|sign| sign.is_ascii_digit() || *sign == ';') {
                all.push(digit);
            }
            all
        };
        match sign {
            '#' => colour = number().split(';').next().unwrap().parse().unwrap(),
            '!' => repeat = number().parse().unwrap(),
            '$' => x = 0,
            '-' => (x, band) = (0, band + 1),
            '?'..='~' => {
                for _ in 0..std::mem::replace(&mut repeat, 1) {
                    let bits = u32::from(sign) - 63;
                    for y in (0..6).filter(|y| (bits >> y) & 1 == 1) {
                        drawn[(band * 6 + y) * width + x] = Some(colour);
                    }
                    x += 1;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    drawn
}

#[test]
fn sixels_draw_the_pixels_and_need_the_size_of_a_cell() {
    let original = flag(40, 40, ImageFormat::Png);
    let picture = Picture::of(&original, 0, boxed(GraphicsProtocol::Sixel)).unwrap();
    assert_eq!((picture.columns, picture.rows), (4, 2));
    let Some(EncodedPicture::Sequence(sequence)) = picture.encoded else { panic!() };
    let drawn = read_sixels(&sequence, 40, 40);
    assert_eq!((drawn[0], drawn[40 * 40 - 1]), (Some(5 * 36), Some(5)));
    assert!(drawn.iter().all(Option::is_some));
    let unknown = PictureBox { cell: None, ..boxed(GraphicsProtocol::Sixel) };
    assert!(Picture::of(&original, 0, unknown).unwrap().encoded.is_none());
}

#[test]
fn a_terminal_is_known_by_its_variables_and_tmux_passes_nothing_on() {
    let detected = |variables: &[(&str, &str)]| {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name);
        let graphics = TerminalGraphics::detect(&|name| Some(value(name)?.1.to_owned()));
        (graphics.protocol, graphics.has_true_colour)
    };
    assert_eq!(detected(&[]), (Blocks, false));
    assert_eq!(detected(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]), (Blocks, true));
    assert_eq!(detected(&[("TERM", "xterm-kitty")]), (Kitty, true));
    assert_eq!(detected(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")]), (Blocks, false));
    assert_eq!(detected(&[("TERM_PROGRAM", "WezTerm")]), (Iterm2, true));
    assert_eq!(detected(&[("TERM", "foot")]), (Sixel, true));
}
