//! Sending one request and reading the response within bounds; which failures may be sent again, and
//! when, as `Retry-After` says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::request::HttpRequest;
use super::response::HttpResponse;
use crate::config::typed::{self, Located, Retries, Texts, Timespan};
use crate::model::{Diagnostic, Diagnostics, Error, ErrorPhase, RetryAdvice};
use crate::net::address;
use crate::net::client::HttpClient;
use crate::net::posted_body::PostedBody;
use crate::net::redirect;
use crate::net::response::{
    MAX_ERROR_BODY, MAX_HEADER_BYTES, OriginResponse, ResponseBody, check_headers,
};
use crate::util::spelling::did_you_mean;
use crate::util::units::show_size;

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Stands for a response whose headers have not come yet.
const NO_HEADERS: usize = usize::MAX;

/// Sends `request` and reads the answer, of which `limit` bytes are kept. The error of a call that
/// has to stop says how far it came.
pub(super) async fn send(
    client: &HttpClient,
    request: &HttpRequest,
    limit: usize,
    cancel: &CancellationToken,
) -> Result<HttpResponse, Error> {
    let received = AtomicUsize::new(NO_HEADERS);
    let answer = cancel.run_until_cancelled(receive(client, request, limit, &received)).await;
    answer.unwrap_or_else(|| {
        let place = address::host_and_port(&request.url);
        let state = match received.load(Ordering::Relaxed) {
            NO_HEADERS => format!("no response had arrived from {place}"),
            bytes => {
                format!("{} of the response from {place} had arrived", show_size(bytes as u64))
            }
        };
        Err(Error::timeout(state).with_phase(ErrorPhase::Call))
    })
}

async fn receive(
    client: &HttpClient,
    request: &HttpRequest,
    limit: usize,
    received: &AtomicUsize,
) -> Result<HttpResponse, Error> {
    let OriginResponse { status, headers, url, mut body } = exchange(client, request).await?;
    received.store(0, Ordering::Relaxed);
    let expected = body.content_length;
    let (body, is_truncated) = if status.is_client_error() || status.is_server_error() {
        // The rest of an error response does not matter if it breaks off.
        let mut begun = body.beginning(MAX_ERROR_BODY).await;
        begun.truncate(MAX_ERROR_BODY);
        (begun, false)
    } else if request.method == Method::HEAD || status == StatusCode::NO_CONTENT {
        (Bytes::new(), false)
    } else {
        read_body(&mut body, limit, received).await?
    };
    Ok(HttpResponse { status, headers, url, body, is_truncated, expected })
}

async fn exchange(client: &HttpClient, request: &HttpRequest) -> Result<OriginResponse, Error> {
    let mut url = request.url.clone();
    for _ in 0..=redirect::MAX_REDIRECTS {
        let body = request.body.clone().map(|body| PostedBody::new(body, None));
        let response = client.send(request.method.clone(), &url, &request.headers, body).await?;
        check_headers(&response.headers, MAX_HEADER_BYTES)?;
        match redirect::redirect(response.status, &response.headers, &url, &request.method)? {
            Some(next) => url = next,
            None => return Ok(response),
        }
    }
    Err(redirect::too_many_redirects(&url))
}

async fn read_body(
    body: &mut ResponseBody,
    limit: usize,
    received: &AtomicUsize,
) -> Result<(Bytes, bool), Error> {
    let mut bytes = BytesMut::new();
    loop {
        match body.next().await {
            Ok(Some(chunk)) => {
                bytes.extend_from_slice(&chunk);
                received.store(bytes.len(), Ordering::Relaxed);
                if bytes.len() > limit {
                    bytes.truncate(limit);
                    return Ok((bytes.freeze(), true));
                }
            }
            Ok(None) => return Ok((bytes.freeze(), false)),
            Err(cut) => return Err(body.broken(cut, bytes.len()).with_phase(ErrorPhase::Call)),
        }
    }
}

/// How often is repeated when `retry` does not say.
const DEFAULT_RETRIES: u32 = 2;

/// The cause of a failed request, as far as repeating depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpFailure {
    /// No connection could be opened: nothing was sent.
    Connect,
    ConnectionLost,
    /// A limit of time fired.
    Timeout,
    Status(u16),
}

impl HttpFailure {
    /// Whether a word of `retry.on` means it: a cause, a status, or every status of a hundred.
    fn is_meant_by(self, word: &str) -> bool {
        match self {
            Self::Connect => word == "connect",
            Self::ConnectionLost => word == "lost",
            Self::Timeout => word == "timeout",
            Self::Status(status) => {
                word.parse() == Ok(status) || word == format!("{}xx", status / 100)
            }
        }
    }
}

const DEFAULT_CONDITIONS: [&str; 5] = ["connect", "lost", "timeout", "429", "5xx"];

/// Which failures are repeated, and how often.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
pub(super) struct RetryKeys {
    /// How often; default: 2.
    max: Option<Retries>,
    /// After what: connect, lost, timeout, 4xx, 5xx or single status codes.
    on: Option<Located<Texts>>,
    /// The pause before the first repetition; it doubles each time.
    backoff: Option<Timespan>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct RetryPolicy {
    /// How often; `None` leaves it to `retries`.
    pub(super) max: Option<u32>,
    /// The pause before the first repetition; the host doubles it for each further one.
    pub(super) backoff: Option<Duration>,
    on: Option<Vec<String>>,
}

impl RetryPolicy {
    /// What `retry` says; problems are added to `diagnostics`.
    pub(super) fn read(keys: Option<&RetryKeys>, diagnostics: &Diagnostics) -> Self {
        let Some(keys) = keys else { return Self::default() };
        let on = keys.on.as_ref().map(conditions).transpose();
        Self {
            max: Some(keys.max.map_or(DEFAULT_RETRIES, |max| max.0)),
            backoff: keys.backoff.map(|first| first.0),
            on: on.unwrap_or_else(|diagnostic| {
                diagnostics.push(diagnostic);
                None
            }),
        }
    }

    /// Whether the entry says itself what may be repeated.
    pub(super) fn is_explicit(&self) -> bool {
        self.on.is_some()
    }

    /// Whether a failure may be repeated. Without a word of the entry a request that is `is_repeatable`
    /// to repeat is, after everything that may pass; any other only when nothing was sent.
    pub(super) fn verdict(
        &self,
        failure: HttpFailure,
        is_repeatable: bool,
        asks: Option<Duration>,
    ) -> RetryAdvice {
        let covered = failure == HttpFailure::Connect
            || match &self.on {
                Some(on) => on.iter().any(|word| failure.is_meant_by(word)),
                None => is_repeatable && DEFAULT_CONDITIONS.iter().any(|w| failure.is_meant_by(w)),
            };
        match asks {
            _ if !covered => RetryAdvice::Never,
            Some(wait) => RetryAdvice::After(wait),
            None => RetryAdvice::AfterBackoff,
        }
    }
}

fn conditions(words: &Located<Texts>) -> Result<Vec<String>, Diagnostic> {
    let is_status = |word: &str| word.parse().is_ok_and(|s: u16| (400..600).contains(&s));
    let is_known = |word: &str| DEFAULT_CONDITIONS.contains(&word) || word == "4xx";
    let Some(word) = words.0.iter().find(|word| !is_known(word) && !is_status(word)) else {
        return Ok(words.0.clone());
    };
    let hint = did_you_mean(word, DEFAULT_CONDITIONS).unwrap_or_else(|| {
        format!("use {}, 4xx or single status codes", DEFAULT_CONDITIONS.join(", "))
    });
    Err(words.error(format!("'{word}' is not a retry condition")).with_hint(hint))
}

/// How long a response asks to wait: `Retry-After` in seconds, or as a date, which is measured
/// against the server's own clock (its `Date`), else against `now`, time since the Unix epoch.
pub(super) fn retry_after(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text: &str| -> Option<Timestamp> {
        DateTimeParser::new().parse_timestamp(text.trim()).ok()
    };
    let until = date(text)?;
    let from = headers.get(DATE).and_then(|value| date(value.to_str().ok()?));
    let from = from.map_or(i64::try_from(now.as_secs()).ok()?, Timestamp::as_second);
    Some(Duration::from_secs(u64::try_from(until.as_second() - from).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    fn retry(text: &str) -> (RetryPolicy, Vec<String>) {
        let root = parse(&SourceText::new("t.yaml", text), text).unwrap();
        let diagnostics = Diagnostics::default();
        let keys = typed::read::<RetryKeys>(&root, &diagnostics);
        let retry = RetryPolicy::read(keys.as_ref(), &diagnostics);
        (retry, diagnostics.take().into_iter().map(|p| p.message).collect())
    }

    #[test]
    fn without_a_word_only_harmless_requests_are_repeated() {
        let retry = RetryPolicy::default();
        for failure in [
            HttpFailure::ConnectionLost,
            HttpFailure::Timeout,
            HttpFailure::Status(429),
            HttpFailure::Status(503),
        ] {
            assert_eq!(
                retry.verdict(failure, true, None),
                RetryAdvice::AfterBackoff,
                "{failure:?}"
            );
            assert_eq!(retry.verdict(failure, false, None), RetryAdvice::Never, "{failure:?}");
        }
        assert_eq!(retry.verdict(HttpFailure::Connect, false, None), RetryAdvice::AfterBackoff);
        assert_eq!(retry.verdict(HttpFailure::Status(404), true, None), RetryAdvice::Never);
        let wait = Some(Duration::from_secs(3));
        assert_eq!(
            retry.verdict(HttpFailure::Status(429), true, wait),
            RetryAdvice::After(Duration::from_secs(3))
        );
    }

    #[test]
    fn the_words_of_an_entry_hold_for_every_method() {
        let (retry, diagnostics) = retry("{ max: 3, on: [429, 4xx, 503], backoff: 100ms }");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!((retry.max, retry.backoff), (Some(3), Some(Duration::from_millis(100))));
        for status in [429, 404, 503] {
            assert_eq!(
                retry.verdict(HttpFailure::Status(status), false, None),
                RetryAdvice::AfterBackoff
            );
        }
        assert_eq!(retry.verdict(HttpFailure::Status(500), true, None), RetryAdvice::Never);
        assert_eq!(retry.verdict(HttpFailure::Timeout, true, None), RetryAdvice::Never);
    }

    #[test]
    fn what_cannot_be_understood_is_told() {
        let (retry, diagnostics) = retry("{ max: 1000, on: [timeuot], bakoff: 1 }");
        assert_eq!(
            diagnostics,
            [
                "at most 100 retries are allowed",
                "unknown key 'bakoff'",
                "'timeuot' is not a retry condition"
            ]
        );
        assert_eq!(retry.max, Some(DEFAULT_RETRIES));
    }

    #[test]
    fn a_wait_is_seconds_or_a_date() {
        let wait = |pairs: &[(reqwest::header::HeaderName, &str)]| {
            let headers = pairs
                .iter()
                .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
                .collect();
            retry_after(&headers, Duration::from_secs(1_445_412_470)).map(|wait| wait.as_secs())
        };
        assert_eq!(wait(&[(RETRY_AFTER, "120")]), Some(120));
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2015 07:28:00 GMT")]), Some(10));
        let date = (DATE, "Wed, 21 Oct 2015 07:27:00 GMT");
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2015 07:28:00 GMT"), date.clone()]), Some(60));
        assert_eq!(wait(&[(RETRY_AFTER, "Wed, 21 Oct 2015 07:20:00 GMT"), date]), Some(0));
        assert_eq!(wait(&[(RETRY_AFTER, "soon")]), None);
        assert_eq!(wait(&[]), None);
    }
}
