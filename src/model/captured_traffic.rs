//! Traffic as kept by viewers, with large items truncated.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::traffic::{MessageInfo, Traffic, TrafficKind};

/// How much of one message or line is kept, in bytes.
pub const MAX_CAPTURED_BYTES: usize = 256 * 1024;
/// How much of a method or an identity is kept, in bytes.
const NAME: usize = 1024;

/// Something that crossed a wire or happened to it, truncated if large.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CapturedTraffic {
    /// The traffic, truncated if it was too large.
    pub traffic: Traffic,
    /// The size in bytes before truncation.
    pub size: usize,
    /// Whether the content was too large and was truncated.
    pub is_cut: bool,
}

impl CapturedTraffic {
    /// Truncates an item to what is kept.
    pub fn capture(mut traffic: Traffic) -> Self {
        let mut is_cut = false;
        let size = match &mut traffic.kind {
            TrafficKind::Message { bytes, info, .. } => {
                let size = bytes.len();
                // A copy: what was read may be a small part of a large buffer that would stay.
                *bytes = Bytes::copy_from_slice(bytes.get(..MAX_CAPTURED_BYTES).unwrap_or(bytes));
                is_cut = shorten_glance(info) || size > MAX_CAPTURED_BYTES;
                size
            }
            TrafficKind::Stderr(text)
            | TrafficKind::NonJsonLine(text)
            | TrafficKind::Opened(text)
            | TrafficKind::Closed(text) => {
                let size = text.len();
                is_cut = shorten(text, MAX_CAPTURED_BYTES);
                size
            }
            TrafficKind::HttpHead { line, headers, .. } => {
                let length = |(name, value): &(String, String)| name.len() + value.len();
                let size = line.len() + headers.iter().map(length).sum::<usize>();
                if size > MAX_CAPTURED_BYTES {
                    is_cut = true;
                    shorten(line, NAME);
                    headers.retain(|header| length(header) <= NAME);
                    headers.truncate(MAX_CAPTURED_BYTES / NAME);
                }
                size
            }
        };
        Self { traffic, size, is_cut }
    }
}

/// Truncates; returns whether anything was removed.
fn shorten(text: &mut String, most: usize) -> bool {
    let is_long = text.len() > most;
    if is_long {
        text.truncate(text.floor_char_boundary(most));
        text.shrink_to_fit();
    }
    is_long
}

fn shorten_glance(info: &mut MessageInfo) -> bool {
    let id_is_long = |id: &mut Value| match id {
        Value::String(text) => shorten(text, NAME),
        Value::Array(_) | Value::Object(_) => !std::mem::take(id).is_null(),
        Value::Number(number) if number.as_str().len() > NAME => !std::mem::take(id).is_null(),
        _ => false,
    };
    match info {
        MessageInfo::Request { id, method } => id_is_long(id) | shorten(method, NAME),
        MessageInfo::Response { id, method, .. } => {
            id_is_long(id) | method.as_mut().is_some_and(|method| shorten(method, NAME))
        }
        MessageInfo::Notification { method } => shorten(method, NAME),
        MessageInfo::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::traffic::Direction;

    fn captured_traffic(what: TrafficKind) -> CapturedTraffic {
        let (server, at) = ("a".to_owned(), Duration::ZERO);
        CapturedTraffic::capture(Traffic { server, sequence: 1, at, call: None, kind: what })
    }

    #[test]
    fn of_what_is_large_the_beginning_is_kept_and_its_true_size() {
        let direction = Direction::Received;
        let long = "é".repeat(MAX_CAPTURED_BYTES);
        let bytes = Bytes::from(long.clone());
        let method = MessageInfo::Request { id: long.clone().into(), method: long.clone() };
        let message =
            |info| TrafficKind::Message { direction, bytes: bytes.clone(), info, latency: None };
        let header = (long.clone(), String::new());
        let headers = vec![header, ("a".to_owned(), "b".to_owned())];
        let line = "200 OK".to_owned();
        for what in [
            message(method),
            message(MessageInfo::Notification { method: long.clone() }),
            message(MessageInfo::Response {
                id: serde_json::json!([long]),
                method: None,
                is_error: false,
            }),
            TrafficKind::HttpHead { direction, line, headers, latency: None },
            TrafficKind::NonJsonLine(long.clone()),
        ] {
            let capture = captured_traffic(what);
            assert!(capture.is_cut && capture.size >= 2 * MAX_CAPTURED_BYTES, "{}", capture.size);
            let length = format!("{:?}", capture.traffic).len();
            // Bytes that are no ASCII are written as `\xc3`.
            assert!(length < 5 * MAX_CAPTURED_BYTES, "{length}");
            if let TrafficKind::Message { bytes, info, .. } = &capture.traffic.kind {
                assert_eq!(bytes.len(), MAX_CAPTURED_BYTES);
                assert!(format!("{info:?}").len() < 4 * NAME);
            }
        }
    }

    #[test]
    fn what_is_small_is_kept_whole() {
        let info = MessageInfo::Request { id: 7.into(), method: "ping".to_owned() };
        let bytes = Bytes::from_static(b"{}");
        let what = TrafficKind::Message { direction: Direction::Sent, bytes, info, latency: None };
        let captured = captured_traffic(what);
        assert_eq!((captured.is_cut, captured.size), (false, 2));
        assert_eq!(captured.traffic.kind.method(), Some("ping"));
    }
}
