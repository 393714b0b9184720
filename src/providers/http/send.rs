//! Sending one request and reading the response within bounds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::{Method, StatusCode};
use tokio_util::sync::CancellationToken;

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
