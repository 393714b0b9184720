//! What crossed a wire, on its way to the console.
//!
//! Owns: how much of a large message is kept. It is cut before it waits in a queue, so that no
//! queue can hold more than its length says.

use bytes::Bytes;
use serde_json::Value;

use crate::model::Traffic;
use crate::model::traffic::{Glance, Passed};

/// How much of one message or line is kept, in bytes.
pub const KEPT: usize = 256 * 1024;
/// How much of a method or an identity is kept, in bytes.
const NAME: usize = 1024;

/// Something that crossed a wire, or happened to it; of large things the beginning.
#[derive(Debug, Clone)]
pub struct Seen {
    /// What it was, as far as it was kept.
    pub traffic: Traffic,
    /// How large it was, in bytes.
    pub size: usize,
    /// Whether something is missing.
    pub is_cut: bool,
}

impl Seen {
    /// Keeps what is to be kept.
    pub fn of(mut traffic: Traffic) -> Self {
        let mut is_cut = false;
        let size = match &mut traffic.what {
            Passed::Message { bytes, glance, .. } => {
                let size = bytes.len();
                // A copy: what was read may be a small part of a large buffer that would stay.
                *bytes = Bytes::copy_from_slice(bytes.get(..KEPT).unwrap_or(bytes));
                is_cut = shorten_glance(glance) || size > KEPT;
                size
            }
            Passed::Stderr(text)
            | Passed::Noise(text)
            | Passed::Opened(text)
            | Passed::Closed(text) => {
                let size = text.len();
                is_cut = shorten(text, KEPT);
                size
            }
            Passed::Head { line, headers, .. } => {
                let length = |(name, value): &(String, String)| name.len() + value.len();
                let size = line.len() + headers.iter().map(length).sum::<usize>();
                if size > KEPT {
                    is_cut = true;
                    shorten(line, NAME);
                    headers.retain(|header| length(header) <= NAME);
                    headers.truncate(KEPT / NAME);
                }
                size
            }
        };
        Self { traffic, size, is_cut }
    }
}

/// Keeps the beginning; says whether something is gone.
fn shorten(text: &mut String, most: usize) -> bool {
    let is_long = text.len() > most;
    if is_long {
        text.truncate(text.floor_char_boundary(most));
        text.shrink_to_fit();
    }
    is_long
}

fn shorten_glance(glance: &mut Glance) -> bool {
    let id_is_long = |id: &mut Value| match id {
        Value::String(text) => shorten(text, NAME),
        Value::Array(_) | Value::Object(_) => !std::mem::take(id).is_null(),
        Value::Number(number) if number.as_str().len() > NAME => !std::mem::take(id).is_null(),
        _ => false,
    };
    match glance {
        Glance::Request { id, method } => id_is_long(id) | shorten(method, NAME),
        Glance::Answer { id, method, .. } => {
            id_is_long(id) | method.as_mut().is_some_and(|method| shorten(method, NAME))
        }
        Glance::Notification { method } => shorten(method, NAME),
        Glance::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::traffic::Direction;

    fn seen(what: Passed) -> Seen {
        let (server, at) = ("a".to_owned(), Duration::ZERO);
        Seen::of(Traffic { server, sequence: 1, at, call: None, what })
    }

    #[test]
    fn of_what_is_large_the_beginning_is_kept_and_its_true_size() {
        let direction = Direction::Received;
        let long = "é".repeat(KEPT);
        let bytes = Bytes::from(long.clone());
        let method = Glance::Request { id: long.clone().into(), method: long.clone() };
        let message =
            |glance| Passed::Message { direction, bytes: bytes.clone(), glance, latency: None };
        let header = (long.clone(), String::new());
        let headers = vec![header, ("a".to_owned(), "b".to_owned())];
        let line = "200 OK".to_owned();
        for what in [
            message(method),
            message(Glance::Notification { method: long.clone() }),
            message(Glance::Answer { id: serde_json::json!([long]), method: None, error: false }),
            Passed::Head { direction, line, headers, latency: None },
            Passed::Noise(long.clone()),
        ] {
            let seen = seen(what);
            assert!(seen.is_cut && seen.size >= 2 * KEPT, "{}", seen.size);
            let kept = format!("{:?}", seen.traffic).len();
            // Bytes that are no ASCII are written as `\xc3`.
            assert!(kept < 5 * KEPT, "{kept}");
            if let Passed::Message { bytes, glance, .. } = &seen.traffic.what {
                assert_eq!(bytes.len(), KEPT);
                assert!(format!("{glance:?}").len() < 4 * NAME);
            }
        }
    }

    #[test]
    fn what_is_small_is_kept_whole() {
        let glance = Glance::Request { id: 7.into(), method: "ping".to_owned() };
        let bytes = Bytes::from_static(b"{}");
        let what = Passed::Message { direction: Direction::Sent, bytes, glance, latency: None };
        let seen = seen(what);
        assert_eq!((seen.is_cut, seen.size), (false, 2));
        assert_eq!(seen.traffic.what.method(), Some("ping"));
    }
}
