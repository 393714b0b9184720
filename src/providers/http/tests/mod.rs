//! Tests of HTTP tools against real sockets.

mod answers;
mod entries;
mod repeats;
mod requests;

use std::fmt::Write as _;

use serde_json::Value;

use crate::model::{Error, ErrorKind, ToolResult};
use crate::net::test_server::{TestRequest, TestResponse, TestServer};
use crate::providers::harness::KindHarness;

/// A harness with one tool `t`, whose keys are `keys`, one on each line; `URL` in them is `base`.
fn harness(base: &str, keys: &str) -> KindHarness {
    let mut yaml = "tools:\n  - name: t\n".to_owned();
    for line in keys.lines() {
        writeln!(yaml, "    {}", line.replace("URL", base)).unwrap();
    }
    KindHarness::prepared(&super::kind(), &yaml, |dir, environment| {
        std::fs::write(dir.join("token"), "from-a-file\n").unwrap();
        for (name, value) in [("API_TOKEN", "hunter2hunter2"), ("TEAM", "blue")] {
            environment.vars.insert(name.to_owned(), value.to_owned());
        }
    })
}

/// The same for a server, without diagnostics.
#[track_caller]
fn tool(peer: &TestServer, keys: &str) -> KindHarness {
    let harness = harness(peer.url("").as_str().trim_end_matches('/'), keys);
    assert!(harness.diagnostics.is_empty(), "{:?}", harness.diagnostics);
    harness
}

/// A server that says `{"ok":true}` to everything.
async fn agreeable() -> TestServer {
    TestServer::start(|_, _| TestResponse::json(r#"{"ok":true}"#)).await
}

async fn sent(keys: &str, arguments: Value) -> TestRequest {
    let peer = agreeable().await;
    let harness = tool(&peer, keys);
    let result = harness.call("t", arguments).await.unwrap();
    assert!(result.success, "{result:?}");
    peer.requests().pop().unwrap()
}

/// What came of a GET that was answered by `reply`.
async fn answered(
    keys: &str,
    reply: impl Fn() -> TestResponse + Send + Sync + 'static,
) -> Result<ToolResult, Error> {
    let peer = TestServer::start(move |_, _| reply()).await;
    tool(&peer, &format!("endpoint_url: URL/x\n{keys}")).call("t", serde_json::json!({})).await
}

#[track_caller]
fn failed(outcome: Result<ToolResult, Error>, kind: ErrorKind, part: &str) -> Error {
    let error = match outcome {
        Err(error) => error,
        Ok(result) => {
            assert!(!result.success, "{result:?}");
            result.error.unwrap()
        }
    };
    assert_eq!(error.kind(), kind, "{error:?}");
    let text = format!("{} {:?} {:?}", error.message(), error.details(), error.hint());
    assert!(text.contains(part), "'{part}' is not in: {text}");
    error
}
