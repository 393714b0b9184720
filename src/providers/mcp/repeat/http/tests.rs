//! Runs of calls over HTTP, from the load to a real socket and back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;

use super::*;
use crate::config::consent::Seal;
use crate::config::environment::FixedEnvironment;
use crate::config::spec::{AuthSpec, HttpTransport, ProtocolChoice, ServerSpec};
use crate::mcp::auth::MemoryVault;
use crate::mcp::era::EraMemory;
use crate::model::{
    CallId, EventSink, NoInbox, Phase, Place, ToolContext, ToolName, ToolResult, TrafficSink,
};
use crate::net::peer::{Heard, Peer, Reply};
use crate::provider::repeat::{Inspection, Inspector, Repeat as _};
use crate::providers::mcp::McpSetup;
use crate::util::clock::{Clock as _, SystemClock};

fn provider(url: url::Url, transport: HttpTransport, traffic: TrafficSink) -> McpProvider {
    let (auth, headers) = (Box::new(AuthSpec::None), Vec::new());
    let spec = ServerSpec {
        name: "srv".to_owned(),
        description: None,
        endpoint: Endpoint::Http { url, socket: None, transport, headers, auth, insecure: false },
        protocol: ProtocolChoice::Legacy,
        timeout: None,
        max_total: None,
        start_timeout: None,
        exclude: Vec::new(),
        include: None,
        roots: Vec::new(),
        routing_weight: None,
        dev: false,
        drift: None,
        provides_tools: Vec::new(),
        retries: 0,
        requires_approval: false,
        sandbox: None,
        context_env: Arc::default(),
        origin: crate::model::EntryOrigin::of(crate::model::Layer::User, "/"),
        place: Place { file: Arc::new("mcp.yaml".into()), line: 1, column: 1, text: Arc::from("") },
        seal: Seal::default(),
    };
    let vars = BTreeMap::from([("https_proxy".to_owned(), "http://127.0.0.1:9".to_owned())]);
    let setup = McpSetup {
        environment: Arc::new(FixedEnvironment { vars, cwd: "/".into(), root: None }),
        expanded: crate::config::expanded::ExpandedValues::default(),
        eras: Arc::new(EraMemory::new(None)),
        events: EventSink::nowhere(),
        inbox: Arc::new(NoInbox),
        traffic,
        logins: Arc::new(MemoryVault::default()),
        learn: Arc::new(|_, _| {}),
        insecure: false,
        log_level: None,
    };
    McpProvider::new(spec, setup)
}

/// A server whose answers to calls are `answer`, by their ids.
async fn server(answer: impl Fn(i64, &Heard) -> Reply + Send + Sync + 'static) -> Peer {
    Peer::start(move |_, heard| {
        if heard.method != "POST" || heard.body.contains("notifications/") {
            return Reply::accepted();
        }
        let id = heard.id();
        if heard.body.contains("\"initialize\"") {
            return Reply::json(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25",
                "capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"x","version":"1"}}}}}}"#
            ));
        }
        answer(id.as_i64().unwrap() - crate::mcp::repeat::request::FIRST_ID, heard)
    })
    .await
}

fn said(heard: &Heard, outcome: &str) -> Reply {
    Reply::json(format!(r#"{{"jsonrpc":"2.0","id":{},{outcome}}}"#, heard.id()))
}

fn well(heard: &Heard) -> Reply {
    said(heard, r#""result":{"content":[{"type":"text","text":"hi"}]}"#)
}

fn order(lanes: usize) -> Order {
    Order {
        tool: ToolName::of("srv", "t"),
        lanes,
        limit: Duration::from_mins(10),
        inspection: None,
        context: ToolContext::bare(CallId("run".to_owned())),
    }
}

/// Hands out so many calls, so many at once, and keeps how they ended.
struct Script {
    calls: u64,
    at_once: u64,
    next: u64,
    ends: BTreeMap<u64, Verdict>,
    patience: Duration,
    over: Option<Instant>,
}

impl Script {
    fn new(calls: u64, at_once: u64) -> Self {
        let patience = Duration::from_mins(10);
        Self { calls, at_once, next: 0, ends: BTreeMap::new(), patience, over: None }
    }

    fn shown(&self) -> Vec<String> {
        self.ends.values().map(|verdict| format!("{verdict:?}")).collect()
    }
}

impl Load for Script {
    fn now(&self) -> Instant {
        SystemClock.now()
    }

    fn next(&mut self, _now: Instant) -> Next {
        if self.next == self.calls {
            let over = self.now() + self.patience;
            return Next::Drain(*self.over.get_or_insert(over));
        }
        if self.next - self.ends.len() as u64 >= self.at_once {
            return Next::Wait;
        }
        self.next += 1;
        let object = json!({ "n": self.next }).as_object().unwrap().clone();
        Next::Shot(Shot { ticket: self.next - 1, arguments: Arc::new(Payload::new(object)) })
    }

    fn ended(&mut self, end: End) {
        assert!(end.sent <= end.at && end.ticket < self.next, "{end:?}");
        assert!(self.ends.insert(end.ticket, end.verdict).is_none(), "told twice");
    }

    fn news(&self) -> Arc<Notify> {
        Arc::default()
    }
}

async fn run(peer: &Peer, order: &Order, load: &mut Script) -> Result<Vec<String>, Fault> {
    let provider = provider(peer.url("/mcp"), HttpTransport::Streamable, TrafficSink::off());
    let mut repeater = provider.repeater(order).await.unwrap().unwrap();
    repeater.run(load).await.map(|()| repeater.doubts())
}

#[tokio::test]
async fn every_call_is_answered_once() {
    let peer = server(|_, heard| well(heard)).await;
    let mut load = Script::new(300, 7);
    assert_eq!(run(&peer, &order(7), &mut load).await.unwrap(), [] as [&str; 0]);
    assert_eq!(load.ends.len(), 300);
    assert!(load.ends.values().all(|verdict| matches!(verdict, Verdict::Ok)));
}

#[tokio::test]
async fn verdicts_are_those_of_an_ordinary_call() {
    let peer = server(|n, heard| match n {
        0 => said(heard, r#""result":{"content":[{"type":"text","text":"full"}],"isError":true}"#),
        1 => said(heard, r#""error":{"code":-32602,"message":"no such thing"}"#),
        2 => said(heard, r#""result":[]"#),
        3 => Reply::full("503 Service Unavailable", &[], "later"),
        _ => well(heard),
    })
    .await;
    let mut load = Script::new(5, 1);
    run(&peer, &order(1), &mut load).await.unwrap();
    let shown = load.shown();
    assert_eq!((&*shown[0], &*shown[4]), ("No(\"full\")", "Ok"));
    for (ticket, words) in [(1, "no such thing"), (2, "not an object"), (3, "503")] {
        let Verdict::Failed(fault) = &load.ends[&ticket] else { panic!("{shown:?}") };
        assert!(fault.message().contains(words), "{fault}");
        assert_eq!(fault.at_phase(), Some(Phase::Call));
        assert!(format!("{fault:?}").contains("srv"));
    }
}

#[tokio::test]
async fn some_answers_are_checked_whole() {
    #[derive(Default)]
    struct Every(AtomicU64);
    impl Inspector for Every {
        fn inspect(&self, result: &ToolResult) -> Option<Fault> {
            assert_eq!(result.output, "hi");
            let turn = self.0.fetch_add(1, Ordering::Relaxed);
            (turn == 1).then(|| Fault::protocol("not what was promised"))
        }
    }
    let peer = server(|_, heard| well(heard)).await;
    let inspector = Arc::new(Every::default());
    let every = Inspection { every: 3, inspector: Arc::clone(&inspector) as Arc<dyn Inspector> };
    let mut load = Script::new(9, 1);
    let order = Order { inspection: Some(every), ..order(1) };
    run(&peer, &order, &mut load).await.unwrap();
    assert_eq!(inspector.0.load(Ordering::Relaxed), 3);
    let failed: Vec<_> =
        load.ends.iter().filter(|(_, verdict)| !matches!(verdict, Verdict::Ok)).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(*failed[0].0, 3);
}

#[tokio::test]
async fn what_is_in_flight_when_the_patience_ends_is_unanswered() {
    let peer = server(|n, heard| if n == 1 { Reply::Hang(Vec::new()) } else { well(heard) }).await;
    let mut load = Script { patience: Duration::from_millis(1), ..Script::new(2, 2) };
    run(&peer, &order(2), &mut load).await.unwrap();
    assert_eq!(load.shown()[1], "Unanswered");
}

#[tokio::test]
async fn a_run_that_is_given_up_ends_at_once() {
    let peer = server(|_, _| Reply::Hang(Vec::new())).await;
    let (order, mut load) = (order(2), Script::new(100, 2));
    let given_up = async {
        while peer.heard().iter().filter(|heard| heard.body.contains("tools/call")).count() < 2 {
            tokio::task::yield_now().await;
        }
        order.context.cancel.cancel();
    };
    let (ran, ()) = tokio::join!(run(&peer, &order, &mut load), given_up);
    ran.unwrap();
    assert_eq!(load.shown(), ["Unanswered", "Unanswered"]);
}

#[tokio::test]
async fn a_limit_ends_one_call_and_the_run_goes_on() {
    let peer = server(|n, heard| if n == 0 { Reply::Hang(Vec::new()) } else { well(heard) }).await;
    let mut load = Script::new(3, 1);
    let order = Order { limit: Duration::from_secs(2), ..order(1) };
    let doubts = run(&peer, &order, &mut load).await.unwrap();
    let Verdict::Failed(fault) = &load.ends[&0] else { panic!("{:?}", load.shown()) };
    assert_eq!(fault.kind(), FaultKind::Timeout);
    assert!(doubts.iter().any(|doubt| doubt.starts_with("srv: 1 connections")), "{doubts:?}");
}

#[tokio::test]
async fn what_is_watched_or_goes_elsewhere_goes_the_ordinary_way() {
    let peer = server(|_, heard| well(heard)).await;
    let watched = TrafficSink::new(drop);
    let provider_of = |url: url::Url, traffic| provider(url, HttpTransport::Streamable, traffic);
    for provider in [
        provider_of(peer.url("/mcp"), watched),
        // Nothing is connected to: it would have to go through the proxy.
        provider_of("https://example.com/mcp".parse().unwrap(), TrafficSink::off()),
    ] {
        assert!(provider.repeater(&order(1)).await.unwrap().is_none());
    }
}
