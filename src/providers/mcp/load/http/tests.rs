//! Tests of benchmark load over HTTP, against real sockets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use super::*;
use crate::config::environment::FixedEnvironment;
use crate::config::spec::{AuthSpec, HttpTransport};
use crate::mcp::auth::MemoryVault;
use crate::mcp::era_cache::EraCache;
use crate::model::{
    CallId, ErrorPhase, EventSink, NoQuestionHandler, ToolContext, ToolName, ToolResult,
    TrafficSink,
};
use crate::net::test_server::{TestRequest, TestResponse, TestServer};
use crate::provider::load::{Inspection, Inspector, LoadDecision, LoadSupport as _};
use crate::providers::mcp::McpSetup;
use crate::providers::mcp::load::tests::server_at;
use crate::util::clock::{Clock as _, SystemClock};

fn provider(url: url::Url, transport: HttpTransport, traffic: TrafficSink) -> McpProvider {
    let (auth, headers) = (Box::new(AuthSpec::None), Vec::new());
    let endpoint = Endpoint::Http { url, socket: None, transport, headers, auth, insecure: false };
    let spec = server_at(endpoint);
    let vars = BTreeMap::from([("https_proxy".to_owned(), "http://127.0.0.1:9".to_owned())]);
    let setup = McpSetup {
        environment: Arc::new(FixedEnvironment { vars, cwd: "/".into(), root: None }),
        expanded: crate::config::expanded::ExpandedValues::default(),
        eras: Arc::new(EraCache::new(None)),
        events: EventSink::discard(),
        inbox: Arc::new(NoQuestionHandler),
        traffic,
        logins: Arc::new(MemoryVault::default()),
        learn: Arc::new(|_, _| {}),
        insecure: false,
        log_level: None,
    };
    McpProvider::new(spec, setup)
}

/// A server whose answers to calls are `answer`, by their ids.
async fn server(
    answer: impl Fn(i64, &TestRequest) -> TestResponse + Send + Sync + 'static,
) -> TestServer {
    TestServer::start(move |_, request| {
        if request.method != "POST" || request.body.contains("notifications/") {
            return TestResponse::accepted();
        }
        let id = request.id();
        if request.body.contains("\"initialize\"") {
            return TestResponse::json(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25",
                "capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"x","version":"1"}}}}}}"#
            ));
        }
        answer(id.as_i64().unwrap() - crate::mcp::call_template::FIRST_ID, request)
    })
    .await
}

fn response_with(request: &TestRequest, outcome: &str) -> TestResponse {
    TestResponse::json(format!(r#"{{"jsonrpc":"2.0","id":{},{outcome}}}"#, request.id()))
}

fn well(request: &TestRequest) -> TestResponse {
    response_with(request, r#""result":{"content":[{"type":"text","text":"hi"}]}"#)
}

fn job(lanes: usize) -> LoadJob {
    LoadJob {
        tool: ToolName::of("srv", "t"),
        concurrency: lanes,
        timeout: Duration::from_mins(10),
        inspection: None,
        context: ToolContext::empty(CallId("run".to_owned())),
    }
}

/// Hands out so many calls, so many at once, and keeps how they ended.
struct ScriptedHttpLoad {
    calls: u64,
    at_once: u64,
    next: u64,
    ends: BTreeMap<u64, LoadOutcome>,
    patience: Duration,
    over: Option<Instant>,
}

impl ScriptedHttpLoad {
    fn new(calls: u64, at_once: u64) -> Self {
        let patience = Duration::from_mins(10);
        Self { calls, at_once, next: 0, ends: BTreeMap::new(), patience, over: None }
    }

    fn shown(&self) -> Vec<String> {
        self.ends.values().map(|verdict| format!("{verdict:?}")).collect()
    }
}

impl Load for ScriptedHttpLoad {
    fn now(&self) -> Instant {
        SystemClock.now()
    }

    fn next(&mut self, _now: Instant) -> LoadDecision {
        if self.next == self.calls {
            let over = self.now() + self.patience;
            return LoadDecision::Drain(*self.over.get_or_insert(over));
        }
        if self.next - self.ends.len() as u64 >= self.at_once {
            return LoadDecision::WaitForWakeup;
        }
        self.next += 1;
        let object = json!({ "n": self.next }).as_object().unwrap().clone();
        LoadDecision::Send(BenchRequest {
            ticket: self.next - 1,
            arguments: Arc::new(EncodedArguments::new(object)),
        })
    }

    fn on_completed(&mut self, end: CompletedRequest) {
        assert!(end.sent_at <= end.ended_at && end.ticket < self.next, "{end:?}");
        assert!(self.ends.insert(end.ticket, end.outcome).is_none(), "told twice");
    }

    fn wakeup(&self) -> Arc<Notify> {
        Arc::default()
    }
}

async fn run(
    peer: &TestServer,
    job: &LoadJob,
    load: &mut ScriptedHttpLoad,
) -> Result<Vec<String>, Error> {
    let provider = provider(peer.url("/mcp"), HttpTransport::Streamable, TrafficSink::disabled());
    let mut executor = provider.executor(job).await.unwrap().unwrap();
    executor.run(load).await.map(|()| executor.warnings())
}

#[tokio::test]
async fn every_call_is_answered_once() {
    let peer = server(|_, request| well(request)).await;
    let mut load = ScriptedHttpLoad::new(300, 7);
    assert_eq!(run(&peer, &job(7), &mut load).await.unwrap(), [] as [&str; 0]);
    assert_eq!(load.ends.len(), 300);
    assert!(load.ends.values().all(|verdict| matches!(verdict, LoadOutcome::Ok)));
}

#[tokio::test]
async fn verdicts_are_those_of_an_ordinary_call() {
    let peer = server(|n, request| match n {
        0 => response_with(
            request,
            r#""result":{"content":[{"type":"text","text":"full"}],"isError":true}"#,
        ),
        1 => response_with(request, r#""error":{"code":-32602,"message":"no such thing"}"#),
        2 => response_with(request, r#""result":[]"#),
        3 => TestResponse::full("503 Service Unavailable", &[], "later"),
        _ => well(request),
    })
    .await;
    let mut load = ScriptedHttpLoad::new(5, 1);
    run(&peer, &job(1), &mut load).await.unwrap();
    let shown = load.shown();
    assert_eq!((&*shown[0], &*shown[4]), ("ToolError(\"full\")", "Ok"));
    for (ticket, expected) in [(1, "no such thing"), (2, "not an object"), (3, "503")] {
        let LoadOutcome::Failed(error) = &load.ends[&ticket] else { panic!("{shown:?}") };
        assert!(error.message().contains(expected), "{error}");
        assert_eq!(error.phase(), Some(ErrorPhase::Call));
        assert!(format!("{error:?}").contains("srv"));
    }
}

#[tokio::test]
async fn some_answers_are_checked_whole() {
    #[derive(Default)]
    struct Every(AtomicU64);
    impl Inspector for Every {
        fn inspect(&self, result: &ToolResult) -> Option<Error> {
            assert_eq!(result.output, "hi");
            let turn = self.0.fetch_add(1, Ordering::Relaxed);
            (turn == 1).then(|| Error::protocol("not what was promised"))
        }
    }
    let peer = server(|_, request| well(request)).await;
    let inspector = Arc::new(Every::default());
    let every = Inspection { every: 3, inspector: Arc::clone(&inspector) as Arc<dyn Inspector> };
    let mut load = ScriptedHttpLoad::new(9, 1);
    let job = LoadJob { inspection: Some(every), ..job(1) };
    run(&peer, &job, &mut load).await.unwrap();
    assert_eq!(inspector.0.load(Ordering::Relaxed), 3);
    let failed: Vec<_> =
        load.ends.iter().filter(|(_, verdict)| !matches!(verdict, LoadOutcome::Ok)).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(*failed[0].0, 3);
}

#[tokio::test]
async fn what_is_in_flight_when_the_patience_ends_is_unanswered() {
    let peer =
        server(|n, request| if n == 1 { TestResponse::Hang(Vec::new()) } else { well(request) })
            .await;
    let mut load =
        ScriptedHttpLoad { patience: Duration::from_millis(1), ..ScriptedHttpLoad::new(2, 2) };
    run(&peer, &job(2), &mut load).await.unwrap();
    assert_eq!(load.shown()[1], "Unanswered");
}

#[tokio::test]
async fn a_run_that_is_given_up_ends_at_once() {
    let peer = server(|_, _| TestResponse::Hang(Vec::new())).await;
    let (job, mut load) = (job(2), ScriptedHttpLoad::new(100, 2));
    let given_up = async {
        while peer.requests().iter().filter(|request| request.body.contains("tools/call")).count()
            < 2
        {
            tokio::task::yield_now().await;
        }
        job.context.cancel.cancel();
    };
    let (ran, ()) = tokio::join!(run(&peer, &job, &mut load), given_up);
    ran.unwrap();
    assert_eq!(load.shown(), ["Unanswered", "Unanswered"]);
}

#[tokio::test]
async fn a_limit_ends_one_call_and_the_run_goes_on() {
    let peer =
        server(|n, request| if n == 0 { TestResponse::Hang(Vec::new()) } else { well(request) })
            .await;
    let mut load = ScriptedHttpLoad::new(3, 1);
    let job = LoadJob { timeout: Duration::from_secs(2), ..job(1) };
    let doubts = run(&peer, &job, &mut load).await.unwrap();
    let LoadOutcome::Failed(error) = &load.ends[&0] else { panic!("{:?}", load.shown()) };
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(doubts.iter().any(|doubt| doubt.starts_with("srv: 1 connections")), "{doubts:?}");
}

#[tokio::test]
async fn what_is_watched_or_goes_elsewhere_goes_the_ordinary_way() {
    let peer = server(|_, request| well(request)).await;
    let watched = TrafficSink::new(drop);
    let provider_of = |url: url::Url, traffic| provider(url, HttpTransport::Streamable, traffic);
    for provider in [
        provider_of(peer.url("/mcp"), watched),
        // Nothing is connected to: it would have to go through the proxy.
        provider_of("https://example.com/mcp".parse().unwrap(), TrafficSink::disabled()),
    ] {
        assert!(provider.executor(&job(1)).await.unwrap().is_none());
    }
}
