//! Tests of retries: the provider's verdicts, and the host that acts on them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::host::ToolHost;
use crate::host::request::{CallArguments, CallOutcome, CallRequest};
use crate::model::RetryAdvice;

async fn hosted(harness: &KindHarness) -> CallOutcome {
    let host = ToolHost::builder().providers(harness.providers.iter().map(Arc::clone)).build();
    let request = CallRequest::new("t", CallArguments::Object(serde_json::Map::new()));
    host.call(request).await.unwrap()
}

/// A server that answers with `status` and `headers` so often, and then well.
async fn busy(times: usize, status: &'static str, headers: &'static [&'static str]) -> TestServer {
    TestServer::start(move |n, _| {
        if n < times {
            TestResponse::full(status, headers, "busy")
        } else {
            TestResponse::json("1")
        }
    })
    .await
}

const RETRY: &str = "endpoint_url: URL/x\nretry: { max: 2, backoff: 1ms }";

#[tokio::test]
async fn what_may_pass_is_repeated_by_the_host() {
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        let peer = busy(2, status, &["Retry-After: 0"]).await;
        let outcome = hosted(&tool(&peer, RETRY)).await;
        assert!(outcome.result.unwrap().success);
        assert_eq!(outcome.metadata.attempts, 3);
        let peer = busy(3, status, &[]).await;
        let outcome = hosted(&tool(&peer, RETRY)).await;
        failed(outcome.result, ErrorKind::Tool, "busy");
        assert_eq!((outcome.metadata.attempts, peer.requests().len()), (3, 3));
    }
}

#[tokio::test]
async fn a_no_and_what_may_act_twice_are_not_repeated() {
    let peer = busy(1, "404 Not Found", &[]).await;
    assert_eq!(hosted(&tool(&peer, RETRY)).await.metadata.attempts, 1);
    let peer = busy(1, "503 Service Unavailable", &[]).await;
    let harness = harness(
        peer.url("").as_str().trim_end_matches('/'),
        "endpoint_url: URL/x\nmethod: POST\nretry: { max: 2 }",
    );
    assert!(harness.messages()[0].contains("only failures to connect"), "{:?}", harness.messages());
    assert_eq!(hosted(&harness).await.metadata.attempts, 1);
    // `retries` in the entry is its author's word that a repeat is fine.
    let peer = busy(1, "503 Service Unavailable", &[]).await;
    let keys = "endpoint_url: URL/x\nmethod: POST\nretries: 2";
    assert_eq!(hosted(&tool(&peer, keys)).await.metadata.attempts, 2);
    let peer = busy(1, "503 Service Unavailable", &[]).await;
    let keys = "endpoint_url: URL/x\nmethod: POST\nretry: { on: [503], backoff: 1ms }";
    assert_eq!(hosted(&tool(&peer, keys)).await.metadata.attempts, 2);
    let peer = busy(1, "503 Service Unavailable", &[]).await;
    let keys = "endpoint_url: URL/x\nmethod: POST\nannotations: { idempotentHint: true }\n\
                retry: { backoff: 1ms }";
    assert_eq!(hosted(&tool(&peer, keys)).await.metadata.attempts, 2);
}

#[tokio::test]
async fn a_wait_of_a_day_is_given_up_at_once() {
    let peer = busy(1, "429 Too Many Requests", &["Retry-After: 86400"]).await;
    let result = hosted(&tool(&peer, RETRY)).await.result.unwrap();
    assert_eq!(peer.requests().len(), 1);
    let warning = result.warnings.join("\n");
    assert!(warning.contains("not retried: the next attempt is due in"), "{warning}");
    failed(Ok(result), ErrorKind::Tool, "it asks to wait");
}

#[tokio::test]
async fn a_lost_connection_is_repeated_for_methods_that_do_no_harm() {
    for (method, attempts) in [("GET", 2), ("PUT", 2), ("POST", 1)] {
        let peer = TestServer::start(|n, _| {
            if n == 0 { TestResponse::Reset(Vec::new()) } else { TestResponse::json("1") }
        })
        .await;
        let harness = harness(
            peer.url("").as_str().trim_end_matches('/'),
            &format!("endpoint_url: URL/x\nmethod: {method}\nretry: {{ backoff: 1ms }}"),
        );
        assert_eq!(hosted(&harness).await.metadata.attempts, attempts, "{method}");
    }
}

#[tokio::test]
async fn a_limit_of_the_attempt_is_judged_by_the_kind_too() {
    for (method, attempts) in [("GET", 2), ("POST", 1)] {
        let peer = TestServer::start(|n, _| {
            if n == 0 { TestResponse::Hang(Vec::new()) } else { TestResponse::json("1") }
        })
        .await;
        let keys = format!(
            "endpoint_url: URL/x\nmethod: {method}\ntimeout: 200ms\nretry: {{ backoff: 1ms }}"
        );
        let harness = harness(peer.url("").as_str().trim_end_matches('/'), &keys);
        let outcome = hosted(&harness).await;
        assert_eq!(outcome.metadata.attempts, attempts, "{method}");
        if attempts == 1 {
            failed(outcome.result, ErrorKind::Timeout, "no response had arrived");
        }
    }
}

#[tokio::test]
async fn the_kind_repeats_nothing_itself() {
    let peer = busy(9, "429 Too Many Requests", &["Retry-After: 7"]).await;
    let result = tool(&peer, RETRY).call("t", json!({})).await.unwrap();
    assert_eq!(peer.requests().len(), 1);
    let again = result.error.unwrap().retry_advice();
    assert_eq!(again, RetryAdvice::After(Duration::from_secs(7)));
}
