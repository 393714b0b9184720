//! Traces and metrics, as a collector receives them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Run, Sandbox};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// The path, the media type and the body of a request.
type Request = (String, String, Vec<u8>);

/// A collector on loopback: keeps each request.
struct Collector {
    url: String,
    received: Arc<Mutex<Vec<Request>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received: Arc<Mutex<Vec<Request>>> = Arc::default();
        let keeps = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let keeps = Arc::clone(&keeps);
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream);
                    loop {
                        let (mut line, mut media, mut length) = (String::new(), String::new(), 0);
                        if reader.read_line(&mut line).unwrap_or(0) == 0 {
                            return;
                        }
                        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                        loop {
                            line.clear();
                            reader.read_line(&mut line).unwrap();
                            let Some((name, value)) = line.trim().split_once(':') else { break };
                            match name.to_ascii_lowercase().as_str() {
                                "content-type" => value.trim().clone_into(&mut media),
                                "content-length" => length = value.trim().parse().unwrap(),
                                _ => {}
                            }
                        }
                        let mut body = vec![0; length];
                        reader.read_exact(&mut body).unwrap();
                        keeps.lock().unwrap().push((path, media, body));
                        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                        reader.get_mut().write_all(answer.as_bytes()).unwrap();
                    }
                });
            }
        });
        Self { url, received }
    }

    /// What came to a path, as JSON.
    fn json(&self, path: &str) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let ours = received.iter().filter(|(to, _, _)| to == path);
        ours.map(|(_, _, body)| serde_json::from_slice(body).unwrap()).collect()
    }

    /// All spans.
    fn spans(&self) -> Vec<Value> {
        let spans = self.json("/v1/traces").into_iter().flat_map(|request| {
            let of = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
            let scopes = of(&request, "resourceSpans").into_iter().flat_map(move |resource| {
                resource["scopeSpans"].as_array().cloned().unwrap_or_default()
            });
            scopes.flat_map(move |scope| of(&scope, "spans")).collect::<Vec<_>>()
        });
        spans.collect()
    }
}

/// The attributes of a span or a point, as one object.
fn attributes(of: &Value) -> Value {
    let pairs = of["attributes"].as_array().unwrap().iter().map(|pair| {
        let value = pair["value"].as_object().unwrap().values().next().unwrap();
        (pair["key"].as_str().unwrap().to_owned(), value.clone())
    });
    Value::Object(pairs.collect())
}

fn room() -> Sandbox {
    let room = Sandbox::new();
    room.file("mirror.py", crate::call_context::SERVER);
    room.file("mcp.yaml", "mirror: { command: python3, args: [mirror.py] }\n");
    room.file(
        "tools.yaml",
        "tools:\n\
         \x20 - { name: calc, module: builtin.calculator }\n\
         \x20 - { name: both, kind: pipeline, steps: [{ id: a, tool: mirror-meta, args: {} }],\n\
         \x20     result: '{a.output}' }\n",
    );
    room
}

fn call<'a>(room: &'a Sandbox, collector: &'a Collector, words: &[&'a str]) -> Run<'a> {
    let files = ["--tools", "tools.yaml", "--mcp", "mcp.yaml", "call"];
    room.toolhost(files.into_iter().chain(words.iter().copied()))
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
}

#[test]
fn a_call_is_a_span_that_the_server_is_told_of() {
    let (room, collector) = (room(), Collector::start());
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let run = call(&room, &collector, &["mirror-meta", "--json"]).env("TRACEPARENT", &parent);
    let run = run.check();
    let told = run.exits(0).json()["structured"]["traceparent"].as_str().unwrap().to_owned();
    let spans = collector.spans();
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(told, format!("00-{TRACE}-{}-01", span["spanId"].as_str().unwrap()));
    assert_eq!(
        (span["traceId"].as_str(), span["parentSpanId"].as_str()),
        (Some(TRACE), Some(CALLER))
    );
    assert_eq!(span["name"], "tools/call mirror-meta");
    let attributes = attributes(span);
    assert_eq!(attributes["gen_ai.operation.name"], "execute_tool");
    assert_eq!(attributes["gen_ai.tool.name"], "mirror-meta");
    assert_eq!(attributes["mcp.method.name"], "tools/call");
    assert_eq!(attributes["mcp.protocol.version"], "2025-06-18");
    assert!(attributes.get("error.type").is_none(), "{attributes}");
}

#[test]
fn a_nested_call_is_a_span_below_that_of_its_caller() {
    let (room, collector) = (room(), Collector::start());
    call(&room, &collector, &["both"]).check().exits(0);
    let spans = collector.spans();
    let named = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap();
    let (outer, inner) = (named("execute_tool both"), named("tools/call mirror-meta"));
    assert_eq!(inner["parentSpanId"], outer["spanId"]);
    assert_eq!(inner["traceId"], outer["traceId"]);
}

#[test]
fn a_failure_has_its_kind_and_neither_arguments_nor_words() {
    let (room, collector) = (room(), Collector::start());
    call(&room, &collector, &["calc", "expression=s3cret+"]).check().exits(3);
    let spans = collector.spans();
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(attributes(span)["error.type"], "tool");
    assert_eq!(span["status"], json!({ "code": 2, "message": "tool" }));
    let metrics = collector.json("/v1/metrics");
    let found = metrics[0]["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    assert_eq!(found[0]["name"], "gen_ai.client.operation.duration");
    let point = &found[0]["histogram"]["dataPoints"][0];
    assert_eq!(attributes(point)["gen_ai.tool.name"], "calc");
    assert_eq!(attributes(point)["error.type"], "tool");
    for (_, _, body) in collector.received.lock().unwrap().iter() {
        assert!(!String::from_utf8_lossy(body).contains("s3cret"));
    }
}

#[test]
fn protobuf_is_what_a_collector_gets_unless_json_is_asked_for() {
    let (room, collector) = (room(), Collector::start());
    let run = call(&room, &collector, &["calc", "expression=1+1"]);
    run.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf").check().exits(0);
    let received = collector.received.lock().unwrap();
    let (_, media, body) = received.iter().find(|(path, _, _)| path == "/v1/traces").unwrap();
    assert_eq!(media, "application/x-protobuf");
    let name = b"execute_tool calc";
    assert!(body.windows(name.len()).any(|part| part == name));
}

#[test]
fn nothing_is_exported_unless_it_is_asked_for_and_a_dead_collector_costs_no_call() {
    let (room, collector) = (room(), Collector::start());
    let off = call(&room, &collector, &["calc", "expression=1+1"]).env("OTEL_SDK_DISABLED", "true");
    off.check().exits(0);
    let none = call(&room, &collector, &["calc", "expression=1+1"])
        .env("OTEL_TRACES_EXPORTER", "none")
        .env("OTEL_METRICS_EXPORTER", "none");
    none.check().exits(0);
    assert!(collector.received.lock().unwrap().is_empty());
    // A port that nobody listens on any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dead = call(&room, &collector, &["calc", "expression=1+1"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{gone}"));
    let dead = dead.check();
    assert_eq!(dead.exits(0).out().trim(), "2");
    // What is wrong in the variables is said once.
    let odd = call(&room, &collector, &["calc", "expression=1+1"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "no address");
    odd.check().exits(0);
}
