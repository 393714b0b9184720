//! One suite over both adapters of the port that front ends know: a host in this process, and one
//! that is reached through the socket of a background host.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::{AttachedFrontEnd, HostClient};
use super::connection::{self, LineConnection};
use super::lifetime::{HostCurrency, HostLifetime};
use super::observers::ObserverHub;
use super::protocol::{self, CallMeta, SentCall};
use crate::host::ToolHost;
use crate::host::approval::{Approval, ApprovalRequest, Approver};
use crate::host::builder::ToolHostBuilder;
use crate::host::function_tool::FunctionTool;
use crate::host::link::{LinkError, Observation, ObservationSink, ObserveRequest};
use crate::host::policy::Decision;
use crate::host::request::{CallOutcome, CallRequest, ListScope, LookupScope};
use crate::model::{
    Error, ErrorKind, EventSink, HostEvent, JsonObject, NoQuestionHandler, ToolContext,
};
use crate::serve::catalogue_server::{CatalogueServer, ClientRegistry, ServeSettings};
use crate::serve::front_ends::service::FrontEndService;
use crate::serve::listen::unix::UnixSocketListener;
use crate::util::local_peer;

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
        let settings =
            ServeSettings { lifetime: Some(Arc::clone(&lifetime)), ..ServeSettings::default() };
        let (host, server_clients) = (Arc::clone(&behind), Arc::clone(&clients));
        let server = CatalogueServer::new(host, server_clients, settings, abort.clone());
        let (host, sessions) = (behind, None);
        let front_ends = FrontEndService { host, clients, lifetime, observers, sessions, abort };
        let socket = place.path().join("host.sock");
        let listener = UnixSocketListener::bind(&socket).unwrap();
        let until = stop.clone();
        tokio::spawn(
            async move { listener.serve(&server, Some(&Arc::new(front_ends)), &until).await },
        );
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
            let ended = observed.observe_link(&sink, &never).await;
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

/// The messages of the next write to a host.
async fn next_write(stream: &tokio::net::UnixStream) -> Vec<Value> {
    let mut bytes = vec![0; 65_536];
    loop {
        stream.readable().await.unwrap();
        match stream.try_read(&mut bytes) {
            Ok(read) => break bytes.truncate(read),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A client of a host that a test plays, connected already, and the host's end.
async fn played_host() -> (tempfile::TempDir, HostClient, tokio::net::UnixListener) {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("host.sock");
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let front_end = AttachedFrontEnd {
        approver: Arc::new(Person { approves: false, asked: Mutex::default() }),
        inbox: Arc::new(NoQuestionHandler),
        events: EventSink::discard(),
    };
    let client = HostClient::connect(&socket, "a front end", front_end).await.unwrap();
    (place, client, listener)
}

#[tokio::test]
async fn a_call_is_one_write_over_the_connection_that_found_the_host() {
    let (_place, client, listener) = played_host().await;
    let (stream, _) = listener.accept().await.unwrap();
    let host = ToolHost::builder().build();
    host.attach(Arc::new(client));
    let calling = tokio::spawn(async move { host.call(request("echo")).await });
    let sent = next_write(&stream).await;
    let methods: Vec<&Value> = sent.iter().map(|message| &message["method"]).collect();
    assert_eq!(methods, [&json!("tools/call")]);
    // It was read, so that it may have run.
    drop(stream);
    assert_eq!(calling.await.unwrap().unwrap_err().kind(), ErrorKind::Unreachable);
    assert!(listener.accept().now_or_never().is_none(), "one connection was enough");
}

/// Makes a call through a host and nowhere else.
#[cfg(target_os = "linux")]
async fn made_by(
    client: &HostClient,
    call: &CallRequest,
) -> Result<Result<CallOutcome, Error>, LinkError> {
    crate::host::link::HostLink::call(client, call).await
}

#[tokio::test(start_paused = true)]
#[cfg(target_os = "linux")]
async fn a_call_that_no_host_reads_is_made_without_it() {
    let (_place, client, listener) = played_host().await;
    let (stream, _) = listener.accept().await.unwrap();
    let unread = made_by(&client, &request("echo")).await;
    assert!(matches!(unread, Err(LinkError::Unsent)), "{unread:?}");
    // A host that reads it later knows that it is too late.
    let [sent] = next_write(&stream).await.try_into().unwrap();
    let begins_by = &sent["params"]["_meta"]["dev.toolhost/call"]["begins_by"];
    let begins_by: Duration = serde_json::from_value(begins_by.clone()).unwrap();
    assert!(begins_by < local_peer::monotonic_time() + Duration::from_secs(5));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_call_that_a_host_left_unread_when_it_ended_is_made_without_it() {
    let (_place, client, listener) = played_host().await;
    let (stream, _) = listener.accept().await.unwrap();
    let call = request("echo");
    let (unread, ()) = tokio::join!(made_by(&client, &call), async {
        stream.readable().await.unwrap();
        drop(stream);
    });
    assert!(matches!(unread, Err(LinkError::Unsent)), "{unread:?}");
}

impl FrontEnd {
    /// A connection to its host on which a test sends lines of its own.
    async fn lines(&self) -> LineConnection {
        let (place, _) = self.served.as_ref().unwrap();
        let stream = tokio::net::UnixStream::connect(place.path().join("host.sock")).await.unwrap();
        LineConnection::new(stream, 1 << 20)
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_ends_does_not_wait_for_those_who_watch() {
    let mut front_end = FrontEnd::attached(true).await;
    let mut lines = front_end.lines().await;
    let payload = json!({ "payload": ObserveRequest::Activity });
    lines.send(&connection::request(1, protocol::OBSERVE, &payload)).await.unwrap();
    assert_eq!(next_message(&mut lines).await["method"], protocol::OBSERVED);
    let before = tokio::time::Instant::now();
    let (_place, stop) = front_end.served.take().unwrap();
    drop(stop);
    let last = next_message(&mut lines).await;
    assert_eq!(last["error"]["code"], protocol::ENDED, "{last}");
    assert_eq!(before.elapsed(), Duration::ZERO);
}

impl FrontEnd {
    /// A connection over which a call was made that waits.
    async fn waiting_call(&self) -> LineConnection {
        let mut lines = self.lines().await;
        let in_time = local_peer::monotonic_time() + Duration::from_mins(1);
        lines.send(&call_line("wait", in_time)).await.unwrap();
        self.running.acquire().await.unwrap().forget();
        lines
    }
}

/// The line of a call that may begin until then.
fn call_line(tool: &str, begins_by: Duration) -> String {
    let call = SentCall { front_end: "a test".to_owned(), begins_by, request: request(tool) };
    let params = json!({ "name": tool, "_meta": CallMeta { call } });
    connection::request(1, protocol::CALL, &params)
}

async fn next_message(lines: &mut LineConnection) -> Value {
    serde_json::from_str(&lines.next().await.unwrap().unwrap()).unwrap()
}

#[tokio::test]
async fn a_call_that_comes_too_late_is_not_begun() {
    let front_end = FrontEnd::attached(true).await;
    let mut lines = front_end.lines().await;
    lines.send(&call_line("wait", Duration::from_secs(1))).await.unwrap();
    let answer = next_message(&mut lines).await;
    assert_eq!(answer["error"]["code"], protocol::NOT_BEGUN, "{answer}");
    assert_eq!(front_end.running.available_permits(), 0, "it did not run");
}

#[tokio::test]
async fn a_call_of_what_is_no_longer_trusted_is_not_begun_and_its_front_end_hears_so() {
    let front_end = FrontEnd::attached(true).await;
    let mut lines = front_end.lines().await;
    front_end.is_current.store(false, Ordering::Relaxed);
    let in_time = local_peer::monotonic_time() + Duration::from_mins(1);
    lines.send(&call_line("wait", in_time)).await.unwrap();
    let answer = next_message(&mut lines).await;
    assert_eq!(answer["error"]["code"], protocol::NOT_BEGUN, "{answer}");
    assert_eq!(front_end.running.available_permits(), 0, "it did not run");
}

#[tokio::test]
async fn a_host_gives_signs_of_life_during_a_call_and_ends_one_that_is_given_up() {
    let front_end = FrontEnd::attached(true).await;
    let mut lines = front_end.waiting_call().await;
    // What says nothing to it is passed over: half a message, and an answer that it did not ask for.
    lines.send("{\n{\"id\":7,\"result\":{}}\n").await.unwrap();
    lines.send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n").await.unwrap();
    assert_eq!(next_message(&mut lines).await, json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
    let given_up = json!({ "method": "notifications/cancelled" });
    lines.send(&connection::message(&given_up)).await.unwrap();
    front_end.told_until("wait", "cancelled").await;
    assert!(lines.next().await.is_none(), "it has no answer");
}

#[tokio::test]
async fn a_call_that_its_front_end_leaves_is_cancelled() {
    let front_end = FrontEnd::attached(true).await;
    let lines = front_end.waiting_call().await;
    drop(lines);
    front_end.told_until("wait", "cancelled").await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stops_to_answer_during_a_call_is_not_waited_for() {
    let (_place, client, listener) = played_host().await;
    let (held, answered) = tokio::join!(client.status(), async {
        let (stream, _) = listener.accept().await.unwrap();
        next_write(&stream).await;
        let begun = tokio::time::Instant::now();
        // It reads, and says nothing more until it is given up.
        while stream.readable().await.is_ok() {
            if matches!(stream.try_read(&mut [0; 4_096]), Ok(0)) {
                break;
            }
        }
        begun.elapsed()
    });
    let Err(LinkError::Lost(error)) = held else { panic!("{held:?}") };
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.message().contains("does not respond"), "{error}");
    assert!(answered <= Duration::from_mins(1), "{answered:?}");
}
