//! The wire against real sockets: one test for each promise and each way a server can break one.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use url::Url;

use super::peer::{EVENTS, Heard, Peer, Reply, answer, chunk, head};
use super::{HttpLimits, HttpTarget, HttpWire, is_session_lost};
use crate::mcp::wire::{Arrival, Frame, FrameKind, Wire as _};
use crate::model::{Era, Fault, FaultKind, Phase};

const JSON: [&str; 2] = ["Content-Type: application/json", "Transfer-Encoding: chunked"];

fn target(url: Url) -> HttpTarget {
    let limits = HttpLimits {
        reconnect_wait: Duration::from_millis(1),
        steady: Duration::from_mins(1),
        ..HttpLimits::default()
    };
    HttpTarget { limits, ..HttpTarget::new(url) }
}

fn wire_to(url: Url) -> HttpWire {
    HttpWire::connect(target(url)).unwrap()
}

fn wire(peer: &Peer) -> HttpWire {
    wire_to(peer.url("/mcp"))
}

fn legacy(peer: &Peer) -> HttpWire {
    let wire = wire(peer);
    wire.agreed(Era::Legacy, "2025-11-25");
    wire
}

fn modern(peer: &Peer) -> HttpWire {
    let wire = wire(peer);
    wire.agreed(Era::Modern, "2026-07-28");
    wire
}

fn request(id: u64, method: &str) -> Frame {
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": {} });
    Frame {
        bytes: Bytes::from(body.to_string()),
        kind: FrameKind::Request {
            id: json!(id),
            method: method.to_owned(),
            name: None,
            headers: Vec::new(),
        },
    }
}

fn notification(method: &str, cancels: Option<Value>) -> Frame {
    let body = json!({ "jsonrpc": "2.0", "method": method });
    Frame {
        bytes: Bytes::from(body.to_string()),
        kind: FrameKind::Notification { method: method.to_owned(), cancels },
    }
}

fn initialized() -> Frame {
    notification("notifications/initialized", None)
}

/// What became of one request.
#[derive(Debug)]
struct Outcome {
    messages: Vec<String>,
    noise: Vec<String>,
    fault: Option<Fault>,
}

impl Outcome {
    fn fault(&self, kind: FaultKind, part: &str) -> &Fault {
        let fault = self.fault.as_ref().unwrap_or_else(|| panic!("no fault: {self:?}"));
        assert_eq!(fault.kind(), kind, "{fault:?}");
        let text = format!("{} {:?}", fault.message(), fault.detail_lines());
        assert!(text.contains(part), "'{part}' is not in: {text}");
        fault
    }
}

/// Sends a request and reads to its ending.
async fn call(wire: &HttpWire, id: u64, method: &str) -> Outcome {
    let mut outcome = Outcome { messages: Vec::new(), noise: Vec::new(), fault: None };
    if let Err(fault) = wire.send(request(id, method)).await {
        outcome.fault = Some(fault);
        return outcome;
    }
    loop {
        match wire.receive().await {
            Arrival::Message { bytes, .. } => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                outcome.messages.push(text);
                if value["id"] == id && value.get("method").is_none() {
                    return outcome;
                }
            }
            Arrival::Noise(noise) => outcome.noise.push(noise),
            Arrival::Failed { id: failed, fault } => {
                assert_eq!(failed, id);
                outcome.fault = Some(fault);
                return outcome;
            }
            Arrival::Closed(fault) => panic!("closed: {fault}"),
        }
    }
}

/// One request to a server that gives `reply` to everything.
async fn ask(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Outcome {
    let peer = Peer::start(move |_, _| reply()).await;
    call(&legacy(&peer), 1, "tools/list").await
}

/// The same with a response of this status and body.
async fn ask_status(status: &'static str, headers: &'static [&str], body: &'static str) -> Outcome {
    ask(move || Reply::full(status, headers, body)).await
}

// ---- what is sent

#[tokio::test]
async fn a_legacy_session_is_kept_and_ended() {
    let peer = Peer::start(|_, heard| match (heard.method.as_str(), heard.body.as_str()) {
        ("GET", _) => Reply::full("405 Method Not Allowed", &[], ""),
        ("DELETE", _) => Reply::full("200 OK", &[], ""),
        (_, body) if body.contains("initialized") => Reply::accepted(),
        (_, body) if body.contains("initialize") => {
            let headers = ["Content-Type: application/json; charset=utf-8", "Mcp-Session-Id: s-1"];
            Reply::full("200 OK", &headers, answer(&heard.id()))
        }
        _ => Reply::result(heard),
    })
    .await;
    let wire = wire(&peer);
    assert_eq!(call(&wire, 0, "initialize").await.messages.len(), 1);
    wire.agreed(Era::Legacy, "2025-11-25");
    wire.send(initialized()).await.unwrap();
    let heard = peer.heard_at_least(3).await;
    assert_eq!(heard[2].line(), "GET /mcp");
    assert_eq!(heard[2].header("accept"), Some("text/event-stream"));
    assert_eq!(call(&wire, 1, "tools/list").await.messages.len(), 1);
    wire.close().await;
    wire.close().await;

    let heard = peer.heard();
    let lines: Vec<_> = heard.iter().map(Heard::line).collect();
    assert_eq!(lines, ["POST /mcp", "POST /mcp", "GET /mcp", "POST /mcp", "DELETE /mcp"]);
    let first = &heard[0];
    assert_eq!(first.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(first.header("content-type"), Some("application/json"));
    assert_eq!(first.header("user-agent"), Some(concat!("toolhost/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(
        (first.header("mcp-session-id"), first.header("mcp-protocol-version")),
        (None, None)
    );
    for later in &heard[1..] {
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
    let peer = Peer::start(|_, heard| {
        if heard.body.contains("\"id\"") {
            let headers = ["Content-Type: application/json", "Mcp-Session-Id: s-1"];
            Reply::full("200 OK", &headers, answer(&heard.id()))
        } else {
            Reply::accepted()
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
    assert!(matches!(wire.receive().await, Arrival::Message { .. }));
    wire.send(initialized()).await.unwrap();
    assert_eq!(call(&wire, 2, "tools/list").await.messages.len(), 1);
    wire.close().await;
    let heard = peer.heard();
    assert!(
        heard
            .iter()
            .all(|heard| heard.method == "POST" && heard.header("mcp-session-id").is_none())
    );
    assert_eq!(heard[0].header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(heard[0].header("mcp-method"), Some("tools/call"));
    assert_eq!(heard[0].header("mcp-name"), Some("=?base64?Z3LDvMOfZQ==?="));
    assert_eq!(heard[0].header("mcp-param-region"), Some("eu"));
}

#[tokio::test]
async fn a_token_is_sent_and_never_shown() {
    let peer = Peer::start(|_, heard| {
        let echo = heard.header("authorization").unwrap_or_default().to_owned();
        let challenge = format!("WWW-Authenticate: Bearer realm=\"{echo}\"");
        Reply::full("401 Unauthorized", &[&challenge], echo)
    })
    .await;
    let mut target = target(peer.url("/mcp"));
    target.bearer = Some("hunter2hunter2".into());
    let wire = HttpWire::connect(target).unwrap();
    let outcome = call(&wire, 1, "tools/list").await;
    let fault = outcome.fault(FaultKind::Auth, "refused the credentials");
    assert!(!format!("{fault:?}").contains("hunter2"), "{fault:?}");
    assert_eq!(peer.heard().len(), 1);
    assert_eq!(peer.heard()[0].header("authorization"), Some("Bearer hunter2hunter2"));
}

// ---- how answers come

#[tokio::test]
async fn an_event_stream_brings_other_messages_and_then_the_answer() {
    let outcome = ask(|| {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
        let other = answer(&json!(99));
        let own = answer(&json!(1));
        Reply::events(&format!(": hi\n\ndata: {note}\n\nevent: ping\ndata: {{}}\n\ndata: {other}\n\nevent: message\ndata: {own}\n\n"))
    })
    .await;
    assert_eq!(outcome.messages.len(), 3);
    assert!(outcome.fault.is_none());
}

#[tokio::test]
async fn the_connection_of_an_event_stream_is_used_again() {
    let peer =
        Peer::start(|_, heard| Reply::events(&format!("data: {}\n\n", answer(&heard.id())))).await;
    let wire = legacy(&peer);
    for id in 0..3 {
        assert!(call(&wire, id, "tools/list").await.fault.is_none());
        // The answer is delivered before the stream's regular end is read.
        while wire.waiting_for(&json!(id)).is_some() {
            tokio::task::yield_now().await;
        }
    }
    assert!(peer.heard().iter().all(|heard| heard.connection == 0));
}

#[tokio::test]
async fn left_over_bytes_are_never_an_answer() {
    let peer = Peer::start(|_, heard| {
        let own = answer(&heard.id());
        let smuggled = r#"{"jsonrpc":"2.0","id":1,"result":"SMUGGLED"}"#;
        let length = format!("Content-Length: {}", own.len());
        let mut bytes = head("200 OK", &["Content-Type: application/json", &length]);
        bytes.extend_from_slice(own.as_bytes());
        let length = format!("Content-Length: {}", smuggled.len());
        bytes.extend(head("200 OK", &["Content-Type: application/json", &length]));
        bytes.extend_from_slice(smuggled.as_bytes());
        Reply::Raw(bytes)
    })
    .await;
    let wire = legacy(&peer);
    for id in 0..20 {
        let outcome = call(&wire, id, "tools/list").await;
        assert!(outcome.fault.is_none(), "{outcome:?}");
        assert!(!outcome.messages[0].contains("SMUGGLED"));
    }
}

#[tokio::test]
async fn json_with_a_wrong_label_is_taken_with_a_warning() {
    let outcome =
        ask_status("200 OK", &["Content-Type: text/plain"], r#"{"id":1,"result":{}}"#).await;
    assert_eq!(
        (outcome.messages.len(), outcome.noise.as_slice()),
        (1, &["JSON labelled as text/plain".to_owned()][..])
    );
    let outcome = ask_status("200 OK", &[], r#" {"id":1,"result":{}}"#).await;
    assert_eq!(outcome.noise, ["JSON labelled as no content type"]);
}

#[tokio::test]
async fn pages_and_silence_are_no_answers() {
    let page = "<html><title>Sign in</title></html>";
    let outcome = ask_status("200 OK", &["Content-Type: text/html; charset=utf-8"], page).await;
    let fault = outcome.fault(FaultKind::Protocol, "not an MCP endpoint: text/html");
    assert_eq!(fault.detail_lines(), ["Sign in"]);
    // Even when it looks like JSON.
    let outcome = ask_status("200 OK", &["Content-Type: text/html"], "{}").await;
    outcome.fault(FaultKind::Protocol, "not an MCP endpoint");
    let outcome = ask_status("202 Accepted", &[], "").await;
    outcome.fault(FaultKind::Protocol, "202");
    let outcome = ask_status("200 OK", &["Content-Type: application/json"], "").await;
    outcome.fault(FaultKind::Protocol, "empty");
    let outcome = ask(|| {
        let mut bytes = head("200 OK", &JSON);
        bytes.extend_from_slice(b"0\r\n\r\n");
        Reply::Raw(bytes)
    })
    .await;
    outcome.fault(FaultKind::Protocol, "empty");
}

#[tokio::test]
async fn what_comes_instead_of_the_answer_is_passed_on_and_named() {
    let outcome = ask(|| Reply::json(answer(&json!(987)))).await;
    outcome.fault(FaultKind::Protocol, "unknown id 987");
    assert_eq!(outcome.messages.len(), 1);
    let outcome = ask(|| Reply::json(r#"{"id":1,"result":{"x":NaN}}"#)).await;
    outcome.fault(FaultKind::Protocol, "not JSON");
    let outcome = ask(|| Reply::json(r#"{"id":1,"resu"#)).await;
    outcome.fault(FaultKind::Protocol, "not JSON");
    let outcome = ask(|| Reply::events("data: oops\n\n")).await;
    outcome.fault(FaultKind::Protocol, "not JSON");
}

#[tokio::test]
async fn an_error_status_with_a_json_rpc_error_is_a_message() {
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#;
    for status in ["400 Bad Request", "404 Not Found"] {
        let outcome = ask_status(status, &["Content-Type: application/json"], body).await;
        assert_eq!(outcome.messages, [body]);
        assert!(outcome.fault.is_none());
    }
    // Without the id it is passed on as well, and the request ends with what the status means.
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}}"#;
    let outcome = ask_status("400 Bad Request", &["Content-Type: application/json"], body).await;
    assert_eq!(outcome.messages, [body]);
    outcome.fault(FaultKind::Protocol, "not initialized");
}

// ---- refusals

#[tokio::test]
async fn a_status_has_its_kind_and_its_words() {
    let outcome = ask_status(
        "500 Internal Server Error",
        &["Content-Type: text/html"],
        "<title>Oops</title>",
    )
    .await;
    outcome.fault(FaultKind::Unreachable, "Oops");
    let outcome = ask_status("429 Too Many Requests", &["Retry-After: 86400"], "").await;
    outcome.fault(FaultKind::Unreachable, "retry-after: 86400");
    let outcome = ask_status("403 Forbidden", &[], "").await;
    outcome.fault(FaultKind::Auth, "403");
    let challenge = &["WWW-Authenticate: Bearer resource_metadata=\"http://169.254.169.254/\""];
    let outcome = ask_status("401 Unauthorized", challenge, "").await;
    let fault = outcome.fault(FaultKind::Auth, "169.254.169.254");
    assert!(fault.hint_text().unwrap().contains("token_env_var"));
    let outcome = ask_status("404 Not Found", &[], "").await;
    assert!(!is_session_lost(outcome.fault(FaultKind::Unreachable, "nothing at")));
}

#[tokio::test]
async fn a_request_is_sent_once_whatever_comes_back() {
    let peer =
        Peer::start(|_, _| Reply::full("503 Service Unavailable", &["Retry-After: 0"], "")).await;
    call(&legacy(&peer), 1, "tools/call").await.fault(FaultKind::Unreachable, "503");
    assert_eq!(peer.heard().len(), 1);
}

#[tokio::test]
async fn a_forgotten_session_is_recognised() {
    let peer = Peer::start(|n, heard| {
        if n == 0 {
            let headers = ["Content-Type: application/json", "Mcp-Session-Id: s-1"];
            Reply::full("200 OK", &headers, answer(&heard.id()))
        } else {
            let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
            Reply::full("404 Not Found", &["Content-Type: application/json"], body)
        }
    })
    .await;
    let wire = wire(&peer);
    call(&wire, 0, "initialize").await;
    wire.agreed(Era::Legacy, "2025-11-25");
    let outcome = call(&wire, 1, "tools/list").await;
    assert!(is_session_lost(outcome.fault(FaultKind::Unreachable, "forgot the session")));
    assert_eq!(outcome.messages, [] as [&str; 0]);
}

#[tokio::test]
async fn an_odd_session_id_is_not_sent_back() {
    let long = "S".repeat(32 * 1024);
    for id in [long.as_str(), "two words"] {
        let header = format!("Mcp-Session-Id: {id}");
        let peer = Peer::start(move |_, heard| {
            Reply::full("200 OK", &["Content-Type: application/json", &header], answer(&heard.id()))
        })
        .await;
        let wire = wire(&peer);
        let outcome = call(&wire, 0, "initialize").await;
        assert!(outcome.noise.len() == 1 && !outcome.noise[0].contains(id), "{:?}", outcome.noise);
        wire.agreed(Era::Legacy, "2025-11-25");
        call(&wire, 1, "tools/list").await;
        assert_eq!(peer.heard()[1].header("mcp-session-id"), None);
    }
}

// ---- where it goes

#[tokio::test]
async fn a_bare_url_is_tried_once_at_mcp() {
    for refused in ["404 Not Found", "405 Method Not Allowed"] {
        let peer = Peer::start(move |_, heard| match heard.path.as_str() {
            "/mcp" => Reply::result(heard),
            _ => Reply::full(refused, &[], ""),
        })
        .await;
        let wire = wire_to(peer.url(""));
        let outcome = call(&wire, 0, "initialize").await;
        assert!(outcome.noise[0].contains("/mcp:"), "{:?}", outcome.noise);
        call(&wire, 1, "tools/list").await;
        let lines: Vec<_> = peer.heard().iter().map(Heard::line).collect();
        assert_eq!(lines, ["POST /", "POST /mcp", "POST /mcp"]);
    }
}

#[tokio::test]
async fn nothing_is_guessed_twice_or_beside_a_path() {
    let peer = Peer::start(|_, _| Reply::full("404 Not Found", &[], "")).await;
    let bare = wire_to(peer.url(""));
    call(&bare, 0, "initialize").await.fault(FaultKind::Unreachable, "/mcp was tried as well");
    call(&bare, 1, "initialize").await.fault(FaultKind::Unreachable, "nothing at");
    assert_eq!(peer.heard().len(), 3);
    call(&wire_to(peer.url("/api")), 0, "initialize").await;
    assert_eq!(peer.heard().len(), 4);
}

#[tokio::test]
async fn a_redirect_within_the_origin_keeps_the_message() {
    let peer = Peer::start(|_, heard| match heard.path.as_str() {
        "/mcp" => Reply::full("307 Temporary Redirect", &["Location: /mcp/"], ""),
        _ => Reply::result(heard),
    })
    .await;
    assert_eq!(call(&legacy(&peer), 1, "tools/list").await.messages.len(), 1);
    let heard = peer.heard();
    assert_eq!(heard[1].line(), "POST /mcp/");
    assert_eq!(heard[1].body, heard[0].body);
}

#[tokio::test]
async fn a_redirect_elsewhere_is_refused_and_sends_nothing() {
    let canary = Peer::start(|_, heard| Reply::result(heard)).await;
    let location = format!("Location: {}", canary.url("/stolen"));
    let peer =
        Peer::start(move |_, _| Reply::full("307 Temporary Redirect", &[&location], "")).await;
    call(&legacy(&peer), 1, "tools/call").await.fault(FaultKind::Denied, "/stolen");
    assert_eq!(canary.heard().len(), 0);
    ask_status("303 See Other", &["Location: /x"], "").await.fault(FaultKind::Denied, "/x");
    let outcome = ask_status("308 Permanent Redirect", &["Location: file:///etc/passwd"], "").await;
    outcome.fault(FaultKind::Denied, "file:///etc/passwd");
}

#[tokio::test]
async fn a_circle_of_redirects_ends() {
    let peer =
        Peer::start(|_, _| Reply::full("308 Permanent Redirect", &["Location: /mcp"], "")).await;
    call(&legacy(&peer), 1, "tools/list").await.fault(FaultKind::Protocol, "limit: 5");
    assert_eq!(peer.heard().len(), 6);
}

// ---- broken connections

#[tokio::test]
async fn a_closed_port_is_a_refused_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let outcome = call(&wire_to(url), 1, "initialize").await;
    let fault = outcome.fault(FaultKind::Unreachable, "connection refused");
    assert_eq!(fault.at_phase(), Some(Phase::Start));
}

#[tokio::test]
async fn a_host_that_does_not_exist_is_named() {
    // A label this long is refused by the resolver itself, so that no network is asked.
    let host = format!("{}.invalid", "a".repeat(64));
    let url = format!("http://{host}/mcp").parse().unwrap();
    let outcome = call(&wire_to(url), 1, "initialize").await;
    outcome.fault(FaultKind::Unreachable, &format!("the host of {host}:80 cannot be found"));
}

#[tokio::test]
async fn broken_connections_have_their_causes() {
    ask(|| Reply::Reset(Vec::new())).await.fault(FaultKind::Unreachable, "connection");
    ask(|| Reply::Last(Vec::new())).await.fault(FaultKind::Unreachable, "closed the connection");
    let outcome = ask(|| Reply::Last(b"SSH-2.0-OpenSSH_9.9\r\n\x1b[31m".to_vec())).await;
    outcome.fault(FaultKind::Protocol, "does not speak HTTP");
}

#[tokio::test]
async fn broken_bodies_give_no_partial_answer() {
    let body = answer(&json!(1));
    let (short, chunked) = (body.clone(), body.clone());
    let outcome = ask(move || {
        let length = format!("Content-Length: {}", short.len() + 1000);
        let mut bytes = head("200 OK", &["Content-Type: application/json", &length]);
        bytes.extend_from_slice(short.as_bytes());
        Reply::Last(bytes)
    })
    .await;
    outcome.fault(FaultKind::Protocol, "ended early");
    assert_eq!(outcome.messages, [] as [&str; 0]);
    let outcome = ask(move || {
        let mut bytes = head("200 OK", &JSON);
        bytes.extend_from_slice(chunk(&chunked).as_bytes());
        bytes.extend_from_slice(b"zz\r\n");
        Reply::Last(bytes)
    })
    .await;
    outcome.fault(FaultKind::Protocol, "HTTP body is broken");
    assert_eq!(outcome.messages, [] as [&str; 0]);
    let outcome = ask(|| {
        let headers = ["Content-Type: application/json", "Content-Encoding: gzip"];
        Reply::full("200 OK", &headers, b"\x1f\x8b\x08\0\0\0\0\0\0\0nonsense")
    })
    .await;
    outcome.fault(FaultKind::Protocol, "HTTP body is broken");
    let outcome = ask(move || {
        let mut bytes = head("200 OK", &["Content-Type: application/json", "Content-Length: 999"]);
        bytes.extend_from_slice(body.as_bytes());
        Reply::Reset(bytes)
    })
    .await;
    assert!(outcome.fault.is_some() && outcome.messages.is_empty());
}

#[tokio::test]
async fn large_headers_are_refused() {
    let line = format!("X-A: {}", "v".repeat(1000));
    for (lines, size) in [(101, 10), (70, 1000), (1000, 1000)] {
        let line: String = line.chars().take(size).collect();
        let peer = Peer::start(move |_, _| {
            let mut headers = vec![line.as_str(); lines];
            headers.push("Content-Type: application/json");
            Reply::full("200 OK", &headers, "{}")
        })
        .await;
        let outcome = call(&legacy(&peer), 1, "tools/list").await;
        let fault = outcome.fault(FaultKind::Protocol, "response headers");
        assert!(format!("{fault:?}").contains("64"), "the limit is named: {fault:?}");
    }
}

#[tokio::test]
async fn bodies_and_events_without_end_stop_at_the_limit() {
    let data = vec![b'A'; 1 << 16];
    let piece = [format!("{:x}\r\n", data.len()).as_bytes(), &data[..], b"\r\n"].concat();
    let (first, again) = (head("200 OK", &JSON), piece.clone());
    let outcome = ask(move || Reply::Endless(first.clone(), again.clone())).await;
    outcome.fault(FaultKind::Protocol, "limit of 16.0 MiB");
    let first = [&head("200 OK", &EVENTS)[..], chunk("data: ").as_bytes()].concat();
    let outcome = ask(move || Reply::Endless(first.clone(), piece.clone())).await;
    outcome.fault(FaultKind::Protocol, "limit of 16.0 MiB");
    let outcome = ask(|| {
        let length = "Content-Length: 99999999999";
        Reply::Hang(head("200 OK", &["Content-Type: application/json", length]))
    })
    .await;
    outcome.fault(FaultKind::Protocol, "limit of 16.0 MiB");
}

#[tokio::test]
async fn a_compressed_answer_is_unpacked_within_the_limit() {
    // gzip of {"id":1,"result":{}} and of 64 KiB of blanks, the latter against a small limit.
    let peer = Peer::start(|_, heard| {
        assert_eq!(heard.header("accept-encoding"), Some("gzip"));
        let headers = ["Content-Type: application/json", "Content-Encoding: gzip"];
        Reply::full("200 OK", &headers, stored_gzip(&answer(&heard.id())))
    })
    .await;
    assert_eq!(call(&legacy(&peer), 1, "tools/list").await.messages, [answer(&json!(1))]);
    let mut small = target(peer.url("/mcp"));
    small.limits.message = 10;
    let wire = HttpWire::connect(small).unwrap();
    call(&wire, 1, "tools/list").await.fault(FaultKind::Protocol, "limit of 10 B");
}

/// A gzip member with one stored block (RFC 1951, 3.2.4), so that no compressor is needed.
fn stored_gzip(text: &str) -> Vec<u8> {
    let data = text.as_bytes();
    let length = u16::try_from(data.len()).unwrap();
    let crc = !data.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    });
    let mut out = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01".to_vec();
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend(crc.to_le_bytes());
    out.extend(u32::from(length).to_le_bytes());
    out
}

// ---- event streams that are cut

#[tokio::test]
async fn a_cut_stream_without_ids_fails_at_once() {
    let peer = Peer::start(|_, _| {
        let mut bytes = head("200 OK", &EVENTS);
        bytes.extend_from_slice(chunk("data: {\"id\":1,\"res").as_bytes());
        Reply::Last(bytes)
    })
    .await;
    let outcome = call(&legacy(&peer), 1, "tools/call").await;
    outcome.fault(FaultKind::Unreachable, "the event stream was cut before the answer came");
    assert_eq!(outcome.messages, [] as [&str; 0]);
    assert_eq!(peer.heard().len(), 1);
}

#[tokio::test]
async fn a_legacy_stream_with_ids_is_continued_where_it_was() {
    let peer = Peer::start(|n, _| match n {
        0 => Reply::events("id: a\nretry: 0\ndata:\n\n"),
        1 => Reply::events("id: b\ndata: {\"method\":\"notifications/x\"}\n\n"),
        2 => Reply::full("503 Service Unavailable", &[], ""),
        _ => Reply::events(&format!("id: c\ndata: {}\n\n", answer(&json!(1)))),
    })
    .await;
    let outcome = call(&legacy(&peer), 1, "tools/call").await;
    assert_eq!((outcome.messages.len(), outcome.fault.is_none()), (2, true));
    let heard = peer.heard();
    let asked: Vec<_> =
        heard.iter().map(|h| (h.method.as_str(), h.header("last-event-id"))).collect();
    assert_eq!(asked, [("POST", None), ("GET", Some("a")), ("GET", Some("b")), ("GET", Some("b"))]);
}

#[tokio::test]
async fn continuing_ends_after_five_connections_or_a_refusal() {
    let peer = Peer::start(|_, _| Reply::events("id: a\nretry: 0\ndata:\n\n")).await;
    let outcome = call(&legacy(&peer), 1, "tools/call").await;
    outcome.fault(FaultKind::Protocol, "ended 6 times");
    assert_eq!(peer.heard().len(), 6);
    let peer = Peer::start(|n, _| match n {
        0 => Reply::events("id: a\ndata:\n\n"),
        _ => Reply::full("405 Method Not Allowed", &[], ""),
    })
    .await;
    let outcome = call(&legacy(&peer), 1, "tools/call").await;
    outcome.fault(FaultKind::Unreachable, "405");
    assert_eq!(peer.heard().len(), 2);
}

#[tokio::test]
async fn a_modern_stream_is_never_continued() {
    let peer = Peer::start(|_, _| Reply::events("id: a\nretry: 0\ndata:\n\n")).await;
    call(&modern(&peer), 1, "tools/call").await.fault(FaultKind::Unreachable, "before the answer");
    assert_eq!(peer.heard().len(), 1);
}

#[tokio::test]
async fn the_servers_own_stream_is_read_and_continued() {
    let peer = Peer::start(|n, heard| match (heard.method.as_str(), n) {
        ("POST", _) => Reply::accepted(),
        (_, 1) => {
            Reply::events("id: 7\ndata: {\"method\":\"notifications/tools/list_changed\"}\n\n")
        }
        _ => {
            let mut bytes = head("200 OK", &EVENTS);
            bytes.extend_from_slice(chunk("data: {\"id\":5,\"method\":\"ping\"}\n\n").as_bytes());
            Reply::Hang(bytes)
        }
    })
    .await;
    let wire = legacy(&peer);
    wire.send(initialized()).await.unwrap();
    for part in ["list_changed", "ping"] {
        match wire.receive().await {
            Arrival::Message { bytes, stream_of: None } => {
                assert!(String::from_utf8_lossy(&bytes).contains(part));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(peer.heard()[2].header("last-event-id"), Some("7"));
}

// ---- waiting and giving up

#[tokio::test]
async fn a_request_says_what_it_waits_for() {
    let peer = Peer::start(|n, _| {
        if n == 0 {
            Reply::Hang(Vec::new())
        } else {
            let mut bytes = head("200 OK", &EVENTS);
            bytes.extend_from_slice(chunk(": alive\n\n").as_bytes());
            Reply::Hang(bytes)
        }
    })
    .await;
    let wire = legacy(&peer);
    let waits = async |id: u64, text: &str| {
        while wire.waiting_for(&json!(id)).as_deref() != Some(text) {
            tokio::task::yield_now().await;
        }
    };
    let first = Box::pin(wire.send(request(1, "tools/call")));
    tokio::select! {
        biased;
        sent = first => panic!("{sent:?}"),
        () = waits(1, "response headers") => {}
    }
    // An abandoned `send` can still say it.
    assert!(wire.waiting_for(&json!(1)).is_some());
    wire.send(request(2, "tools/call")).await.unwrap();
    waits(2, "the answer (status 200, text/event-stream, 9 B so far)").await;
    wire.close().await;
}

#[tokio::test]
async fn a_modern_cancellation_closes_the_stream_and_posts_nothing() {
    let peer = Peer::start(|_, _| Reply::Hang(head("200 OK", &EVENTS))).await;
    let wire = modern(&peer);
    wire.send(request(1, "tools/call")).await.unwrap();
    wire.send(notification("notifications/cancelled", Some(json!(1)))).await.unwrap();
    assert_eq!(wire.waiting_for(&json!(1)), None);
    assert_eq!(peer.heard().len(), 1);
}

#[tokio::test]
async fn a_legacy_cancellation_is_posted_and_a_late_answer_is_not_read() {
    let peer = Peer::start(|_, heard| {
        if heard.body.contains("cancelled") {
            Reply::accepted()
        } else {
            Reply::Hang(head("200 OK", &EVENTS))
        }
    })
    .await;
    let wire = legacy(&peer);
    wire.send(request(1, "tools/call")).await.unwrap();
    wire.send(notification("notifications/cancelled", Some(json!(1)))).await.unwrap();
    assert_eq!(wire.waiting_for(&json!(1)), None);
    assert!(peer.heard()[1].body.contains("cancelled"));
}

#[tokio::test]
async fn a_silent_server_ends_at_the_wires_own_deadlines() {
    let peer = Peer::start(|_, _| Reply::Hang(Vec::new())).await;
    let mut target = target(peer.url("/mcp"));
    target.limits.exchange = Duration::from_millis(20);
    target.limits.control = Duration::from_millis(20);
    let wire = HttpWire::connect(target).unwrap();
    call(&wire, 1, "tools/call").await.fault(FaultKind::Timeout, "no response headers");
    let fault = wire.send(initialized()).await.unwrap_err();
    assert_eq!(fault.kind(), FaultKind::Timeout);
    assert!(fault.message().contains("notifications/initialized"));
}

#[tokio::test]
async fn a_refused_notification_is_an_error() {
    let peer = Peer::start(|_, _| Reply::full("400 Bad Request", &[], "no session")).await;
    let fault = legacy(&peer).send(initialized()).await.unwrap_err();
    assert_eq!(fault.detail_lines(), ["no session"]);
}

// ---- TLS

/// A server that completes TLS handshakes with this certificate and answers one request each.
fn tls_server(certificate: &'static [u8]) -> Url {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("testdata/key.pem")).unwrap();
    let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(session, socket.unwrap());
            let mut buffer = [0; 8192];
            // The client refuses the certificate in most tests.
            if stream.read(&mut buffer).is_ok_and(|n| n > 0) {
                let body = answer(&json!(1));
                let length = format!("Content-Length: {}", body.len());
                let mut bytes = head("200 OK", &["Content-Type: application/json", &length]);
                bytes.extend_from_slice(body.as_bytes());
                stream.write_all(&bytes).ok();
                stream.flush().ok();
            }
        }
    });
    url
}

#[tokio::test]
async fn a_bad_certificate_is_refused_with_its_reason() {
    let url = tls_server(include_bytes!("testdata/expired.pem"));
    call(&wire_to(url), 1, "initialize")
        .await
        .fault(FaultKind::Unreachable, "certificate has expired");
    let url = tls_server(include_bytes!("testdata/authority.pem"));
    call(&wire_to(url), 1, "initialize").await.fault(FaultKind::Unreachable, "self-signed");
    let url = tls_server(include_bytes!("testdata/selfsigned.pem"));
    let outcome = call(&wire_to(url.clone()), 1, "initialize").await;
    let fault = outcome.fault(FaultKind::Unreachable, "self-signed");
    assert!(fault.hint_text().unwrap().contains("--insecure"));
    let mut insecure = target(url);
    insecure.insecure = true;
    let outcome = call(&HttpWire::connect(insecure).unwrap(), 1, "initialize").await;
    assert_eq!(outcome.messages.len(), 1);
    assert!(outcome.noise[0].contains("not checked"));
}

#[tokio::test]
async fn a_server_without_tls_is_recognised() {
    let peer = Peer::start(|_, _| Reply::accepted()).await;
    // Not HTTP either, but the first bytes come before a request could be understood.
    let mut url = peer.url("/mcp");
    url.set_scheme("https").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        let mut buffer = [0; 8192];
        while socket.read(&mut buffer).is_ok_and(|n| n > 0) {}
    });
    call(&wire_to(url), 1, "initialize").await.fault(FaultKind::Unreachable, "does not speak TLS");
}

#[tokio::test]
async fn a_tls_handshake_that_never_starts_ends_at_the_connect_deadline() {
    let peer = Peer::start(|_, _| Reply::Hang(Vec::new())).await;
    let mut url = peer.url("/mcp");
    url.set_scheme("https").unwrap();
    let mut target = target(url);
    target.limits.connect = Duration::from_millis(50);
    let outcome = call(&HttpWire::connect(target).unwrap(), 1, "initialize").await;
    outcome.fault(FaultKind::Timeout, "no TLS connection");
}
