//! Checking cheaply whether a message is the response to a given request.
//!
//! A stream is read until the response it was opened for has arrived, so the wire must recognise it.
//! Owns: finding `id`, `method` and `error` at the top of a message without building a tree (deep
//! or huge values are skipped iteratively). Never does: judge the rest of the message.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::mcp::envelope::{EnvelopeKey, read_id};
use crate::mcp::message::trim_bytes;

/// How many ids are remembered of one message or batch; the reader refuses more anyway.
const MAX_IDS: usize = 1_000;

/// The top-level members of one message (or of the messages of a batch).
#[derive(Debug, Default)]
struct MessageSummary {
    answered_ids: Vec<Value>,
    has_error: bool,
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
    match serde_json::from_slice::<MessageSummary>(trim_bytes(message)) {
        Err(error) => AnswerMatch::Unreadable(error.to_string()),
        Ok(top) if top.answered_ids.contains(id) => AnswerMatch::Answer,
        Ok(top) => top.answered_ids.first().map_or(AnswerMatch::NotAnAnswer, |other| {
            AnswerMatch::OtherAnswer(other.to_string().chars().take(80).collect())
        }),
    }
}

/// Whether `message` is the response to `id` and nothing else.
pub(super) fn is_plain_answer(message: &[u8], id: &Value) -> bool {
    trim_bytes(message).starts_with(b"{") && match_answer(message, id) == AnswerMatch::Answer
}

pub(super) fn answered_ids(message: &[u8]) -> Vec<Value> {
    serde_json::from_slice::<MessageSummary>(trim_bytes(message))
        .map(|top| top.answered_ids)
        .unwrap_or_default()
}

pub(super) fn is_error(body: &[u8]) -> bool {
    serde_json::from_slice::<MessageSummary>(body).is_ok_and(|top| top.has_error)
}

impl<'de> Deserialize<'de> for MessageSummary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MessageSummaryVisitor)
    }
}

struct MessageSummaryVisitor;

impl<'de> Visitor<'de> for MessageSummaryVisitor {
    type Value = MessageSummary;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MessageSummary, A::Error> {
        let (mut ids, mut method, mut version, mut error) = (Vec::new(), false, false, false);
        while let Some(key) = map.next_key()? {
            match key {
                // A repeated key is the reader's to complain about; here any of them counts.
                EnvelopeKey::Id => {
                    let raw = map.next_value::<&RawValue>()?;
                    if ids.len() < MAX_IDS {
                        ids.push(read_id(raw.get()));
                    }
                    continue;
                }
                EnvelopeKey::Method => method = true,
                EnvelopeKey::Jsonrpc => version = true,
                EnvelopeKey::Error => error = true,
                _ => {}
            }
            map.next_value::<IgnoredAny>()?;
        }
        let answered = if method { Vec::new() } else { ids };
        Ok(MessageSummary { answered_ids: answered, has_error: error && version && !method })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<MessageSummary, A::Error> {
        let mut all = MessageSummary::default();
        while let Some(one) = seq.next_element::<MessageSummary>()? {
            let room = MAX_IDS.saturating_sub(all.answered_ids.len());
            all.answered_ids.extend(one.answered_ids.into_iter().take(room));
            all.has_error |= one.has_error;
        }
        Ok(all)
    }
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
    fn an_answer_is_plain_when_nothing_comes_with_it() {
        for (text, plain) in [
            (r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, true),
            (r#" {"jsonrpc":"2.0","id":3,"error":{}} "#, true),
            (r#"{"jsonrpc":"2.0","id":4,"result":{}}"#, false),
            (r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#, false),
            (r#"[{"jsonrpc":"2.0","id":3,"result":{}}]"#, false),
            (r#"{"jsonrpc":"2.0","id":3,"result":{}} {"method":"x"}"#, false),
            ("{", false),
        ] {
            assert_eq!(is_plain_answer(text.as_bytes(), &json!(3)), plain, "{text}");
        }
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
