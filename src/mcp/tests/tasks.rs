//! Tests of calls that are answered with a task, in both eras.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::questions::{call, form, text, with_fixed_reply};
use super::{connected_legacy, connected_with, part_of};
use crate::mcp::calling;
use crate::model::{ErrorKind, JsonObject, QuestionReply};

fn state(status: &str) -> Value {
    json!({ "resultType": "complete", "taskId": "t-1", "status": status, "pollIntervalMs": 3000,
            "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z" })
}

fn created() -> Value {
    let mut created = state("working");
    created["resultType"] = json!("task");
    created
}

#[tokio::test(start_paused = true)]
async fn a_task_is_asked_for_at_its_pace_and_its_questions_are_answered_once() {
    let (connection, mut peer) =
        connected_with(with_fixed_reply(QuestionReply::Accept(json!({ "who": {} })))).await;
    let options = part_of("call-1");
    let start = Instant::now();
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, &created());
        let request = peer.expect("tasks/get").await;
        assert_eq!(request["params"]["taskId"], "t-1");
        assert_eq!(start.elapsed().as_secs(), 3);
        let mut waits = state("input_required");
        waits["inputRequests"] =
            json!({ "who": { "method": "elicitation/create", "params": form() } });
        peer.answer(&request, &waits);
        let update = peer.expect("tasks/update").await;
        assert_eq!(update["params"]["taskId"], "t-1");
        assert_eq!(update["params"]["inputResponses"]["who"]["action"], "accept");
        peer.answer(&update, &json!({ "resultType": "complete" }));
        // The same question seen again is not answered again.
        let request = peer.expect("tasks/get").await;
        peer.answer(&request, &waits);
        let request = peer.expect("tasks/get").await;
        let mut task = state("completed");
        task["result"] = text("after a while");
        peer.answer(&request, &task);
    });
    assert_eq!(result.unwrap().output, json!("after a while"));
    assert!(peer.rest().is_empty());
}

#[tokio::test(start_paused = true)]
async fn news_of_a_task_shorten_the_wait() {
    // News that come sooner than a server is asked again count as well.
    for (news_after, asked_after) in [(50, 100), (1000, 1000)] {
        let (connection, mut peer) =
            connected_with(with_fixed_reply(QuestionReply::Unattended)).await;
        let options = part_of("call-1");
        let start = Instant::now();
        let (result, ()) = tokio::join!(call(&connection, &options), async {
            let request = peer.expect("tools/call").await;
            peer.answer(&request, &created());
            tokio::time::sleep(Duration::from_millis(news_after)).await;
            let method = "notifications/tasks";
            peer.send(&json!({ "jsonrpc": "2.0", "method": method, "params": state("completed") }));
            let request = peer.expect("tasks/get").await;
            assert_eq!(start.elapsed().as_millis() / 10, asked_after / 10);
            let mut failed = state("failed");
            failed["error"] = json!({ "code": -32000, "message": "no tea" });
            peer.answer(&request, &failed);
        });
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Tool);
        assert!(error.message().contains("no tea"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_given_up_is_cancelled() {
    for asking in [false, true] {
        let (connection, mut peer) =
            connected_with(with_fixed_reply(QuestionReply::Unattended)).await;
        let options = part_of("call-1");
        let (result, ()) = tokio::join!(call(&connection, &options), async {
            let request = peer.expect("tools/call").await;
            peer.answer(&request, &created());
            if asking {
                peer.expect("tasks/get").await;
            } else {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            options.cancel.cancel();
            if asking {
                peer.expect("notifications/cancelled").await;
            }
            let cancellation = peer.expect("tasks/cancel").await;
            assert_eq!(cancellation["params"]["taskId"], "t-1");
            peer.answer(&cancellation, &json!({ "resultType": "complete" }));
        });
        assert!(matches!(result.unwrap_err().kind(), ErrorKind::Interrupted(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_has_no_longer_than_the_call() {
    let (connection, mut peer) = connected_with(with_fixed_reply(QuestionReply::Unattended)).await;
    let options = part_of("call-1");
    let start = Instant::now();
    let serve = async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, &created());
        loop {
            let request = peer.next().await;
            if request["method"] == "tasks/cancel" {
                peer.answer(&request, &json!({}));
                return;
            }
            peer.answer(&request, &state("working"));
        }
    };
    let (result, ()) = tokio::join!(call(&connection, &options), serve);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(start.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn the_older_dialect_fetches_the_result() {
    let capabilities = json!({ "tasks": { "requests": { "tools": { "call": {} } } } });
    let (connection, mut peer) =
        connected_legacy(with_fixed_reply(QuestionReply::Decline), &capabilities).await;
    let options = part_of("call-1");
    let arguments = JsonObject::new();
    let called = calling::call(&connection, "t", &arguments, true, &options);
    let (result, ()) = tokio::join!(called, async {
        let request = peer.expect("tools/call").await;
        assert!(request["params"]["task"]["ttl"].is_u64(), "{request}");
        let task = |status: &str| {
            json!({ "taskId": "t-1", "status": status, "ttl": 1000, "pollInterval": 200,
                    "createdAt": "2025-11-25T00:00:00Z" })
        };
        peer.answer(&request, &json!({ "task": task("working") }));
        let request = peer.expect("tasks/get").await;
        peer.answer(&request, &task("input_required"));
        // The result is fetched now, because the questions come while it is waited for.
        let fetched = peer.expect("tasks/result").await;
        let ask = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                          "params": form() });
        peer.send(&ask);
        assert_eq!(peer.next().await["result"], json!({ "action": "decline" }));
        peer.answer(&fetched, &text("done"));
    });
    assert_eq!(result.unwrap().output, json!("done"));
    assert!(peer.rest().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_task_says_why() {
    let (connection, mut peer) = connected_with(with_fixed_reply(QuestionReply::Unattended)).await;
    let options = part_of("call-1");
    let (result, ()) = tokio::join!(call(&connection, &options), async {
        let request = peer.expect("tools/call").await;
        peer.answer(&request, &json!({ "resultType": "task", "status": "working" }));
    });
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.message().contains("no taskId"), "{error}");
}
