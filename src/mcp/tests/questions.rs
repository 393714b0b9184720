//! Tests of requests that a server makes by itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

use super::peer::FakeServer;
use super::{connected_legacy, options, part_of};
use crate::mcp::calling;
use crate::mcp::connection::{ConnectOptions, Connection, RequestOptions};
use crate::mcp::lifecycle::MODERN;
use crate::model::{
    Error, ErrorKind, JsonObject, Question, QuestionAbilities, QuestionBody, QuestionHandler,
    QuestionReply, ToolResult,
};

pub(super) struct ChannelInbox(mpsc::Sender<(Question, oneshot::Sender<QuestionReply>)>);

#[async_trait]
impl QuestionHandler for ChannelInbox {
    async fn ask(&self, question: Question) -> QuestionReply {
        let (sender, reply) = oneshot::channel();
        self.0.try_send((question, sender)).unwrap();
        reply.await.unwrap_or(QuestionReply::Unattended)
    }
}

pub(super) type QuestionReceiver = mpsc::Receiver<(Question, oneshot::Sender<QuestionReply>)>;

pub(super) fn with_channel_inbox() -> (ConnectOptions, QuestionReceiver) {
    let (sender, questions) = mpsc::channel(100);
    (ConnectOptions { inbox: Arc::new(ChannelInbox(sender)), ..options() }, questions)
}

/// Options with an inbox that always says the same.
pub(super) fn with_fixed_reply(reply: QuestionReply) -> ConnectOptions {
    struct FixedReply(QuestionReply);
    #[async_trait]
    impl QuestionHandler for FixedReply {
        async fn ask(&self, _question: Question) -> QuestionReply {
            self.0.clone()
        }
    }
    ConnectOptions { inbox: Arc::new(FixedReply(reply)), ..options() }
}

async fn legacy() -> (Connection, FakeServer, QuestionReceiver) {
    let (options, questions) = with_channel_inbox();
    let (connection, peer) = connected_legacy(options, &json!({ "tools": {} })).await;
    (connection, peer, questions)
}

pub(super) async fn call(
    connection: &Connection,
    options: &RequestOptions,
) -> Result<ToolResult, Error> {
    calling::call(connection, "t", &JsonObject::new(), false, options).await
}

pub(super) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// A form that no type of the SDK could hold.
pub(super) fn form() -> Value {
    json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {
        "who": { "type": "object", "properties": { "name": { "type": "string" } } } } } })
}

fn question(id: &str, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[tokio::test(start_paused = true)]
async fn a_form_arrives_as_it_was_sent_and_belongs_to_its_call() {
    let (connection, mut peer, mut questions) = legacy().await;
    let options = part_of("call-1");
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        let request = peer.expect("tools/call").await;
        peer.send(&question("q", "elicitation/create", &form()));
        let (question, reply) = questions.recv().await.unwrap();
        assert_eq!(question.server, "srv");
        assert_eq!(question.call.map(|call| call.0).as_deref(), Some("call-1"));
        let QuestionBody::Form { message, schema } = question.body else { panic!("no form") };
        assert_eq!((message.as_str(), &schema), ("Who?", &form()["requestedSchema"]));
        let content = json!({ "who": { "name": "Ada" } });
        reply.send(QuestionReply::Accept(content.clone())).unwrap();
        let answer = peer.next().await;
        let expected = json!({ "action": "accept", "content": content });
        assert_eq!((&answer["id"], &answer["result"]), (&json!("q"), &expected));
        peer.answer(&request, &text("hello"));
    });
    assert_eq!(result.unwrap().output, json!("hello"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_waits_for_a_person_is_not_silent_and_then_it_is() {
    let (connection, mut peer, mut questions) = legacy().await;
    let options = part_of("call-1");
    let start = Instant::now();
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        peer.expect("tools/call").await;
        sleep(Duration::from_secs(5)).await;
        peer.send(&question("q", "elicitation/create", &form()));
        let (_question, reply) = questions.recv().await.unwrap();
        sleep(Duration::from_secs(40)).await;
        reply.send(QuestionReply::Decline).unwrap();
        peer.next().await;
        peer.expect("notifications/cancelled").await;
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(start.elapsed().as_secs(), 55);
}

#[tokio::test(start_paused = true)]
async fn a_person_has_no_longer_than_the_call() {
    let (connection, mut peer, mut questions) = legacy().await;
    let options = part_of("call-1");
    let start = Instant::now();
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        peer.expect("tools/call").await;
        peer.send(&question("q", "elicitation/create", &form()));
        let (_question, mut reply) = questions.recv().await.unwrap();
        // The answer is no longer awaited, and the server hears that too.
        reply.closed().await;
        let messages = [peer.next().await, peer.next().await];
        assert!(messages.iter().any(|m| m["method"] == "notifications/cancelled"), "{messages:?}");
        let cancelled = messages.iter().find(|m| m["id"] == "q").unwrap();
        assert_eq!(cancelled["result"], json!({ "action": "cancel" }));
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(start.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn giving_the_call_up_takes_the_question_away() {
    let (connection, mut peer, mut questions) = legacy().await;
    let options = part_of("call-1");
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        peer.expect("tools/call").await;
        peer.send(&question("q", "sampling/createMessage", &json!({ "messages": [] })));
        let (_question, mut reply) = questions.recv().await.unwrap();
        options.cancel.cancel();
        reply.closed().await;
        let messages = [peer.next().await, peer.next().await];
        let answer = messages.iter().find(|m| m["id"] == "q").unwrap();
        assert_eq!(answer["error"]["code"], -1);
    });
    assert!(matches!(result.unwrap_err().kind(), ErrorKind::Interrupted(_)));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_taken_back_gets_no_answer() {
    let (connection, mut peer, mut questions) = legacy().await;
    let options = part_of("call-1");
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        let request = peer.expect("tools/call").await;
        peer.send(&question("q", "elicitation/create", &form()));
        let (_question, mut reply) = questions.recv().await.unwrap();
        let params = json!({ "requestId": "q" });
        let method = "notifications/cancelled";
        peer.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        reply.closed().await;
        sleep(Duration::from_millis(10)).await;
        assert!(peer.rest().is_empty());
        peer.answer(&request, &text("never mind"));
    });
    assert_eq!(result.unwrap().output, json!("never mind"));
}

#[tokio::test(start_paused = true)]
async fn of_several_calls_only_the_stream_tells_whose_question_it_is() {
    let (connection, mut peer, mut questions) = legacy().await;
    let (one, two) = (part_of("call-1"), part_of("call-2"));
    let server = async {
        let first = peer.expect("tools/call").await;
        let second = peer.expect("tools/call").await;
        peer.send(&question("a", "elicitation/create", &form()));
        let (unknown, reply) = questions.recv().await.unwrap();
        assert_eq!(unknown.call, None);
        // Either may be the one that waits, so neither is silent.
        sleep(Duration::from_secs(30)).await;
        reply.send(QuestionReply::Decline).unwrap();
        peer.next().await;
        peer.send_on_stream(&second, &question("b", "elicitation/create", &form()));
        let (attributed, reply) = questions.recv().await.unwrap();
        assert_eq!(attributed.call.map(|call| call.0).as_deref(), Some("call-2"));
        reply.send(QuestionReply::Decline).unwrap();
        peer.next().await;
        peer.answer(&first, &text("1"));
        peer.answer(&second, &text("2"));
    };
    let (first, second, ()) =
        tokio::join!(call(&connection, &one), call(&connection, &two), server);
    assert_eq!((first.unwrap().output, second.unwrap().output), (json!("1"), json!("2")));
}

#[tokio::test(start_paused = true)]
async fn roots_are_told_and_sampling_is_declined_with_its_own_error() {
    let options = ConnectOptions {
        roots: vec!["file:///srv/project".into()],
        ..with_fixed_reply(QuestionReply::Decline)
    };
    let (_connection, mut peer) = connected_legacy(options, &json!({})).await;
    peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }));
    let roots = peer.next().await;
    assert_eq!(roots["result"]["roots"], json!([{ "uri": "file:///srv/project" }]));
    peer.send(&question("s", "sampling/createMessage", &json!({ "messages": [] })));
    let refused = peer.next().await;
    assert_eq!(refused["error"]["code"], -1);
    assert_eq!(refused["error"]["message"], "User rejected sampling request");
    peer.send(&question("n", "nonsense/ask", &json!({})));
    assert_eq!(peer.next().await["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn a_request_says_who_asks_and_what() {
    let (connection, mut peer) = super::connected().await;
    let sampling = QuestionAbilities { sampling: true, ..QuestionAbilities::default() };
    let meta = JsonObject::from_iter([("dev.toolhost/callId".to_owned(), json!("c"))]);
    let limits = RequestOptions {
        log_level: Some("debug"),
        questions: Some(sampling),
        meta: Some(meta),
        ..part_of("c")
    };
    let (result, ()) = tokio::join!(call(&connection, &limits), async {
        let request = peer.expect("tools/call").await;
        let said = &request["params"]["_meta"];
        assert_eq!(said["io.modelcontextprotocol/protocolVersion"], MODERN);
        assert_eq!(said["io.modelcontextprotocol/clientInfo"]["name"], "toolhost");
        assert_eq!(
            said["io.modelcontextprotocol/clientCapabilities"],
            json!({ "sampling": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
        );
        assert_eq!(said["io.modelcontextprotocol/logLevel"], "debug");
        assert_eq!(
            (&said["dev.toolhost/callId"], &said["progressToken"]),
            (&json!("c"), &request["id"])
        );
        peer.answer(&request, &text("x"));
    });
    result.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_we_declare_depends_on_configuration_alone() {
    let options = ConnectOptions {
        roots: vec!["file:///srv".into()],
        ..with_fixed_reply(QuestionReply::Unattended)
    };
    let (connection, mut peer) = super::connected_with(options).await;
    let limits = part_of("call-1");
    let (result, ()) = tokio::join!(call(&connection, &limits), async {
        let request = peer.expect("tools/call").await;
        let declared = &request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(declared["elicitation"], json!({ "form": {}, "url": {} }));
        assert!(declared["sampling"].is_object() && declared["roots"].is_object(), "{declared}");
        assert!(declared["extensions"]["io.modelcontextprotocol/tasks"].is_object(), "{declared}");
        peer.answer(&request, &text("x"));
    });
    result.unwrap();
}
