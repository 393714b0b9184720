//! One worker: an interpreter that answers many requests at a time until it is ended or dies.
//!
//! Owns: the process, its pipes, the calls that wait for it, and telling all of them when it dies.
//! Never does: start another one (see `workers`), or know what a function is.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::wire::{self, Complaint, LONGEST, Lines, Request, Told};
use crate::model::{
    CallId, Event, EventSink, Fault, FaultKind, LogLevel, Phase, Signal, ToolContext,
};
use crate::util::process::{Grace, Process, Program, show_exit};
use crate::util::tail::Tail;
use crate::util::units::show_duration;

/// How long an interpreter may take to be ready.
const START: Duration = Duration::from_secs(20);
/// How long a worker may leave a request unread.
const WRITE: Duration = Duration::from_secs(10);
/// How long a call that was cancelled may go on before its worker is ended.
const STOP: Duration = Duration::from_millis(250);
/// How long the pipes are still read when the process is gone but something holds them.
const DRAIN: Duration = Duration::from_millis(200);
/// How many requests may wait to be written.
const QUEUE: usize = 64;
/// The most events of one call; what is beyond is dropped.
const MOST_EVENTS: u32 = 10_000;
/// How many lines of stderr are told when a worker dies.
const SHOWN_LINES: usize = 20;

/// An answer to a request.
pub(super) struct Reply {
    /// The result, as JSON text; absent for `null`.
    pub(super) result: Option<Box<RawValue>>,
    /// Why there is none.
    pub(super) error: Option<Complaint>,
    /// Doubts.
    pub(super) warnings: Vec<String>,
}

/// A call that waits.
struct Waiting {
    reply: oneshot::Sender<Result<Reply, Fault>>,
    call: CallId,
    origin: String,
    sink: EventSink,
    events: u32,
}

/// A running interpreter.
pub(super) struct Worker {
    shared: Arc<Shared>,
    requests: mpsc::Sender<Vec<u8>>,
    numbers: AtomicU64,
    done: CancellationToken,
}

#[derive(Default)]
struct Shared {
    calls: Mutex<HashMap<u64, Waiting>>,
    /// Why it is not there any more.
    end: OnceLock<Fault>,
    /// Whether it died by itself.
    crashed: OnceLock<()>,
    /// Why it has to die now.
    reason: OnceLock<Fault>,
    kill: CancellationToken,
    close: CancellationToken,
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the worker at once; the first reason counts.
    fn condemn(&self, reason: Fault) {
        let _first = self.reason.set(reason);
        self.kill.cancel();
    }
}

impl Worker {
    /// Starts `program`, gives it its first line and waits until it is ready. What it says outside of
    /// calls goes to `events`.
    ///
    /// # Errors
    /// What the system or the interpreter said.
    pub(super) async fn start(
        program: &Program,
        setup: Vec<u8>,
        events: EventSink,
    ) -> Result<Self, Fault> {
        let path = program.path.display();
        let process = Process::start(program)
            .map_err(|error| Fault::unreachable(format!("'{path}' could not be started: {error}")));
        let mut process = process.map_err(|fault| fault.phase(Phase::Start))?;
        let (requests, queue) = mpsc::channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let done = CancellationToken::new();
        if let Some(stdin) = process.stdin.take() {
            tokio::spawn(write(stdin, setup, queue, Arc::clone(&shared)));
        }
        let (ready, hello) = oneshot::channel();
        let driver = Driver {
            shared: Arc::clone(&shared),
            program: program.path.clone(),
            ready: Some(ready),
            version: String::new(),
            events,
            lines: Lines::default(),
            tail: Tail::default(),
            errors: Lines::default(),
            strays: 0,
        };
        let finished = done.clone().drop_guard();
        tokio::spawn(async move {
            driver.run(process).await;
            drop(finished);
        });
        let worker = Self { shared, requests, numbers: AtomicU64::new(1), done };
        match tokio::time::timeout(START, hello).await {
            Ok(Ok(())) => Ok(worker),
            Ok(Err(_died)) => {
                worker.done.cancelled().await;
                Err(worker.fault().phase(Phase::Start))
            }
            Err(_elapsed) => {
                worker.shared.condemn(Fault::timeout(format!(
                    "'{path}' was not ready within {}",
                    show_duration(START)
                )));
                worker.done.cancelled().await;
                Err(worker.fault().phase(Phase::Start))
            }
        }
    }

    /// Whether it still takes requests.
    pub(super) fn is_alive(&self) -> bool {
        !self.done.is_cancelled() && !self.shared.kill.is_cancelled()
    }

    /// Whether it died by itself, and was not ended by us.
    pub(super) fn has_crashed(&self) -> bool {
        self.shared.crashed.get().is_some()
    }

    /// Whether no call waits for it.
    pub(super) fn is_idle(&self) -> bool {
        self.shared.calls().is_empty()
    }

    /// Why it is not there any more.
    pub(super) fn fault(&self) -> Fault {
        let end = self.shared.end.get().or_else(|| self.shared.reason.get()).cloned();
        end.unwrap_or_else(|| Fault::unreachable("the Python worker is gone"))
    }

    /// Asks for one thing and waits for the answer; events of the call go to `context.events` as
    /// those of `origin`.
    ///
    /// # Errors
    /// When the worker dies, or the call is cancelled. A call that goes on although it was cancelled
    /// ends the worker.
    pub(super) async fn ask(
        &self,
        request: Request<'_>,
        context: &ToolContext,
        origin: &str,
    ) -> Result<Reply, Fault> {
        let id = self.numbers.fetch_add(1, Ordering::Relaxed);
        let line = request.line(id, context);
        if line.len() > LONGEST {
            return Err(Fault::usage("the arguments are more than 16 MiB of JSON"));
        }
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting {
            reply,
            call: context.call_id.clone(),
            origin: origin.to_owned(),
            sink: context.events.clone(),
            events: 0,
        };
        self.shared.calls().insert(id, waiting);
        let entry = Entry { worker: self, id };
        let work = async {
            // When nobody reads the queue any more, the worker is gone or about to be.
            if self.requests.send(line).await.is_err() || self.done.is_cancelled() {
                self.done.cancelled().await;
                return Err(self.fault());
            }
            answer.await.unwrap_or_else(|_dropped| Err(self.fault()))
        };
        tokio::pin!(work);
        tokio::select! {
            biased;
            reply = &mut work => return reply,
            () = context.cancel.cancelled() => {}
        }
        let _full = self.requests.try_send(wire::cancel(id));
        if tokio::time::timeout(STOP, &mut work).await.is_err() {
            drop(entry);
            self.shared.condemn(Fault::unreachable(format!(
                "'{origin}' did not stop when it was told to, and its Python worker was ended with \
                 it"
            )));
        }
        Err(Fault::new(FaultKind::Interrupted(Signal::Interrupt), "the function was stopped"))
    }

    /// Ends it: it may finish what it does at its end, and is killed when that takes long.
    pub(super) async fn close(&self) {
        self.shared.close.cancel();
        self.done.cancelled().await;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.kill.cancel();
    }
}

/// A call in the list of those that wait. When the caller goes away first, the worker is told.
struct Entry<'a> {
    worker: &'a Worker,
    id: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if self.worker.shared.calls().remove(&self.id).is_some() {
            let _full = self.worker.requests.try_send(wire::cancel(self.id));
        }
    }
}

/// Writes requests one after the other, so that none is cut off when its caller goes away.
async fn write(
    mut stdin: ChildStdin,
    setup: Vec<u8>,
    mut queue: mpsc::Receiver<Vec<u8>>,
    shared: Arc<Shared>,
) {
    let mut line = setup;
    loop {
        let written = tokio::select! {
            written = tokio::time::timeout(WRITE, stdin.write_all(&line)) => written,
            () = shared.close.cancelled() => return,
            () = shared.kill.cancelled() => return,
        };
        match written {
            Ok(Ok(())) => {}
            // It is dying; its end says why.
            Ok(Err(_)) => return,
            Err(_elapsed) => {
                shared.condemn(Fault::timeout(format!(
                    "the Python worker took no request for {}",
                    show_duration(WRITE)
                )));
                return;
            }
        }
        line = tokio::select! {
            next = queue.recv() => match next {
                Some(next) => next,
                None => return,
            },
            () = shared.close.cancelled() => return,
            () = shared.kill.cancelled() => return,
        };
    }
}

/// Whoever listens to the process, until it is gone.
struct Driver {
    shared: Arc<Shared>,
    program: PathBuf,
    ready: Option<oneshot::Sender<()>>,
    /// The version of Python, once it is ready.
    version: String,
    events: EventSink,
    lines: Lines,
    tail: Tail,
    errors: Lines,
    /// Lines that nobody can make sense of.
    strays: u64,
}

/// How listening ended.
enum End {
    Exited(std::io::Result<ExitStatus>),
    Condemned,
    Closed,
}

impl Driver {
    async fn run(mut self, mut process: Process) {
        let (mut out, mut err) = (process.stdout.take(), process.stderr.take());
        let (mut out_piece, mut err_piece) = (vec![0; 64 << 10], vec![0; 8 << 10]);
        let shared = Arc::clone(&self.shared);
        let end = loop {
            tokio::select! {
                count = read(&mut out, &mut out_piece), if out.is_some() => match count {
                    0 => out = None,
                    count => self.answers(out_piece.get(..count).unwrap_or_default()),
                },
                count = read(&mut err, &mut err_piece), if err.is_some() => match count {
                    0 => err = None,
                    count => self.complaints(err_piece.get(..count).unwrap_or_default()),
                },
                status = process.exited() => break End::Exited(status),
                () = shared.kill.cancelled() => break End::Condemned,
                () = shared.close.cancelled() => break End::Closed,
            }
        };
        let mut pipes = (out, err);
        let fault = match end {
            End::Exited(status) => {
                let _held = tokio::time::timeout(DRAIN, self.drain(&mut pipes)).await;
                let _first = self.shared.crashed.set(());
                let ended = status.map_or_else(|error| error.to_string(), show_exit);
                process.end(Grace { eof: Duration::ZERO, term: Duration::ZERO, kill: DRAIN }).await;
                let (program, version) = (self.program.display(), &self.version);
                Fault::unreachable(match version.as_str() {
                    "" => format!("'{program}' {ended} before it was ready"),
                    version => format!("the worker of Python {version} ({program}) {ended}"),
                })
            }
            End::Condemned => {
                process.kill(Grace::default()).await;
                let _held = tokio::time::timeout(DRAIN, self.drain(&mut pipes)).await;
                let reason = self.shared.reason.get().cloned();
                reason.unwrap_or_else(|| Fault::unreachable("the Python worker was ended"))
            }
            End::Closed => {
                let second = Duration::from_secs(1);
                process.end(Grace { eof: second, term: second, kill: second }).await;
                Fault::unreachable("the Python worker was closed")
            }
        };
        self.tell(fault.phase(Phase::Call));
    }

    /// Reads what it said last, before its end is told.
    async fn drain(&mut self, (out, err): &mut (Option<ChildStdout>, Option<ChildStderr>)) {
        let mut piece = vec![0; 8 << 10];
        loop {
            match read(out, &mut piece).await {
                0 => break,
                count => self.answers(piece.get(..count).unwrap_or_default()),
            }
        }
        loop {
            match read(err, &mut piece).await {
                0 => break,
                count => self.complaints(piece.get(..count).unwrap_or_default()),
            }
        }
    }

    /// Tells everybody who waits that there will be no answer.
    fn tell(self, fault: Fault) {
        let mut fault = fault.details(self.tail.last(SHOWN_LINES));
        if self.strays > 0 {
            fault = fault.detail(format!("{} of its lines could not be read", self.strays));
        }
        let fault = self.shared.end.get_or_init(|| fault).clone();
        // Nobody waits for a worker that says so after it was condemned by their own call.
        self.shared.kill.cancel();
        let waiting: Vec<Waiting> = self.shared.calls().drain().map(|(_, call)| call).collect();
        for call in waiting {
            let _gone = call.reply.send(Err(fault.clone()));
        }
    }

    fn answers(&mut self, bytes: &[u8]) {
        let mut lines = std::mem::take(&mut self.lines);
        if lines.feed(bytes, |line| self.answer(line)).is_err() {
            self.shared.condemn(Fault::protocol("the Python worker wrote a line beyond 16 MiB"));
        }
        self.lines = lines;
    }

    fn answer(&mut self, line: &[u8]) {
        let Ok(told) = serde_json::from_slice::<Told<'_>>(line) else {
            self.strays = self.strays.saturating_add(1);
            return;
        };
        if let (Some(hello), Some(ready)) = (told.hello, self.ready.take()) {
            self.version = hello.version;
            let _gone = ready.send(());
            return;
        }
        let mut calls = self.shared.calls();
        // Whoever was cancelled does not wait any more, and nobody misses what comes for it.
        let Some(call) = told.id.and_then(|id| calls.get_mut(&id)) else { return };
        let event = match (told.progress, told.level, told.text) {
            (Some(progress), _, _) => Some(Event::Progress {
                call_id: call.call.clone(),
                progress,
                total: told.total,
                message: told.message,
            }),
            (None, Some(level), Some(text)) => {
                self.tail.push(text.as_bytes());
                self.tail.push(b"\n");
                Some(Event::Log { origin: call.origin.clone(), level: LogLevel(level), text })
            }
            _ => None,
        };
        if let Some(event) = event {
            call.events = call.events.saturating_add(1);
            if call.events <= MOST_EVENTS {
                call.sink.emit(event);
            }
        } else if let Some(call) = told.id.and_then(|id| calls.remove(&id)) {
            let reply = Reply {
                result: told.result.map(ToOwned::to_owned),
                error: told.error,
                warnings: told.warnings,
            };
            let _gone = call.reply.send(Ok(reply));
        }
    }

    /// Lines on stderr belong to the only call there is, when there is one.
    fn complaints(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
        let calls = self.shared.calls();
        let mut all = calls.values();
        let (origin, sink) = match (all.next(), all.next()) {
            (Some(only), None) => (only.origin.clone(), only.sink.clone()),
            _ => ("python".to_owned(), self.events.clone()),
        };
        drop(all);
        drop(calls);
        let told = self.errors.feed(bytes, |line| {
            let text = String::from_utf8_lossy(line).into_owned();
            sink.emit(Event::Log { origin: origin.clone(), level: LogLevel("info".into()), text });
        });
        if told.is_err() {
            // A line that never ends is no line; its end is in the tail.
            self.errors = Lines::default();
        }
    }
}

async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, piece: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(piece).await.unwrap_or(0),
        None => 0,
    }
}
