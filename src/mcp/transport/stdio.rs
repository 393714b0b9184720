//! The stdio transport: a server as a child process, one JSON message per line.
//!
//! What is sent is queued, and one task writes all that is there at once: many callers share a system
//! call, and nobody who gives up leaves half a line behind. Reading is on demand: a line is taken from
//! the pipe when the connection asks for the next arrival, so a flooding server is slowed by its own
//! pipe instead of filling our memory. The exit of the process is watched separately, because a
//! grandchild may hold the pipe open for ever.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex as StdMutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::unconstrained;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::mcp::message::{Incoming, trim_bytes};
use crate::mcp::tracer::{StderrLines, Tracer};
use crate::mcp::wire::{Arrival, FrameKind, MESSAGE_LIMIT, OutgoingFrame, ProcessInfo, Wire};
use crate::model::Error;
use crate::util::confine::{Confinement, LimitCause};
use crate::util::process::{Process, Program, ShutdownTimeouts, StartError, show_exit};
use crate::util::tail::LineTail;

/// How long a write may wait for a server that does not read its stdin.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long pipes are drained after the process is known to be gone, or the other way round.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// How many lines of stderr that look like errors an error carries, beside its first and last ones.
const ERROR_LINES: usize = 3;
/// How many raw NUL bytes may come between two lines.
const NUL_LIMIT: usize = 64 * 1024;
const CHUNK: usize = 64 * 1024;
/// How many messages, and bytes of them, wait to be written before their senders wait.
const QUEUE: usize = 256;
const QUEUED_BYTES: usize = CHUNK;

pub struct StdioWire {
    stdin: mpsc::Sender<QueuedFrame>,
    room: Arc<Semaphore>,
    /// Why nothing is written any more.
    failure: Arc<OnceLock<Error>>,
    reader: Mutex<StdoutReader>,
    stderr: Arc<StdMutex<LineTail>>,
    stderr_done: CancellationToken,
    closing: CancellationToken,
    pid: u32,
    grace: ShutdownTimeouts,
    tracer: Tracer,
}

/// A message with its share of the room for what is queued.
type QueuedFrame = (OutgoingFrame, OwnedSemaphorePermit);

struct StdoutReader {
    process: Option<Process>,
    stdout: Option<ChildStdout>,
    /// The requests that could not be written.
    unwritten: mpsc::Receiver<Arrival>,
    buffer: BytesMut,
    /// How much of `buffer` is known to hold no line end.
    scanned: usize,
    nuls: usize,
    exited: Option<ExitStatus>,
    drain_until: Option<Instant>,
    /// What came last and has no line end: an answer all the same.
    last_line: Option<Incoming>,
    close_reason: Option<Error>,
}

impl StdioWire {
    /// Starts the server, within `confinement` when there is one; `tracer` gets every message, and
    /// `stderr_tracer` every line of its standard error.
    pub fn start(
        program: &Program,
        confinement: Option<&Confinement>,
        grace: ShutdownTimeouts,
        tracer: Tracer,
        stderr_tracer: Tracer,
    ) -> Result<Self, StartError> {
        let mut process = Process::start_within(program, confinement, false)?;
        let stderr = Arc::new(StdMutex::new(LineTail::default()));
        let stderr_done = CancellationToken::new();
        if let Some(pipe) = process.stderr.take() {
            let lines = StderrLines::new(stderr_tracer);
            tokio::spawn(drain_stderr(pipe, Arc::clone(&stderr), lines, stderr_done.clone()));
        }
        let (stdin, frames) = mpsc::channel(QUEUE);
        let (failed, unwritten) = mpsc::channel(QUEUE);
        let (failure, closing) = (Arc::default(), CancellationToken::new());
        if let Some(pipe) = process.stdin.take() {
            let why = Arc::clone(&failure);
            tokio::spawn(write_lines(pipe, frames, closing.clone(), why, failed));
        }
        Ok(Self {
            stdin,
            room: Arc::new(Semaphore::new(QUEUED_BYTES)),
            failure,
            pid: process.pid(),
            reader: Mutex::new(StdoutReader {
                stdout: process.stdout.take(),
                process: Some(process),
                unwritten,
                buffer: BytesMut::with_capacity(CHUNK),
                scanned: 0,
                nuls: 0,
                exited: None,
                drain_until: None,
                last_line: None,
                close_reason: None,
            }),
            stderr,
            stderr_done,
            closing,
            grace,
            tracer,
        })
    }

    fn stderr_excerpt(&self) -> Vec<String> {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).excerpt(ERROR_LINES)
    }

    /// Waits until more has come, or until `closed` says that nothing will, or for a request that could
    /// not be written. Every whole line has been taken out of the buffer before.
    async fn wait_for_input(&self, reader: &mut StdoutReader) -> Option<Arrival> {
        while reader.close_reason.is_none() {
            let excess = if reader.nuls > NUL_LIMIT {
                let kib = NUL_LIMIT >> 10;
                Some(format!("more than {kib} KiB of raw NUL bytes came between two messages"))
            } else {
                (reader.buffer.len() > MESSAGE_LIMIT)
                    .then(|| format!("a message is larger than {} MiB", MESSAGE_LIMIT >> 20))
            };
            if let Some(excess) = excess {
                let error = Error::protocol(format!("limit: {excess}"));
                self.tracer.closed(error.message());
                reader.close(error);
                break;
            }
            let drain_until = reader.drain_until;
            let watching = reader.exited.is_none();
            let woken = tokio::select! {
                biased;
                () = self.closing.cancelled() => ReaderWake::Closing,
                Some(failed) = reader.unwritten.recv() => return Some(failed),
                read = read_more(&mut reader.stdout, &mut reader.buffer) => ReaderWake::Read(read),
                status = wait(&mut reader.process), if watching => ReaderWake::Exited(status),
                () = sleep_until(drain_until), if drain_until.is_some() => ReaderWake::Drained,
            };
            match woken {
                ReaderWake::Read(Ok(n)) if n > 0 => break,
                ReaderWake::Exited(Ok(status)) => {
                    reader.exited = Some(status);
                    reader.drain_until = Some(Instant::now() + DRAIN_TIMEOUT);
                }
                ReaderWake::Closing => reader.close(closed_error()),
                ReaderWake::Read(_) | ReaderWake::Exited(Err(_)) | ReaderWake::Drained => {
                    let error = self.exit_report(reader).await;
                    if !reader.buffer.is_empty() {
                        let last = Incoming::read(reader.buffer.split().freeze());
                        self.tracer.received(&last, None);
                        reader.last_line = Some(last);
                    }
                    self.tracer.closed(error.message());
                    reader.close_reason = Some(error);
                }
            }
        }
        None
    }

    async fn exit_report(&self, reader: &mut StdoutReader) -> Error {
        if reader.exited.is_none()
            && let Some(process) = &mut reader.process
        {
            reader.exited =
                tokio::time::timeout(DRAIN_TIMEOUT, process.wait()).await.ok().and_then(Result::ok);
        }
        // Its last output may still be in the pipe; a grandchild may keep that pipe open for ever.
        let _late = tokio::time::timeout(DRAIN_TIMEOUT, self.stderr_done.cancelled()).await;
        let mut message = match reader.exited {
            Some(status) => format!("the process {}", show_exit(status)),
            None => "it closed its stdout but is still running".to_owned(),
        };
        let lines = self.stderr_excerpt();
        let process = reader.process.as_ref();
        let cause = reader.exited.and_then(|status| process?.exit_cause(status, &lines));
        if let Some(LimitCause::Limit(limit)) = &cause {
            message = format!("{message} ({limit})");
        }
        let error = Error::unreachable(message);
        let error = match cause {
            Some(LimitCause::PossibleLimit(limits)) => {
                error.with_detail(format!("it ran under these limits: {limits}"))
            }
            _ => error,
        };
        if lines.is_empty() {
            error.with_detail("stderr: (nothing)")
        } else {
            error.with_details(lines.into_iter().map(|line| format!("stderr: {line}")))
        }
    }
}

impl StdoutReader {
    /// Takes the next whole line out of the buffer. A raw NUL byte, which JSON never holds, ends
    /// one too; it is left at the end of the line with those that follow it, so that the reader of
    /// messages can note it.
    fn next_line(&mut self) -> Option<Bytes> {
        let Some((line, next)) = line_end(&self.buffer, self.scanned) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let mut bytes = self.buffer.split_to(next);
        self.scanned = 0;
        bytes.truncate(line);
        count_nuls(&mut self.nuls, &bytes);
        Some(bytes.freeze())
    }

    /// Ends the reading; what is in the buffer is not looked at any more.
    fn close(&mut self, why: Error) {
        self.buffer = BytesMut::new();
        self.scanned = 0;
        self.close_reason = Some(why);
    }
}

/// Where the first line of `buffer` ends of which the first `scanned` bytes hold no end, and where
/// the next one begins.
fn line_end(buffer: &[u8], scanned: usize) -> Option<(usize, usize)> {
    let end = scanned + memchr::memchr2(b'\n', 0, buffer.get(scanned..)?)?;
    let rest = buffer.get(end..)?;
    if rest.first() == Some(&b'\n') {
        return Some((end, end + 1));
    }
    let run = rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len());
    Some((end + run, end + run))
}

fn count_nuls(nuls: &mut usize, line: &[u8]) {
    if trim_bytes(line).is_empty() {
        *nuls += memchr::memchr_iter(0, line).count();
    } else {
        *nuls = 0;
    }
}

enum ReaderWake {
    Closing,
    Read(std::io::Result<usize>),
    Exited(std::io::Result<ExitStatus>),
    Drained,
}

#[async_trait]
impl Wire for StdioWire {
    async fn send(&self, frame: OutgoingFrame) -> Result<(), Error> {
        let bytes = u32::try_from(frame.bytes.len().min(QUEUED_BYTES)).unwrap_or(u32::MAX);
        // A queue with room takes it at once, however much this task has done already.
        let queued = unconstrained(async {
            let room = Arc::clone(&self.room).acquire_many_owned(bytes).await.ok()?;
            Some((self.stdin.reserve().await.ok()?, room))
        });
        let Some((place, room)) = queued.await else {
            return Err(self.failure.get().cloned().unwrap_or_else(closed_error));
        };
        // Before it is written: its answer may be here before the write returns.
        self.tracer.sent(&frame);
        place.send((frame, room));
        Ok(())
    }

    async fn receive(&self) -> Arrival {
        let mut reader = self.reader.lock().await;
        loop {
            if let Some(line) = reader.next_line() {
                let incoming = Incoming::read(line);
                self.tracer.received(&incoming, None);
                return Arrival::Message { incoming, stream_of: None };
            }
            if let Some(error) = reader.close_reason.clone() {
                return match reader.last_line.take() {
                    Some(incoming) => Arrival::Message { incoming, stream_of: None },
                    None => Arrival::Closed(error),
                };
            }
            if let Some(failed) = self.wait_for_input(&mut reader).await {
                return failed;
            }
        }
    }

    fn process_info(&self) -> ProcessInfo {
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        ProcessInfo { pid: Some(self.pid), stderr_tail: stderr.last(usize::MAX) }
    }

    async fn close(&self) {
        self.closing.cancel();
        // Both come free at once: their holders watch `closing`.
        self.stdin.closed().await;
        let mut reader = self.reader.lock().await;
        reader.stdout = None;
        if reader.close_reason.is_none() {
            reader.close(closed_error());
        }
        if let Some(process) = reader.process.take() {
            let status = process.shut_down(self.grace).await;
            let status = status.map(|status| format!("; the process {}", show_exit(status)));
            self.tracer.closed(&format!("ended by toolhost{}", status.unwrap_or_default()));
        }
    }
}

impl Drop for StdioWire {
    /// Ends the writer as well.
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

fn closed_error() -> Error {
    Error::unreachable("the connection is closed")
}

/// Writes what is queued until it cannot be written, or the connection is being closed; what is
/// queued then is still written if the pipe has room for it.
async fn write_lines(
    mut pipe: ChildStdin,
    mut frames: mpsc::Receiver<QueuedFrame>,
    closing: CancellationToken,
    failure: Arc<OnceLock<Error>>,
    failed: mpsc::Sender<Arrival>,
) {
    let (mut bytes, mut batch) = (Vec::new(), Vec::new());
    let error = loop {
        let first = tokio::select! {
            biased;
            () = closing.cancelled() => None,
            first = frames.recv() => first,
        };
        let is_closing = first.is_none();
        // What is taken out then makes room for more, which is not waited for.
        let mut waiting = if is_closing { frames.len() } else { usize::MAX };
        let mut next = first.or_else(|| frames.try_recv().ok());
        while let Some((frame, _room)) = next {
            bytes.extend_from_slice(&frame.bytes);
            bytes.push(b'\n');
            batch.push(frame.kind);
            waiting = waiting.saturating_sub(1);
            let is_more = if is_closing { waiting > 0 } else { bytes.len() < CHUNK };
            next = if is_more { frames.try_recv().ok() } else { None };
        }
        if is_closing {
            let _full = pipe.write_all(&bytes).now_or_never();
            return;
        }
        let written = tokio::select! {
            biased;
            written = pipe.write_all(&bytes) => written.map_err(|error| {
                Error::unreachable(format!("it no longer reads its stdin: {error}"))
            }),
            () = closing.cancelled() => return,
            () = tokio::time::sleep(WRITE_TIMEOUT) => Err(Error::timeout(format!(
                "it did not read its stdin for {} s", WRITE_TIMEOUT.as_secs()
            ))),
        };
        if let Err(error) = written {
            break error;
        }
        bytes.clear();
        bytes.shrink_to(2 * CHUNK);
        batch.clear();
    };
    drop(pipe);
    let error = failure.get_or_init(|| error);
    frames.close();
    while let Some((frame, _room)) = frames.recv().await {
        batch.push(frame.kind);
    }
    for kind in batch {
        if let FrameKind::Request { id, .. } = kind {
            let _ended = failed.send(Arrival::Failed { id, error: error.clone() }).await;
        }
    }
}

async fn read_more(
    stdout: &mut Option<ChildStdout>,
    buffer: &mut BytesMut,
) -> std::io::Result<usize> {
    if buffer.capacity() - buffer.len() < CHUNK / 2 {
        buffer.reserve(CHUNK);
    }
    match stdout {
        Some(stdout) => stdout.read_buf(buffer).await,
        None => Ok(0),
    }
}

async fn wait(process: &mut Option<Process>) -> std::io::Result<ExitStatus> {
    match process {
        Some(process) => process.wait().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

async fn drain_stderr(
    mut pipe: ChildStderr,
    tail: Arc<StdMutex<LineTail>>,
    mut lines: StderrLines,
    finished: CancellationToken,
) {
    let mut chunk = BytesMut::with_capacity(16 * 1024);
    while pipe.read_buf(&mut chunk).await.is_ok_and(|n| n > 0) {
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk);
        lines.push(&chunk);
        chunk.clear();
    }
    lines.flush();
    finished.cancel();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::model::ErrorKind;

    fn server(script: &str) -> StdioWire {
        traced(script, Tracer::off())
    }

    fn traced(script: &str, tracer: Tracer) -> StdioWire {
        let program = Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            cwd: "/".into(),
            stdin: true,
        };
        let stderr = tracer.clone();
        StdioWire::start(&program, None, ShutdownTimeouts::default(), tracer, stderr).unwrap()
    }

    fn frame(text: &str) -> OutgoingFrame {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        OutgoingFrame { bytes, kind: FrameKind::Other, call: None }
    }

    async fn message(wire: &StdioWire) -> String {
        match wire.receive().await {
            Arrival::Message { incoming, .. } => {
                String::from_utf8(incoming.bytes.to_vec()).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    async fn closed(wire: &StdioWire) -> Error {
        match wire.receive().await {
            Arrival::Closed(error) => error,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn lines_go_both_ways() {
        let wire = server("cat");
        wire.send(frame("one")).await.unwrap();
        wire.send(frame("two")).await.unwrap();
        assert_eq!(message(&wire).await, "one");
        assert_eq!(message(&wire).await, "two");
        wire.close().await;
        assert!(matches!(wire.receive().await, Arrival::Closed(_)));
    }

    #[tokio::test]
    async fn a_death_is_told_with_its_last_words() {
        let wire = server("echo 'no database' >&2; exit 7");
        let error = closed(&wire).await;
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert_eq!(error.message(), "the process exited with 7");
        assert_eq!(error.details(), ["stderr: no database"]);
    }

    #[tokio::test]
    async fn a_grandchild_that_holds_the_pipes_hides_nothing() {
        let wire = server("sleep 60 & exit 3");
        assert_eq!(closed(&wire).await.message(), "the process exited with 3");
        wire.close().await;
    }

    #[tokio::test]
    async fn half_a_line_is_never_followed_by_another() {
        let wire = server("cat");
        let long = "x".repeat(1 << 20);
        wire.send(frame(&long)).await.unwrap();
        // Half of it is written, and it leaves the queue.
        tokio::task::yield_now().await;
        // The last one waits for room, and is given up.
        let sent = std::iter::repeat_with(|| wire.send(frame("next")).now_or_never());
        let queued = sent.take_while(Option::is_some).count();
        assert_eq!(queued, QUEUE);
        assert_eq!(message(&wire).await, long);
        for _ in 0..queued {
            assert_eq!(message(&wire).await, "next");
        }
        wire.send(frame("third")).await.unwrap();
        assert_eq!(message(&wire).await, "third");
        wire.close().await;
    }

    #[tokio::test]
    async fn what_waits_to_be_written_is_bounded_by_its_bytes() {
        let wire = server("exec sleep 60");
        let long = "x".repeat(1 << 20);
        wire.send(frame(&long)).await.unwrap();
        tokio::task::yield_now().await;
        let half = "x".repeat(QUEUED_BYTES / 2 - 10);
        let sent = std::iter::repeat_with(|| wire.send(frame(&half)).now_or_never());
        assert_eq!(sent.take_while(Option::is_some).count(), 2);
        wire.close().await;
    }

    #[tokio::test]
    async fn requests_that_cannot_be_written_fail_and_so_do_all_after_them() {
        let wire = server("exec <&-; echo closed; exec sleep 60");
        assert_eq!(message(&wire).await, "closed");
        for id in [1, 2] {
            let kind = FrameKind::Request {
                id: id.into(),
                method: "tools/call".to_owned(),
                name: None,
                headers: Vec::new(),
            };
            wire.send(OutgoingFrame { kind, ..frame("{}") }).await.unwrap();
        }
        let mut failed = Vec::new();
        for _ in 0..2 {
            let Arrival::Failed { id, error } = wire.receive().await else { panic!("not failed") };
            assert!(error.message().contains("no longer reads its stdin"), "{error:?}");
            failed.push(id);
        }
        failed.sort_by_key(Value::as_i64);
        assert_eq!(failed, [1, 2]);
        let late = wire.send(frame("third")).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Unreachable);
        wire.close().await;
    }

    #[tokio::test]
    async fn an_answer_without_a_line_end_is_used() {
        let wire = server("printf last");
        assert_eq!(message(&wire).await, "last");
        assert_eq!(closed(&wire).await.message(), "the process exited with 0");
    }

    #[tokio::test]
    async fn an_endless_line_is_refused_in_bounded_memory() {
        let wire = server("tr '\\0' x </dev/zero");
        let error = closed(&wire).await;
        assert!(error.message().starts_with("limit:"), "{}", error.message());
        wire.close().await;
    }

    #[tokio::test]
    async fn what_crosses_is_traced_byte_for_byte() {
        use crate::mcp::tracer::tests::captured;
        use crate::model::traffic::{Direction, TrafficKind};
        let (tracer, traffic) = captured();
        let script = r#"read line; echo 'warming up' >&2; printf 'hello \033[1m\n'; echo "$line"; printf '\377'"#;
        tracer.opened("sh");
        let wire = traced(script, tracer);
        wire.send(frame(r#"{"jsonrpc":"2.0","id":1,"method":"ping" }"#)).await.unwrap();
        while !matches!(wire.receive().await, Arrival::Closed(_)) {}
        wire.close().await;
        let mut messages: Vec<String> = traffic
            .lock()
            .unwrap()
            .iter()
            .map(|traffic| match &traffic.kind {
                TrafficKind::Message { direction, bytes, .. } => {
                    let way = if *direction == Direction::Sent { "->" } else { "<-" };
                    format!("{way} {}", bytes.escape_ascii())
                }
                other => format!("{other:?}"),
            })
            .collect();
        // Two pipes have no common order.
        messages.sort();
        assert_eq!(
            messages,
            [
                r#"-> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\" }"#,
                r"<- \xff",
                r#"<- {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\" }"#,
                r#"Closed("the process exited with 0")"#,
                r#"NonJsonLine("hello \u{1b}[1m")"#,
                r#"Opened("sh")"#,
                r#"Stderr("warming up")"#,
            ]
        );
    }
}
