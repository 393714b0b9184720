//! The task that owns a worker's process: writes requests, reads replies, notices its exit.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

use super::super::result;
use super::super::wire::{MAX_LINE_BYTES, WorkerMessage, WorkerReply};
use super::{WorkerCall, WorkerState};
use crate::model::{CallId, Error, ErrorPhase, EventSink, HostEvent, LogLevel};
use crate::providers::lines::{LineSplitter, SplitLine};
use crate::util::confine::LimitCause;
use crate::util::process::{Process, ShutdownTimeouts, show_exit};
use crate::util::tail::LineTail;
use crate::util::units::show_duration;

/// How long a worker may leave a request unread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to keep reading the pipes after the process exited, if they are still held open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// How many lines of stderr an error has as details when a worker dies.
const SHOWN_LINES: usize = 20;
/// The start of a traceback line about our own program in the worker.
const SHIM_FRAME_PREFIX: &str = "File \"<toolhost";

/// Writes requests one after the other, so that none is cut off when its caller goes away.
pub(super) async fn write(
    mut stdin: ChildStdin,
    setup: Vec<u8>,
    mut queue: mpsc::Receiver<Vec<u8>>,
    shared: Arc<WorkerState>,
) {
    let mut line = setup;
    loop {
        let written = tokio::select! {
            written = tokio::time::timeout(WRITE_TIMEOUT, stdin.write_all(&line)) => written,
            () = shared.close.cancelled() => return,
            () = shared.kill.cancelled() => return,
        };
        match written {
            Ok(Ok(())) => {}
            // It is dying; its end says why.
            Ok(Err(_)) => return,
            Err(_elapsed) => {
                shared.kill_with(Error::timeout(format!(
                    "the Python worker accepted no request for {}",
                    show_duration(WRITE_TIMEOUT)
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

/// The task that reads the pipes of a worker's process until it is gone.
pub(super) struct WorkerDriver {
    shared: Arc<WorkerState>,
    program: PathBuf,
    ready: Option<oneshot::Sender<()>>,
    version: String,
    events: EventSink,
    lines: LineSplitter,
    tail: LineTail,
    errors: LineSplitter,
    unreadable_lines: u64,
}

enum DriverExit {
    Exited(std::io::Result<ExitStatus>),
    Killed,
    Closed,
}

impl WorkerDriver {
    /// A driver for the process of `program`; `ready` is sent when it takes requests, and
    /// `events` gets the output that belongs to no call.
    pub(super) fn new(
        shared: Arc<WorkerState>,
        program: PathBuf,
        ready: oneshot::Sender<()>,
        events: EventSink,
    ) -> Self {
        Self {
            shared,
            program,
            ready: Some(ready),
            version: String::new(),
            events,
            lines: LineSplitter::new(MAX_LINE_BYTES),
            tail: LineTail::default(),
            errors: LineSplitter::new(MAX_LINE_BYTES),
            unreadable_lines: 0,
        }
    }

    /// Listens until the process is gone or must be killed.
    pub(super) async fn run(mut self, mut process: Process) {
        let (mut out, mut err) = (process.stdout.take(), process.stderr.take());
        let (mut out_piece, mut err_piece) = (vec![0; 64 << 10], vec![0; 8 << 10]);
        let shared = Arc::clone(&self.shared);
        let mut just_read_err = false;
        let end = loop {
            // What was printed comes before the answer that follows it, and yet a flood of it holds up
            // no answer: the two take turns.
            let err_first = !just_read_err;
            just_read_err = false;
            tokio::select! {
                biased;
                () = shared.kill.cancelled() => break DriverExit::Killed,
                () = shared.close.cancelled() => break DriverExit::Closed,
                count = read(&mut err, &mut err_piece), if err.is_some() && err_first => {
                    just_read_err = true;
                    match count {
                        0 => err = None,
                        count => self.handle_stderr(err_piece.get(..count).unwrap_or_default()),
                    }
                }
                count = read(&mut out, &mut out_piece), if out.is_some() => match count {
                    0 => out = None,
                    count => self.handle_stdout(out_piece.get(..count).unwrap_or_default()),
                },
                status = process.wait() => break DriverExit::Exited(status),
                () = std::future::ready(()), if !err_first => {}
            }
        };
        let mut pipes = (out, err);
        let error = match end {
            DriverExit::Exited(status) => {
                let _held = tokio::time::timeout(DRAIN_TIMEOUT, self.drain(&mut pipes)).await;
                let _first = self.shared.crashed.set(());
                let ended = match status {
                    Ok(status) => self.ended(status, &process),
                    Err(cause) => cause.to_string(),
                };
                process
                    .shut_down(ShutdownTimeouts {
                        eof: Duration::ZERO,
                        term: Duration::ZERO,
                        kill: DRAIN_TIMEOUT,
                    })
                    .await;
                let (program, version) = (self.program.display(), &self.version);
                Error::unreachable(match version.as_str() {
                    "" => format!("'{program}' {ended} before it was ready"),
                    version => format!("the worker of Python {version} ({program}) {ended}"),
                })
            }
            DriverExit::Killed => {
                process.kill(ShutdownTimeouts::default()).await;
                let _held = tokio::time::timeout(DRAIN_TIMEOUT, self.drain(&mut pipes)).await;
                let reason = self.shared.kill_reason.get().cloned();
                reason.unwrap_or_else(|| Error::unreachable("the Python worker was ended"))
            }
            DriverExit::Closed => {
                let second = Duration::from_secs(1);
                process
                    .shut_down(ShutdownTimeouts { eof: second, term: second, kill: second })
                    .await;
                Error::unreachable("the Python worker was closed")
            }
        };
        self.fail_pending_calls(error.with_phase(ErrorPhase::Call));
    }

    fn ended(&self, status: ExitStatus, process: &Process) -> String {
        let ended = show_exit(status);
        match process.exit_cause(status, &self.tail.last(SHOWN_LINES)) {
            Some(LimitCause::Limit(limit)) => format!("{ended} ({limit})"),
            Some(LimitCause::PossibleLimit(limits)) if status.signal().is_some() => {
                format!("{ended}, perhaps by its {limits}")
            }
            Some(LimitCause::PossibleLimit(_)) | None => ended,
        }
    }

    /// Reads the rest of its output, before the calls that wait get their error.
    async fn drain(&mut self, (out, err): &mut (Option<ChildStdout>, Option<ChildStderr>)) {
        let mut piece = vec![0; 8 << 10];
        loop {
            match read(out, &mut piece).await {
                0 => break,
                count => self.handle_stdout(piece.get(..count).unwrap_or_default()),
            }
        }
        loop {
            match read(err, &mut piece).await {
                0 => break,
                count => self.handle_stderr(piece.get(..count).unwrap_or_default()),
            }
        }
    }

    /// Tells everybody who waits that there will be no answer.
    fn fail_pending_calls(self, error: Error) {
        let last = self.tail.last(SHOWN_LINES).into_iter();
        let mut error = error.with_details(last.filter(|line| !line.contains(SHIM_FRAME_PREFIX)));
        if self.unreadable_lines > 0 {
            error = error
                .with_detail(format!("{} of its lines could not be read", self.unreadable_lines));
        }
        let error = self.shared.exit_error.get_or_init(|| error).clone();
        // A worker whose own call condemned it has no caller left that waits.
        self.shared.kill.cancel();
        let waiting: Vec<WorkerCall> = self.shared.calls().drain().map(|(_, call)| call).collect();
        for call in waiting {
            let _gone = call.reply.send(Err(error.clone()));
        }
    }

    fn handle_stdout(&mut self, bytes: &[u8]) {
        let mut lines = std::mem::replace(&mut self.lines, LineSplitter::new(MAX_LINE_BYTES));
        lines.feed(bytes, |line| match line {
            SplitLine::Whole(line) => self.handle_message(line),
            SplitLine::TooLong => self
                .shared
                .kill_with(Error::protocol("the Python worker wrote a line longer than 16 MiB")),
        });
        self.lines = lines;
    }

    fn handle_message(&mut self, line: &[u8]) {
        let Ok(message) = serde_json::from_slice::<WorkerMessage<'_>>(line) else {
            self.unreadable_lines = self.unreadable_lines.saturating_add(1);
            return;
        };
        if let (None, Some(_), Some(error)) = (message.id, &self.ready, &message.error) {
            // What it would have run during its start is not what was trusted.
            self.shared.kill_with(result::error_from_worker(error.clone()));
            return;
        }
        if let (Some(hello), Some(ready)) = (message.hello, self.ready.take()) {
            self.version = hello.version;
            let _gone = ready.send(());
            return;
        }
        let mut calls = self.shared.calls();
        // A cancelled call is not in the list any more; messages for it are dropped.
        let Some(call) = message.id.and_then(|id| calls.get_mut(&id)) else { return };
        let event = match (message.progress, message.level, message.text) {
            (Some(progress), _, _) => Some(HostEvent::Progress {
                call_id: call.call.clone(),
                progress,
                total: message.total,
                message: message.message,
            }),
            (None, Some(level), Some(text)) => {
                self.tail.push(text.as_bytes());
                self.tail.push(b"\n");
                let (origin, call_id) = (call.origin.clone(), Some(call.call.clone()));
                Some(HostEvent::Log { origin, call_id, level: LogLevel(level), text })
            }
            _ => None,
        };
        if let Some(event) = event {
            call.events.emit(event);
        } else if let Some(call) = message.id.and_then(|id| calls.remove(&id)) {
            let reply = WorkerReply {
                result: message.result.map(ToOwned::to_owned),
                error: message.error,
                warnings: message.warnings,
            };
            let _gone = call.reply.send(Ok(reply));
        }
    }

    /// To whom a line on stderr belongs: the only call there is, when there is one.
    fn stderr_owner(&self) -> (String, Option<CallId>, EventSink) {
        let calls = self.shared.calls();
        let mut all = calls.values();
        match (all.next(), all.next()) {
            (Some(only), None) => {
                (only.origin.clone(), Some(only.call.clone()), only.events.sink().clone())
            }
            _ => ("python".to_owned(), None, self.events.clone()),
        }
    }

    fn handle_stderr(&mut self, bytes: &[u8]) {
        self.tail.push(bytes);
        let (origin, call_id, sink) = self.stderr_owner();
        self.errors.feed(bytes, |line| {
            // A line without an end is not a line; its end is in the tail.
            let SplitLine::Whole(line) = line else { return };
            let text = String::from_utf8_lossy(line).into_owned();
            sink.emit(HostEvent::Log {
                origin: origin.clone(),
                call_id: call_id.clone(),
                level: LogLevel("info".into()),
                text,
            });
        });
    }
}

async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, piece: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(piece).await.unwrap_or(0),
        None => 0,
    }
}
