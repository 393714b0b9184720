//! Reading a response or a JSON document within bounds, and excerpts of it for error messages.

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode, Upgraded};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::address::display_url;
use super::client::{ClientSettings, HttpClient};
use super::errors::{BodyReadError, from_body_error};
use crate::model::Error;
use crate::util::text;
use crate::util::tls::TlsPem;
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

/// The longest document, in bytes.
const MAX_DOCUMENT: usize = 1 << 20;
const DEADLINE: Duration = Duration::from_secs(10);

/// The JSON document at `url`. `requires_public` refuses names that lead to other than public
/// addresses.
pub async fn json<T: DeserializeOwned>(url: &Url, requires_public: bool) -> Result<T, Error> {
    match tokio::time::timeout(DEADLINE, get(url, requires_public)).await {
        Ok(document) => {
            let document = document?;
            serde_json::from_slice(&document)
                .map_err(|error| Error::protocol(format!("{}: {error}", display_url(url))))
        }
        Err(_elapsed) => Err(Error::timeout(format!("{} did not answer", display_url(url)))),
    }
}

async fn get(url: &Url, requires_public: bool) -> Result<Bytes, Error> {
    let settings = ClientSettings {
        connect_timeout: DEADLINE,
        insecure: false,
        allows_link_local: false,
        requires_public,
        tls: TlsPem::default(),
    };
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
    let client = HttpClient::new(url, None, &settings, HeaderMap::new())?;
    let mut response = client.send(Method::GET, url, &headers, None).await?;
    check_headers(&response.headers, MAX_HEADER_BYTES)?;
    if !response.status.is_success() {
        let message = format!("{} answered {}", display_url(url), response.status);
        return Err(Error::protocol(message));
    }
    response.body.whole(MAX_DOCUMENT).await
}

/// Maximum number of characters of a peer's own text that are kept.
const MAX_CHARS: usize = 300;

/// The peer's own message in a body: a JSON error's message, a page's title, or the first line.
pub fn server_message(body: &[u8]) -> Option<String> {
    let text = lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let line = json_message(text)
        .or_else(|| title(text))
        .or_else(|| text.lines().next().map(str::to_owned))?;
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| truncate(&line))
}

fn json_message(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let at = |path: &str| value.pointer(path)?.as_str();
    if let (Some(title), Some(detail)) = (at("/title"), at("/detail")) {
        return Some(format!("{title}: {detail}"));
    }
    [
        "/error/message",
        "/message",
        "/error_description",
        "/error",
        "/detail",
        "/title",
        "/detail/0/msg",
        "/errors/0/message",
        "/errors/0",
    ]
    .into_iter()
    .find_map(at)
    .map(str::to_owned)
}

fn title(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower.get(start..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    text.get(start..end).map(str::to_owned).filter(|title| !title.trim().is_empty())
}

/// Bytes as text; what is not UTF-8 is replaced.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The first 300 characters of a peer's own text, with `…` if it is longer.
pub fn truncate(text: &str) -> String {
    text::truncate(text, MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peers_words_are_a_line() {
        assert_eq!(server_message(b"\n\n  try later \nmore"), Some("try later".into()));
        assert_eq!(server_message(b"<html><head><Title>Oh\n no</title>"), Some("Oh no".into()));
        assert_eq!(server_message(b"<html><p>x"), Some("<html><p>x".into()));
        assert_eq!(
            server_message(br#"{"error":{"message":"no session"}}"#),
            Some("no session".into())
        );
        assert_eq!(server_message(br#"{"error":"invalid_token"}"#), Some("invalid_token".into()));
        let problem = br#"{"type":"about:blank","title":"Gone","detail":"try /v2","status":410}"#;
        assert_eq!(server_message(problem), Some("Gone: try /v2".into()));
        assert_eq!(
            server_message(br#"{"detail":[{"loc":["q"],"msg":"too long"}]}"#),
            Some("too long".into())
        );
        assert_eq!(server_message(b" \n "), None);
        assert_eq!(server_message(&[b'x'; 5000]).unwrap().chars().count(), MAX_CHARS + 1);
    }
}
