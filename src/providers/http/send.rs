//! Sending one request and reading the response within bounds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{Method, StatusCode};
use url::Url;

use super::request::HttpRequest;
use super::response::HttpResponse;
use crate::model::{Error, ErrorPhase};
use crate::net::address;
use crate::net::client::HttpClient;
use crate::net::posted_body::PostedBody;
use crate::net::redirect::{self, MethodSafety};
use crate::net::response::{
    MAX_ERROR_BODY, MAX_HEADER_BYTES, OriginResponse, ResponseBody, check_headers,
};
use crate::util::units::show_size;

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How far one exchange got, for the message of a call that had to stop.
#[derive(Debug)]
pub(super) struct DownloadProgress(AtomicUsize);

/// Stands for a response whose headers have not come yet.
const NO_HEADERS: usize = usize::MAX;

impl DownloadProgress {
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(NO_HEADERS))
    }

    fn record(&self, bytes: usize) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// The state, as a fragment of a message.
    pub(super) fn describe(&self, url: &Url) -> String {
        let place = address::host_and_port(url);
        match self.0.load(Ordering::Relaxed) {
            NO_HEADERS => format!("no response had arrived from {place}"),
            bytes => {
                format!("{} of the response from {place} had arrived", show_size(bytes as u64))
            }
        }
    }
}

/// Sends `request` and reads the answer, of which `limit` bytes are kept.
pub(super) async fn send(
    client: &HttpClient,
    request: &HttpRequest,
    limit: usize,
    progress: &DownloadProgress,
) -> Result<HttpResponse, Error> {
    let OriginResponse { status, headers, url, mut body } = exchange(client, request).await?;
    progress.record(0);
    let expected = body.content_length;
    if status.is_client_error() || status.is_server_error() {
        // The rest of an error response does not matter if it breaks off.
        let mut begun = body.beginning(MAX_ERROR_BODY).await;
        begun.truncate(MAX_ERROR_BODY);
        return Ok(HttpResponse {
            status,
            headers,
            url,
            body: begun,
            is_truncated: false,
            expected,
        });
    }
    let nothing = request.method == Method::HEAD || status == StatusCode::NO_CONTENT;
    let (body, cut) =
        if nothing { (Bytes::new(), false) } else { read_body(&mut body, limit, progress).await? };
    Ok(HttpResponse { status, headers, url, body, is_truncated: cut, expected })
}

async fn exchange(client: &HttpClient, request: &HttpRequest) -> Result<OriginResponse, Error> {
    let looks = [Method::GET, Method::HEAD].contains(&request.method);
    let asking = if looks { MethodSafety::Safe } else { MethodSafety::Unsafe };
    let mut url = request.url.clone();
    for _ in 0..=redirect::MAX_REDIRECTS {
        let body = request.body.clone().map(|body| PostedBody::new(body, None));
        let response = client.send(request.method.clone(), &url, &request.headers, body).await?;
        check_headers(&response.headers, MAX_HEADER_BYTES)?;
        match redirect::redirect(response.status, &response.headers, &url, asking)? {
            Some(next) => url = next,
            None => return Ok(response),
        }
    }
    Err(redirect::too_many_redirects(&url))
}

async fn read_body(
    body: &mut ResponseBody,
    limit: usize,
    progress: &DownloadProgress,
) -> Result<(Bytes, bool), Error> {
    let mut bytes = BytesMut::new();
    loop {
        match body.next().await {
            Ok(Some(chunk)) => {
                bytes.extend_from_slice(&chunk);
                progress.record(bytes.len());
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
