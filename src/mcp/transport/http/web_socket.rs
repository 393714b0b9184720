//! WebSocket: one message per text frame, after a handshake over HTTP with the headers and
//! credentials of the entry. MCP names no such transport; this is the one that `serve` offers.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use reqwest::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode, Upgraded};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role as ProtocolRole, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as FrameError, Message, Utf8Bytes};

use super::HttpShared;
use super::target::HttpTarget;
use crate::mcp::transport::socket::{Channel, SocketWire, too_large};
use crate::mcp::wire::MESSAGE_LIMIT;
use crate::model::Error;
use crate::net::address::display_url;
use crate::net::errors;
use crate::net::response::OriginResponse;
use crate::util::lock::lock;

const SUBPROTOCOL: HeaderValue = HeaderValue::from_static("mcp");

pub fn connect(target: HttpTarget) -> Result<SocketWire, Error> {
    let tracer = target.tracer.clone();
    let (shared, _no_arrivals, warning) = HttpShared::new(target)?;
    let shared = Arc::new(shared);
    let opener = move || {
        let shared = Arc::clone(&shared);
        async move { open(&shared).await.map_err(|error| shared.redactor.redact_error(error)) }
            .boxed()
    };
    Ok(SocketWire::new(Box::new(opener), true, tracer).warning(warning))
}

async fn open(shared: &HttpShared) -> Result<Channel, Error> {
    let url = lock(&shared.url).clone();
    let key = generate_key();
    let key_header =
        HeaderValue::try_from(&key).map_err(|error| Error::internal(error.to_string()))?;
    let headers = HeaderMap::from_iter([
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
        (SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL),
        (SEC_WEBSOCKET_KEY, key_header),
    ]);
    let response = shared.send_with_credentials(Method::GET, &url, headers, None, None).await?;
    let OriginResponse { status, headers, mut body, .. } = response;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        check_handshake(&headers, &key)?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MESSAGE_LIMIT))
            .max_frame_size(Some(MESSAGE_LIMIT));
        let stream = body.upgrade().await?;
        let frames = WebSocketStream::from_raw_socket(stream, ProtocolRole::Client, Some(limits));
        return Ok(channel(frames.await));
    }
    let body = shared.read_beginning(&mut body).await;
    Err(if status.is_success() {
        Error::protocol(format!("{} does not speak WebSocket: {status}", display_url(&url)))
            .with_hint("is the server's url http instead of ws?")
    } else {
        shared.refusal(status, &headers, &body, &url)
    })
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
        FrameError::Capacity(_) => too_large(MESSAGE_LIMIT),
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
