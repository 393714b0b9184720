//! Plain calls are answered as the SDK answers them, and everything else by the SDK.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::host::ToolHost;
use crate::host::function_tool::FunctionTool;
use crate::model::{
    Error, ErrorKind, HostEvent, JsonObject, LogLevel, ToolContext, ToolDefinition,
};
use crate::serve::catalogue_server::{ClientRegistry, ServeSettings};

/// Two services that answer alike: one as it is, and one by the SDK alone.
struct Pair {
    own: Arc<McpService>,
    sdk: Arc<McpService>,
    /// Told when the tool `wait` begins and when it was cancelled.
    waiting: mpsc::Receiver<&'static str>,
}

fn with_schema(schema: Value) -> impl FnOnce(&mut ToolDefinition) {
    move |tool| tool.input_schema = Arc::new(schema)
}

async fn tell(arguments: JsonObject, context: ToolContext) -> Result<Value, Error> {
    let call_id = context.call_id.clone();
    let (origin, text) = ("tell".to_owned(), "a line".to_owned());
    let level = LogLevel("warning".into());
    context.events.emit(HostEvent::Progress {
        call_id: call_id.clone(),
        progress: 1.0,
        total: Some(2.0),
        message: Some("half".into()),
    });
    context.events.emit(HostEvent::Log { origin, call_id: Some(call_id), level, text });
    Ok(json!({ "said": arguments }))
}

/// A host with tools of all kinds, on whose clients nothing depends.
fn server(waiting: mpsc::Sender<&'static str>) -> Arc<CatalogueServer> {
    let clients = ClientRegistry::new();
    let host = clients.attach(ToolHost::builder()).build();
    let echo = |arguments: JsonObject, _: ToolContext| async move {
        Ok::<Value, Error>(json!({ "said": arguments }))
    };
    let fail = |_: JsonObject, _: ToolContext| async move {
        Err::<Value, Error>(Error::new(ErrorKind::Tool, "it never works"))
    };
    let wait = move |_: JsonObject, context: ToolContext| {
        let notices = waiting.clone();
        async move {
            context.events.emit(HostEvent::Progress {
                call_id: context.call_id.clone(),
                progress: 1.0,
                total: None,
                message: None,
            });
            let _gone = notices.try_send("begun");
            context.cancel.cancelled().await;
            let _gone = notices.try_send("cancelled");
            Err::<Value, Error>(Error::timeout("it was cancelled"))
        }
    };
    let region = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" } } });
    for tool in [
        FunctionTool::new("echo", "Says it", echo),
        FunctionTool::new("fail", "Fails", fail),
        FunctionTool::new("tell", "Tells", tell),
        FunctionTool::new("wait", "Waits", wait),
        FunctionTool::new("erase", "Erases", echo).with(|tool| tool.requires_approval = true),
        FunctionTool::new("region", "Has a header", echo).with(with_schema(region)),
    ] {
        host.register_function(tool).unwrap();
    }
    let (settings, stop) = (ServeSettings::default(), CancellationToken::new());
    CatalogueServer::new(host, clients, settings, stop)
}

impl Pair {
    async fn new() -> Self {
        let (notices, waiting) = mpsc::channel(4);
        let service = async || {
            let server = server(notices.clone());
            let (answers, end) = (KeptAnswers::new(), CancellationToken::new());
            let service = Arc::new(McpService::new(&server, "http".into(), answers, end));
            // Clients list the tools before they call one.
            let (head, body) = list();
            assert_eq!(service.judge(head, body).await.unwrap().status(), 200);
            service
        };
        Self { own: service().await, sdk: service().await, waiting }
    }

    /// Answers a request in both ways; the answer, if they are the same.
    async fn answer(&self, (head, body): (Parts, Bytes)) -> Seen {
        let own = read_answer(self.own.answer(head.clone(), body.clone()).await.unwrap()).await;
        let sdk = read_answer(self.sdk.judge(head.clone(), body.clone()).await.unwrap()).await;
        assert_eq!(own, sdk, "{head:?} {body:?}");
        own
    }
}

/// An answer in all that its client sees.
#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

async fn read_answer(answer: HttpAnswer) -> Seen {
    let (head, body) = answer.into_parts();
    let mut headers: Vec<_> = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    headers.sort();
    let body = body.collect().await.unwrap().to_bytes();
    let body = without_state(std::str::from_utf8(&body).unwrap());
    Seen { status: head.status.as_u16(), headers, body }
}

fn without_state(body: &str) -> String {
    let Some((before, after)) = body.split_once(r#""requestState":""#) else {
        return body.to_owned();
    };
    let (_random, after) = after.split_once('"').unwrap();
    format!("{before}{after}")
}

fn request(headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> (Parts, Bytes) {
    let mut request = Request::builder().method(Method::POST).uri("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (head, body) = request.body(Bytes::from(body.into())).unwrap().into_parts();
    (head, body)
}

const MODERN: &[(&str, &str)] = &[
    ("host", "127.0.0.1:8080"),
    ("accept", "application/json, text/event-stream"),
    ("content-type", "application/json"),
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "echo"),
];

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A call of the newer era with what it needs, in which `_meta` also has `more`.
fn modern(name: &str, arguments: &Value, more: &Value) -> (Parts, Bytes) {
    let mut metadata = meta();
    metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let params = json!({ "name": name, "arguments": arguments, "_meta": metadata });
    let call = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params });
    let (mut head, body) = request(MODERN, call.to_string());
    head.headers.insert("mcp-name", HeaderValue::from_str(name).unwrap());
    (head, body)
}

/// Asks for the tools.
fn list() -> (Parts, Bytes) {
    let params = json!({ "_meta": meta() });
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
    let (mut head, body) = request(&MODERN[..5], list.to_string());
    head.headers.insert("mcp-method", HeaderValue::from_static("tools/list"));
    (head, body)
}

fn with_head(change: impl FnOnce(&mut Parts)) -> (Parts, Bytes) {
    let (mut head, body) = modern("echo", &json!({ "a": 1 }), &json!({}));
    change(&mut head);
    (head, body)
}

fn set(name: &'static str, value: &'static str) -> impl FnOnce(&mut Parts) {
    move |head| drop(head.headers.insert(name, HeaderValue::from_static(value)))
}

fn add(name: &'static str, value: &'static str) -> impl FnOnce(&mut Parts) {
    move |head| {
        let name = HeaderName::from_static(name);
        head.headers.append(name, HeaderValue::from_static(value));
    }
}

fn without(name: &'static str) -> impl FnOnce(&mut Parts) {
    move |head| drop(head.headers.remove(name))
}

fn is_plain(pair: &Pair, (head, body): &(Parts, Bytes)) -> bool {
    let takes_headers = |name: &str| pair.own.server.takes_header_arguments(name);
    PlainCall::read(head, body, takes_headers).is_some()
}

#[tokio::test]
async fn a_plain_call_is_answered_as_the_sdk_answers_it() {
    let pair = Pair::new().await;
    let forms = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let level = json!({ "io.modelcontextprotocol/logLevel": "info" });
    for (call, status, has) in [
        (modern("echo", &json!({ "n": 1.50 }), &json!({})), 200, r#""said":{"n":1.5"#),
        (modern("fail", &json!({}), &json!({})), 200, "it never works"),
        (modern("nothing", &json!({}), &json!({})), 200, r#""error""#),
        (modern("echo", &Value::Null, &json!({ "progressToken": 7 })), 200, r#""said":{}"#),
        (modern("tell", &json!({}), &json!({})), 200, r#"{"jsonrpc":"2.0","id":"a","result""#),
        (modern("tell", &json!({}), &json!({ "progressToken": 7 })), 200, "data: {"),
        (modern("tell", &json!({}), &level), 200, "a line"),
        (modern("erase", &json!({}), &json!({})), 200, r#""isError":true"#),
        (modern("erase", &json!({}), &forms), 200, "inputRequests"),
        (with_head(set("accept", "text/event-stream,APPLICATION/json, */*")), 200, "said"),
        (with_head(set("content-type", "application/json; charset=utf-8")), 200, "said"),
        (with_head(add("mcp-session-id", "of nobody")), 200, "said"),
    ] {
        assert!(is_plain(&pair, &call), "{call:?}");
        let answer = pair.answer(call).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.body.contains(has), "{answer:?}");
    }
}

#[tokio::test]
async fn a_request_that_is_no_plain_call_is_answered_by_the_sdk() {
    let pair = Pair::new().await;
    let body = |text: &str| request(MODERN, text);
    let region = |change: fn(&mut Parts)| {
        let (mut head, body) = modern("region", &json!({ "region": "eu" }), &json!({}));
        change(&mut head);
        (head, body)
    };
    let mut not_utf8 = modern("echo", &json!({ "a": "\u{1}x" }), &json!({}));
    not_utf8.1 = not_utf8.1.iter().map(|byte| if *byte == b'x' { 0xff } else { *byte }).collect();
    for (call, status) in [
        (with_head(without("accept")), 406),
        (with_head(set("accept", "application/json")), 406),
        (with_head(set("accept", "application/json, text/event-stream;q=0")), 406),
        (with_head(set("accept", "application/json, text/event-stream;q=0.5")), 200),
        (with_head(without("content-type")), 415),
        (with_head(set("content-type", "text/plain")), 415),
        (with_head(add("content-type", "text/plain")), 200),
        (with_head(without("host")), 400),
        (with_head(set("host", "[::1]:8080")), 200),
        (with_head(set("host", "a b")), 400),
        (with_head(without("mcp-protocol-version")), 400),
        (with_head(set("mcp-protocol-version", "2025-11-25")), 400),
        (with_head(set("mcp-protocol-version", "2027-01-01")), 400),
        (with_head(add("mcp-protocol-version", "2025-11-25")), 200),
        (with_head(without("mcp-method")), 400),
        (with_head(set("mcp-method", "tools/list")), 400),
        (with_head(add("mcp-method", "tools/call")), 400),
        (with_head(without("mcp-name")), 400),
        (with_head(set("mcp-name", "fail")), 400),
        (with_head(add("mcp-name", "echo")), 400),
        (with_head(set("mcp-name", "=?base64?ZWNobw==?=")), 200),
        (with_head(set("mcp-name", "=?base64?ZmFpbA==?=")), 400),
        (with_head(add("mcp-param-region", "eu")), 200),
        (with_head(|head| head.method = Method::PUT), 405),
        (with_head(|head| head.method = Method::GET), 405),
        (region(|_| ()), 400),
        (region(add_region), 200),
        (body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}"#), 400),
        (body(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#), 400),
        (body(r#"{"jsonrpc":"2.0","id":1"#), 415),
        (body(""), 415),
        (modern("echo", &json!([]), &json!({})), 404),
        (
            modern("echo", &json!({}), &json!({ "io.modelcontextprotocol/clientCapabilities": 1 })),
            400,
        ),
        (modern("echo", &json!({}), &json!({ "io.modelcontextprotocol/protocolVersion": 1 })), 400),
        (
            modern(
                "echo",
                &json!({}),
                &json!({ "io.modelcontextprotocol/protocolVersion": "2025-11-25" }),
            ),
            400,
        ),
        (not_utf8, 415),
    ] {
        assert!(!is_plain(&pair, &call), "{call:?}");
        let answer = pair.answer(call.clone()).await;
        assert_eq!(answer.status, status, "{call:?} {answer:?}");
    }
}

fn add_region(head: &mut Parts) {
    head.headers.insert("mcp-param-region", HeaderValue::from_static("eu"));
}

/// Opens a session with a service, as its client's `capabilities` are; its id.
async fn opened(service: &Arc<McpService>, capabilities: &Value) -> String {
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
                        "clientInfo": { "name": "test", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
    let (head, body) = request(&MODERN[..3], hello.to_string());
    let answer = service.answer(head, body).await.unwrap();
    let id = answer.headers()[HEADER_SESSION_ID].to_str().unwrap().to_owned();
    answer.into_body().collect().await.unwrap();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let (head, body) = in_session(&id, &ready);
    assert_eq!(service.answer(head, body).await.unwrap().status(), 202);
    id
}

fn in_session(id: &str, message: &Value) -> (Parts, Bytes) {
    let (mut head, body) = request(&MODERN[..3], message.to_string());
    head.headers.insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
    head.headers.insert(HEADER_SESSION_ID, HeaderValue::from_str(id).unwrap());
    (head, body)
}

fn call(name: &str, meta: &Value) -> Value {
    let params = json!({ "name": name, "arguments": {}, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params })
}

#[tokio::test]
async fn a_plain_call_in_a_session_is_answered_as_the_sdk_answers_it() {
    let pair = Pair::new().await;
    let ids = [opened(&pair.own, &json!({})).await, opened(&pair.sdk, &json!({})).await];
    let newer = json!({ "io.modelcontextprotocol/protocolVersion": "2025-11-25" });
    for (message, plain, status) in [
        (call("echo", &json!({})), true, 200),
        (call("fail", &Value::Null), true, 200),
        (call("nothing", &json!({})), true, 200),
        (call("tell", &json!({})), true, 200),
        (call("tell", &json!({ "progressToken": "t" })), true, 200),
        (call("echo", &newer), false, 200),
        (call("echo", &meta()), false, 400),
        (json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" }), false, 200),
    ] {
        let own = in_session(&ids[0], &message);
        assert_eq!(is_plain(&pair, &own), plain, "{message}");
        let own = read_answer(pair.own.answer(own.0, own.1).await.unwrap()).await;
        let (head, body) = in_session(&ids[1], &message);
        let sdk = read_answer(pair.sdk.judge(head, body).await.unwrap()).await;
        assert_eq!(own, sdk, "{message}");
        assert_eq!(own.status, status, "{own:?}");
    }
    let unknown = pair.answer(in_session("of-nobody", &call("echo", &json!({})))).await;
    assert_eq!(unknown.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_call_in_a_session_that_rests_begins_its_service_anew() {
    let pair = Pair::new().await;
    let id = opened(&pair.own, &json!({})).await;
    assert!(pair.own.sessions.is_ready(&id));
    // The clock goes on when nothing else is to be done.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!pair.own.sessions.is_ready(&id));
    let (head, body) = in_session(&id, &call("echo", &json!({})));
    let answer = read_answer(pair.own.answer(head, body).await.unwrap()).await;
    assert!(answer.body.contains("said"), "{answer:?}");
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_cancels_its_call() {
    let Pair { own, mut waiting, .. } = Pair::new().await;
    let (head, body) = modern("wait", &json!({}), &json!({}));
    let mut answering = Box::pin(own.answer(head, body));
    tokio::select! {
        answer = &mut answering => panic!("{answer:?}"),
        told = waiting.recv() => assert_eq!(told, Some("begun")),
    }
    drop(answering);
    assert_eq!(waiting.recv().await, Some("cancelled"));
}

#[tokio::test]
async fn a_client_that_leaves_a_stream_cancels_its_call() {
    let Pair { own, mut waiting, .. } = Pair::new().await;
    let (head, body) = modern("wait", &json!({}), &json!({ "progressToken": 1 }));
    let answer = own.answer(head, body).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut events = answer.into_body();
    let first = events.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.starts_with(b"data: {"), "{first:?}");
    assert_eq!(waiting.recv().await, Some("begun"));
    drop(events);
    assert_eq!(waiting.recv().await, Some("cancelled"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_silent_shows_that_it_is_there_until_the_end() {
    let pair = Pair::new().await;
    let (head, body) = modern("wait", &json!({}), &json!({ "progressToken": 1 }));
    let begun = tokio::time::Instant::now();
    let mut events = pair.own.answer(head, body).await.unwrap().into_body();
    events.frame().await.unwrap().unwrap();
    for seconds in [15, 30] {
        let comment = events.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(comment, ":\n\n");
        assert!(begun.elapsed() >= Duration::from_secs(seconds));
    }
    pair.own.end.cancel();
    assert!(events.frame().await.is_none());
}

#[tokio::test]
async fn the_end_of_the_server_ends_calls_that_wait() {
    let Pair { own, mut waiting, .. } = Pair::new().await;
    let (head, body) = modern("wait", &json!({}), &json!({}));
    let ending = async {
        assert_eq!(waiting.recv().await, Some("begun"));
        own.end.cancel();
    };
    let (answer, ()) = tokio::join!(own.answer(head, body), ending);
    assert_eq!(answer.unwrap().status(), 500);
    assert_eq!(waiting.recv().await, Some("cancelled"));
}

#[tokio::test]
async fn a_server_that_stops_says_so_to_those_that_wait() {
    let Pair { own, mut waiting, .. } = Pair::new().await;
    let (head, body) = modern("wait", &json!({}), &json!({}));
    let ending = async {
        assert_eq!(waiting.recv().await, Some("begun"));
        own.server.disconnect();
    };
    let (answer, ()) = tokio::join!(own.answer(head, body), ending);
    let answer = read_answer(answer.unwrap()).await;
    assert!(answer.body.contains("the server ended during the request"), "{answer:?}");
}
