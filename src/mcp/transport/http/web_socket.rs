//! WebSocket: one message per text frame, after a handshake over HTTP with the headers and
//! credentials of the entry. MCP names no such transport; this is the one that `serve` offers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use http::Request;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue, USER_AGENT};
use secrecy::SecretString;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::error::{ProtocolError, SubProtocolError};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as FrameError, Message, Utf8Bytes};
use url::Url;

use super::HeadTracer;
use super::credential_gate::{MAX_AUTHORIZATIONS, challenge, sensitive_value};
use super::status::HttpRefusal;
use super::target::{CheckedTarget, HttpTarget};
use crate::mcp::credentials::ChallengeOutcome;
use crate::mcp::transport::socket::{Channel, SocketWire, too_large};
use crate::mcp::wire::MESSAGE_LIMIT;
use crate::model::Error;
use crate::net::address::display_url;
use crate::net::client;
use crate::net::dial::{Dialer, NetStream};
use crate::net::errors;

const HANDSHAKE: Duration = Duration::from_secs(10);
const SUBPROTOCOL: HeaderValue = HeaderValue::from_static("mcp");

pub fn connect(target: HttpTarget) -> Result<SocketWire, Error> {
    let checked = target.check()?;
    let dialer = Dialer::new(target.url.clone(), None, target.limits.connect, target.insecure)?;
    let tracer = target.tracer.clone();
    let heads = HeadTracer::new(tracer.clone(), &checked.headers);
    let opener = Arc::new(Opener { target, checked, dialer, heads });
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
    dialer: Dialer,
    heads: HeadTracer,
}

impl Opener {
    async fn open(&self) -> Result<Channel, Error> {
        let url = &self.target.url;
        let credentials = &self.target.credentials;
        let has_own = self.checked.headers.contains_key(AUTHORIZATION);
        let (mut challenges, mut offers_subprotocol) = (0, true);
        loop {
            let authorization = if has_own { None } else { credentials.authorization().await? };
            let request = self.request(authorization.as_ref(), offers_subprotocol)?;
            let authorized = request.headers().contains_key(AUTHORIZATION);
            let handshake = tokio::time::timeout(HANDSHAKE, self.handshake(request)).await;
            let handshake = handshake
                .map_err(|_| Error::timeout("the server did not answer the WebSocket handshake"))?;
            let response = match handshake? {
                Ok(stream) => return Ok(channel(stream)),
                // Some servers demand a subprotocol, and some know none.
                Err(FrameError::Protocol(ProtocolError::SecWebSocketSubProtocolError(
                    SubProtocolError::NoSubProtocol,
                ))) if offers_subprotocol => {
                    offers_subprotocol = false;
                    continue;
                }
                Err(FrameError::Http(response)) => response,
                Err(error) => return Err(frame_error(error)),
            };
            let (head, body) = response.into_parts();
            let (status, headers) = (head.status, &head.headers);
            if matches!(status.as_u16(), 401 | 403) && !has_own && challenges < MAX_AUTHORIZATIONS {
                challenges += 1;
                let challenge = challenge(status, headers, url, authorization);
                if credentials.handle_challenge(challenge).await? == ChallengeOutcome::Retry {
                    continue;
                }
            }
            let body = &body.unwrap_or_default();
            return Err(if status.is_success() {
                Error::protocol(format!("{} does not speak WebSocket: {status}", display_url(url)))
                    .with_hint("is the server's url http instead of ws?")
            } else {
                HttpRefusal { status, headers, body, url, authorized }.error()
            });
        }
    }

    fn request(
        &self,
        authorization: Option<&SecretString>,
        offers_subprotocol: bool,
    ) -> Result<Request<()>, Error> {
        let url = with_scheme(&self.target.url, "wss", "ws");
        let unusable =
            |error| Error::config(format!("{} cannot be asked: {error}", display_url(&url)));
        let mut request = url.as_str().into_client_request().map_err(unusable)?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(client::USER_AGENT));
        if offers_subprotocol {
            headers.insert(HeaderName::from_static("sec-websocket-protocol"), SUBPROTOCOL);
        }
        for (name, value) in &self.checked.headers {
            headers.append(name.clone(), value.clone());
        }
        if let Some(authorization) = authorization {
            headers.insert(AUTHORIZATION, sensitive_value(&AUTHORIZATION, authorization)?);
            self.checked.secrets.add_secret(AUTHORIZATION.as_str(), authorization);
        }
        Ok(request)
    }

    async fn handshake(
        &self,
        request: Request<()>,
    ) -> Result<Result<WebSocketStream<NetStream>, FrameError>, Error> {
        let stream = self.dialer.dial().await?;
        self.heads.trace_request(&Method::GET, &self.target.url, request.headers(), None);
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_LIMIT))
            .max_frame_size(Some(MESSAGE_LIMIT));
        let opened =
            tokio_tungstenite::client_async_with_config(request, stream, Some(limits)).await;
        let took = Duration::ZERO;
        match &opened {
            Ok((_, response)) => {
                self.heads.trace_response(response.status(), response.headers(), took, None);
            }
            Err(FrameError::Http(response)) => {
                self.heads.trace_response(response.status(), response.headers(), took, None);
            }
            Err(_) => {}
        }
        Ok(opened.map(|(stream, _)| stream))
    }
}

fn with_scheme(url: &Url, encrypted: &str, plain: &str) -> Url {
    let mut url = url.clone();
    let scheme = if matches!(url.scheme(), "https" | "wss") { encrypted } else { plain };
    // Schemes of this family can always be exchanged.
    let _same_family = url.set_scheme(scheme);
    url
}

fn channel(stream: WebSocketStream<NetStream>) -> Channel {
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
