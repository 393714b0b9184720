//! The headers of the protocol, in both eras.

use std::borrow::Cow;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::http_session::HttpSession;
use crate::mcp::wire::{FrameKind, OutgoingFrame};
use crate::model::{Era, Error};
use crate::util::base64;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAMETER: &str = "mcp-param-";

const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

const ORDINARY_HEADERS: usize = 8;

pub(super) fn post(frame: &OutgoingFrame, session: &HttpSession) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::with_capacity(ORDINARY_HEADERS);
    headers.insert(ACCEPT, JSON_OR_EVENTS);
    headers.insert(CONTENT_TYPE, JSON);
    let (method, name, own) = match &frame.kind {
        FrameKind::Request { method, name, headers, .. } => {
            (Some(method), name.as_ref(), &headers[..])
        }
        FrameKind::Notification { method, .. } => (Some(method), None, &[][..]),
        FrameKind::Response { .. } | FrameKind::Other => (None, None, &[][..]),
    };
    let discovering = method.is_some_and(|method| method == "server/discover");
    match session.agreement() {
        _ if discovering => {
            // Discovery itself proposes the version, in its body.
            let version = proposed_version(&frame.bytes);
            headers.extend(version.map(|version| (VERSION, version)));
        }
        Some((Era::Legacy, version)) => {
            headers.extend(version.map(|version| (VERSION, version)));
            headers.extend(session.id().map(|id| (SESSION, id)));
            return Ok(headers);
        }
        Some((Era::Modern, version)) => headers.extend(version.map(|version| (VERSION, version))),
        None => {
            headers.extend(session.id().map(|id| (SESSION, id)));
            return Ok(headers);
        }
    }
    if let Some(method) = method {
        headers.insert(METHOD, header_value(method)?);
    }
    if let Some(name) = name {
        headers.insert(NAME, header_value(name)?);
    }
    for (name, value) in own {
        headers.append(parameter_name(name)?, header_value(value)?);
    }
    Ok(headers)
}

/// The headers of a GET for an event stream, or of the DELETE of a session (legacy era).
pub(super) fn get(session: &HttpSession) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, EVENTS);
    headers.extend(session.id().map(|id| (SESSION, id)));
    let version = session.agreement().and_then(|(_, version)| version);
    headers.extend(version.map(|version| (VERSION, version)));
    headers
}

/// Only names of this family are taken from a tool's definition, so that a server cannot name
/// `Authorization` there.
pub(super) fn parameter_name(name: &str) -> Result<HeaderName, Error> {
    let parsed = HeaderName::try_from(name).ok();
    parsed.filter(|name| name.as_str().starts_with(PARAMETER)).ok_or_else(|| {
        let shown: String = name.chars().take(80).collect();
        Error::protocol(format!("'{shown}' is not a header that a tool may set"))
    })
}

pub(super) fn header_value(value: &str) -> Result<HeaderValue, Error> {
    HeaderValue::try_from(header_text(value).as_ref())
        .map_err(|_| Error::internal("a header value cannot be encoded"))
}

/// A value as sent in an `Mcp-*` header: itself when it is printable ASCII without blanks at
/// its ends, else `=?base64?…?=` over its UTF-8 bytes; what looks encoded already is encoded too.
pub fn header_text(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|b| matches!(b, 0x20..=0x7e))
        && value.trim_matches(' ') == value
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if plain {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(format!("=?base64?{}?=", base64::encode(value.as_bytes())))
    }
}

fn proposed_version(body: &Bytes) -> Option<HeaderValue> {
    let message: Value = serde_json::from_slice(body).ok()?;
    let meta = message.get("params")?.get("_meta")?;
    HeaderValue::try_from(meta.get("io.modelcontextprotocol/protocolVersion")?.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(
        method: &str,
        name: Option<&str>,
        own: &[(&str, &str)],
        body: &Value,
    ) -> OutgoingFrame {
        OutgoingFrame {
            bytes: Bytes::from(body.to_string()),
            call: None,
            kind: FrameKind::Request {
                id: json!(1),
                method: method.to_owned(),
                name: name.map(str::to_owned),
                headers: own.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
            },
        }
    }

    fn session(era: Option<(Era, &str)>, id: Option<&str>) -> HttpSession {
        let mut session = HttpSession::default();
        if let Some((era, version)) = era {
            session.set_agreement(era, version);
        }
        if let Some(id) = id {
            assert_eq!(session.set_id(&HeaderValue::from_str(id).unwrap()), None);
        }
        session
    }

    fn names(headers: &HeaderMap) -> Vec<String> {
        let mut shown: Vec<_> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .filter(|line| line.starts_with("mcp-") || line.starts_with("last-"))
            .collect();
        shown.sort_unstable();
        shown
    }

    #[test]
    fn before_an_agreement_initialize_has_no_headers_and_discover_takes_them_from_its_body() {
        let none = session(None, None);
        let init = request("initialize", None, &[], &json!({}));
        assert_eq!(names(&post(&init, &none).unwrap()), [] as [&str; 0]);
        let body =
            json!({"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}});
        let discover = request("server/discover", None, &[], &body);
        assert_eq!(
            names(&post(&discover, &none).unwrap()),
            ["mcp-method: server/discover", "mcp-protocol-version: 2026-07-28"]
        );
    }

    #[test]
    fn legacy_carries_session_and_version_and_nothing_of_the_modern_era() {
        let legacy = session(Some((Era::Legacy, "2025-11-25")), Some("abc"));
        let call = request("tools/call", Some("echo"), &[("Mcp-Param-A", "1")], &json!({}));
        let expected = ["mcp-protocol-version: 2025-11-25", "mcp-session-id: abc"];
        assert_eq!(names(&post(&call, &legacy).unwrap()), expected);
        assert_eq!(names(&get(&legacy)), expected);
    }

    #[test]
    fn modern_carries_method_name_and_parameters_and_no_session() {
        let modern = session(Some((Era::Modern, "2026-07-28")), Some("abc"));
        let call = request("tools/call", Some("écho"), &[("Mcp-Param-A", "1")], &json!({}));
        assert_eq!(
            names(&post(&call, &modern).unwrap()),
            [
                "mcp-method: tools/call",
                "mcp-name: =?base64?w6ljaG8=?=",
                "mcp-param-a: 1",
                "mcp-protocol-version: 2026-07-28"
            ]
        );
        let note = OutgoingFrame {
            bytes: Bytes::new(),
            call: None,
            kind: FrameKind::Notification { method: "notifications/x".into(), cancels: None },
        };
        assert_eq!(
            names(&post(&note, &modern).unwrap()),
            ["mcp-method: notifications/x", "mcp-protocol-version: 2026-07-28"]
        );
    }

    #[test]
    fn a_tool_cannot_name_any_other_header() {
        let modern = session(Some((Era::Modern, "2026-07-28")), None);
        for name in ["Authorization", "Mcp-Param-A\r\nX: y", "", "mcp-method"] {
            let call = request("tools/call", None, &[(name, "x")], &json!({}));
            assert!(post(&call, &modern).is_err(), "{name:?}");
        }
    }

    #[test]
    fn values_are_encoded_when_a_header_cannot_carry_them() {
        for plain in ["echo", "file:///a b/c", "", "=?base64?x"] {
            assert_eq!(header_text(plain), plain);
        }
        assert_eq!(header_text(" a"), "=?base64?IGE=?=");
        assert_eq!(header_text("a\r\nb"), "=?base64?YQ0KYg==?=");
        assert_eq!(header_text("日本"), "=?base64?5pel5pys?=");
        assert_eq!(header_text("=?base64?literal?="), "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
    }
}
