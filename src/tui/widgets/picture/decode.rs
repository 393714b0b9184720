//! Decoding the bytes of a server: only within bounds that are checked before memory is taken.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder as _, ImageError, ImageReader, Limits, RgbaImage};

use crate::util::base64;

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
