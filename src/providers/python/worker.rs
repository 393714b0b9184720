//! A worker: an interpreter that is an MCP server over stdio, for many calls at a time.
//!
//! Owns: its start and end, the calls it serves, and whose its output is. Never does: start another
//! one (see `pool`), or know what a function is.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::Value;

use super::result::WorkerError;
use crate::config::spec::ProtocolChoice;
use crate::mcp::connection::{
    ConnectOptions, Connection, ProgressListener, RequestOptions, WireOpener,
};
use crate::mcp::message::RawJson;
use crate::mcp::tracer::Tracer;
use crate::mcp::transport::stdio::StdioWire;
use crate::mcp::wire::{FrameKind, OutgoingFrame, Wire};
use crate::model::traffic::TrafficKind;
use crate::model::{
    CallId, Error, ErrorPhase, EventSink, HostEvent, JsonObject, LogLevel, NoQuestionHandler,
    ToolContext, TrafficSink,
};
use crate::providers::confinement::not_started;
use crate::providers::limited_events::LimitedEvents;
use crate::providers::mcp::call::call_meta;
use crate::util::confine::Confinement;
use crate::util::process::{Program, ShutdownTimeouts};
use crate::util::tail::LineTail;

const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a call that was cancelled may go on before its worker is ended.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(250);
const SHUTDOWN: ShutdownTimeouts = ShutdownTimeouts {
    eof: Duration::from_secs(1),
    term: Duration::from_secs(1),
    kill: Duration::from_secs(1),
};
/// How many lines of its output an error has as details when a worker dies.
const SHOWN_LINES: usize = 20;
/// The start of a traceback line about our own program in the worker.
const SHIM_FRAME_PREFIX: &str = "File \"<toolhost";

/// The members of `_meta` that only a worker knows: what a request is about, and the directory of
/// the call.
const TARGET: &str = "dev.toolhost/target";
const CWD: &str = "dev.toolhost/cwd";

/// A running interpreter, shared by all calls of its key.
pub(super) struct PythonWorker {
    connection: Connection,
    calls: Arc<RunningCalls>,
    name: String,
    next_call: AtomicU64,
    /// Why we ended it, if we did.
    ended: OnceLock<Error>,
}

impl PythonWorker {
    /// Starts `program`, within `confinement` when there is one, writes it the line `setup` and
    /// waits until it is ready. Its output outside of calls goes to `events`.
    pub(super) async fn start(
        program: &Program,
        confinement: Option<&Confinement>,
        setup: Vec<u8>,
        events: EventSink,
    ) -> Result<Self, Error> {
        let path = program.path.display();
        let calls = Arc::new(RunningCalls { state: Mutex::default(), events });
        let (printed, logged) = (Arc::clone(&calls), Arc::clone(&calls));
        let stderr = Tracer::new(
            "python",
            TrafficSink::new(move |traffic| {
                if let TrafficKind::Stderr(line) = traffic.kind {
                    printed.print(line);
                }
            }),
        );
        let wire = StdioWire::start(program, confinement, SHUTDOWN, Tracer::off(), stderr);
        let wire = wire.map_err(|error| {
            not_started(&error, |error| format!("'{path}' could not be started: {error}"))
        })?;
        let setup = OutgoingFrame { bytes: setup.into(), kind: FrameKind::Other, call: None };
        // A queue that is empty takes it at once.
        let _queued = wire.send(setup).now_or_never();
        let wire: Arc<dyn Wire> = Arc::new(wire);
        let options = ConnectOptions {
            server: "python".to_owned(),
            protocol: ProtocolChoice::Legacy,
            cached_era: None,
            start_timeout: START_TIMEOUT,
            falls_back_on_silence: false,
            roots: Vec::new(),
            events: EventSink::new(move |event| {
                if let HostEvent::Log { call_id: Some(call), level, text, .. } = event {
                    logged.log(&call, level, text);
                }
            }),
            inbox: Arc::new(NoQuestionHandler),
        };
        let open: WireOpener = Arc::new(move || Ok(Arc::clone(&wire)));
        let opened = Connection::open(&open, options).await;
        let connection = opened.map_err(|error| match WorkerError::of(&error) {
            // What it would have run during its start is not what was trusted.
            Some(refusal) => refusal.into_error(),
            None => calls
                .explain(&error, &format!("'{path}' did not become ready"))
                .with_phase(ErrorPhase::Start),
        })?;
        let server = connection.agreement.server_info.as_ref();
        let version = server.and_then(|server| server["version"].as_str()).unwrap_or_default();
        let name = format!("the worker of Python {version} ({path})");
        let (next_call, ended) = (AtomicU64::default(), OnceLock::new());
        Ok(Self { connection, calls, name, next_call, ended })
    }

    pub(super) fn is_alive(&self) -> bool {
        self.ended.get().is_none() && self.connection.close_reason().is_none()
    }

    /// Whether it died by itself, and was not ended by us.
    pub(super) fn has_crashed(&self) -> bool {
        self.ended.get().is_none() && self.connection.close_reason().is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.calls.state().running.is_empty()
    }

    /// Why it is not there any more.
    pub(super) fn exit_error(&self) -> Error {
        let gone = || Error::unreachable("it is gone");
        self.explain(&self.connection.close_reason().unwrap_or_else(gone))
    }

    fn explain(&self, error: &Error) -> Error {
        match (WorkerError::of(error), self.ended.get()) {
            (Some(answer), _) => answer.into_error(),
            (None, Some(ended)) => ended.clone(),
            (None, None) => self.calls.explain(error, &self.name).with_phase(ErrorPhase::Call),
        }
    }

    /// Calls a tool of `target`, or lists its tools, and waits for the answer; what is reported
    /// meanwhile goes to `context.events` as from `origin`.
    pub(super) async fn request(
        self: &Arc<Self>,
        tool: Option<(&str, &JsonObject)>,
        target: Value,
        context: &ToolContext,
        origin: &str,
    ) -> Result<RawJson, Error> {
        let call = CallId(self.next_call.fetch_add(1, Ordering::Relaxed).to_string().into());
        let mut meta = call_meta(context);
        meta.insert(CWD.to_owned(), context.cwd.to_string_lossy().into());
        meta.insert(TARGET.to_owned(), target);
        let method = if tool.is_some() { "tools/call" } else { "tools/list" };
        let mut params = JsonObject::new();
        if let Some((name, arguments)) = tool {
            params.insert("name".to_owned(), name.into());
            params.insert("arguments".to_owned(), Value::Object(arguments.clone()));
        }
        let viewers = CallViewers {
            call: context.call_id.clone(),
            origin: origin.to_owned(),
            events: LimitedEvents::new(context.events.clone()),
        };
        self.calls.state().running.insert(call.clone(), viewers);
        let mut running = RunningCall { worker: self, call: call.clone(), request: None };
        let (calls, of) = (Arc::clone(&self.calls), call.clone());
        let progress: ProgressListener = Arc::new(move |update| {
            calls.report(&of, |viewers| HostEvent::Progress {
                call_id: viewers.call.clone(),
                progress: update.done,
                total: update.total,
                message: update.message,
            });
        });
        // The host limits calls, and a description has a limit where it is asked for.
        let options = RequestOptions {
            progress: Some(progress),
            meta: Some(meta),
            call: Some(call),
            ..RequestOptions::with_timeouts(Duration::MAX, Duration::MAX, ErrorPhase::Call)
        };
        let mut pending = self.connection.send_request(method, &params, &options).await;
        running.request = Some(pending.id);
        let answer = tokio::select! {
            biased;
            answer = pending.explained_outcome() => Some(answer),
            () = context.cancel.cancelled() => None,
        };
        running.request = None;
        if let Some(answer) = answer {
            return answer.map_err(|error| self.explain(&error));
        }
        pending.cancel("it was cancelled").await;
        if tokio::time::timeout(CANCEL_TIMEOUT, pending.explained_outcome()).await.is_err() {
            let worker = Arc::clone(self);
            let reason = format!(
                "'{origin}' did not stop when it was told to, and its Python worker was ended with it"
            );
            let _first = self.ended.set(Error::unreachable(reason).with_phase(ErrorPhase::Call));
            tokio::spawn(async move { worker.connection.close().await });
        }
        Err(Error::interrupted("the function was stopped"))
    }

    /// Ends it: it may finish what it does at its end, and is killed when that takes long.
    pub(super) async fn close(&self) {
        let closed = Error::unreachable("the Python worker was closed");
        let _first = self.ended.set(closed.with_phase(ErrorPhase::Call));
        self.connection.close().await;
    }
}

/// The calls of a worker, by the number each has in its messages, and the end of all its output.
struct RunningCalls {
    state: Mutex<CallsState>,
    events: EventSink,
}

#[derive(Default)]
struct CallsState {
    running: HashMap<CallId, CallViewers>,
    tail: LineTail,
}

/// Where the events of a call go, and as whose.
struct CallViewers {
    call: CallId,
    origin: String,
    events: LimitedEvents,
}

impl CallViewers {
    fn line(&self, level: LogLevel, text: String) -> HostEvent {
        let (origin, call_id) = (self.origin.clone(), Some(self.call.clone()));
        HostEvent::Log { origin, call_id, level, text }
    }
}

impl CallsState {
    fn keep(&mut self, line: &str) {
        self.tail.push(line.as_bytes());
        self.tail.push(b"\n");
    }
}

impl RunningCalls {
    fn state(&self) -> MutexGuard<'_, CallsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the viewers of a call; one that was given up has none any more.
    fn report(&self, call: &CallId, event: impl FnOnce(&CallViewers) -> HostEvent) {
        if let Some(viewers) = self.state().running.get_mut(call) {
            let event = event(viewers);
            viewers.events.emit(event);
        }
    }

    fn log(&self, call: &CallId, level: LogLevel, text: String) {
        self.state().keep(&text);
        self.report(call, |viewers| viewers.line(level, text));
    }

    /// Passes on a line on standard error: it belongs to the only call there is, when there is one.
    fn print(&self, text: String) {
        let mut state = self.state();
        state.keep(&text);
        let level = LogLevel("info".into());
        let mut running = state.running.values();
        match (running.next(), running.next()) {
            (Some(only), None) => only.events.sink().emit(only.line(level, text)),
            _ => self.events.emit(HostEvent::Log {
                origin: "python".to_owned(),
                call_id: None,
                level,
                text,
            }),
        }
    }

    /// The end of a connection with the last lines of its process; `what` is what it means.
    fn explain(&self, error: &Error, what: &str) -> Error {
        let lines = self.state().tail.last(SHOWN_LINES);
        let lines = lines.into_iter().filter(|line| !line.contains(SHIM_FRAME_PREFIX));
        let facts = error.details().iter().filter(|line| !line.starts_with("stderr: ")).cloned();
        Error::new(error.kind(), format!("{what}: {}", error.message()))
            .with_details(lines.chain(facts))
    }
}

/// A call until it is answered or given up; in that case the worker is told.
struct RunningCall<'a> {
    worker: &'a Arc<PythonWorker>,
    call: CallId,
    /// The id of its request, while that is not answered.
    request: Option<i64>,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.worker.calls.state().running.remove(&self.call);
        let (Some(request), Ok(runtime)) = (self.request, tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let worker = Arc::clone(self.worker);
        runtime.spawn(async move {
            worker.connection.cancel_request(request, "its caller is gone").await;
        });
    }
}
