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
                is_cut = size > KEPT || shorten_glance(glance);
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
