//! Reading a response within bounds.

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode, Upgraded};
use url::Url;

use super::errors::{BodyReadError, from_body_error};
use crate::model::Error;
use crate::util::units::show_size;

pub const MAX_HEADER_BYTES: usize = 64 << 10;

pub const MAX_ERROR_BODY: usize = 64 << 10;

const MAX_MEDIA_TYPE: usize = 80;

/// Refuses response headers above `limit` bytes.
pub fn check_headers(headers: &HeaderMap, limit: usize) -> Result<(), Error> {
    let size: usize = headers.iter().map(|(n, v)| n.as_str().len() + v.len() + 4).sum();
    if size > limit {
        return Err(headers_too_large(size, limit));
    }
    Ok(())
}

pub fn headers_too_large(size: usize, limit: usize) -> Error {
    let (size, limit) = (show_size(size as u64), show_size(limit as u64));
    Error::protocol(format!("{size} of response headers, the limit is {limit}"))
}

/// The media type without parameters, in lower case; empty when there is none.
pub fn content_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    let text = String::from_utf8_lossy(essence);
    let text = text.trim();
    let end = text.char_indices().nth(MAX_MEDIA_TYPE).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or(text).to_ascii_lowercase()
}

pub struct OriginResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub url: Url,
    pub body: ResponseBody,
}

pub struct ResponseBody {
    response: Response,
    pub content_length: Option<u64>,
}

impl OriginResponse {
    pub(super) fn new(mut response: Response, url: Url) -> Self {
        let content_length = response.content_length();
        let headers = std::mem::take(response.headers_mut());
        let status = response.status();
        Self { status, headers, url, body: ResponseBody { response, content_length } }
    }
}

impl ResponseBody {
    pub fn is_empty(&self) -> bool {
        self.content_length == Some(0)
    }

    /// The next bytes, `None` at the regular end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyReadError> {
        self.response.chunk().await.map_err(|error| from_body_error(&error))
    }

    /// The connection, after a response that switches protocols.
    pub async fn upgrade(self) -> Result<Upgraded, Error> {
        let upgraded = self.response.upgrade().await;
        upgraded.map_err(|error| broken(from_body_error(&error), None, 0))
    }

    /// The first bytes, about `limit` of them; a broken body is as long as what was received.
    pub async fn beginning(&mut self, limit: usize) -> Bytes {
        let mut bytes = BytesMut::new();
        while bytes.len() < limit {
            let Ok(Some(chunk)) = self.next().await else { break };
            bytes.extend_from_slice(&chunk);
        }
        bytes.freeze()
    }

    /// All of it, at most `limit` bytes.
    pub async fn whole(&mut self, limit: usize) -> Result<Bytes, Error> {
        let mut bytes = BytesMut::new();
        while let Some(chunk) = self.next().await.map_err(|cut| self.broken(cut, bytes.len()))? {
            if bytes.len() + chunk.len() > limit {
                return Err(too_large(limit));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    }

    pub fn broken(&self, cut: BodyReadError, came: usize) -> Error {
        broken(cut, self.content_length, came)
    }
}

/// The error of a body that broke after `came` bytes, of which so many were `content_length`.
pub fn broken(cut: BodyReadError, expected: Option<u64>, came: usize) -> Error {
    let came = show_size(came as u64);
    match (cut, expected) {
        (BodyReadError::Lost(reason), _) => {
            Error::unreachable(format!("{reason} in the middle of the response"))
                .with_detail(format!("{came} received"))
        }
        (BodyReadError::Truncated, Some(expected)) => Error::protocol(format!(
            "the response ended early: {came} of {} received",
            show_size(expected)
        )),
        (BodyReadError::Truncated, None) => {
            Error::protocol(format!("the response ended early, after {came}"))
        }
        (BodyReadError::Broken(reason), _) => {
            Error::protocol(format!("the response's HTTP body is broken: {reason}"))
                .with_detail(format!("{came} received"))
        }
    }
}

pub fn too_large(limit: usize) -> Error {
    Error::protocol(format!("the response is larger than the limit of {}", show_size(limit as u64)))
}
