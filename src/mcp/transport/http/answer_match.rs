//! Checking cheaply whether a message is the response to a given request.
//!
//! A stream is read until the response it was opened for has arrived, so the wire must recognise it.
//! Nothing is made a tree of, and the rest of a message is not judged.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::mcp::bounded_list::BoundedList;
use crate::mcp::envelope::Envelope;
use crate::mcp::message::trim_bytes;

/// How many messages of a batch are looked at; the reader refuses more anyway.
const MAX_BATCH: usize = 1_000;

/// The ids that a message (or the messages of a batch) answers, and whether with an error.
#[derive(Debug, Default)]
struct MessageSummary {
    answered_ids: Vec<Value>,
    has_error: bool,
}

impl MessageSummary {
    fn of(message: &[u8]) -> serde_json::Result<Self> {
        let text = String::from_utf8_lossy(trim_bytes(message));
        let mut summary = Self::default();
        if text.starts_with('[') {
            for item in serde_json::from_str::<BoundedList<&RawValue, MAX_BATCH>>(&text)?.items {
                summary.add(Envelope::read(item.get())?);
            }
        } else {
            summary.add(Envelope::read(&text)?);
        }
        Ok(summary)
    }

    fn add(&mut self, envelope: Envelope<'_>) {
        if envelope.method.is_none() {
            self.answered_ids.extend(envelope.id);
            self.has_error |= envelope.error.is_some() && envelope.jsonrpc.is_some();
        }
    }
}

/// What a message means for the request on whose stream it came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerMatch {
    Answer,
    OtherAnswer(String),
    /// It is a request or a notification of the server.
    NotAnAnswer,
    /// It is not JSON (or not an object), and why.
    Unreadable(String),
}

/// Looks whether `message` answers the request `id`.
pub(super) fn match_answer(message: &[u8], id: &Value) -> AnswerMatch {
    match MessageSummary::of(message) {
        Err(error) => AnswerMatch::Unreadable(error.to_string()),
        Ok(top) if top.answered_ids.contains(id) => AnswerMatch::Answer,
        Ok(top) => top.answered_ids.first().map_or(AnswerMatch::NotAnAnswer, |other| {
            AnswerMatch::OtherAnswer(other.to_string().chars().take(80).collect())
        }),
    }
}

pub(super) fn answered_ids(message: &[u8]) -> Vec<Value> {
    MessageSummary::of(message).map(|summary| summary.answered_ids).unwrap_or_default()
}

pub(super) fn is_error(body: &[u8]) -> bool {
    MessageSummary::of(body).is_ok_and(|summary| summary.has_error)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_answer_is_recognised_by_its_id() {
        let id = json!(3);
        assert_eq!(
            match_answer(br#"{"jsonrpc":"2.0","result":{},"id":3}"#, &id),
            AnswerMatch::Answer
        );
        assert_eq!(
            match_answer(br#"{"jsonrpc":"2.0","error":{},"id":3}"#, &id),
            AnswerMatch::Answer
        );
        assert_eq!(
            match_answer(br#"{"id":"3","result":1}"#, &id),
            AnswerMatch::OtherAnswer("\"3\"".into())
        );
        assert_eq!(
            match_answer(br#"{"id":4,"result":1}"#, &id),
            AnswerMatch::OtherAnswer("4".into())
        );
    }

    #[test]
    fn a_request_of_the_server_with_the_same_id_is_no_answer() {
        assert_eq!(
            match_answer(br#"{"id":3,"method":"ping"}"#, &json!(3)),
            AnswerMatch::NotAnAnswer
        );
        assert_eq!(
            match_answer(br#"{"method":"notifications/message"}"#, &json!(3)),
            AnswerMatch::NotAnAnswer
        );
    }

    #[test]
    fn a_batch_is_searched() {
        let batch = br#"[{"method":"x"},{"id":3,"result":{}}]"#;
        assert_eq!(match_answer(batch, &json!(3)), AnswerMatch::Answer);
        assert_eq!(match_answer(batch, &json!(4)), AnswerMatch::OtherAnswer("3".into()));
    }

    #[test]
    fn what_is_not_a_message_says_why() {
        for text in [&b"NaN"[..], b"{\"id\":3", b"17", b"", b"{\"result\":NaN,\"id\":3}"] {
            assert!(
                matches!(match_answer(text, &json!(3)), AnswerMatch::Unreadable(_)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = format!(r#"{{"result":{}{},"id":3}}"#, "[".repeat(300_000), "]".repeat(300_000));
        assert_eq!(match_answer(deep.as_bytes(), &json!(3)), AnswerMatch::Answer);
        let deep = format!(r#"{{"id":{}{}}}"#, "[".repeat(300_000), "]".repeat(300_000));
        assert_eq!(
            match_answer(deep.as_bytes(), &json!(3)),
            AnswerMatch::OtherAnswer("null".into())
        );
    }

    #[test]
    fn an_error_body_is_told_from_other_json() {
        assert!(is_error(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000}}"#));
        assert!(!is_error(br#"{"error":"not found"}"#));
        assert!(!is_error(b"<html>"));
    }
}
