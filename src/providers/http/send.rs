//! Sending one request and reading its answer within bounds.
//!
//! Owns: redirects within the origin, the limits on what is read, and what had come when a call
//! had to stop. Never does: leave the origin, repeat, or say what an answer means.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, StatusCode};
use url::Url;

use super::request::Request;
use crate::model::{Fault, Phase};
use crate::net::redirect::{self, Asking};
use crate::net::response::{Body, ERROR_BODY, HEADERS, check_headers};
use crate::net::{address, trouble};
use crate::util::units::show_size;

/// Bounds name lookup, TCP and TLS together.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// Where it came from in the end.
    pub(super) url: Url,
    /// The body, up to the limit.
    pub(super) body: Bytes,
    /// Whether there was more.
    pub(super) cut: bool,
    /// The announced length, when there was one.
    pub(super) expected: Option<u64>,
}

/// How far one exchange came, for the last words of a call that had to stop.
#[derive(Debug)]
pub(super) struct Progress(AtomicUsize);

/// No response headers yet.
const NOTHING: usize = usize::MAX;

impl Progress {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(NOTHING))
    }

    fn holds(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// The last words, as a fragment.
    pub(super) fn words(&self, url: &Url) -> String {
        let place = address::address(url);
        match self.0.load(Ordering::Relaxed) {
            NOTHING => format!("no answer had come from {place}"),
            bytes => format!("{} of the answer of {place} had come", show_size(bytes as u64)),
        }
    }
}

/// Sends `request` and reads the answer, of which `limit` bytes are kept.
///
/// # Errors
/// When no answer came, it broke on the way, or it leads somewhere else.
pub(super) async fn send(
    client: &reqwest::Client,
    request: &Request,
    limit: usize,
    progress: &Progress,
) -> Result<Answer, Fault> {
    let response = exchange(client, request).await?;
    let (status, headers, url) =
        (response.status(), response.headers().clone(), response.url().clone());
    progress.holds(0);
    let mut body = Body::new(response);
    let expected = body.expected();
    if status.is_client_error() || status.is_server_error() {
        // What is left of a refusal does not matter when it breaks.
        let mut begun = body.beginning(ERROR_BODY).await;
        begun.truncate(ERROR_BODY);
        return Ok(Answer { status, headers, url, body: begun, cut: false, expected });
    }
    let nothing = request.method == Method::HEAD || status == StatusCode::NO_CONTENT;
    let (body, cut) =
        if nothing { (Bytes::new(), false) } else { whole(&mut body, limit, progress).await? };
    Ok(Answer { status, headers, url, body, cut, expected })
}

async fn exchange(client: &reqwest::Client, request: &Request) -> Result<Response, Fault> {
    let looks = [Method::GET, Method::HEAD].contains(&request.method);
    let asking = if looks { Asking::Look } else { Asking::Act };
    let mut url = request.url.clone();
    for _ in 0..=redirect::MOST {
        let mut outgoing =
            client.request(request.method.clone(), url.clone()).headers(request.headers.clone());
        if let Some(body) = &request.body {
            outgoing = outgoing.body(body.clone());
        }
        let response =
            outgoing.send().await.map_err(|error| trouble::no_response(&error, &url, CONNECT))?;
        check_headers(response.headers(), HEADERS)?;
        match redirect::redirect(response.status(), response.headers(), &url, asking)? {
            Some(next) => url = next,
            None => return Ok(response),
        }
    }
    Err(redirect::circle(&url))
}

async fn whole(body: &mut Body, limit: usize, progress: &Progress) -> Result<(Bytes, bool), Fault> {
    let mut kept = BytesMut::new();
    loop {
        match body.next().await {
            Ok(Some(chunk)) => {
                kept.extend_from_slice(&chunk);
                progress.holds(kept.len());
                if kept.len() > limit {
                    kept.truncate(limit);
                    return Ok((kept.freeze(), true));
                }
            }
            Ok(None) => return Ok((kept.freeze(), false)),
            Err(cut) => return Err(body.broken(cut, kept.len()).phase(Phase::Call)),
        }
    }
}
