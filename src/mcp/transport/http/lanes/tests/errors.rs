//! Tests that every failure of an answer is reported as for an ordinary call.

use super::super::super::HttpTarget;
use super::super::super::tests::{call as ordinary_call, target};
use super::*;

const JSON: &str = "Content-Type: application/json";
const CODED: [&str; 2] = [JSON, "Transfer-Encoding: chunked"];

fn raw(status: &str, headers: &[&str], body: &str) -> TestResponse {
    TestResponse::Last([head(status, headers), body.as_bytes().to_vec()].concat())
}

fn mischief(name: &str, request: &TestRequest) -> TestResponse {
    let id = request.id();
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
    let full = |status: &str, body: &str| TestResponse::full(status, &[JSON], body);
    match name {
        "202" => TestResponse::full("202 Accepted", &[], ""),
        "204" => TestResponse::Raw(head("204 No Content", &[])),
        "empty" => full("200 OK", ""),
        "blank" => full("200 OK", " \n "),
        "400" => full("400 Bad Request", "bad"),
        "400 page" => {
            TestResponse::full("400 Bad Request", &["Content-Type: text/html"], "<title>No")
        }
        "401" => TestResponse::full("401 Unauthorized", &["WWW-Authenticate: Bearer x=1"], ""),
        "403" => full("403 Forbidden", r#"{"message":"not you"}"#),
        "404" => full("404 Not Found", ""),
        "405" => full("405 Method Not Allowed", ""),
        "429" => TestResponse::full("429 Too Many Requests", &["Retry-After: 7"], "slow down"),
        "500" => full("500 Internal Server Error", r#"{"error":{"message":"boom"}}"#),
        "500 rpc" => full(
            "500 Internal Server Error",
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"boom"}}}}"#),
        ),
        "503 closes" => raw("503 Service Unavailable", &["Connection: close"], "later"),
        "302" => TestResponse::full("302 Found", &["Location: https://elsewhere.example/x"], ""),
        "304" => TestResponse::full("304 Not Modified", &[], ""),
        "page" => {
            TestResponse::full("200 OK", &["Content-Type: text/html"], "<title>Hello</title>")
        }
        "text" => TestResponse::full("200 OK", &["Content-Type: text/plain"], "hello there"),
        "no json" => full("200 OK", "hello"),
        "other id" => full("200 OK", r#"{"jsonrpc":"2.0","id":5,"result":{}}"#),
        "other id in events" => {
            TestResponse::events("data: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n\n")
        }
        "a request" => full("200 OK", r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#),
        "short" => raw("200 OK", &[JSON, "Content-Length: 999"], &answer),
        "bad chunk" => {
            let bytes = [head("200 OK", &CODED), chunk(&answer).into_bytes(), b"zz\r\n".to_vec()];
            TestResponse::Last(bytes.concat())
        }
        "short chunks" => {
            TestResponse::Last([head("200 OK", &CODED), chunk(&answer).into_bytes()].concat())
        }
        "cut events" => {
            let bytes = [head("200 OK", &EVENTS), chunk("data: {\"id\":1,").into_bytes()];
            TestResponse::Last(bytes.concat())
        }
        "no answer in events" => TestResponse::events(": nothing\n\n"),
        "closed" => TestResponse::Last(Vec::new()),
        "reset" => TestResponse::Reset(Vec::new()),
        "no http" => TestResponse::Last(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()),
        "large head" => {
            let line = format!("X-A: {}", "v".repeat(1000));
            TestResponse::full("200 OK", &[line.as_str(); 70], &answer)
        }
        "endless" => {
            let piece = format!("10000\r\n{}\r\n", "A".repeat(1 << 16)).into_bytes();
            TestResponse::Endless(head("200 OK", &CODED), piece)
        }
        "huge" => TestResponse::Hang(head("200 OK", &[JSON, "Content-Length: 99999999999"])),
        other => panic!("what is {other}?"),
    }
}

const MISCHIEF: [&str; 36] = [
    "202",
    "204",
    "empty",
    "blank",
    "400",
    "400 page",
    "401",
    "403",
    "404",
    "405",
    "429",
    "500",
    "500 rpc",
    "503 closes",
    "302",
    "304",
    "page",
    "text",
    "no json",
    "other id",
    "other id in events",
    "a request",
    "short",
    "bad chunk",
    "short chunks",
    "cut events",
    "no answer in events",
    "closed",
    "reset",
    "no http",
    "large head",
    "endless",
    "huge",
    // Again on what these left behind.
    "404",
    "short",
    "closed",
];

/// Numbers differ between the two ways: ids, ports, what had come until then.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[tokio::test]
async fn a_call_without_an_answer_ends_as_an_ordinary_one_would() {
    for name in MISCHIEF {
        let peer = TestServer::start(move |_, requests| mischief(name, requests)).await;
        let wire = legacy(&peer);
        let expected = ordinary_call(&wire, 1, "tools/call").await.error.unwrap();
        let mut lanes = lanes_of(&wire, 1).await;
        let error = call(&mut lanes, 0).await.unwrap_err();
        assert_eq!(error.kind(), expected.kind(), "{name}: {error:?} instead of {expected:?}");
        let (message, expected_message) =
            (without_numbers(error.message()), without_numbers(expected.message()));
        // Why something is not HTTP, and how a body is broken, is said by the reader in its own
        // words.
        let common = expected_message.split(": ").next().unwrap();
        match name {
            "no http" | "bad chunk" => assert!(message.starts_with(common), "{name}: {message}"),
            _ => assert_eq!(message, expected_message, "{name}"),
        }
        assert_eq!(error.hint(), expected.hint(), "{name}");
        let details = |error: &Error| without_numbers(&error.details().join("\n"));
        if !matches!(name, "reset" | "bad chunk") {
            assert_eq!(details(&error), details(&expected), "{name}");
        }
        let status = |error: &Error| error.data().map(|data| data["http_status"].clone());
        assert_eq!(status(&error), status(&expected), "{name}");
    }
}

#[tokio::test]
async fn the_lane_works_on_after_whatever_came() {
    for name in MISCHIEF {
        let peer = TestServer::start(move |n, request| match n {
            0 => mischief(name, request),
            _ => result(request),
        })
        .await;
        let mut lanes = lanes_of(&legacy(&peer), 1).await;
        call(&mut lanes, 0).await.unwrap_err();
        assert!(call(&mut lanes, 1).await.unwrap().is_plain, "{name}");
    }
}

#[tokio::test]
async fn an_error_with_our_id_is_an_answer_whatever_its_status() {
    let peer = TestServer::start(|_, request| {
        let id = request.id();
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"no"}}}}"#);
        TestResponse::full("422 Unprocessable Content", &[JSON], body)
    })
    .await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    for ticket in 0..2 {
        assert!(!call(&mut lanes, ticket).await.unwrap().is_plain);
    }
    assert!(peer.requests().iter().all(|request| request.connection == 0));
}

#[tokio::test]
async fn json_with_another_label_is_an_answer_and_a_doubt() {
    let peer = TestServer::start(|_, request| {
        let id = request.id();
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        TestResponse::full("200 OK", &["Content-Type: text/plain"], body)
    })
    .await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    assert!(call(&mut lanes, 0).await.unwrap().is_plain);
    assert_eq!(lanes.protocol_warnings().len(), 1, "{:?}", lanes.protocol_warnings());
}

#[tokio::test]
async fn a_redirect_is_a_error_that_names_its_target() {
    let peer = TestServer::start(|_, _| {
        TestResponse::full("308 Permanent Redirect", &["Location: /mcp/"], "")
    })
    .await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    let error = is_error(call(&mut lanes, 0).await, ErrorKind::Denied, "/mcp/");
    assert!(error.hint().unwrap().contains("url"));
    assert_eq!(peer.requests().len(), 1);
}

#[tokio::test]
async fn a_compressed_answer_is_a_error() {
    let peer = TestServer::start(|_, request| {
        assert_eq!(request.header("accept-encoding"), None);
        TestResponse::full("200 OK", &[JSON, "Content-Encoding: gzip"], b"\x1f\x8b")
    })
    .await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    is_error(call(&mut lanes, 0).await, ErrorKind::Protocol, "compressed (gzip)");
}

#[tokio::test]
async fn a_call_that_takes_too_long_costs_its_connection() {
    let peer = TestServer::start(|_, requests| {
        if requests.body.contains("cancelled") {
            return TestResponse::accepted();
        }
        match requests.id().as_i64().unwrap() - FIRST_ID {
            0 => TestResponse::Hang(Vec::new()),
            1 => TestResponse::Hang(head("200 OK", &[JSON, "Content-Length: 9"])),
            _ => result(requests),
        }
    })
    .await;
    let mut lanes = lanes_of(&legacy(&peer), 1).await;
    for (ticket, waiting) in [(0, "response headers"), (1, "status 200, application/json")] {
        send(&mut lanes, ticket).await;
        peer.wait_for_requests(usize::try_from(ticket).unwrap() + 1).await;
        if ticket == 1 {
            // The head has to be read before it can be waited for what follows it.
            while !lanes.waiting_for(0).contains("status") {
                tokio::task::yield_now().await;
                poll_fn(|cx| {
                    assert!(lanes.poll(cx).is_pending());
                    std::task::Poll::Ready(())
                })
                .await;
            }
        }
        let soonest = lanes.next_deadline().unwrap();
        assert!(
            soonest
                .checked_sub(Duration::from_nanos(1))
                .is_none_or(|early| lanes.expire(early).is_none())
        );
        let late = lanes.expire(soonest).unwrap();
        assert_eq!(late.ticket, ticket);
        is_error(late.answer, ErrorKind::Timeout, waiting);
        assert!(lanes.expire(soonest).is_none());
    }
    peer.wait_for_hangup().await;
    assert!(call(&mut lanes, 2).await.unwrap().is_plain);
    let cancellations = loop {
        let requests = peer.requests();
        let cancellations: Vec<_> =
            requests.iter().filter(|requests| requests.body.contains("cancelled")).collect();
        if cancellations.len() == 2 {
            break cancellations.iter().map(|requests| requests.body.clone()).collect::<String>();
        }
        tokio::task::yield_now().await;
    };
    assert!(cancellations.contains(&format!("\"requestId\":{FIRST_ID}")), "{cancellations}");
}

#[tokio::test]
async fn secrets_do_not_come_back_in_errors() {
    let peer = TestServer::start(|_, request| {
        let quoted = format!("you sent {:?}", request.headers);
        TestResponse::full("500 Internal Server Error", &[], quoted)
    })
    .await;
    let target = HttpTarget {
        headers: vec![("x-api-key".to_owned(), "hunter2hunter2".into())],
        credentials: crate::mcp::credentials::bearer("topsecret77".into()),
        ..target(peer.url("/mcp"))
    };
    let wire = HttpWire::connect(target).unwrap();
    let mut lanes = lanes_of(&wire, 1).await;
    let error = call(&mut lanes, 0).await.unwrap_err();
    let request = &peer.requests()[0];
    assert_eq!(request.header("x-api-key"), Some("hunter2hunter2"));
    assert_eq!(request.header("authorization"), Some("Bearer topsecret77"));
    let text = format!("{error:?}");
    assert!(text.contains("secret:") && !text.contains("hunter2") && !text.contains("topsecret"));
}
