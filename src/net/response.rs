//! Reading a response within bounds.
//!
//! Owns: the size of its headers, its media type, and reading its body piece by piece, with limits
//! that count after decompression. Never does: interpret a body, or look at a status.

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use super::errors::{BodyReadError, from_body_error};
use crate::model::Error;
use crate::util::units::show_size;

/// Bytes of all response headers together.
pub const MAX_HEADER_BYTES: usize = 64 << 10;

/// Bytes read of the body of a refusal.
pub const MAX_ERROR_BODY: usize = 64 << 10;

/// Refuses response headers above `limit` bytes.
///
/// # Errors
/// A protocol error with both sizes.
pub fn check_headers(headers: &HeaderMap, limit: usize) -> Result<(), Error> {
    let size: usize = headers.iter().map(|(n, v)| n.as_str().len() + v.len() + 4).sum();
    if size > limit {
        return Err(headers_too_large(size, limit));
    }
    Ok(())
}

/// The error for so many bytes of response headers.
pub fn headers_too_large(size: usize, limit: usize) -> Error {
    let (size, limit) = (show_size(size as u64), show_size(limit as u64));
    Error::protocol(format!("{size} of response headers, the limit is {limit}"))
}

/// The media type without parameters, in lower case; empty when there is none.
pub fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let text = String::from_utf8_lossy(value.unwrap_or_default());
    let essence = text.split(';').next().unwrap_or_default().trim();
    essence.chars().take(80).collect::<String>().to_ascii_lowercase()
}

/// The body of a response, read piece by piece.
pub struct ResponseBody {
    response: Response,
    /// Announced length, when there is one and nothing is decompressed.
    content_length: Option<u64>,
}

impl ResponseBody {
    /// The body of `response`, of which nothing was read.
    pub fn new(response: Response) -> Self {
        let expected = response.content_length();
        Self { response, content_length: expected }
    }

    /// The announced length in bytes, when there is one and nothing is decompressed.
    pub fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// Whether the headers already say that nothing comes.
    pub fn is_empty(&self) -> bool {
        self.content_length == Some(0)
    }

    /// The next bytes, `None` at the regular end.
    ///
    /// # Errors
    /// When the body does not come to its end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyReadError> {
        self.response.chunk().await.map_err(|error| from_body_error(&error))
    }

    /// The first bytes, about `limit` of them; a body that breaks is as long as what came of it.
    pub async fn beginning(&mut self, limit: usize) -> Bytes {
        let mut bytes = BytesMut::new();
        while bytes.len() < limit {
            let Ok(Some(chunk)) = self.next().await else { break };
            bytes.extend_from_slice(&chunk);
        }
        bytes.freeze()
    }

    /// The error of a body that broke after `came` bytes.
    pub fn broken(&self, cut: BodyReadError, came: usize) -> Error {
        broken(cut, self.content_length, came)
    }
}

/// The error of a body that broke after `came` bytes, of which so many were `content_length`.
pub fn broken(cut: BodyReadError, expected: Option<u64>, came: usize) -> Error {
    let came = show_size(came as u64);
    match (cut, expected) {
        (BodyReadError::Lost(reason), _) => {
            Error::unreachable(format!("{reason} in the middle of the answer"))
                .with_detail(format!("{came} had come"))
        }
        (BodyReadError::Truncated, Some(expected)) => Error::protocol(format!(
            "the answer ended early: {came} of {} came",
            show_size(expected)
        )),
        (BodyReadError::Truncated, None) => {
            Error::protocol(format!("the answer ended early, after {came}"))
        }
        (BodyReadError::Broken(reason), _) => {
            Error::protocol(format!("the answer's HTTP body is broken: {reason}"))
                .with_detail(format!("{came} had come"))
        }
    }
}

/// The error for an answer above the limit.
pub fn too_large(limit: usize) -> Error {
    Error::protocol(format!("the answer is larger than the limit of {}", show_size(limit as u64)))
}
