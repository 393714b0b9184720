//! Clients that leave or wait, and a server that ends meanwhile.

use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::host::ToolHost;
use crate::host::function_tool::FunctionTool;
use crate::model::{Error, HostEvent, JsonObject, ToolContext};
use crate::serve::catalogue_server::{ClientRegistry, ServeSettings};
use crate::serve::listen::http_sessions::KEPT_ANSWERS;

struct Served {
    service: Arc<McpService>,
    end: CancellationToken,
    /// Told when the tool `wait` begins and when it was cancelled.
    waiting: mpsc::Receiver<&'static str>,
}

fn server(waiting: mpsc::Sender<&'static str>) -> Arc<CatalogueServer> {
    let clients = ClientRegistry::new();
    let host = clients.attach(ToolHost::builder()).build();
    let echo = |arguments: JsonObject, _: ToolContext| async move {
        Ok::<Value, Error>(json!({ "said": arguments }))
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
    for tool in
        [FunctionTool::new("echo", "Says it", echo), FunctionTool::new("wait", "Waits", wait)]
    {
        host.register_function(tool).unwrap();
    }
    let (settings, stop) = (ServeSettings::default(), CancellationToken::new());
    CatalogueServer::new(host, clients, settings, stop)
}

impl Served {
    async fn new() -> Self {
        let (notices, waiting) = mpsc::channel(4);
        let server = server(notices);
        let (answers, end) = (SharedRoom::new(KEPT_ANSWERS), CancellationToken::new());
        let service = Arc::new(McpService::new(&server, "http".into(), answers, end.clone()));
        // Clients list the tools before they call one.
        let (head, body) = list();
        assert_eq!(service.answer(head, body).await.status(), 200);
        Self { service, end, waiting }
    }
}

async fn read_body(answer: HttpAnswer) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

fn request(headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> (Parts, Bytes) {
    let mut request = Request::builder().method(http::Method::POST).uri("/mcp");
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

#[tokio::test]
async fn a_body_that_is_no_message_is_refused_as_such() {
    let Served { service, .. } = Served::new().await;
    let bodies = [
        (r#"{"jsonrpc": "2.0", "id": 1, "meth"#, -32700, Value::Null),
        ("", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        (r#"{"jsonrpc": "2.0", "id": "a"}"#, -32600, json!("a")),
    ];
    for (body, code, id) in bodies {
        let (head, body) = request(&MODERN[..5], body);
        let answer = service.answer(head, body.clone()).await;
        assert_eq!(answer.status(), 400, "{body:?}");
        assert_eq!(answer.headers()["content-type"], "application/json", "{body:?}");
        let answer: Value = serde_json::from_str(&read_body(answer).await).unwrap();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{answer}");
        let (mut head, body) = request(&MODERN[..5], body);
        head.headers.insert("content-type", HeaderValue::from_static("text/plain"));
        assert_eq!(service.answer(head, body).await.status(), 415);
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_cancels_its_call() {
    let Served { service, mut waiting, .. } = Served::new().await;
    let (head, body) = modern("wait", &json!({}), &json!({}));
    let mut answering = Box::pin(service.answer(head, body));
    tokio::select! {
        answer = &mut answering => panic!("{answer:?}"),
        told = waiting.recv() => assert_eq!(told, Some("begun")),
    }
    drop(answering);
    assert_eq!(waiting.recv().await, Some("cancelled"));
}

#[tokio::test]
async fn a_client_that_leaves_a_stream_cancels_its_call() {
    let Served { service, mut waiting, .. } = Served::new().await;
    let (head, body) = modern("wait", &json!({}), &json!({ "progressToken": 1 }));
    let answer = service.answer(head, body).await;
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
    let Served { service, end, waiting: _waiting } = Served::new().await;
    let (head, body) = modern("wait", &json!({}), &json!({ "progressToken": 1 }));
    let mut events = service.answer(head, body).await.into_body();
    events.frame().await.unwrap().unwrap();
    // The clock goes on when nothing else is to be done.
    for _ in 0..2 {
        let comment = events.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(comment, ":\n\n");
    }
    end.cancel();
    assert!(events.frame().await.is_none());
}

#[tokio::test]
async fn the_end_of_the_server_ends_calls_that_wait() {
    let Served { service, end, mut waiting } = Served::new().await;
    let (head, body) = modern("wait", &json!({}), &json!({}));
    let ending = async {
        assert_eq!(waiting.recv().await, Some("begun"));
        end.cancel();
    };
    let (answer, ()) = tokio::join!(service.answer(head, body), ending);
    assert_eq!(answer.status(), 500);
    assert_eq!(waiting.recv().await, Some("cancelled"));
}

#[tokio::test]
async fn a_server_that_stops_says_so_to_those_that_wait() {
    let Served { service, mut waiting, .. } = Served::new().await;
    let (head, body) = modern("wait", &json!({}), &json!({}));
    let ending = async {
        assert_eq!(waiting.recv().await, Some("begun"));
        service.server.disconnect();
    };
    let (answer, ()) = tokio::join!(service.answer(head, body), ending);
    let answer = read_body(answer).await;
    assert!(answer.contains("the server ended during the request"), "{answer}");
}
