//! Tests of failover through whole calls.

use std::sync::Arc;

use serde_json::json;

use super::super::ToolHost;
use super::super::fake::{FakeProvider, MemoryRecorder, call, host};
use super::super::request::LookupScope;
use crate::model::{Error, ErrorKind, ErrorPhase, SkippedServer, ToolResult, ToolSchema};

fn weighed(servers: &[(&Arc<FakeProvider>, f64)]) -> Arc<ToolHost> {
    let all: Vec<&Arc<FakeProvider>> = servers.iter().map(|(server, _)| *server).collect();
    for (server, weight) in servers {
        server.set_weight(Some(*weight));
    }
    host(&all).build()
}

fn server(name: &str) -> Arc<FakeProvider> {
    Arc::new(FakeProvider::server(name, &["echo"]))
}

fn failing(name: &str, error: Error) -> Arc<FakeProvider> {
    let answer = move |_, _| {
        let error = error.clone();
        async move { Err(error) }
    };
    Arc::new(FakeProvider::server(name, &["echo"]).answering(answer))
}

fn refused() -> Error {
    Error::unreachable("connection refused").with_phase(ErrorPhase::Start)
}

async fn chosen(host: &ToolHost) -> String {
    let outcome = host.call(call("echo")).await.unwrap();
    outcome.definition.name.component().unwrap().to_owned()
}

#[tokio::test]
async fn the_greatest_weight_gets_every_call_and_of_equals_the_first_in_the_file() {
    let (a, b, c, d) = (server("a"), server("b"), server("c"), server("d"));
    let host = weighed(&[(&a, 0.5), (&b, 2.0), (&c, 2.0), (&d, 1.0)]);
    for _ in 0..3 {
        assert_eq!(host.find("echo", &LookupScope::default()).await.unwrap().name.full(), "b-echo");
        assert_eq!(chosen(&host).await, "b");
    }
    assert_eq!((a.called(), c.called(), d.called()), (0, 0, 0));
    let routing = host.call(call("echo")).await.unwrap().metadata.routing.unwrap();
    assert_eq!(routing.others, ["a", "c", "d"]);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_passed_over_and_told() {
    let (dead, spare) = (Arc::new(FakeProvider::dead("a")), server("b"));
    let host = weighed(&[(&dead, 1.0), (&spare, 0.5)]);
    let outcome = host.call(call("echo")).await.unwrap();
    assert!(outcome.result.unwrap().warnings.is_empty());
    let routing = outcome.metadata.routing.unwrap();
    assert_eq!((routing.server.as_str(), routing.others.len()), ("b", 0));
    let reason = "connection refused".to_owned();
    assert_eq!(routing.skipped, [SkippedServer { server: "a".to_owned(), reason }]);
}

#[tokio::test]
async fn a_call_that_was_not_sent_goes_to_the_next_server_and_each_try_is_recorded() {
    let (a, b, c) = (failing("a", refused()), failing("b", refused()), server("c"));
    let book = Arc::new(MemoryRecorder::default());
    for (server, weight) in [(&a, 2.0), (&b, 1.0), (&c, 0.5)] {
        server.set_weight(Some(weight));
    }
    let host = host(&[&a, &b, &c]).recorder(Arc::clone(&book) as _).build();
    let outcome = host.call(call("echo")).await.unwrap();
    assert!(outcome.result.is_ok());
    let routing = outcome.metadata.routing.unwrap();
    let skipped: Vec<&str> = routing.skipped.iter().map(|s| s.server.as_str()).collect();
    assert_eq!((routing.server.as_str(), skipped), ("c", vec!["a", "b"]));
    let lines = book.lines();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines[1].contains("outcome a-echo unreachable"), "{lines:?}");
    assert!(lines[5].contains("outcome c-echo ok"), "{lines:?}");
}

#[tokio::test]
async fn a_call_that_may_have_been_sent_goes_nowhere_else() {
    for error in [Error::unreachable("connection reset"), Error::timeout("silence")] {
        let (a, b) = (failing("a", error.with_phase(ErrorPhase::Call)), server("b"));
        let host = weighed(&[(&a, 1.0), (&b, 0.5)]);
        let outcome = host.call(call("echo")).await.unwrap();
        assert!(outcome.result.is_err());
        assert_eq!(b.called(), 0);
    }
    let no = |_, _| async { Ok(ToolResult::failure("no")) };
    let (a, b) = (Arc::new(FakeProvider::server("a", &["echo"]).answering(no)), server("b"));
    let host = weighed(&[(&a, 1.0), (&b, 0.5)]);
    assert!(!host.call(call("echo")).await.unwrap().result.unwrap().success);
    assert_eq!(b.called(), 0);
}

#[tokio::test]
async fn when_no_server_takes_it_the_failure_is_one_of_them() {
    let (a, b) = (failing("a", refused()), failing("b", refused()));
    let host = weighed(&[(&a, 1.0), (&b, 0.5)]);
    let outcome = host.call(call("echo")).await.unwrap();
    let error = outcome.result.unwrap_err();
    assert_eq!((error.kind(), error.server()), (ErrorKind::Unreachable, Some("b")));
    assert_eq!(outcome.metadata.routing.unwrap().skipped.len(), 1);
    // What does not fit the next server is told beside the first failure.
    let b = Arc::new(FakeProvider::server("b", &["echo"]));
    let mut tool = super::super::fake::of_server("b", "echo");
    tool.input_schema = ToolSchema::from(json!({ "type": "object", "required": ["path"] }));
    *b.live.lock().unwrap() = Ok(vec![tool]);
    let host = weighed(&[(&a, 1.0), (&b, 0.5)]);
    let error = host.call(call("echo")).await.unwrap().result.unwrap_err();
    assert_eq!(error.server(), Some("a"));
    let last = error.details().last().unwrap();
    assert!(last.starts_with("and no other server accepted it"), "{last}");
}

#[tokio::test]
async fn a_filter_by_server_leaves_only_the_others_out() {
    let (a, b) = (server("a"), server("b"));
    let host = weighed(&[(&a, 1.0), (&b, 0.5)]);
    let only = |name: &str| {
        let mut request = call("echo");
        request.servers = vec![name.to_owned()];
        request
    };
    let outcome = host.call(only("b")).await.unwrap();
    assert_eq!(outcome.definition.name.full(), "b-echo");
    assert!(outcome.metadata.routing.is_none());
    assert_eq!((a.listed(), a.called()), (0, 0));
}
