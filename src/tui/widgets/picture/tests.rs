//! Pictures that fit, are broken, or only claim to be large.

use image::{ImageFormat, Rgb, RgbImage, Rgba};

use super::*;

/// A picture whose upper half is red and whose lower half is blue.
fn flag(width: u32, height: u32, format: ImageFormat) -> String {
    let colour = |y| if y < height / 2 { Rgb([255_u8, 0, 0]) } else { Rgb([0, 0, 255]) };
    let picture = RgbImage::from_fn(width, height, |_, y| colour(y));
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    base64::encode(&bytes)
}

const WITHIN: PictureBox = PictureBox { columns: 40, rows: 10, has_true_colour: true };

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
    let size = |width, height| {
        let picture = Picture::of(&flag(width, height, ImageFormat::Png), WITHIN).unwrap();
        assert_eq!((picture.width, picture.height), (width, height));
        (picture.columns, picture.rows)
    };
    // A pixel is half a cell.
    assert_eq!(size(16, 16), (16, 8));
    assert_eq!(size(800, 100), (40, 3));
    assert_eq!(size(100, 2_000), (1, 10));
    assert_eq!(size(1, 1), (1, 1));
}

#[test]
fn cells_have_the_colours_of_the_picture_and_transparent_ones_none() {
    let red = Some(Color::Rgb(255, 0, 0));
    let blue = Some(Color::Rgb(0, 0, 255));
    for format in [ImageFormat::Png, ImageFormat::Jpeg] {
        let picture = Picture::of(&flag(16, 16, format), WITHIN).unwrap();
        assert_eq!((picture.row(0).len(), picture.row(8).len()), (16, 0));
        if format == ImageFormat::Png {
            assert_eq!((picture.row(0)[3], picture.row(7)[3]), ([red; 2], [blue; 2]));
        }
    }
    let clear = RgbaImage::from_fn(2, 2, |_, y| Rgba([0, 255, 0, if y == 0 { 0 } else { 255 }]));
    let mut bytes = Vec::new();
    clear.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png).unwrap();
    let within = PictureBox { has_true_colour: false, ..WITHIN };
    let picture = Picture::of(&base64::encode(&bytes), within).unwrap();
    assert_eq!(picture.row(0)[0], [None, Some(Color::Indexed(46))]);
}

#[test]
fn a_picture_that_only_claims_to_be_large_takes_no_memory() {
    let refused = |text: &str| Picture::of(text, WITHIN).map(|picture| picture.rows);
    let too_many = |width, height| Err(PictureError::TooManyPixels { width, height });
    assert_eq!(refused(&claiming(60_000, 60_000)), too_many(60_000, 60_000));
    assert_eq!(refused(&claiming(16_000, 16_000)), too_many(16_000, 16_000));
    assert_eq!(refused(&claiming(100, 100)), Err(PictureError::Broken));
    assert_eq!(refused(&claiming(0, 100)), Err(PictureError::Broken));
    assert_eq!(refused(&"A".repeat((32 << 20) + 1)), Err(PictureError::TooManyBytes));
}

#[test]
fn what_is_no_picture_is_told_apart() {
    let refused = |text: &str| Picture::of(text, WITHIN).map(|picture| picture.rows);
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
