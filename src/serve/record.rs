//! The recording proxy: relays a server's standard streams and reports the traffic to a tracer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LinesCodec};
use tokio_util::sync::CancellationToken;

use crate::mcp::headers;
use crate::mcp::message::{
    INTERNAL_ERROR, Incoming, ParsedInput, RawJson, RpcMessage, cancelled_request, subject,
};
use crate::mcp::tracer::{StderrLines, Tracer};
use crate::mcp::wire::{Arrival, FrameKind, MESSAGE_LIMIT, OutgoingFrame, Wire};
use crate::model::{Era, Error};
use crate::util::json;
use crate::util::lock::lock;
use crate::util::process::{Process, ShutdownTimeouts, show_exit};
use crate::util::text;

/// How long a server may go on answering after the client has left.
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(2);
/// How long pipes are drained after the server is gone; a grandchild may hold them for ever.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// How many answers wait for a slow client.
const ANSWER_QUEUE: usize = 64;
/// Of how many tools it is remembered which arguments are headers too.
const MAX_TOOLS: usize = 1_000;
/// The longest schema that is remembered, in bytes.
const LONGEST_SCHEMA: u64 = 32 * 1024;
/// The steps of the server's end. Its input was closed before.
const SHUTDOWN_STEPS: ShutdownTimeouts = ShutdownTimeouts {
    eof: Duration::from_millis(500),
    term: Duration::from_secs(2),
    kill: Duration::from_secs(1),
};

pub enum RecordedServer {
    Program(Box<RecordedProcess>),
    /// It is reached over the network, and what passes is traced by the wire.
    Network(Arc<dyn Wire>),
}

pub struct RecordedProcess {
    /// Its process; its three pipes are not taken yet.
    pub process: Process,
    /// Hears everything that passes in either direction.
    pub tracer: Tracer,
}

/// Why the relay ended: one side did, or it was stopped.
enum RelayEnd {
    Client,
    Server,
    Stopped,
}

/// Passes on what goes between this process's own standard streams and `server`, until one side
/// ends or `cancel` fires. Nothing of the server is left then.
pub async fn run(server: RecordedServer, cancel: &CancellationToken) -> Result<(), Error> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let server = match server {
        RecordedServer::Program(server) => *server,
        RecordedServer::Network(wire) => return relay_messages(&wire, input, output, cancel).await,
    };
    let shown = if std::io::stderr().is_terminal() { sanitized } else { unfiltered };
    relay(server, (input, output, tokio::io::stderr()), shown, cancel).await
}

/// What becomes of bytes on their way.
type ByteFilter = fn(&[u8]) -> Cow<'_, [u8]>;

fn unfiltered(bytes: &[u8]) -> Cow<'_, [u8]> {
    Cow::Borrowed(bytes)
}

fn sanitized(bytes: &[u8]) -> Cow<'_, [u8]> {
    Cow::Owned(text::safe(&String::from_utf8_lossy(bytes)).into_owned().into_bytes())
}

async fn relay<R, W, E>(
    server: RecordedProcess,
    (input, output, errors): (R, W, E),
    shown: ByteFilter,
    cancel: &CancellationToken,
) -> Result<(), Error>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
    E: AsyncWrite + Unpin + Send + 'static,
{
    let RecordedProcess { mut process, tracer } = server;
    let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
    let (Some(to), Some(from), Some(stderr)) = pipes else {
        return Err(Error::internal("the server was started without pipes"));
    };
    let mut stderr_lines = StderrLines::new(tracer.clone());
    let stderr = tokio::spawn(forward(stderr, errors, shown, move |piece| match piece {
        Some(piece) => stderr_lines.push(piece),
        None => stderr_lines.flush(),
    }));
    let (up, down) = (tracer.clone(), tracer.clone());
    let mut up = pin!(forward(input, to, unfiltered, lines(move |line| up.relayed(&line))));
    let mut down =
        pin!(forward(from, output, unfiltered, lines(move |line| down.received(&line, None))));
    let ended = tokio::select! {
        biased;
        () = cancel.cancelled() => RelayEnd::Stopped,
        () = &mut down => RelayEnd::Server,
        () = &mut up => RelayEnd::Client,
        _ = process.wait() => {
            let _held = timeout(DRAIN_TIMEOUT, &mut down).await;
            RelayEnd::Server
        }
    };
    let mut alone = None;
    if matches!(ended, RelayEnd::Client) {
        // What it has been asked before is still answered.
        let last = async {
            (&mut down).await;
            process.wait().await
        };
        alone = timeout(LAST_ANSWERS_TIMEOUT, last).await.ok().and_then(Result::ok);
    }
    let status = process.shut_down(SHUTDOWN_STEPS).await;
    let _held = timeout(DRAIN_TIMEOUT, stderr).await;
    let how = status.map_or_else(|| "did not end".to_owned(), show_exit);
    tracer.closed(&match ended {
        RelayEnd::Client => format!("the client disconnected; the process {how}"),
        RelayEnd::Server => format!("the process {how}"),
        RelayEnd::Stopped => format!("ended by toolhost; the process {how}"),
    });
    // How it ends when we end it is not its error.
    let by_itself = match ended {
        RelayEnd::Server => status,
        RelayEnd::Client => alone,
        RelayEnd::Stopped => None,
    };
    match by_itself.filter(|status| !status.success()) {
        Some(_) => Err(Error::unreachable(format!("the process {how}"))),
        None => Ok(()),
    }
}

/// Passes on messages, one on each line, until one side ends or `cancel` fires.
async fn relay_messages(
    wire: &Arc<dyn Wire>,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let (answers, mut answered) = mpsc::channel(ANSWER_QUEUE);
    let passing = PassingMessages::new(wire);
    let up = async {
        let mut lines = FramedRead::new(input, LinesCodec::new_with_max_length(MESSAGE_LIMIT));
        while let Some(line) = lines.next().await {
            let frame = match line {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => passing.sent(line),
                Err(error) => {
                    return Err(Error::protocol(format!("the client's message: {error}")));
                }
            };
            let FrameKind::Request { id, .. } = &frame.kind else {
                // Nobody waits for an answer to it, and a wire that is gone ends the relay itself.
                let _refused = wire.send(frame).await;
                continue;
            };
            let id = id.clone();
            let (wire, answers) = (Arc::clone(wire), answers.clone());
            tokio::spawn(async move {
                if let Err(error) = wire.send(frame).await {
                    let _gone = answers.send(refusal(&id, &error)).await;
                }
            });
        }
        let _late = timeout(LAST_ANSWERS_TIMEOUT, passing.all_answered()).await;
        Ok(())
    };
    let down = async {
        loop {
            let incoming = tokio::select! {
                Some(refusal) = answered.recv() => refusal,
                arrival = wire.receive() => match arrival {
                    Arrival::Message { incoming, .. } => incoming,
                    Arrival::Failed { id, error } => refusal(&id, &error),
                    Arrival::Warning(_) => continue,
                    Arrival::Closed(error) => return Err(error),
                },
            };
            passing.received(&incoming);
            // What ends a line inside of JSON is white space.
            let byte = |byte: &u8| if *byte == b'\n' { b' ' } else { *byte };
            let line: Vec<u8> = incoming.bytes.iter().map(byte).chain([b'\n']).collect();
            if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
                return Ok(());
            }
            for (id, _) in incoming.answers() {
                passing.answered(id);
            }
        }
    };
    let (mut up, mut down) = (pin!(up), pin!(down));
    let ended = tokio::select! {
        biased;
        () = cancel.cancelled() => Ok(()),
        ended = &mut down => ended,
        ended = &mut up => ended,
    };
    wire.close().await;
    ended
}

/// What the relay reads in the messages that pass: transports with headers say it in these.
struct PassingMessages {
    wire: Arc<dyn Wire>,
    /// The ids and methods of the requests whose answers were not passed on yet.
    unanswered: watch::Sender<Vec<(Value, String)>>,
    /// The schemas of the listed tools that want arguments as headers too, as JSON: a tree takes a hundred
    /// times the room.
    schemas: Mutex<HashMap<String, String>>,
}

impl PassingMessages {
    fn new(wire: &Arc<dyn Wire>) -> Self {
        let (wire, unanswered) = (Arc::clone(wire), watch::Sender::default());
        Self { wire, unanswered, schemas: Mutex::default() }
    }

    fn sent(&self, line: String) -> OutgoingFrame {
        let Incoming { bytes, input } = Incoming::read(line.into());
        let message = match input {
            ParsedInput::Messages(messages, _) => messages.into_iter().next(),
            _ => None,
        };
        let tree = |params: Option<RawJson>| params.and_then(|raw| raw.parse().ok());
        let kind = match message {
            Some(RpcMessage::Request { id, method, params }) => {
                let params: Value = tree(params).unwrap_or_default();
                let version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
                if let Some(version) = version.as_str() {
                    self.wire.set_agreement(Era::Modern, version);
                }
                self.unanswered.send_modify(|all| all.push((id.clone(), method.clone())));
                let name = params.as_object().and_then(|params| subject(&method, params));
                let headers = self.headers(&method, &params);
                FrameKind::Request { id, method, name, headers }
            }
            Some(RpcMessage::Notification { method, params }) => {
                let cancels = tree(params).and_then(|params| cancelled_request(&method, &params));
                if let Some(id) = &cancels {
                    self.answered(id);
                }
                FrameKind::Notification { method, cancels }
            }
            Some(RpcMessage::Response { id, outcome }) => {
                FrameKind::Response { id, is_error: outcome.is_err() }
            }
            None => FrameKind::Other,
        };
        OutgoingFrame { bytes, kind, call: None }
    }

    /// The arguments of a call that its tool wants as headers too.
    fn headers(&self, method: &str, params: &Value) -> Vec<(String, String)> {
        let tool = params["name"].as_str().filter(|_| method == "tools/call");
        let schemas = lock(&self.schemas);
        let schema = tool.and_then(|tool| serde_json::from_str(schemas.get(tool)?).ok());
        match (schema, params["arguments"].as_object()) {
            (Some(schema), Some(arguments)) => headers::for_call(&schema, arguments),
            _ => Vec::new(),
        }
    }

    /// Notes the version that a server of the legacy era agrees to, and the tools that it lists.
    fn received(&self, incoming: &Incoming) {
        for (id, outcome) in incoming.answers() {
            let requests = self.unanswered.borrow();
            let Some((_, method)) = requests.iter().find(|(other, _)| other == id) else {
                continue;
            };
            if !matches!(method.as_str(), "initialize" | "tools/list") {
                continue;
            }
            let Some(result) = outcome.as_ref().ok().and_then(|raw| raw.parse().ok()) else {
                continue;
            };
            let version = result["protocolVersion"].as_str();
            if let Some(version) = version.filter(|_| method == "initialize") {
                self.wire.set_agreement(Era::Legacy, version);
            }
            for tool in result["tools"].as_array().into_iter().flatten() {
                self.note_tool(tool);
            }
        }
    }

    fn note_tool(&self, tool: &Value) {
        let (Some(name), schema) = (tool["name"].as_str(), &tool["inputSchema"]) else { return };
        let mut schemas = lock(&self.schemas);
        schemas.remove(name);
        let has_room = schemas.len() < MAX_TOOLS && !json::is_longer_than(schema, LONGEST_SCHEMA);
        if has_room && headers::are_wanted(schema) {
            schemas.insert(name.to_owned(), schema.to_string());
        }
    }

    /// No answer to the request with this id is waited for any more.
    fn answered(&self, id: &Value) {
        self.unanswered.send_modify(|all| all.retain(|(other, _)| other != id));
    }

    async fn all_answered(&self) {
        let mut unanswered = self.unanswered.subscribe();
        // The sender lives as long as this.
        let _open = unanswered.wait_for(Vec::is_empty).await;
    }
}

/// Stands for the answer that does not come.
fn refusal(id: &Value, error: &Error) -> Incoming {
    let error = json!({ "code": INTERNAL_ERROR, "message": error.to_string() });
    let refusal = json!({ "jsonrpc": "2.0", "id": id, "error": error });
    Incoming::read(refusal.to_string().into())
}

/// Passes bytes on until either end fails or is at its end, and shows each piece to `look`
/// before; `None` means the end. The writing end is closed then.
async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    shown: ByteFilter,
    mut look: impl FnMut(Option<&[u8]>),
) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(count) = from.read(&mut piece).await {
        let Some(bytes) = piece.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        look(Some(bytes));
        if to.write_all(&shown(bytes)).await.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    look(None);
    // The reader learns it from the closed pipe.
    let _closed = to.shutdown().await;
}

/// Cuts pieces into lines without their ends. A line above the largest message comes in parts, so
/// that memory stays bounded.
fn lines(mut report: impl FnMut(Incoming)) -> impl FnMut(Option<&[u8]>) {
    let mut open = BytesMut::new();
    move |piece| {
        let Some(piece) = piece else {
            if !open.is_empty() {
                report(Incoming::read(open.split().freeze()));
            }
            return;
        };
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let line = part.strip_suffix(b"\n");
            open.extend_from_slice(line.unwrap_or(part));
            if line.is_some() || open.len() > MESSAGE_LIMIT {
                report(Incoming::read(open.split().freeze()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::mcp::tracer::tests::captured;
    use crate::model::traffic::{Direction, TrafficKind};
    use crate::util::process::Program;

    /// Starts a shell script behind the proxy; gives the client's ends and what becomes of it.
    fn start(
        script: &str,
        tracer: Tracer,
        cancel: &CancellationToken,
    ) -> (
        tokio::io::DuplexStream,
        tokio::io::DuplexStream,
        tokio::task::JoinHandle<Result<(), Error>>,
    ) {
        let program = Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            cwd: "/".into(),
            stdin: true,
        };
        let process = Process::start(&program).unwrap();
        let (client_in, input) = tokio::io::duplex(1 << 20);
        let (output, client_out) = tokio::io::duplex(1 << 20);
        let cancel = cancel.clone();
        let run = tokio::spawn(async move {
            let streams = (input, output, tokio::io::sink());
            relay(RecordedProcess { process, tracer }, streams, unfiltered, &cancel).await
        });
        (client_in, client_out, run)
    }

    #[tokio::test]
    async fn every_byte_passes_and_every_line_is_told() {
        let (tracer, traffic) = captured();
        let (mut client, mut answers, run) =
            start("cat; echo bye >&2", tracer, &CancellationToken::new());
        let bytes = b"{\"id\":1, \"method\":\"ping\"}\r\n\xff\x00\nhalf";
        client.write_all(bytes).await.unwrap();
        drop(client);
        let mut back = Vec::new();
        answers.read_to_end(&mut back).await.unwrap();
        assert_eq!(back, bytes);
        run.await.unwrap().unwrap();
        let traffic = traffic.lock().unwrap();
        let lines = |side: Direction| -> Vec<Vec<u8>> {
            traffic
                .iter()
                .filter_map(|traffic| match &traffic.kind {
                    TrafficKind::Message { direction, bytes, .. } if *direction == side => {
                        Some(bytes.to_vec())
                    }
                    // Output of the server that is not a message.
                    TrafficKind::NonJsonLine(text) if side == Direction::Received => {
                        Some(text.clone().into_bytes())
                    }
                    _ => None,
                })
                .collect()
        };
        let expected = [&b"{\"id\":1, \"method\":\"ping\"}\r"[..], b"\xff\x00", b"half"];
        assert_eq!(lines(Direction::Sent), expected);
        assert_eq!(lines(Direction::Received), expected);
        assert!(
            traffic.iter().any(|t| matches!(&t.kind, TrafficKind::Stderr(text) if text == "bye"))
        );
    }

    #[test]
    fn a_terminal_gets_no_control_sequence() {
        let hostile = b"loading\n\x1b]0;title\x07\xff";
        assert_eq!(&*unfiltered(hostile), hostile);
        let safe = sanitized(hostile);
        assert!(safe.starts_with(b"loading\n") && !safe.contains(&0x1b) && !safe.contains(&7));
    }

    #[tokio::test]
    async fn a_server_that_ends_badly_ends_the_run_badly() {
        let (_client, mut answers, run) =
            start("echo '{}'; exit 3", Tracer::off(), &CancellationToken::new());
        let mut back = Vec::new();
        answers.read_to_end(&mut back).await.unwrap();
        assert_eq!(back, b"{}\n");
        let error = run.await.unwrap().unwrap_err();
        assert_eq!(error.message(), "the process exited with 3");
    }

    #[tokio::test]
    async fn a_server_is_ended_when_the_run_is_stopped() {
        let cancel = CancellationToken::new();
        let (_client, _answers, run) = start("exec sleep 60", Tracer::off(), &cancel);
        cancel.cancel();
        run.await.unwrap().unwrap();
    }

    /// A wire whose server answers a request when the client is gone.
    struct LateWire {
        gone: CancellationToken,
        waiting: CancellationToken,
    }

    #[async_trait::async_trait]
    impl Wire for LateWire {
        async fn send(&self, _frame: OutgoingFrame) -> Result<(), Error> {
            Ok(())
        }

        async fn receive(&self) -> Arrival {
            if self.waiting.is_cancelled() {
                return std::future::pending().await;
            }
            self.gone.cancelled().await;
            self.waiting.cancel();
            let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
            Arrival::Message { incoming: Incoming::read(answer.into()), stream_of: Some(json!(1)) }
        }

        fn waiting_for(&self, _id: &Value) -> Option<String> {
            (!self.waiting.is_cancelled()).then(|| "the response".to_owned())
        }

        async fn close(&self) {}
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_answer_ends_the_relay_at_once() {
        let gone = CancellationToken::new();
        let waiting = CancellationToken::new();
        let wire: Arc<dyn Wire> = Arc::new(LateWire { gone: gone.clone(), waiting });
        let (mut client, input) = tokio::io::duplex(1 << 10);
        let (output, mut answers) = tokio::io::duplex(1 << 10);
        client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
        drop(client);
        let began = tokio::time::Instant::now();
        let leaving = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            gone.cancel();
        };
        let cancel = CancellationToken::new();
        let relay = relay_messages(&wire, input, output, &cancel);
        let (ended, ()) = tokio::join!(relay, leaving);
        ended.unwrap();
        let mut back = String::new();
        answers.read_to_string(&mut back).await.unwrap();
        assert_eq!(back, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
        assert_eq!(began.elapsed(), Duration::from_millis(10));
    }

    fn passing() -> PassingMessages {
        let (gone, waiting) = (CancellationToken::new(), CancellationToken::new());
        let wire: Arc<dyn Wire> = Arc::new(LateWire { gone, waiting });
        PassingMessages::new(&wire)
    }

    #[test]
    fn a_custom_notification_that_names_a_request_does_not_cancel_it() {
        let passing = passing();
        passing.sent(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_owned());
        for (method, cancelled) in
            [("notifications/custom", None), ("notifications/cancelled", Some(json!(1)))]
        {
            let params = json!({ "requestId": 1 });
            let line = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            let FrameKind::Notification { cancels, .. } = passing.sent(line.to_string()).kind
            else {
                panic!("no notification")
            };
            assert_eq!(passing.unanswered.borrow().is_empty(), cancelled.is_some());
            assert_eq!(cancels, cancelled);
        }
    }

    #[test]
    fn a_call_carries_the_headers_that_the_listed_tool_wants() {
        let passing = passing();
        let listed = |property: &Value| {
            passing.sent(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned());
            let tool = json!({ "name": "t", "inputSchema": { "properties": { "a": property } } });
            let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": [tool] } });
            passing.received(&Incoming::read(answer.to_string().into()));
            passing.answered(&json!(1));
            let params = json!({ "name": "t", "arguments": { "a": "eu" } });
            let call =
                json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
            match passing.sent(call.to_string()).kind {
                FrameKind::Request { headers, .. } => headers,
                other => panic!("{other:?}"),
            }
        };
        let wanted = json!({ "type": "string", "x-mcp-header": "Region" });
        assert_eq!(listed(&wanted), [("Mcp-Param-Region".to_owned(), "eu".to_owned())]);
        // What no header can follow, and what is no longer wanted, is left out.
        assert!(listed(&json!({ "type": "string", "x-mcp-header": "Bad Name" })).is_empty());
        assert!(listed(&json!({ "type": "string" })).is_empty());
    }
}
