//! What a program that embeds toolhost can do beyond calls, through its public interface alone.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use toolhost::bench::{
    self, ArgumentInput, BenchPlan, Benchmark, ExportFormat, LoadModel, RunLimits, TargetOptions,
    TargetSpec, WarmUp,
};
use toolhost::{
    CallArguments, CallRequest, ComponentConfig, Direction, Environment, ErrorKind, EventSink,
    FixedEnvironment, FrontEnd, HostEvent, JsonObject, LookupScope, ToolHost, TraceGate,
    TrafficKind, TrafficSink, host_builder,
};

const LIMIT: Duration = Duration::from_mins(1);

/// A host with the demo server, whose events and traffic go there.
fn host(events: EventSink, traffic: TrafficSink) -> Arc<ToolHost> {
    let environment: Arc<dyn Environment> =
        Arc::new(FixedEnvironment { cwd: "/".into(), ..FixedEnvironment::default() });
    let host =
        host_builder(&environment, FrontEnd { events, traffic, ..FrontEnd::headless() }).build();
    let entry = json!({ "command": env!("CARGO_BIN_EXE_toolhost"), "args": ["demo-server"] });
    host.register_client(&ComponentConfig::new("demo", object(&entry))).unwrap();
    host
}

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap()
}

/// Methods of the messages that were sent, as they are sent.
fn sent_methods(gate: &TraceGate) -> (TrafficSink, UnboundedReceiver<String>) {
    let (sender, methods) = unbounded_channel();
    let sink = TrafficSink::new(move |traffic| {
        assert_eq!(traffic.server, "demo");
        let TrafficKind::Message { direction: Direction::Sent, info, .. } = &traffic.kind else {
            return;
        };
        let _test_is_over = sender.send(info.label().to_owned());
    });
    (sink.with_gate(gate.clone()), methods)
}

fn drain(methods: &mut UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| methods.try_recv().ok()).collect()
}

#[tokio::test]
async fn a_program_benchmarks_a_tool_and_reads_the_report() {
    let host = host(EventSink::discard(), TrafficSink::disabled());
    let tool = |name: &str, arguments: Value| TargetSpec {
        name: name.to_owned(),
        arguments: ArgumentInput::Single(CallArguments::Object(object(&arguments))),
    };
    let echo = vec![tool("demo-echo", json!({ "message": "hi" }))];
    let options = TargetOptions::default();
    let prepared = bench::prepare(echo, &options, &host, |_| {}).await.unwrap();
    let mut benchmark = Benchmark::new(BenchPlan {
        model: LoadModel::Closed { concurrency: 2 },
        limits: RunLimits { requests: Some(30), duration: None },
        warm_up: WarmUp::Calls(4),
        ..BenchPlan::default()
    });
    benchmark.criteria.thresholds =
        bench::parse_thresholds(&["error_rate>0%".to_owned(), "p50>1h".to_owned()], 1).unwrap();
    let result = benchmark.run(&host, prepared).await.unwrap();
    let target = &result.report.targets[0];
    assert_eq!((target.tool.as_str(), target.ok, target.warm_up), ("demo-echo", 30, 4));
    assert!(target.response.quantile(0.5).is_some() && target.throughput > 0.0);
    assert!(result.failure().is_none());
    let json: Value = serde_json::from_str(&result.render(ExportFormat::Json)).unwrap();
    assert_eq!((&json["requests"], &json["thresholds"][1]["failed"]), (&30.into(), &false.into()));
    // What writes is refused here as it is on the command line.
    let delete = vec![tool("demo-delete_note", json!({ "name": "draft" }))];
    let refused = bench::prepare(delete, &options, &host, |_| {}).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Denied, "{refused}");
    host.close().await;
}

#[tokio::test]
async fn a_program_sees_the_traffic_unless_its_gate_is_closed() {
    let gate = TraceGate::default();
    let (sink, mut methods) = sent_methods(&gate);
    let host = host(EventSink::discard(), sink);
    let call = || CallRequest::json("demo-echo", json!({ "message": "hi" })).unwrap();
    host.call(call()).await.unwrap().result.unwrap();
    assert_eq!(drain(&mut methods).last().map(String::as_str), Some("tools/call"));
    let closed = gate.close();
    host.call(call()).await.unwrap().result.unwrap();
    assert!(drain(&mut methods).is_empty());
    drop(closed);
    host.call(call()).await.unwrap().result.unwrap();
    assert!(drain(&mut methods).contains(&"tools/call".to_owned()));
    host.close().await;
}

#[tokio::test]
async fn changes_of_a_resource_are_events_until_a_program_unsubscribes() {
    let (sender, mut events) = unbounded_channel();
    let events_to = EventSink::new(move |event| drop(sender.send(event)));
    let (sink, mut methods) = sent_methods(&TraceGate::default());
    let host = host(events_to, sink);
    let scope = LookupScope::default();
    host.subscribe("demo://uptime", &scope).await.unwrap();
    let changed = async {
        loop {
            if let Some(HostEvent::ResourceUpdated { server, uri }) = events.recv().await {
                return (server, uri);
            }
        }
    };
    let changed = tokio::time::timeout(LIMIT, changed).await.unwrap();
    assert_eq!(changed, ("demo".to_owned(), "demo://uptime".to_owned()));
    drain(&mut methods);
    assert!(host.unsubscribe("demo://uptime").await);
    let taken_back = drain(&mut methods);
    assert!(
        taken_back.iter().any(|method| {
            method == "resources/unsubscribe" || method == "notifications/cancelled"
        }),
        "{taken_back:?}"
    );
    assert!(!host.unsubscribe("demo://uptime").await, "it is over");
    // A resource that never changes, and one that nobody has.
    assert!(host.subscribe("demo://readme", &scope).await.is_err());
    let unknown = host.subscribe("demo://nothing", &scope).await.unwrap_err();
    assert!(unknown.message().contains("demo://nothing"), "{unknown}");
    host.close().await;
}
