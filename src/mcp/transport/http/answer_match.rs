//! Whether what came is the response to a given request: a stream is read until it has come.

use serde_json::Value;

use crate::mcp::message::{Incoming, ParsedInput, mentions_jsonrpc};

/// What a message means for the request on whose stream it came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerMatch {
    Answer,
    OtherAnswer(String),
    /// It is a request or a notification of the server.
    NotAnAnswer,
    /// It is not JSON (or not an object): some of its text.
    Unreadable(String),
}

/// Looks whether `incoming` answers the request `id`.
pub(super) fn match_answer(incoming: &Incoming, id: &Value) -> AnswerMatch {
    match &incoming.input {
        ParsedInput::Messages(messages, _) if messages.is_empty() => {
            return AnswerMatch::Unreadable(String::new());
        }
        ParsedInput::Messages(..) => {}
        ParsedInput::NonMessage(text) => return AnswerMatch::Unreadable(text.clone()),
        ParsedInput::Unreadable(error) | ParsedInput::Broken(error) => {
            let text = error.details().first().cloned();
            return AnswerMatch::Unreadable(text.unwrap_or_else(|| error.message().to_owned()));
        }
    }
    let mut answered = incoming.answers().map(|(answered, _)| answered);
    let Some(first) = answered.next() else { return AnswerMatch::NotAnAnswer };
    if first == id || answered.any(|answered| answered == id) {
        AnswerMatch::Answer
    } else {
        AnswerMatch::OtherAnswer(first.to_string().chars().take(80).collect())
    }
}

/// Whether the body of a refusal is an error of the protocol.
pub(super) fn is_error(body: &Incoming) -> bool {
    mentions_jsonrpc(&body.bytes) && body.answers().any(|(_, outcome)| outcome.is_err())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    fn incoming(text: &[u8]) -> Incoming {
        Incoming::read(Bytes::copy_from_slice(text))
    }

    #[test]
    fn the_answer_is_recognised_by_its_id() {
        let id = json!(3);
        assert_eq!(
            match_answer(&incoming(br#"{"jsonrpc":"2.0","result":{},"id":3}"#), &id),
            AnswerMatch::Answer
        );
        assert_eq!(
            match_answer(&incoming(br#"{"jsonrpc":"2.0","error":{},"id":3}"#), &id),
            AnswerMatch::Answer
        );
        assert_eq!(
            match_answer(&incoming(br#"{"id":"3","result":1}"#), &id),
            AnswerMatch::OtherAnswer("\"3\"".into())
        );
        assert_eq!(
            match_answer(&incoming(br#"{"id":4,"result":1}"#), &id),
            AnswerMatch::OtherAnswer("4".into())
        );
    }

    #[test]
    fn a_request_of_the_server_with_the_same_id_is_no_answer() {
        assert_eq!(
            match_answer(&incoming(br#"{"id":3,"method":"ping"}"#), &json!(3)),
            AnswerMatch::NotAnAnswer
        );
        assert_eq!(
            match_answer(&incoming(br#"{"method":"notifications/message"}"#), &json!(3)),
            AnswerMatch::NotAnAnswer
        );
    }

    #[test]
    fn a_batch_is_searched() {
        let batch = br#"[{"method":"x"},{"id":3,"result":{}}]"#;
        assert_eq!(match_answer(&incoming(batch), &json!(3)), AnswerMatch::Answer);
        assert_eq!(match_answer(&incoming(batch), &json!(4)), AnswerMatch::OtherAnswer("3".into()));
    }

    #[test]
    fn what_is_not_a_message_says_why() {
        for text in [&b"NaN"[..], b"{\"id\":3", b"17", b"", b"{\"result\":NaN,\"id\":3}"] {
            assert!(
                matches!(match_answer(&incoming(text), &json!(3)), AnswerMatch::Unreadable(_)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = format!(r#"{{"result":{}{},"id":3}}"#, "[".repeat(300_000), "]".repeat(300_000));
        assert_eq!(match_answer(&incoming(deep.as_bytes()), &json!(3)), AnswerMatch::Answer);
        let deep = format!(r#"{{"id":{}{}}}"#, "[".repeat(300_000), "]".repeat(300_000));
        assert_eq!(
            match_answer(&incoming(deep.as_bytes()), &json!(3)),
            AnswerMatch::OtherAnswer("null".into())
        );
    }

    #[test]
    fn an_error_body_is_told_from_other_json() {
        assert!(is_error(&incoming(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000}}"#)));
        assert!(!is_error(&incoming(br#"{"error":"not found"}"#)));
        assert!(!is_error(&incoming(b"<html>")));
    }
}
