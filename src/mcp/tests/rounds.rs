//! Tests of servers that answer with questions.

use serde_json::{Value, json};

use super::peer::FakeServer;
use super::questions::{call, form, text, with_channel_inbox, with_fixed_reply};
use super::{connected_legacy, connected_with, part_of};
use crate::model::{ErrorKind, QuestionReply};

fn asks(key: &str, method: &str, params: &Value) -> Value {
    json!({ "resultType": "input_required",
            "inputRequests": { key: { "method": method, "params": params } } })
}

async fn request(peer: &mut FakeServer) -> Value {
    peer.expect("tools/call").await
}

#[tokio::test(start_paused = true)]
async fn state_is_echoed_exactly_and_each_round_is_a_new_request() {
    let (options, mut questions) = with_channel_inbox();
    let (connection, mut peer) = connected_with(options).await;
    let options = part_of("call-1");
    let state = "\u{0}o\u{301}pa\"que \\ \u{1f600}  ";
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        let first = request(&mut peer).await;
        assert!(first["params"].get("inputResponses").is_none());
        let mut ask = asks("who", "elicitation/create", &form());
        ask["requestState"] = json!(state);
        peer.answer(&first, &ask);
        let (question, reply) = questions.recv().await.unwrap();
        assert_eq!((question.round, question.call.unwrap().0.as_ref()), (Some(1), "call-1"));
        reply.send(QuestionReply::Accept(json!({ "who": {} }))).unwrap();
        let second = request(&mut peer).await;
        assert_ne!(first["id"], second["id"]);
        assert_eq!(second["params"]["requestState"], json!(state));
        let answer = json!({ "who": { "action": "accept", "content": { "who": {} } } });
        assert_eq!(second["params"]["inputResponses"], answer);
        assert_eq!(second["params"]["name"], first["params"]["name"]);
        // Without a state there is none to echo.
        peer.answer(&second, &asks("how", "elicitation/create", &form()));
        let (question, reply) = questions.recv().await.unwrap();
        assert_eq!(question.round, Some(2));
        reply.send(QuestionReply::Decline).unwrap();
        let third = request(&mut peer).await;
        assert!(third["params"].get("requestState").is_none(), "{third}");
        assert_eq!(third["params"]["inputResponses"], json!({ "how": { "action": "decline" } }));
        peer.answer(&third, &text("done"));
    });
    assert_eq!(result.unwrap().output, json!("done"));
}

#[tokio::test(start_paused = true)]
async fn all_questions_of_a_round_are_answered_together() {
    let options = crate::mcp::connection::ConnectOptions {
        roots: vec!["file:///srv".into()],
        ..with_fixed_reply(QuestionReply::Accept(json!({ "role": "assistant" })))
    };
    let (connection, mut peer) = connected_with(options).await;
    let options = part_of("call-1");
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        let first = request(&mut peer).await;
        let ask = json!({ "resultType": "input_required", "inputRequests": {
            "r": { "method": "roots/list" },
            "s": { "method": "sampling/createMessage", "params": { "messages": [] } },
            "u": { "method": "elicitation/create", "params":
                   { "mode": "url", "message": "Pay", "url": "https://pay.example" } } } });
        peer.answer(&first, &ask);
        let second = request(&mut peer).await;
        let answers = &second["params"]["inputResponses"];
        assert_eq!(answers["r"], json!({ "roots": [{ "uri": "file:///srv" }] }));
        assert_eq!(answers["s"], json!({ "role": "assistant" }));
        assert_eq!(answers["u"], json!({ "action": "accept" }));
        peer.answer(&second, &text("done"));
    });
    result.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_stops_asking_is_left() {
    let another: fn(usize) -> String = |round| round.to_string();
    let same: fn(usize) -> String = |_| "q".to_owned();
    for (reply, key, rounds, kind, message) in [
        (QuestionReply::Decline, another, 11, ErrorKind::Protocol, "limit:"),
        (QuestionReply::Unattended, another, 2, ErrorKind::Denied, "the server asked again"),
        (
            QuestionReply::Unattended,
            same,
            2,
            ErrorKind::Protocol,
            "limit: the server asks the same",
        ),
    ] {
        let (connection, mut peer) = connected_with(with_fixed_reply(reply)).await;
        let options = part_of("call-1");
        let (result, ()) = tokio::join!(call(&connection, &options), async {
            for n in 0..rounds {
                let round = request(&mut peer).await;
                peer.answer(&round, &asks(&key(n), "elicitation/create", &form()));
            }
        });
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().starts_with(message), "{error}");
        assert!(peer.rest().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_no_answer_ends_the_call() {
    let sample = json!({ "messages": [] });
    for (method, params, reply, kind) in [
        ("sampling/createMessage", &sample, QuestionReply::Decline, ErrorKind::Denied),
        ("sampling/createMessage", &sample, QuestionReply::Unattended, ErrorKind::Denied),
        ("roots/list", &json!({}), QuestionReply::Unattended, ErrorKind::Tool),
        ("nonsense/ask", &json!({}), QuestionReply::Unattended, ErrorKind::Tool),
        (
            "elicitation/create",
            &json!({ "message": 1 }),
            QuestionReply::Unattended,
            ErrorKind::Protocol,
        ),
    ] {
        let (connection, mut peer) = connected_with(with_fixed_reply(reply)).await;
        let options = part_of("call-1");
        let (result, ()) = tokio::join!(call(&connection, &options), async {
            let message = request(&mut peer).await;
            peer.answer(&message, &asks("q", method, params));
        });
        let error = result.unwrap_err();
        assert_eq!((error.kind(), error.server()), (kind, Some("srv")), "{method}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn giving_up_ends_the_round_that_waits_for_a_person() {
    let (options, mut questions) = with_channel_inbox();
    let (connection, mut peer) = connected_with(options).await;
    let options = part_of("call-1");
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        let first = request(&mut peer).await;
        peer.answer(&first, &asks("q", "elicitation/create", &form()));
        let (_question, mut reply) = questions.recv().await.unwrap();
        options.cancel.cancel();
        reply.closed().await;
    });
    assert!(matches!(result.unwrap_err().kind(), ErrorKind::Interrupted(_)));
    assert!(peer.rest().is_empty());
}

/// The error by which revision 2025-11-25 asks for pages to be visited.
fn pages(request: &Value) -> Value {
    let page = json!({ "mode": "url", "elicitationId": "e-1", "message": "Sign in",
                       "url": "https://login.example" });
    json!({ "jsonrpc": "2.0", "id": request["id"], "error": { "code": -32042,
            "message": "sign in first", "data": { "elicitations": [page] } } })
}

#[tokio::test(start_paused = true)]
async fn pages_that_have_to_be_visited_are_asked_for_and_the_call_is_repeated_once() {
    for (reply, kind) in [
        (QuestionReply::Accept(json!({})), None),
        (QuestionReply::Decline, Some(ErrorKind::Denied)),
        (QuestionReply::Unattended, Some(ErrorKind::Denied)),
    ] {
        let (connection, mut peer) = connected_legacy(with_fixed_reply(reply), &json!({})).await;
        let options = part_of("call-1");
        let (result, ()) = tokio::join!(call(&connection, &options), async {
            let first = request(&mut peer).await;
            peer.send(&pages(&first));
            if kind.is_none() {
                let second = request(&mut peer).await;
                peer.answer(&second, &text("signed in"));
            }
        });
        assert_eq!(result.as_ref().err().map(crate::model::Error::kind), kind);
    }
    // It is not repeated again and again.
    let (connection, mut peer) =
        connected_legacy(with_fixed_reply(QuestionReply::Accept(json!({}))), &json!({})).await;
    let options = part_of("call-1");
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        for _ in 0..2 {
            let message = request(&mut peer).await;
            peer.send(&pages(&message));
        }
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Tool);
}
