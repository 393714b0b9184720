//! Tests of responses, and every way a server can break one.

use serde_json::json;

use super::*;
use crate::net::test_server::{chunk, head};

#[tokio::test]
async fn json_and_text_are_results() {
    let json = answered("", || TestResponse::json(r#"{"a":[1.50]}"#)).await.unwrap();
    assert_eq!(json.output.to_string(), r#"{"a":[1.50]}"#);
    assert_eq!(json.structured, Some(json.output));
    let kind = ["Content-Type: application/problem+json; charset=utf-8"];
    let other = answered("", move || TestResponse::full("200 OK", &kind, "[1]")).await.unwrap();
    assert_eq!(other.output, json!([1]));
    let text =
        answered("", || TestResponse::full("200 OK", &["Content-Type: text/html"], "{}")).await;
    assert_eq!(text.unwrap().output, json!("{}"));
    let bare = answered("", || TestResponse::full("200 OK", &[], "{\"a\":1}")).await.unwrap();
    assert_eq!(bare.output, json!({ "a": 1 }));
    let latin =
        answered("", || TestResponse::full("200 OK", &["Content-Type: text/plain"], b"caf\xe9 x"));
    let latin = latin.await.unwrap();
    assert_eq!(latin.output, json!("caf\u{fffd} x"));
    assert!(latin.warnings[0].contains("not UTF-8"), "{:?}", latin.warnings);
    let nothing = answered("", || TestResponse::full("204 No Content", &[], "")).await.unwrap();
    assert!(nothing.success && nothing.output.is_null() && nothing.content.is_empty());
}

#[tokio::test]
async fn the_metadata_tell_status_and_some_headers() {
    let peer = TestServer::start(|_, _| {
        let headers = ["Content-Type: text/plain", "ETag: \"1\"", "Set-Cookie: secret=1"];
        TestResponse::full("201 Created", &headers, "ok")
    })
    .await;
    let harness = tool(&peer, "endpoint_url: URL/x?key=abc\nmethod: POST");
    let meta = harness.call("t", json!({})).await.unwrap().meta.unwrap();
    assert_eq!(meta["status"], 201);
    assert_eq!(meta["url"], peer.url("/x").as_str(), "a query may hold a key");
    assert_eq!(meta["headers"], json!({ "content-type": "text/plain", "etag": "\"1\"" }));
}

#[tokio::test]
async fn data_are_blocks() {
    let png = || TestResponse::full("200 OK", &["Content-Type: image/png"], b"\x89PNG\0");
    let image = answered("", png).await.unwrap();
    assert_eq!(
        image.content,
        [json!({ "type": "image", "mimeType": "image/png", "data": "iVBORwA=" })]
    );
    let zip =
        || TestResponse::full("200 OK", &["Content-Type: application/zip"], b"PK\x03\x04\0\xff");
    let blob = answered("", zip).await.unwrap();
    assert_eq!(blob.content[0]["resource"]["blob"], "UEsDBAD/");
    let large = answered("max_response_bytes: 3", png).await.unwrap();
    assert_eq!(large.output, json!("[image/png, 5 B: too large to store]"));
    assert!(large.warnings[0].contains("was truncated"), "{:?}", large.warnings);
}

#[tokio::test]
async fn a_path_picks_a_part_of_the_answer() {
    let reply = || TestResponse::json(r#"{"current":{"t":[20]},"ok":true}"#);
    let part = answered("response_path: /current/t/0", reply).await.unwrap();
    assert_eq!(part.output, json!(20));
    let missing = answered("response_path: /curent", reply).await.unwrap();
    assert!(missing.content[1]["text"].as_str().unwrap().contains("\"ok\":true"));
    failed(Ok(missing), ErrorKind::Tool, "the answer has current, ok");
    let html = || TestResponse::full("200 OK", &["Content-Type: text/html"], "<p>");
    failed(answered("response_path: /a", html).await, ErrorKind::Protocol, "not the JSON");
    let png = || TestResponse::full("200 OK", &["Content-Type: image/png"], b"\x89");
    failed(answered("response_path: /a", png).await, ErrorKind::Protocol, "image/png, not JSON");
}

#[tokio::test]
async fn a_refusal_keeps_the_servers_own_words() {
    let html = || {
        let page = "<html><title>Oops \x1b[2J</title><p>trace";
        TestResponse::full("500 Internal Server Error", &["Content-Type: text/html"], page)
    };
    let error = failed(answered("", html).await, ErrorKind::Tool, "Oops \x1b[2J");
    assert_eq!(error.data().unwrap()["http_status"], 500);
    let diagnostic = || {
        let kind = ["Content-Type: application/problem+json"];
        TestResponse::full(
            "422 Unprocessable Entity",
            &kind,
            r#"{"title":"Bad","detail":"no name"}"#,
        )
    };
    let result = answered("", diagnostic).await.unwrap();
    assert_eq!(result.output["detail"], "no name");
    assert_eq!(result.meta.as_ref().unwrap()["status"], 422);
    failed(Ok(result), ErrorKind::Tool, "422 Unprocessable Entity: Bad: no name");
    failed(
        answered("", || TestResponse::full("404 Not Found", &[], "")).await,
        ErrorKind::Tool,
        "404",
    );
    failed(
        answered("", || TestResponse::full("403 Forbidden", &[], "no")).await,
        ErrorKind::Tool,
        ": no",
    );
}

#[tokio::test]
async fn missing_credentials_are_a_error_of_their_own() {
    let reply =
        || TestResponse::full("401 Unauthorized", &["WWW-Authenticate: Bearer realm=x"], "");
    let error = failed(answered("", reply).await, ErrorKind::Auth, "token_env_var");
    assert_eq!(error.details(), ["www-authenticate: Bearer realm=x"]);
    let keys = "auth: { token_env_var: API_TOKEN }";
    failed(answered(keys, reply).await, ErrorKind::Auth, "wrong or expired");
    let proxy = || TestResponse::full("407 Proxy Authentication Required", &[], "");
    failed(answered("", proxy).await, ErrorKind::Auth, "407");
}

#[tokio::test]
async fn too_much_is_cut_and_said() {
    let json = || TestResponse::json(format!("[{}1]", "1,".repeat(500)));
    let result = answered("max_response_bytes: 100", json).await.unwrap();
    let text = result.output.as_str().unwrap();
    assert_eq!(text.strip_suffix('…').unwrap().len(), 100);
    assert!(result.structured.is_none());
    insta::assert_snapshot!(result.warnings.join("\n"), @r"the response was truncated: 100 B of 1003 B are kept ('max_response_bytes' allows more)");
    let part = answered("max_response_bytes: 100\nresponse_path: /0", json).await;
    failed(part, ErrorKind::Protocol, "cannot be looked for");
    let endless = || {
        let headers = ["Content-Type: text/plain", "Transfer-Encoding: chunked"];
        TestResponse::Endless(head("200 OK", &headers), chunk(&"x".repeat(999)).into_bytes())
    };
    let result = answered("", endless).await.unwrap();
    let text = result.output.as_str().unwrap();
    assert_eq!(text.strip_suffix('…').unwrap().len(), 256 << 10);
    assert!(result.warnings[0].contains("256.0 KiB are kept"), "{:?}", result.warnings);
    let refusal = || {
        let headers = ["Transfer-Encoding: chunked"];
        TestResponse::Endless(head("500 No", &headers), chunk(&"y".repeat(999)).into_bytes())
    };
    failed(answered("", refusal).await, ErrorKind::Tool, "yyy");
}

#[tokio::test]
async fn a_small_body_that_unpacks_to_much_is_cut_too() {
    let reply = || {
        let headers = ["Content-Type: text/plain", "Content-Encoding: gzip"];
        TestResponse::full("200 OK", &headers, bomb(64 << 20))
    };
    let result = answered("max_response_bytes: 64KiB", reply).await.unwrap();
    let text = result.output.as_str().unwrap();
    assert_eq!(text.strip_suffix('…').unwrap().len(), 64 << 10);
    assert!(result.warnings[0].contains("was truncated"), "{:?}", result.warnings);
}

/// A gzip member that unpacks to about `size` letters: one literal, and then "258 of the last one"
/// again and again, in fixed codes (RFC 1951, 3.2.6).
fn bomb(size: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = vec![true, true, false];
    let mut huffman = |code: u32, length: u32| {
        bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
    };
    huffman(0x30 + u32::from(b'a'), 8);
    for _ in 0..size / 258 {
        huffman(0b1100_0101, 8);
        huffman(0, 5);
    }
    huffman(0, 7);
    let mut out = b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec();
    for byte in bits.chunks(8) {
        out.push(byte.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << at));
    }
    out
}

#[tokio::test]
async fn a_broken_answer_is_never_a_result() {
    let typed = |length: usize| {
        head("200 OK", &["Content-Type: application/json", &format!("Content-Length: {length}")])
    };
    let broken = || TestResponse::json("{\"a\":\x1b");
    let error = failed(answered("", broken).await, ErrorKind::Protocol, "not the JSON");
    assert!(error.details()[0].contains("it starts with"));
    let short = move || TestResponse::Last([typed(99), b"{\"a\":1}".to_vec()].concat());
    failed(answered("", short).await, ErrorKind::Protocol, "ended early: 7 B of 99 B");
    let reset = move || TestResponse::Reset([typed(99), b"{".to_vec()].concat());
    assert!(answered("", reset).await.is_err());
    let silent = || TestResponse::Reset(Vec::new());
    failed(answered("", silent).await, ErrorKind::Unreachable, "connection");
    let no_http = || TestResponse::Last(b"220 mail ready\r\n".to_vec());
    failed(answered("", no_http).await, ErrorKind::Protocol, "does not speak HTTP");
    let odd = || TestResponse::full("200 OK", &["Content-Encoding: gzip"], "nonsense");
    failed(answered("", odd).await, ErrorKind::Protocol, "HTTP body is broken");
    let headers = "X-A: ".to_owned() + &"v".repeat(2000);
    let many = move || TestResponse::full("200 OK", &vec![headers.as_str(); 50], "");
    failed(answered("", many).await, ErrorKind::Protocol, "response headers");
}

#[tokio::test]
async fn a_call_that_has_to_stop_says_what_had_come() {
    for (begun, expected) in [
        (Vec::new(), "no response had arrived from 127.0.0.1"),
        (
            [head("200 OK", &["Content-Type: text/plain", "Content-Length: 9"]), b"abc".to_vec()]
                .concat(),
            "of the response from 127.0.0.1",
        ),
    ] {
        let peer = TestServer::start(move |_, _| TestResponse::Hang(begun.clone())).await;
        let harness = tool(&peer, "endpoint_url: URL/x");
        let context = harness.context();
        let call = harness.call_in(&context, "t", json!({}));
        let stop = async {
            peer.wait_for_requests(1).await;
            // Let what was sent arrive, as far as it does by itself.
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            context.cancel.cancel();
        };
        let (outcome, ()) = tokio::join!(call, stop);
        failed(outcome, ErrorKind::Timeout, expected);
        // The request is gone, not only forgotten.
        peer.wait_for_hangup().await;
    }
}

#[tokio::test]
async fn an_address_without_a_server_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let harness = harness(&format!("http://{address}"), "endpoint_url: URL/x");
    failed(harness.call("t", json!({})).await, ErrorKind::Unreachable, "connection refused");
}
