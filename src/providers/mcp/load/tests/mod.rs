//! Tests of benchmark load over the pipes of real processes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::config::environment::{Environment as _, FixedEnvironment, ProcessEnvironment};
use crate::config::spec::{Endpoint, ProtocolChoice, ServerSpec};
use crate::mcp::auth::MemoryVault;
use crate::mcp::era_cache::EraCache;
use crate::model::traffic::TrafficKind;
use crate::model::{
    CallId, EntryOrigin, Error, ErrorKind, EventSink, Layer, NoQuestionHandler, SourceLocation,
    ToolCall, ToolContext, ToolName, ToolResult, TrafficSink,
};
use crate::provider::ToolProvider as _;
use crate::provider::load::{
    BenchRequest, CompletedRequest, EncodedArguments, Inspection, Inspector, Load, LoadDecision,
    LoadExecutor, LoadJob, LoadOutcome, LoadSupport as _,
};
use crate::providers::mcp::{McpProvider, McpSetup};
use crate::util::clock::{Clock as _, SystemClock};

const SERVER: &str = include_str!("server.py");

/// A server of the older era, for which its file sets nothing else.
pub(super) fn server_at(endpoint: Endpoint) -> ServerSpec {
    let file = Arc::new("mcp.yaml".into());
    let location = SourceLocation { file, line: 1, column: 1, text: Arc::from("") };
    let spec = ServerSpec::new("srv", endpoint, EntryOrigin::of(Layer::User, "/"), location);
    ServerSpec { protocol: ProtocolChoice::Legacy, ..spec }
}

fn spec(calls: &str) -> ServerSpec {
    server_at(Endpoint::Stdio {
        command: "python3".to_owned(),
        args: vec!["-c".to_owned(), SERVER.to_owned(), calls.to_owned()],
        env: BTreeMap::new(),
        env_keys: Vec::new(),
        cwd: "/".into(),
    })
}

fn provider_of(spec: ServerSpec, traffic: TrafficSink) -> McpProvider {
    let path = ProcessEnvironment.var("PATH").unwrap_or_default();
    let environment = FixedEnvironment {
        vars: BTreeMap::from([("PATH".to_owned(), path)]),
        cwd: "/".into(),
        root: None,
    };
    let setup = McpSetup {
        environment: Arc::new(environment),
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

fn provider(calls: &str) -> McpProvider {
    provider_of(spec(calls), TrafficSink::disabled())
}

fn job(lanes: usize) -> LoadJob {
    LoadJob {
        tool: ToolName::of("srv", "t"),
        concurrency: lanes,
        timeout: Duration::from_secs(30),
        inspection: None,
        context: ToolContext::empty(CallId("run".to_owned())),
    }
}

async fn executor(provider: &McpProvider, job: &LoadJob) -> Box<dyn LoadExecutor> {
    provider.executor(job).await.unwrap().unwrap()
}

/// What was told as the end of a call.
type Outcomes = BTreeMap<u64, LoadOutcome>;

/// Keeps so many calls in flight, and everything that becomes of them.
struct ScriptedLoad {
    calls: u64,
    at_once: u64,
    next: u64,
    ends: Outcomes,
    bytes: (u64, u64),
    /// How long the run waits for what is in flight at its end.
    patience: Duration,
    first: CancellationToken,
    payload: Arc<EncodedArguments>,
    over: Option<Instant>,
}

impl ScriptedLoad {
    fn new(calls: u64, at_once: u64) -> Self {
        Self {
            calls,
            at_once,
            next: 0,
            ends: Outcomes::new(),
            bytes: (0, 0),
            patience: Duration::from_mins(1),
            first: CancellationToken::new(),
            payload: payload(&json!({ "message": "hi" })),
            over: None,
        }
    }

    fn failure(&self, ticket: u64) -> &Error {
        match &self.ends[&ticket] {
            LoadOutcome::Failed(error) => error,
            other => panic!("{ticket}: {other:?}"),
        }
    }

    fn all(&self, predicate: impl Fn(&LoadOutcome) -> bool) -> bool {
        self.ends.len() as u64 == self.next && self.ends.values().all(predicate)
    }
}

fn payload(arguments: &Value) -> Arc<EncodedArguments> {
    Arc::new(EncodedArguments::new(arguments.as_object().unwrap().clone()))
}

impl Load for ScriptedLoad {
    fn now(&self) -> Instant {
        SystemClock.now()
    }

    fn next(&mut self, _now: Instant) -> LoadDecision {
        if self.next == self.calls {
            let now = self.now();
            return LoadDecision::Drain(*self.over.get_or_insert(now + self.patience));
        }
        if self.next - self.ends.len() as u64 >= self.at_once {
            return LoadDecision::WaitForWakeup;
        }
        self.next += 1;
        LoadDecision::Send(BenchRequest {
            ticket: self.next - 1,
            arguments: Arc::clone(&self.payload),
        })
    }

    fn on_completed(&mut self, end: CompletedRequest) {
        assert!(end.ticket < self.next, "{end:?}");
        assert!(end.sent_at <= end.ended_at, "{end:?}");
        self.first.cancel();
        self.bytes.0 += end.bytes_out;
        self.bytes.1 += end.bytes_in;
        let twice = self.ends.insert(end.ticket, end.outcome);
        assert!(twice.is_none(), "{} ended twice", end.ticket);
    }

    fn wakeup(&self) -> Arc<Notify> {
        Arc::default()
    }
}

#[derive(Default)]
struct Outputs(Mutex<Vec<String>>);

impl Inspector for Outputs {
    fn inspect(&self, result: &ToolResult) -> Option<Error> {
        self.0.lock().unwrap().push(result.output.as_str().unwrap_or_default().to_owned());
        None
    }
}

fn is_ok(verdict: &LoadOutcome) -> bool {
    matches!(verdict, LoadOutcome::Ok)
}

fn doubts(executor: &dyn LoadExecutor, text: &str) -> bool {
    executor.warnings().iter().any(|doubt| doubt.contains(text))
}

#[tokio::test]
async fn every_call_is_answered_once_and_counted() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let provider = provider("def call(id, a, n): text(id, a['message'])");
    let mut executor = executor(&provider, &job(10)).await;
    let mut load = ScriptedLoad::new(1_000, 10);
    executor.run(&mut load).await.unwrap();
    assert!(load.next == 1_000 && load.all(is_ok));
    let request = r#"{"jsonrpc":"2.0","id":1000000000,"method":"tools/call","params":{"name":"t","arguments":{"message":"hi"}}}"#;
    assert_eq!(load.bytes.0, 1_000 * (request.len() as u64 + 1));
    assert!(load.bytes.1 > 1_000 * 60);
    assert_eq!(executor.warnings(), Vec::<String>::new());
    // Another run over the same pipes goes on where the first one ended.
    let mut load = ScriptedLoad::new(10, 1);
    executor.run(&mut load).await.unwrap();
    assert!(load.all(is_ok));
    provider.close().await;
}

#[tokio::test]
async fn answers_are_recognised_however_they_are_written() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let provider = provider(
        r#"
def call(id, a, n):
    ok = {"content": [{"type": "text", "text": "\"id\":1,\"id\":1000000001}"}], "id": 3}
    if n == 0: raw(' { "result" : %s , "id" : %d , "jsonrpc" : "2.0" } ' % (json.dumps(ok), id))
    if n == 1: raw('{"jsonrpc":"2.0","id":%d.0,"result":%s}' % (id, json.dumps(ok)))
    if n == 2: say(id=str(id), result=ok)
    if n == 3: raw('[{"jsonrpc":"2.0","id":%d,"result":%s}]' % (id, json.dumps(ok)))
    if n == 4: text(id, "disk full", isError=True)
    if n == 5: say(id=id, error={"code": -32602, "message": "no such thing"})
    if n == 6: say(id=id, error="boom")
    if n == 7: say(id=id, result=[])
    if n == 8: say(id=id, result={"resultType": "input_required"})
    if n == 9: text(id, "x" * 200000)
"#,
    );
    let mut executor = executor(&provider, &job(4)).await;
    let mut load = ScriptedLoad::new(10, 4);
    executor.run(&mut load).await.unwrap();
    for ticket in [0, 1, 3, 9] {
        assert!(is_ok(&load.ends[&ticket]), "{ticket}: {:?}", load.ends[&ticket]);
    }
    assert!(matches!(&load.ends[&4], LoadOutcome::ToolError(text) if &**text == "disk full"));
    for (ticket, kind, text) in [
        (2, ErrorKind::Protocol, "is a string, not a number"),
        (5, ErrorKind::Tool, "error -32602: no such thing"),
        (6, ErrorKind::Protocol, "malformed"),
        (7, ErrorKind::Protocol, "not an object"),
        (8, ErrorKind::Denied, "asks for input"),
    ] {
        let error = load.failure(ticket);
        assert_eq!((error.kind(), error.server()), (kind, Some("srv")), "{error}");
        assert!(error.message().contains(text), "{error}");
    }
    assert!(doubts(&*executor, "batch array") && doubts(&*executor, "different spelling"));
    provider.close().await;
}

#[tokio::test]
async fn everything_else_goes_its_usual_way_meanwhile() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let provider = provider(
        r#"
pongs, last = 0, None
def finish():
    if last is not None and pongs == 200: text(last, "%d pongs" % pongs)
def call(id, a, n):
    global last
    if "message" not in a: return text(id, "by the way")
    raw("listening on 3000")
    say(method="notifications/message", params={"level": "info", "data": "x"})
    say(id="p%d" % n, method="ping")
    if id == 1000000100: say(id=id + 500, result={})
    if n == 0: text(id, "first"); text(id, "again")
    elif id == 1000000199: last = id; finish()
    else: text(id, "ok")
def told(message):
    global pongs
    # Also the refusal of one that was asked when the call beside the run ended.
    if str(message.get("id")).startswith("p"):
        pongs += 1
        finish()
"#,
    );
    let outputs = Arc::new(Outputs::default());
    let inspection = Inspection { every: 1, inspector: Arc::clone(&outputs) as Arc<dyn Inspector> };
    let job = LoadJob { inspection: Some(inspection), ..job(3) };
    let mut executor = executor(&provider, &job).await;
    let mut load = ScriptedLoad::new(200, 3);
    let context = ToolContext::empty(CallId("beside".to_owned()));
    let first = load.first.clone();
    let call = ToolCall { name: ToolName::of("srv", "t"), arguments: serde_json::Map::new() };
    let beside = async {
        first.cancelled().await;
        provider.call(&context, &call).await
    };
    let (ran, beside) = tokio::join!(executor.run(&mut load), beside);
    ran.unwrap();
    assert!(load.all(is_ok), "{:?}", load.ends);
    assert_eq!(beside.unwrap().output, "by the way");
    let outputs = outputs.0.lock().unwrap().clone();
    assert_eq!((outputs.len(), outputs[199].as_str()), (200, "200 pongs"));
    for text in ["listening on 3000 (200 times)", "unknown id", "got two responses"] {
        assert!(doubts(&*executor, text), "{text}: {:?}", executor.warnings());
    }
    provider.close().await;
}

#[tokio::test]
async fn a_death_ends_what_is_in_flight_and_a_new_run_works_again() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let provider = provider(
        r#"
def call(id, a, n):
    if n == 9:
        print("no database", file=sys.stderr, flush=True)
        os._exit(7)
    if n < 5: text(id, "ok")
"#,
    );
    let mut first = executor(&provider, &job(5)).await;
    let mut load = ScriptedLoad::new(100, 5);
    let error = first.run(&mut load).await.unwrap_err();
    assert!(error.message().contains("the process exited with 7"), "{error}");
    assert_eq!((load.next, load.ends.len()), (10, 10));
    for ticket in 0..5 {
        assert!(is_ok(&load.ends[&ticket]));
        assert_eq!(load.failure(ticket + 5).details(), ["stderr: no database"]);
    }
    assert!(first.run(&mut ScriptedLoad::new(1, 1)).await.is_err());
    drop(first);
    let mut second = executor(&provider, &job(5)).await;
    let mut load = ScriptedLoad::new(5, 5);
    second.run(&mut load).await.unwrap();
    assert!(load.all(is_ok));
    provider.close().await;
}

#[tokio::test]
async fn a_call_without_an_answer_is_given_up_and_the_server_told() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let provider = provider(
        r#"
def call(id, a, n):
    if n > 0: text(id, "after %s" % cancelled)
def told(message):
    global cancelled
    if message["method"] == "notifications/cancelled":
        cancelled = message["params"]
        text(cancelled["requestId"], "late")
"#,
    );
    let outputs = Arc::new(Outputs::default());
    let inspection = Inspection { every: 1, inspector: Arc::clone(&outputs) as Arc<dyn Inspector> };
    let limit = Duration::from_millis(150);
    let job = LoadJob { inspection: Some(inspection), timeout: limit, ..job(1) };
    let mut executor = executor(&provider, &job).await;
    let mut load = ScriptedLoad::new(2, 1);
    executor.run(&mut load).await.unwrap();
    let error = load.failure(0);
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.message(), "no response within 150 ms");
    assert!(is_ok(&load.ends[&1]));
    let outputs = outputs.0.lock().unwrap().clone();
    assert!(outputs[0].contains("1000000000") && outputs[0].contains("no response"), "{outputs:?}");
    assert!(doubts(&*executor, "after its request was abandoned"));
    provider.close().await;
}

#[tokio::test]
async fn a_server_that_stops_reading_blocks_no_other_call_and_no_line_is_torn() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    let provider = provider(&format!(
        r#"
def call(id, a, n):
    if n == 0:
        for _ in range(3000): say(method="notifications/message", params={{"data": "x" * 100}})
        while not os.path.exists({go:?}): time.sleep(0.01)
    text(id, "ok")
"#
    ));
    let mut executor =
        executor(&provider, &LoadJob { timeout: Duration::from_millis(200), ..job(64) }).await;
    let mut load = ScriptedLoad::new(64, 64);
    load.payload = payload(&json!({ "message": "x".repeat(3_000) }));
    executor.run(&mut load).await.unwrap();
    assert!(load.all(|verdict| {
        matches!(verdict, LoadOutcome::Failed(error) if error.kind() == ErrorKind::Timeout)
    }));
    // The rest of the line that was begun goes before whatever is said next.
    std::fs::write(&go, "").unwrap();
    let call = ToolCall { name: ToolName::of("srv", "t"), arguments: serde_json::Map::new() };
    let context = ToolContext::empty(CallId("after".to_owned()));
    assert_eq!(provider.call(&context, &call).await.unwrap().output, "ok");
    assert!(doubts(&*executor, "after its request was abandoned"), "{:?}", executor.warnings());
    provider.close().await;
}

#[tokio::test]
async fn what_cannot_be_read_on_ends_the_run() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    for (answer, kind, expected) in [
        ("sys.stdout.write('x' * (17 << 20))", ErrorKind::Protocol, "16 MiB"),
        ("raw('{\"jsonrpc\":\"2.0\",\"id\":1000000000,')", ErrorKind::Protocol, "spans lines"),
        ("n == 0 and os.close(1)", ErrorKind::Unreachable, "closed its stdout"),
    ] {
        let provider = provider(&format!("def call(id, a, n):\n    {answer}"));
        let mut executor = executor(&provider, &job(2)).await;
        let mut load = ScriptedLoad::new(2, 2);
        let error = executor.run(&mut load).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(expected), "{error}");
        assert_eq!(load.failure(1).message(), error.message());
        provider.close().await;
    }
}

#[tokio::test]
async fn a_run_that_is_over_or_given_up_waits_for_no_call() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let provider = provider(
        r#"
def call(id, a, n):
    if n % 4 == 0: text(id, "ok")
"#,
    );
    let mut over = executor(&provider, &job(4)).await;
    // While one run has the pipes, another one goes through the session.
    assert!(provider.executor(&job(4)).await.unwrap().is_none());
    let mut load = ScriptedLoad { patience: Duration::from_millis(50), ..ScriptedLoad::new(4, 4) };
    over.run(&mut load).await.unwrap();
    let unanswered = load.ends.values().filter(|v| matches!(v, LoadOutcome::Unanswered)).count();
    assert!(unanswered >= 3 && load.ends.len() == 4, "{:?}", load.ends);
    drop(over);

    let given_up = job(4);
    let mut load = ScriptedLoad::new(100, 4);
    let cancel = given_up.context.cancel.clone();
    let mut executor = executor(&provider, &given_up).await;
    let first = load.first.clone();
    let (ran, ()) = tokio::join!(executor.run(&mut load), async {
        first.cancelled().await;
        cancel.cancel();
    });
    ran.unwrap();
    assert!(load.next < 100 && load.ends.len() as u64 == load.next);
    provider.close().await;
}

#[tokio::test]
async fn a_tool_that_runs_as_a_task_is_left_to_ordinary_calls() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let provider = provider(
        r#"
TOOL = {"execution": {"taskSupport": "required"}}
CAPABILITIES = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
def call(id, a, n): text(id, "ok")
"#,
    );
    provider.list().await.unwrap();
    assert!(provider.executor(&job(1)).await.unwrap().is_none());
    provider.close().await;
}

#[tokio::test]
async fn roots_are_kept_to() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let mut spec = spec("def call(id, a, n): text(id, 'ok')");
    spec.roots = vec!["file:///srv/inside".into()];
    let provider = provider_of(spec, TrafficSink::disabled());
    for (path, expected) in
        [("file:///srv/inside/a", None), ("file:///etc/passwd", Some("/etc/passwd"))]
    {
        let mut executor = executor(&provider, &job(1)).await;
        let mut load = ScriptedLoad::new(2, 1);
        load.payload = payload(&json!({ "path": path }));
        executor.run(&mut load).await.unwrap();
        match expected {
            None => assert!(load.all(is_ok), "{:?}", load.ends),
            Some(expected) => assert!(load.failure(1).to_string().contains(expected)),
        }
    }
    provider.close().await;
}

#[tokio::test]
async fn a_trace_shows_every_message() {
    if crate::util::skipped::lacks(&["python3"]) {
        return;
    }
    let messages_seen = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let messages_seen = Arc::clone(&messages_seen);
        TrafficSink::new(move |traffic| messages_seen.lock().unwrap().push(traffic))
    };
    let spec = spec("def call(id, a, n): text(id, 'ok')");
    let provider = provider_of(spec, sink);
    let mut executor = executor(&provider, &job(2)).await;
    executor.run(&mut ScriptedLoad::new(20, 2)).await.unwrap();
    let run = CallId("run".to_owned());
    let messages_seen = std::mem::take(&mut *messages_seen.lock().unwrap());
    let messages = messages_seen.iter().filter(|traffic| {
        traffic.call.as_ref() == Some(&run) && matches!(traffic.kind, TrafficKind::Message { .. })
    });
    assert_eq!(messages.count(), 40);
    provider.close().await;
}
