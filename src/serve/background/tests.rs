//! One suite over both adapters of the port that front ends know: a host in this process, and one
//! that is reached through the socket of a background host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::{AttachedFrontEnd, HostClient};
use super::lifetime::{HostCurrency, HostLifetime};
use super::observers::ObserverHub;
use super::service::BackgroundService;
use crate::host::ToolHost;
use crate::host::builder::ToolHostBuilder;
use crate::host::function_tool::FunctionTool;
use crate::host::link::{HostLink as _, LinkError, Observation, ObservationSink, ObserveRequest};
use crate::host::policy::{Approval, ApprovalRequest, Approver, Decision};
use crate::host::request::{CallOutcome, CallRequest, ListScope, LookupScope};
use crate::model::{
    Error, ErrorKind, EventSink, HostEvent, JsonObject, NoQuestionHandler, ToolContext,
};
use crate::serve::catalogue_server::{CatalogueServer, ClientRegistry, ServeSettings};
use crate::serve::listen::unix::UnixSocketListener;

/// Events that wait for a test; none makes as many.
const EVENTS: usize = 256;

/// How a call is told of: its tool, and whether it began or how it ended.
type Told = (String, &'static str);

/// A front end and the host it works with, whichever that is.
struct FrontEnd {
    host: Arc<ToolHost>,
    person: Arc<Person>,
    told: Mutex<mpsc::Receiver<HostEvent>>,
    /// Lets the tool `wait` go on, and says that it runs.
    running: Arc<Semaphore>,
    served: Option<(tempfile::TempDir, DropGuard)>,
    /// Whether the host is still what was trusted.
    is_current: Arc<AtomicBool>,
}

/// Approves what a test says, and remembers what was asked.
struct Person {
    approves: bool,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, request: &ApprovalRequest<'_>) -> Approval {
        let question = format!("{}: {}", request.definition.name.full(), request.reason);
        self.asked.lock().unwrap().push(question);
        if self.approves { Approval::Granted } else { Approval::Refused }
    }
}

/// The tools that all of it is tried with.
fn with_tools(builder: ToolHostBuilder, running: &Arc<Semaphore>) -> Arc<ToolHost> {
    let host = builder.build();
    let echo = |arguments: JsonObject, _: ToolContext| async move {
        Ok::<Value, Error>(json!({ "said": arguments }))
    };
    let runs = Arc::clone(running);
    let wait = move |_: JsonObject, context: ToolContext| {
        runs.add_permits(1);
        async move {
            context.cancel.cancelled().await;
            Err::<Value, Error>(Error::timeout("it was cancelled"))
        }
    };
    let fail = |_: JsonObject, _: ToolContext| async move {
        Err::<Value, Error>(Error::new(ErrorKind::Tool, "it never works"))
    };
    host.register_function(FunctionTool::new("echo", "Says it", echo)).unwrap();
    host.register_function(FunctionTool::new("wait", "Waits", wait)).unwrap();
    host.register_function(FunctionTool::new("fail", "Fails", fail)).unwrap();
    let erase = FunctionTool::new("erase", "Erases", echo);
    host.register_function(erase.with(|tool| tool.requires_approval = true)).unwrap();
    host
}

impl FrontEnd {
    fn in_process(approves: bool) -> Self {
        let person = Arc::new(Person { approves, asked: Mutex::default() });
        let (send, receiver) = mpsc::channel(EVENTS);
        let events = EventSink::new(move |event| drop(send.try_send(event)));
        let running = Arc::new(Semaphore::new(0));
        let builder = ToolHost::builder().approver(Arc::clone(&person) as _).events(events);
        let host = with_tools(builder, &running);
        Self {
            host,
            person,
            told: Mutex::new(receiver),
            running,
            served: None,
            is_current: Arc::default(),
        }
    }

    async fn attached(approves: bool) -> Self {
        let place = tempfile::tempdir().unwrap();
        let running = Arc::new(Semaphore::new(0));
        let (clients, observers) = (ClientRegistry::of_front_ends(), ObserverHub::new());
        let builder = ToolHost::builder()
            .approver(Arc::clone(&clients) as _)
            .events(observers.events(clients.events()));
        let behind = with_tools(builder, &running);
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let life = (place.path().to_owned(), Duration::from_mins(1));
        let is_current = Arc::new(AtomicBool::new(true));
        let flag = Arc::clone(&is_current);
        let current = Box::new(move || {
            if flag.load(Ordering::Relaxed) {
                HostCurrency::Current
            } else {
                HostCurrency::Untrusted
            }
        });
        let lifetime = HostLifetime::new(life.0, life.1, stop.clone(), abort.clone(), current);
        let (host, sessions) = (Arc::clone(&behind), None);
        let background = Arc::new(BackgroundService { host, lifetime, observers, sessions });
        let settings = ServeSettings { background: Some(background), ..ServeSettings::default() };
        let server = CatalogueServer::new(behind, clients, settings, abort);
        let socket = place.path().join("host.sock");
        let listener = UnixSocketListener::bind(&socket).unwrap();
        let until = stop.clone();
        tokio::spawn(async move { listener.serve(&server, &until).await });
        let person = Arc::new(Person { approves, asked: Mutex::default() });
        let front_end = AttachedFrontEnd {
            approver: Arc::clone(&person) as _,
            inbox: Arc::new(NoQuestionHandler),
            events: EventSink::discard(),
        };
        // What this process has itself is nothing: all of it comes from the other side.
        let host = ToolHost::builder().build();
        let client = HostClient::connect(&socket, "a front end", front_end).await.unwrap();
        host.attach(Arc::new(client));
        let (send, receiver) = mpsc::channel(EVENTS);
        let (ready, mut is_ready) = mpsc::channel(EVENTS);
        let sink: ObservationSink = Arc::new(move |observation| match observation {
            Observation::Started => drop(ready.try_send(())),
            Observation::Event(event) => drop(send.try_send(event)),
            _ => {}
        });
        let (observed, never) = (Arc::clone(&host), CancellationToken::new());
        tokio::spawn(async move {
            let ended = observed.observe_link(ObserveRequest::Activity, &sink, &never).await;
            assert!(matches!(ended, Err(LinkError::Lost(_))), "{ended:?}");
        });
        is_ready.recv().await.unwrap();
        let served = Some((place, stop.drop_guard()));
        Self { host, person, told: Mutex::new(receiver), running, served, is_current }
    }

    async fn call(&self, tool: &str) -> Result<CallOutcome, Error> {
        self.host.call(request(tool)).await
    }

    async fn next_told(&self) -> HostEvent {
        std::future::poll_fn(|task| self.told.lock().unwrap().poll_recv(task)).await.unwrap()
    }

    /// What was told of calls until a tool's call ended in this way.
    async fn told_until(&self, tool: &str, end: &'static str) -> Vec<Told> {
        let mut all = Vec::new();
        loop {
            match self.next_told().await {
                HostEvent::CallStarted { tool, .. } => all.push((tool, "began")),
                HostEvent::CallFinished { tool: ended, success, is_cancelled, .. } => {
                    let how = match (success, is_cancelled) {
                        (true, _) => "ok",
                        (_, true) => "cancelled",
                        _ => "failed",
                    };
                    all.push((ended.clone(), how));
                    if (&*ended, how) == (tool, end) {
                        return all;
                    }
                }
                _ => {}
            }
        }
    }
}

fn request(tool: &str) -> CallRequest {
    CallRequest::json(tool, json!({ "a": 1 })).unwrap()
}

/// Runs a scenario over both adapters.
macro_rules! over_both_adapters {
    ($($name:ident($front_end:ident, $approves:expr) $body:block)*) => {$(
        mod $name {
            use super::*;

            async fn scenario($front_end: FrontEnd) $body

            #[tokio::test]
            async fn in_process() {
                scenario(FrontEnd::in_process($approves)).await;
            }

            #[tokio::test]
            async fn attached() {
                scenario(FrontEnd::attached($approves).await).await;
            }
        }
    )*};
}

over_both_adapters! {
    tools_are_listed_described_and_called(front_end, true) {
        let catalogue = front_end.host.catalogue(&ListScope::Everything).await;
        let names: Vec<String> = catalogue.tools.iter().map(|tool| tool.name.full()).collect();
        assert_eq!(names, ["echo", "wait", "fail", "erase"]);
        let found = front_end.host.find("echo", &LookupScope::default()).await.unwrap();
        assert_eq!(found.description.as_deref(), Some("Says it"));
        let unknown = front_end.host.find("ecko", &LookupScope::default()).await.unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::Usage);
        let outcome = front_end.call("echo").await.unwrap();
        assert_eq!(outcome.result.unwrap().output, json!({ "said": { "a": 1 } }));
        let failed = front_end.call("fail").await.unwrap();
        assert_eq!(failed.error().unwrap().message(), "it never works");
        assert_eq!(front_end.call("ecko").await.unwrap_err().kind(), ErrorKind::Usage);
        assert!(front_end.host.server_statuses().await.is_empty());
        assert_eq!(front_end.host.stop_server("none").await.unwrap_err().kind(), ErrorKind::Usage);
    }

    calls_are_told_of_by_the_names_that_the_front_end_gave_them(front_end, true) {
        let id = front_end.host.new_call_id();
        let named = CallRequest { id: Some(id.clone()), ..request("echo") };
        let outcome = front_end.host.call(named).await.unwrap();
        assert_eq!(outcome.metadata.call_id, id);
        let began = loop {
            if let HostEvent::CallStarted { call_id, .. } = front_end.next_told().await {
                break call_id;
            }
        };
        assert_eq!(began, id);
        front_end.call("fail").await.unwrap();
        let told = front_end.told_until("fail", "failed").await;
        let told: Vec<(&str, &str)> = told.iter().map(|(tool, how)| (&**tool, *how)).collect();
        assert_eq!(told, [("echo", "ok"), ("fail", "began"), ("fail", "failed")]);
    }

    a_call_is_cancelled_and_the_tool_hears_of_it(front_end, true) {
        let cancel = CancellationToken::new();
        let waiting = CallRequest { cancel: cancel.clone(), ..request("wait") };
        let host = Arc::clone(&front_end.host);
        let call = tokio::spawn(async move { host.call(waiting).await });
        front_end.running.acquire().await.unwrap().forget();
        cancel.cancel();
        let ended = call.await.unwrap();
        let error = ended.as_ref().map_or_else(Some, CallOutcome::error).unwrap();
        assert!(error.is_cancelled(), "{error:?}");
        front_end.told_until("wait", "cancelled").await;
    }

    the_person_of_the_front_end_is_asked_and_refuses(front_end, false) {
        let refused = front_end.call("erase").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Denied);
        assert_eq!(front_end.person.asked.lock().unwrap().len(), 1);
        let planned = front_end.host.dry_run(&request("erase")).await.unwrap();
        assert!(matches!(planned.decision, Decision::Ask(_)));
        assert_eq!(front_end.person.asked.lock().unwrap().len(), 1, "a dry run asks nothing");
    }

    the_person_of_the_front_end_is_asked_and_approves(front_end, true) {
        let outcome = front_end.call("erase").await.unwrap();
        assert!(outcome.error().is_none());
        let asked = front_end.person.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 1);
        assert!(asked[0].starts_with("erase: "), "{asked:?}");
    }
}

#[tokio::test]
async fn a_front_end_goes_on_by_itself_when_the_host_has_ended() {
    let mut front_end = FrontEnd::attached(true).await;
    assert!(front_end.host.attached_pid().is_some());
    front_end.served = None;
    let host = &front_end.host;
    let own = |_: JsonObject, _: ToolContext| async move { Ok::<Value, Error>(json!("own")) };
    host.register_function(FunctionTool::new("own", "Is here", own)).unwrap();
    // The connections are cut one after the other; a call that was sent before may be lost.
    let outcome = loop {
        match host.call(request("own")).await {
            Ok(outcome) => break outcome,
            Err(error) => assert!(
                matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Usage),
                "{error:?}"
            ),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(outcome.result.unwrap().output, json!("own"));
    assert_eq!(outcome.metadata.host_pid, None);
}

/// A client of a host that a test plays, connected already, and the host's end.
async fn played_host() -> (tempfile::TempDir, HostClient, UnixListener) {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("host.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let client = HostClient::connect(&socket, "a front end", unattended()).await.unwrap();
    (place, client, listener)
}

fn unattended() -> AttachedFrontEnd {
    AttachedFrontEnd {
        approver: Arc::new(Person { approves: false, asked: Mutex::default() }),
        inbox: Arc::new(NoQuestionHandler),
        events: EventSink::discard(),
    }
}

/// Plays a host until it was sent a request after the handshake, which it does not answer.
async fn played_until_request(listener: &UnixListener) -> (Lines<BufReader<UnixStream>>, Value) {
    let (stream, _) = listener.accept().await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        match message["method"].as_str().unwrap() {
            "initialize" => {
                let info = json!({ "name": "played", "version": "1" });
                let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                    "serverInfo": info });
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                let answer = format!("{answer}\n");
                lines.get_mut().write_all(answer.as_bytes()).await.unwrap();
            }
            "notifications/initialized" => {}
            _ => return (lines, message),
        }
    }
}

#[tokio::test]
async fn a_call_is_sent_once_and_its_outcome_is_unknown_when_the_host_goes() {
    let (_place, client, listener) = played_host().await;
    let host = ToolHost::builder().build();
    host.attach(Arc::new(client));
    let calling = tokio::spawn(async move { host.call(request("echo")).await });
    let (lines, sent) = played_until_request(&listener).await;
    assert_eq!(sent["method"], "tools/call");
    drop(lines);
    let error = calling.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.details().iter().any(|detail| detail.contains("not known")), "{error:?}");
    assert!(listener.accept().now_or_never().is_none(), "one connection was enough");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_says_nothing_is_done_without_and_left_alone_for_a_while() {
    let (_place, client, listener) = played_host().await;
    let (_stream, _) = listener.accept().await.unwrap();
    for _ in 0..2 {
        let unread = client.call(&request("echo")).await;
        assert!(matches!(unread, Err(LinkError::Unsent)), "{unread:?}");
    }
    assert!(listener.accept().now_or_never().is_none(), "it was not asked again");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stops_to_answer_during_a_request_is_not_waited_for() {
    let (_place, client, listener) = played_host().await;
    let begun = tokio::time::Instant::now();
    let (status, ()) = tokio::join!(client.status(), async {
        let (mut lines, _) = played_until_request(&listener).await;
        // It reads, and says nothing more until it is given up.
        tokio::spawn(async move { while lines.next_line().await.is_ok_and(|l| l.is_some()) {} });
    });
    let Err(LinkError::Lost(error)) = status else { panic!("{status:?}") };
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.message().contains("does not respond"), "{error}");
    assert!(begun.elapsed() <= Duration::from_mins(1), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_ends_does_not_wait_for_those_who_watch() {
    let mut front_end = FrontEnd::attached(true).await;
    let before = tokio::time::Instant::now();
    let (_place, stop) = front_end.served.take().unwrap();
    drop(stop);
    let mut told = front_end.told.into_inner().unwrap();
    while told.recv().await.is_some() {}
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_call_of_what_is_no_longer_trusted_is_not_begun() {
    let front_end = FrontEnd::attached(true).await;
    front_end.is_current.store(false, Ordering::Relaxed);
    // This process, which has no such tool, makes it.
    assert_eq!(front_end.call("wait").await.unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(front_end.running.available_permits(), 0, "it did not run");
}

#[tokio::test]
async fn a_call_that_its_front_end_leaves_is_cancelled() {
    let front_end = FrontEnd::attached(true).await;
    let (place, _) = front_end.served.as_ref().unwrap();
    let socket = place.path().join("host.sock");
    let other = HostClient::connect(&socket, "another", unattended()).await.unwrap();
    let calling = tokio::spawn(async move { other.call(&request("wait")).await.map(drop) });
    front_end.running.acquire().await.unwrap().forget();
    calling.abort();
    front_end.told_until("wait", "cancelled").await;
}
