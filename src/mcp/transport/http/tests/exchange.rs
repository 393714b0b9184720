//! Tests of requests, answers, refusals and redirects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::json;

use super::super::HttpWire;
use super::{
    JSON, ask, ask_status, call, initialized, legacy, modern, request, target, wire, wire_to,
};
use crate::mcp::credentials::{self, Challenge, ChallengeOutcome, Credentials, bearer_header};
use crate::mcp::wire::{Arrival, FrameKind, Wire as _};
use crate::model::{Era, Error, ErrorCause, ErrorKind};
use crate::net::test_server::{TestRequest, TestResponse, TestServer, answer, head};

#[tokio::test]
async fn a_legacy_session_is_kept_and_ended() {
    let peer =
        TestServer::start(|_, requests| match (requests.method.as_str(), requests.body.as_str()) {
            ("GET", _) => TestResponse::full("405 Method Not Allowed", &[], ""),
            ("DELETE", _) => TestResponse::full("200 OK", &[], ""),
            (_, body) if body.contains("initialized") => TestResponse::accepted(),
            (_, body) if body.contains("initialize") => {
                let headers =
                    ["Content-Type: application/json; charset=utf-8", "Mcp-Session-Id: s-1"];
                TestResponse::full("200 OK", &headers, answer(&requests.id()))
            }
            _ => TestResponse::result(requests),
        })
        .await;
    let wire = wire(&peer);
    assert_eq!(call(&wire, 0, "initialize").await.messages.len(), 1);
    wire.set_agreement(Era::Legacy, "2025-11-25");
    wire.send(initialized()).await.unwrap();
    let requests = peer.wait_for_requests(3).await;
    assert_eq!(requests[2].line(), "GET /mcp");
    assert_eq!(requests[2].header("accept"), Some("text/event-stream"));
    assert_eq!(call(&wire, 1, "tools/list").await.messages.len(), 1);
    wire.close().await;
    wire.close().await;

    let requests = peer.requests();
    let lines: Vec<_> = requests.iter().map(TestRequest::line).collect();
    assert_eq!(lines, ["POST /mcp", "POST /mcp", "GET /mcp", "POST /mcp", "DELETE /mcp"]);
    let first = &requests[0];
    assert_eq!(first.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(first.header("user-agent"), Some(concat!("toolhost/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(
        (first.header("mcp-session-id"), first.header("mcp-protocol-version")),
        (None, None)
    );
    for later in &requests[1..] {
        assert_eq!(later.header("mcp-session-id"), Some("s-1"), "{later:?}");
        assert_eq!(later.header("mcp-protocol-version"), Some("2025-11-25"));
        assert_eq!((later.header("cookie"), later.header("referer")), (None, None));
    }
    assert!(matches!(wire.receive().await, Arrival::Closed(_)));
    assert!(matches!(wire.receive().await, Arrival::Closed(_)));
    assert!(wire.send(request(2, "tools/list")).await.is_err());
}

#[tokio::test]
async fn the_modern_era_has_its_headers_and_neither_get_nor_delete() {
    let peer = TestServer::start(|_, requests| {
        if requests.body.contains("\"id\"") {
            let headers = ["Content-Type: application/json", "Mcp-Session-Id: s-1"];
            TestResponse::full("200 OK", &headers, answer(&requests.id()))
        } else {
            TestResponse::accepted()
        }
    })
    .await;
    let wire = modern(&peer);
    let mut frame = request(1, "tools/call");
    if let FrameKind::Request { name, headers, .. } = &mut frame.kind {
        *name = Some("grüße".to_owned());
        headers.push(("Mcp-Param-Region".to_owned(), "eu".to_owned()));
    }
    wire.send(frame).await.unwrap();
    let Arrival::Message { incoming, .. } = wire.receive().await else { panic!("no answer") };
    assert_eq!(incoming.bytes, answer(&json!(1)));
    wire.send(initialized()).await.unwrap();
    assert_eq!(call(&wire, 2, "tools/list").await.messages.len(), 1);
    wire.close().await;
    let requests = peer.requests();
    assert!(
        requests.iter().all(
            |requests| requests.method == "POST" && requests.header("mcp-session-id").is_none()
        )
    );
    assert_eq!(requests[0].header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(requests[0].header("mcp-method"), Some("tools/call"));
    assert_eq!(requests[0].header("mcp-name"), Some("=?base64?Z3LDvMOfZQ==?="));
    assert_eq!(requests[0].header("mcp-param-region"), Some("eu"));
}

#[tokio::test]
async fn a_token_is_sent_and_never_shown() {
    let peer = TestServer::start(|_, request| {
        let echo = request.header("authorization").unwrap_or_default().to_owned();
        let challenge = format!("WWW-Authenticate: Bearer realm=\"{echo}\"");
        TestResponse::full("401 Unauthorized", &[&challenge], echo)
    })
    .await;
    let mut target = target(peer.url("/mcp"));
    target.credentials = credentials::bearer("hunter2hunter2".into());
    let wire = HttpWire::connect(target).unwrap();
    let outcome = call(&wire, 1, "tools/list").await;
    let error = outcome.error(ErrorKind::Auth, "refused the credentials");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert_eq!(peer.requests().len(), 1);
    assert_eq!(peer.requests()[0].header("authorization"), Some("Bearer hunter2hunter2"));
}

/// Shows `token-N`, one more after each refusal.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

#[async_trait]
impl Credentials for Counting {
    async fn authorization(&self) -> Result<Option<SecretString>, Error> {
        let token = format!("token-{}", self.0.load(Ordering::Relaxed));
        Ok(Some(bearer_header(&token)))
    }

    async fn handle_challenge(&self, challenge: Challenge) -> Result<ChallengeOutcome, Error> {
        assert_eq!((challenge.status, challenge.www_authenticate.len()), (401, 1));
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(ChallengeOutcome::Retry)
    }
}

#[tokio::test]
async fn a_refused_request_is_repeated_with_new_credentials() {
    let peer = TestServer::start(|_, request| match request.header("authorization") {
        Some("Bearer token-2") => TestResponse::result(request),
        _ => TestResponse::full("401 Unauthorized", &["WWW-Authenticate: Bearer"], ""),
    })
    .await;
    let mut target = target(peer.url("/mcp"));
    target.credentials = Arc::new(Counting::default());
    let wire = HttpWire::connect(target).unwrap();
    assert_eq!(call(&wire, 1, "tools/list").await.messages.len(), 1);
    assert_eq!(call(&wire, 2, "tools/list").await.messages.len(), 1);
    let bodies: Vec<_> = peer.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies.len(), 4);
    assert!(bodies[0] == bodies[1] && bodies[1] == bodies[2]);
}

#[tokio::test]
async fn a_server_that_is_never_content_is_asked_four_times() {
    let peer = TestServer::start(|_, _| {
        TestResponse::full("401 Unauthorized", &["WWW-Authenticate: Bearer"], "not token-3 either")
    })
    .await;
    let mut target = target(peer.url("/mcp"));
    target.credentials = Arc::new(Counting::default());
    let wire = HttpWire::connect(target).unwrap();
    let outcome = call(&wire, 1, "tools/list").await;
    let error = outcome.error(ErrorKind::Auth, "refused the credentials");
    assert!(!format!("{error:?}").contains("token-3"), "{error:?}");
    assert_eq!(peer.requests().len(), 4);
}

#[tokio::test]
async fn a_line_break_in_a_token_is_named_and_the_token_is_not() {
    let peer = TestServer::start(|_, request| TestResponse::result(request)).await;
    let mut target = target(peer.url("/mcp"));
    target.credentials = credentials::bearer("hunter2\n".into());
    let wire = HttpWire::connect(target).unwrap();
    let outcome = call(&wire, 1, "tools/list").await;
    let error = outcome.error(ErrorKind::Config, "control character");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    assert!(peer.requests().is_empty());
}

#[tokio::test]
async fn an_event_stream_brings_other_messages_and_then_the_answer() {
    let outcome = ask(|| {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        let other = answer(&json!(99));
        let own = answer(&json!(1));
        TestResponse::events(&format!(": hi\n\ndata: {note}\n\nevent: ping\ndata: {{}}\n\ndata: {other}\n\nevent: message\ndata: {own}\n\n"))
    })
    .await;
    assert_eq!(outcome.messages.len(), 3);
    assert!(outcome.error.is_none());
}

#[tokio::test]
async fn the_connection_of_an_event_stream_is_used_again() {
    let peer = TestServer::start(|_, request| {
        TestResponse::events(&format!("data: {}\n\n", answer(&request.id())))
    })
    .await;
    let wire = legacy(&peer);
    for id in 0..3 {
        assert!(call(&wire, id, "tools/list").await.error.is_none());
        // The answer is delivered before the stream's regular end is read.
        while wire.waiting_for(&json!(id)).is_some() {
            tokio::task::yield_now().await;
        }
    }
    assert!(peer.requests().iter().all(|request| request.connection == 0));
}

#[tokio::test]
async fn left_over_bytes_are_never_an_answer() {
    let peer = TestServer::start(|_, request| {
        let own = answer(&request.id());
        let smuggled = r#"{"jsonrpc":"2.0","id":1,"result":"SMUGGLED"}"#;
        let length = format!("Content-Length: {}", own.len());
        let mut bytes = head("200 OK", &["Content-Type: application/json", &length]);
        bytes.extend_from_slice(own.as_bytes());
        let length = format!("Content-Length: {}", smuggled.len());
        bytes.extend(head("200 OK", &["Content-Type: application/json", &length]));
        bytes.extend_from_slice(smuggled.as_bytes());
        TestResponse::Raw(bytes)
    })
    .await;
    let wire = legacy(&peer);
    for id in 0..20 {
        let outcome = call(&wire, id, "tools/list").await;
        assert!(outcome.error.is_none(), "{outcome:?}");
        assert!(!outcome.messages[0].contains("SMUGGLED"));
    }
}

#[tokio::test]
async fn json_with_a_wrong_label_is_taken_with_a_warning() {
    let outcome =
        ask_status("200 OK", &["Content-Type: text/plain"], r#"{"id":1,"result":{}}"#).await;
    assert_eq!(
        (outcome.messages.len(), outcome.warnings.as_slice()),
        (1, &["JSON labelled as text/plain".to_owned()][..])
    );
    let outcome = ask_status("200 OK", &[], r#" {"id":1,"result":{}}"#).await;
    assert_eq!(outcome.warnings, ["JSON labelled as no content type"]);
}

#[tokio::test]
async fn pages_and_silence_are_no_answers() {
    let page = "<html><title>Sign in</title></html>";
    let outcome = ask_status("200 OK", &["Content-Type: text/html; charset=utf-8"], page).await;
    let error = outcome.error(ErrorKind::Protocol, "not an MCP endpoint: text/html");
    assert_eq!(error.details(), ["Sign in"]);
    // Even when it looks like JSON.
    let outcome = ask_status("200 OK", &["Content-Type: text/html"], "{}").await;
    outcome.error(ErrorKind::Protocol, "not an MCP endpoint");
    let outcome = ask_status("202 Accepted", &[], "").await;
    outcome.error(ErrorKind::Protocol, "202");
    let outcome = ask_status("200 OK", &["Content-Type: application/json"], "").await;
    outcome.error(ErrorKind::Protocol, "empty");
    let outcome = ask(|| {
        let mut bytes = head("200 OK", &JSON);
        bytes.extend_from_slice(b"0\r\n\r\n");
        TestResponse::Raw(bytes)
    })
    .await;
    outcome.error(ErrorKind::Protocol, "empty");
}

#[tokio::test]
async fn what_comes_instead_of_the_answer_is_passed_on_and_named() {
    let outcome = ask(|| TestResponse::json(answer(&json!(987)))).await;
    outcome.error(ErrorKind::Protocol, "unknown id 987");
    assert_eq!(outcome.messages.len(), 1);
    let outcome = ask(|| TestResponse::json(r#"{"id":1,"result":{"x":NaN}}"#)).await;
    outcome.error(ErrorKind::Protocol, "not JSON");
    let outcome = ask(|| TestResponse::json(r#"{"id":1,"resu"#)).await;
    outcome.error(ErrorKind::Protocol, "not JSON");
    let outcome = ask(|| TestResponse::events("data: oops\n\n")).await;
    outcome.error(ErrorKind::Protocol, "not JSON");
}

#[tokio::test]
async fn an_error_status_with_a_json_rpc_error_is_a_message() {
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    for status in ["400 Bad Request", "404 Not Found"] {
        let outcome = ask_status(status, &["Content-Type: application/json"], body).await;
        assert_eq!(outcome.messages, [body]);
        assert!(outcome.error.is_none());
    }
    // Without the id it is passed on as well, and the request ends with what the status means.
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}}"#;
    let outcome = ask_status("400 Bad Request", &["Content-Type: application/json"], body).await;
    assert_eq!(outcome.messages, [body]);
    outcome.error(ErrorKind::Protocol, "not initialized");
}

#[tokio::test]
async fn a_status_has_its_kind_and_its_words() {
    let outcome = ask_status(
        "500 Internal Server Error",
        &["Content-Type: text/html"],
        "<title>Oops</title>",
    )
    .await;
    outcome.error(ErrorKind::Unreachable, "Oops");
    let outcome = ask_status("429 Too Many Requests", &["Retry-After: 86400"], "").await;
    outcome.error(ErrorKind::Unreachable, "retry-after: 86400");
    let outcome = ask_status("403 Forbidden", &[], "").await;
    outcome.error(ErrorKind::Auth, "403");
    let challenge = &["WWW-Authenticate: Bearer resource_metadata=\"http://169.254.169.254/\""];
    let outcome = ask_status("401 Unauthorized", challenge, "").await;
    let error = outcome.error(ErrorKind::Auth, "169.254.169.254");
    assert!(error.hint().unwrap().contains("token_env_var"));
    let outcome = ask_status("404 Not Found", &[], "").await;
    let error = outcome.error(ErrorKind::Unreachable, "nothing at");
    assert_eq!(error.cause(), ErrorCause::Http { status: 404 });
}

#[tokio::test]
async fn a_request_is_sent_once_whatever_comes_back() {
    let peer = TestServer::start(|_, _| {
        TestResponse::full("503 Service Unavailable", &["Retry-After: 0"], "")
    })
    .await;
    call(&legacy(&peer), 1, "tools/call").await.error(ErrorKind::Unreachable, "503");
    assert_eq!(peer.requests().len(), 1);
}

#[tokio::test]
async fn a_forgotten_session_is_recognised() {
    let peer = TestServer::start(|n, request| {
        if n == 0 {
            let headers = ["Content-Type: application/json", "Mcp-Session-Id: s-1"];
            TestResponse::full("200 OK", &headers, answer(&request.id()))
        } else {
            let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
            TestResponse::full("404 Not Found", &["Content-Type: application/json"], body)
        }
    })
    .await;
    let wire = wire(&peer);
    call(&wire, 0, "initialize").await;
    wire.set_agreement(Era::Legacy, "2025-11-25");
    let outcome = call(&wire, 1, "tools/list").await;
    let error = outcome.error(ErrorKind::Unreachable, "no longer knows the session");
    assert_eq!(error.cause(), ErrorCause::SessionLost);
    assert_eq!(outcome.messages, [] as [&str; 0]);
}

#[tokio::test]
async fn an_odd_session_id_is_not_sent_back() {
    let long = "S".repeat(32 * 1024);
    for id in [long.as_str(), "two words"] {
        let header = format!("Mcp-Session-Id: {id}");
        let peer = TestServer::start(move |_, request| {
            TestResponse::full(
                "200 OK",
                &["Content-Type: application/json", &header],
                answer(&request.id()),
            )
        })
        .await;
        let wire = wire(&peer);
        let outcome = call(&wire, 0, "initialize").await;
        assert!(
            outcome.warnings.len() == 1 && !outcome.warnings[0].contains(id),
            "{:?}",
            outcome.warnings
        );
        wire.set_agreement(Era::Legacy, "2025-11-25");
        call(&wire, 1, "tools/list").await;
        assert_eq!(peer.requests()[1].header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn a_bare_url_is_tried_once_at_mcp() {
    for refused in ["404 Not Found", "405 Method Not Allowed"] {
        let peer = TestServer::start(move |_, request| match request.path.as_str() {
            "/mcp" => TestResponse::result(request),
            _ => TestResponse::full(refused, &[], ""),
        })
        .await;
        let wire = wire_to(peer.url(""));
        let outcome = call(&wire, 0, "initialize").await;
        assert!(outcome.warnings[0].contains("/mcp:"), "{:?}", outcome.warnings);
        call(&wire, 1, "tools/list").await;
        let lines: Vec<_> = peer.requests().iter().map(TestRequest::line).collect();
        assert_eq!(lines, ["POST /", "POST /mcp", "POST /mcp"]);
    }
}

#[tokio::test]
async fn a_bare_url_whose_mcp_asks_for_credentials_is_an_error_of_credentials() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let peer = TestServer::start(move |_, request| match request.path.as_str() {
            "/mcp" => TestResponse::full(status, &[], ""),
            _ => TestResponse::full("404 Not Found", &[], ""),
        })
        .await;
        let outcome = call(&wire_to(peer.url("")), 0, "initialize").await;
        outcome.error(ErrorKind::Auth, "/mcp");
    }
}

#[tokio::test]
async fn nothing_is_guessed_twice_or_beside_a_path() {
    let peer = TestServer::start(|_, _| TestResponse::full("404 Not Found", &[], "")).await;
    let bare = wire_to(peer.url(""));
    call(&bare, 0, "initialize").await.error(ErrorKind::Unreachable, "/mcp was tried as well");
    call(&bare, 1, "initialize").await.error(ErrorKind::Unreachable, "nothing at");
    assert_eq!(peer.requests().len(), 3);
    call(&wire_to(peer.url("/api")), 0, "initialize").await;
    assert_eq!(peer.requests().len(), 4);
}

#[tokio::test]
async fn a_redirect_within_the_origin_keeps_the_message() {
    let peer = TestServer::start(|_, requests| match requests.path.as_str() {
        "/mcp" => TestResponse::full("307 Temporary Redirect", &["Location: /mcp/"], ""),
        _ => TestResponse::result(requests),
    })
    .await;
    assert_eq!(call(&legacy(&peer), 1, "tools/list").await.messages.len(), 1);
    let requests = peer.requests();
    assert_eq!(requests[1].line(), "POST /mcp/");
    assert_eq!(requests[1].body, requests[0].body);
}

#[tokio::test]
async fn a_redirect_elsewhere_is_refused_and_sends_nothing() {
    let canary = TestServer::start(|_, request| TestResponse::result(request)).await;
    let location = format!("Location: {}", canary.url("/stolen"));
    let peer = TestServer::start(move |_, _| {
        TestResponse::full("307 Temporary Redirect", &[&location], "")
    })
    .await;
    call(&legacy(&peer), 1, "tools/call").await.error(ErrorKind::Denied, "/stolen");
    assert_eq!(canary.requests().len(), 0);
    ask_status("303 See Other", &["Location: /x"], "").await.error(ErrorKind::Denied, "/x");
    let outcome = ask_status("308 Permanent Redirect", &["Location: file:///etc/passwd"], "").await;
    outcome.error(ErrorKind::Denied, "file:///etc/passwd");
}

#[tokio::test]
async fn an_event_stream_is_followed_where_its_server_moved_it() {
    for status in ["301 Moved Permanently", "302 Found", "303 See Other"] {
        let peer = TestServer::start(move |_, request| {
            match (request.method.as_str(), request.path.as_str()) {
                ("GET", "/mcp") => TestResponse::full(status, &["Location: /events"], ""),
                ("GET", _) => {
                    TestResponse::events("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")
                }
                _ => TestResponse::accepted(),
            }
        })
        .await;
        let wire = legacy(&peer);
        wire.send(initialized()).await.unwrap();
        let arrival = tokio::time::timeout(Duration::from_secs(10), wire.receive()).await;
        assert!(matches!(arrival, Ok(Arrival::Message { .. })), "{status}: {arrival:?}");
    }
}

#[tokio::test]
async fn a_circle_of_redirects_ends() {
    let peer = TestServer::start(|_, _| {
        TestResponse::full("308 Permanent Redirect", &["Location: /mcp"], "")
    })
    .await;
    call(&legacy(&peer), 1, "tools/list").await.error(ErrorKind::Protocol, "limit: 5");
    assert_eq!(peer.requests().len(), 6);
}

#[tokio::test]
async fn connections_are_used_again_and_one_that_ended_meanwhile_costs_nothing() {
    let peer = TestServer::start(|count, request| match count {
        2 => {
            let TestResponse::Raw(bytes) = TestResponse::result(request) else { panic!() };
            TestResponse::Last(bytes)
        }
        _ => TestResponse::result(request),
    })
    .await;
    let wire = modern(&peer);
    for id in 0..5 {
        assert!(call(&wire, id, "tools/list").await.error.is_none());
    }
    let used: Vec<_> = peer.requests().iter().map(|request| request.connection).collect();
    assert_eq!(used, [0, 0, 0, 1, 1]);
}

#[tokio::test]
async fn the_connection_of_an_empty_answer_is_used_again() {
    let peer = TestServer::start(|_, request| {
        if request.body.contains("\"id\"") {
            return TestResponse::result(request);
        }
        let mut bytes = head("202 Accepted", &["Transfer-Encoding: chunked"]);
        bytes.extend_from_slice(b"0\r\n\r\n");
        TestResponse::Raw(bytes)
    })
    .await;
    let wire = modern(&peer);
    for id in 0..3 {
        wire.send(initialized()).await.unwrap();
        assert!(call(&wire, id, "tools/list").await.error.is_none());
    }
    assert!(peer.requests().iter().all(|request| request.connection == 0));
}

#[tokio::test]
async fn the_stream_of_a_server_is_asked_for_before_anything_else() {
    let peer = TestServer::start(|_, request| match request.method.as_str() {
        "GET" => TestResponse::full("405 Method Not Allowed", &[], ""),
        _ if request.body.contains("initialized") => TestResponse::accepted(),
        _ => TestResponse::result(request),
    })
    .await;
    let wire = legacy(&peer);
    wire.send(initialized()).await.unwrap();
    assert!(call(&wire, 1, "tools/call").await.error.is_none());
    let lines: Vec<_> = peer.requests().iter().map(TestRequest::line).collect();
    assert_eq!(lines, ["POST /mcp", "GET /mcp", "POST /mcp"]);
}

#[tokio::test]
async fn requests_at_the_same_time_have_a_connection_each() {
    let peer = TestServer::start(|_, request| TestResponse::result(request)).await;
    let wire = modern(&peer);
    let all = (0..10).map(|id| call(&wire, id, "tools/list"));
    for outcome in futures_util::future::join_all(all).await {
        assert!(outcome.error.is_none(), "{outcome:?}");
    }
}
