//! Tests of mailboxes at the provider, without a host.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::model::{ErrorKind, ToolContext};
use crate::providers::harness::KindHarness;

fn harness(more: &str) -> KindHarness {
    let yaml = format!("components:\n  - {{ name: crew, type: mailbox{more} }}\n");
    KindHarness::new(&super::kind(), &yaml)
}

const ENGINES: [&str; 2] = ["", ", path: crew.db, sync: off"];

async fn send(harness: &KindHarness, to: &str, text: &str) {
    let sent = harness.call("crew-send", json!({ "to": to, "text": text })).await.unwrap();
    assert!(sent.success, "{sent:?}");
}

async fn texts(harness: &KindHarness, arguments: Value) -> Vec<Value> {
    let got = harness.call("crew-receive", arguments).await.unwrap();
    let messages = got.output["messages"].as_array().unwrap().clone();
    messages.into_iter().map(|message| message["text"].clone()).collect()
}

#[tokio::test]
async fn messages_come_out_once_and_in_order() {
    for engine in ENGINES {
        let harness = harness(engine);
        for text in ["one", "two", "three"] {
            send(&harness, "bob", text).await;
        }
        send(&harness, "alice", "hi").await;
        let list = harness.call("crew-list", json!({})).await.unwrap().output;
        let boxes = json!([{ "name": "alice", "messages": 1 }, { "name": "bob", "messages": 3 }]);
        assert_eq!(list, json!({ "mailboxes": boxes, "more": false }));
        assert_eq!(texts(&harness, json!({ "name": "bob", "keep": true })).await, ["one"]);
        assert_eq!(texts(&harness, json!({ "name": "bob" })).await, ["one"]);
        assert_eq!(texts(&harness, json!({ "name": "bob", "limit": 9 })).await, ["two", "three"]);
        assert!(texts(&harness, json!({ "name": "bob" })).await.is_empty());
        let list = harness.call("crew-list", json!({})).await.unwrap().output;
        assert_eq!(list["mailboxes"], json!([{ "name": "alice", "messages": 1 }]));
    }
}

#[tokio::test]
async fn a_message_says_who_when_and_what() {
    let harness = harness("");
    let message = json!({ "to": "bob", "message": { "n": [1] }, "from": "alice", "topic": "t" });
    harness.call("crew-send", message).await.unwrap();
    let got = harness.call("crew-receive", json!({ "name": "bob" })).await.unwrap().output;
    let got = got["messages"][0].as_object().unwrap();
    assert_eq!(got["message"], json!({ "n": [1] }));
    assert_eq!(
        (&got["from"], &got["topic"], &got["to"]),
        (&"alice".into(), &"t".into(), &"bob".into())
    );
    let sent: jiff::Timestamp = got["sent"].as_str().unwrap().parse().unwrap();
    assert!(sent.as_second() > 0);
    assert_eq!(got["id"], "00000000000000000001");
}

#[tokio::test]
async fn a_waiting_receiver_gets_the_next_message() {
    for engine in ENGINES {
        let harness = Arc::new(harness(engine));
        let waiting = {
            let harness = Arc::clone(&harness);
            tokio::spawn(async move { texts(&harness, json!({ "name": "bob", "wait": 60 })).await })
        };
        // It looks, finds nothing, and waits.
        tokio::task::yield_now().await;
        send(&harness, "alice", "not for bob").await;
        send(&harness, "bob", "hello").await;
        assert_eq!(waiting.await.unwrap(), ["hello"]);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_its_time_or_the_call() {
    let harness = harness("");
    assert!(texts(&harness, json!({ "name": "bob", "wait": 5 })).await.is_empty());
    let context = harness.context();
    let cancel = context.cancel.clone();
    let call = harness.call_in(&context, "crew-receive", json!({ "name": "bob", "wait": 200 }));
    let (outcome, ()) = tokio::join!(call, async { cancel.cancel() });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn eight_receivers_get_each_message_once() {
    for engine in ENGINES {
        let harness = Arc::new(harness(engine));
        for at in 0..40 {
            send(&harness, "work", &at.to_string()).await;
        }
        let receivers = (0..8).map(|_| {
            let harness = Arc::clone(&harness);
            tokio::spawn(async move {
                let mut all = Vec::new();
                loop {
                    let got = texts(&harness, json!({ "name": "work", "limit": 3 })).await;
                    if got.is_empty() {
                        return all;
                    }
                    all.extend(got.iter().map(|t| t.as_str().unwrap().parse::<u32>().unwrap()));
                }
            })
        });
        let mut all = Vec::new();
        for receiver in receivers.collect::<Vec<_>>() {
            all.extend(receiver.await.unwrap());
        }
        all.sort_unstable();
        assert_eq!(all, (0..40).collect::<Vec<u32>>());
    }
}

#[tokio::test]
async fn boxes_are_bounded() {
    let harness = harness(", max_keys: 2, max_value_bytes: 80");
    send(&harness, "bob", "1").await;
    send(&harness, "bob", "2").await;
    let full = harness.call("crew-send", json!({ "to": "bob", "text": "3" })).await.unwrap();
    assert_eq!(full.output, "quota: the mailbox 'bob' holds 2 messages");
    send(&harness, "alice", "3").await;
    for wrong in [
        json!({ "to": "bob", "text": "x".repeat(80) }),
        json!({ "to": "bob" }),
        json!({ "to": "bob", "text": "a", "message": "b" }),
        json!({ "to": "b/ob", "text": "a" }),
        json!({ "to": "", "text": "a" }),
    ] {
        let error = harness.call("crew-send", wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}

#[tokio::test]
async fn sessions_have_mailboxes_of_their_own() {
    let harness = harness(", scope: session");
    send(&harness, "bob", "secret").await;
    let other = ToolContext { session_id: "x/bob".into(), ..harness.context() };
    let list = harness.call_in(&other, "crew-list", json!({})).await.unwrap().output;
    assert_eq!(list["mailboxes"], json!([]));
    let got = harness.call_in(&other, "crew-receive", json!({ "name": "bob" })).await.unwrap();
    assert_eq!(got.output, json!({ "messages": [] }));
}

#[test]
fn what_a_definition_says_is_true() {
    let harness = harness("");
    let rows: Vec<String> = harness
        .definitions()
        .iter()
        .map(|tool| {
            let annotations = &tool.annotations;
            format!(
                "{} {:?} {:?} {:?}",
                tool.name, annotations.read_only, annotations.destructive, tool.timeout
            )
        })
        .collect();
    insta::assert_debug_snapshot!(rows, @r#"
    [
        "crew-send Some(false) None None",
        "crew-receive Some(false) None Some(260s)",
        "crew-list Some(true) None None",
    ]
    "#);
}
