//! WebSocket: one message per text frame, after a handshake over HTTP with the headers and
//! credentials of the entry. MCP names no such transport; this is the one that `serve` offers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use reqwest::header::{
    AUTHORIZATION, CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode, Upgraded};
use secrecy::SecretString;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role as ProtocolRole, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as FrameError, Message, Utf8Bytes};

use super::HeadTracer;
use super::credential_gate::{MAX_AUTHORIZATIONS, challenge, sensitive_value};
use super::status::HttpRefusal;
use super::target::{CheckedTarget, HttpTarget};
use crate::mcp::credentials::ChallengeOutcome;
use crate::mcp::transport::socket::{Channel, SocketWire, too_large};
use crate::mcp::wire::MESSAGE_LIMIT;
use crate::model::Error;
use crate::net::address::display_url;
use crate::net::client::{ClientSettings, HttpClient};
use crate::net::errors;
use crate::net::response::{OriginResponse, check_headers};

const HANDSHAKE: Duration = Duration::from_secs(10);
const SUBPROTOCOL: HeaderValue = HeaderValue::from_static("mcp");

pub fn connect(target: HttpTarget) -> Result<SocketWire, Error> {
    let checked = target.check()?;
    let settings = ClientSettings {
        connect_timeout: target.limits.connect,
        insecure: target.insecure,
        // The user wrote this address and no server can change it.
        allows_link_local: true,
        requires_public: false,
        tls: target.tls.clone(),
    };
    let client = HttpClient::new(&target.url, None, &settings, checked.headers.clone())?;
    let tracer = target.tracer.clone();
    let heads = HeadTracer::new(tracer.clone(), &checked.headers);
    let opener = Arc::new(Opener { target, checked, client, heads });
    let open = move || {
        let opener = Arc::clone(&opener);
        async move {
            let opened = opener.open().await;
            opened.map_err(|error| opener.checked.secrets.redact_error(error))
        }
        .boxed()
    };
    Ok(SocketWire::new(Box::new(open), true, tracer))
}

struct Opener {
    target: HttpTarget,
    checked: CheckedTarget,
    client: HttpClient,
    heads: HeadTracer,
}

impl Opener {
    async fn open(&self) -> Result<Channel, Error> {
        let url = &self.target.url;
        let credentials = &self.target.credentials;
        let has_own = self.checked.headers.contains_key(AUTHORIZATION);
        let mut challenges = 0;
        loop {
            let authorization = if has_own { None } else { credentials.authorization().await? };
            let authorized = has_own || authorization.is_some();
            let key = generate_key();
            let request_headers = self.headers(&key, authorization.as_ref())?;
            self.heads.trace_request(&Method::GET, url, &request_headers, None);
            let answer = self.client.send(Method::GET, url, &request_headers, None);
            let answer = tokio::time::timeout(HANDSHAKE, answer).await;
            let OriginResponse { status, headers, mut body, .. } = answer.map_err(|_| {
                Error::timeout("the server did not answer the WebSocket handshake")
            })??;
            self.heads.trace_response(status, &headers, Duration::ZERO, None);
            check_headers(&headers, self.target.limits.headers)?;
            if status == StatusCode::SWITCHING_PROTOCOLS {
                check_handshake(&headers, &key)?;
                let limits = WebSocketConfig::default()
                    .max_message_size(Some(MESSAGE_LIMIT))
                    .max_frame_size(Some(MESSAGE_LIMIT));
                let stream = body.upgrade().await?;
                let frames =
                    WebSocketStream::from_raw_socket(stream, ProtocolRole::Client, Some(limits));
                return Ok(channel(frames.await));
            }
            if matches!(status.as_u16(), 401 | 403) && !has_own && challenges < MAX_AUTHORIZATIONS {
                challenges += 1;
                let challenge = challenge(status, &headers, url, authorization);
                if credentials.handle_challenge(challenge).await? == ChallengeOutcome::Retry {
                    continue;
                }
            }
            let limits = &self.target.limits;
            let body = tokio::time::timeout(limits.control, body.beginning(limits.error_body));
            let body = &body.await.unwrap_or_default();
            return Err(if status.is_success() {
                Error::protocol(format!("{} does not speak WebSocket: {status}", display_url(url)))
                    .with_hint("is the server's url http instead of ws?")
            } else {
                HttpRefusal { status, headers: &headers, body, url, authorized }.error()
            });
        }
    }

    /// The headers of a handshake, apart from those that every request has.
    fn headers(&self, key: &str, authorization: Option<&SecretString>) -> Result<HeaderMap, Error> {
        let key = HeaderValue::try_from(key).map_err(|error| Error::internal(error.to_string()))?;
        let mut headers = HeaderMap::from_iter([
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
            (SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL),
            (SEC_WEBSOCKET_KEY, key),
        ]);
        if let Some(authorization) = authorization {
            headers.insert(AUTHORIZATION, sensitive_value(&AUTHORIZATION, authorization)?);
            self.checked.secrets.add_secret(AUTHORIZATION.as_str(), authorization);
        }
        Ok(headers)
    }
}

/// Whether a server that switched protocols speaks WebSocket, and answers this handshake (RFC 6455,
/// section 4.1). It may leave the subprotocol out.
fn check_handshake(headers: &HeaderMap, key: &str) -> Result<(), Error> {
    let is = |name: HeaderName, expected: &str| {
        headers
            .get(name)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(expected.as_bytes()))
    };
    let accept = headers.get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
    let wrong = if !is(UPGRADE, "websocket") || !is(CONNECTION, "upgrade") {
        "it switched to another protocol"
    } else if accept != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        "it does not answer the key of the handshake"
    } else if headers.get(SEC_WEBSOCKET_PROTOCOL).is_some_and(|chosen| chosen != SUBPROTOCOL) {
        "it chose a subprotocol that was not offered"
    } else {
        return Ok(());
    };
    Err(Error::protocol(format!("it breaks the WebSocket protocol: {wrong}")))
}

fn channel(stream: WebSocketStream<Upgraded>) -> Channel {
    let (sink, frames) = stream.split();
    let sink = sink.sink_map_err(frame_error).with(async |bytes: Bytes| {
        let text =
            Utf8Bytes::try_from(bytes).map_err(|error| Error::internal(error.to_string()))?;
        Ok(Message::Text(text))
    });
    let messages = frames.filter_map(async |frame| match frame {
        Ok(Message::Text(text)) => Some(Ok(Bytes::from(text))),
        Ok(Message::Binary(bytes)) => Some(Ok(bytes)),
        Ok(Message::Close(reason)) => {
            let reason = reason.filter(|reason| !reason.reason.is_empty());
            let error = Error::unreachable("the server closed the connection");
            Some(Err(match reason {
                Some(reason) => error.with_detail(format!("close: {}", reason.reason.as_str())),
                None => error,
            }))
        }
        // The library answers pings.
        Ok(_) => None,
        Err(error) => Some(Err(frame_error(error))),
    });
    Channel { sink: Box::pin(sink), messages: messages.boxed() }
}

fn frame_error(error: FrameError) -> Error {
    match error {
        FrameError::Capacity(_) => too_large(),
        FrameError::ConnectionClosed | FrameError::AlreadyClosed => {
            Error::unreachable("the server closed the connection")
        }
        FrameError::Io(error) => Error::unreachable(errors::io_text(&error)),
        FrameError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            Error::unreachable("the server closed the connection without saying so")
        }
        FrameError::Utf8(_) => Error::protocol("it sent a text frame that is not UTF-8"),
        error => Error::protocol(format!("it breaks the WebSocket protocol: {error}")),
    }
}
