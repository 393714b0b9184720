//! Running a program: feeding stdin, draining output, and ending its whole process group.
//!
//! The events pipe of a running command: NDJSON, one event per line.
//!
//! `{"progress": 3, "total": 10, "message": "…"}` or `{"level": "info", "text": "…"}`. Bounded: a
//! line of [`MAX_LINE_BYTES`] bytes, and the events of a call; what is beyond is counted.
//!
//! The environment of a command: built from an explicit list of names.

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::time::Duration;

use bytes::BytesMut;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdin;
use tokio_util::codec::{Decoder as _, LinesCodec, LinesCodecError};
use tokio_util::sync::CancellationToken;

use super::entry::{CommandEntry, CommandInput, variable};
use crate::config::references::call_may_set;
use crate::model::{
    CallId, Error, ErrorPhase, EventSink, HostEvent, JsonObject, LogLevel, ToolContext,
    TraceContext,
};
use crate::providers::limited_events::LimitedEvents;
use crate::providers::program_env::is_variable;
use crate::providers::template::value_text;
use crate::util::confine::LimitCause;
use crate::util::process::{EVENTS_FD, Process, ShutdownTimeouts};
use crate::util::tail::LineTail;
use crate::util::units;

#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramLimits {
    /// How much of stdout is kept, in bytes; more ends the run.
    pub(super) stdout: u64,
    pub(super) write_timeout: Duration,
    /// How long to keep reading the pipes after the program exited, if they are still held open.
    pub(super) drain_timeout: Duration,
    /// How long each step of ending it may take.
    pub(super) grace: ShutdownTimeouts,
}

impl ProgramLimits {
    /// The limits of every run that keeps `stdout` bytes.
    pub(super) fn with_max_stdout(stdout: u64) -> Self {
        Self {
            stdout,
            write_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_millis(200),
            // Closing stdin cannot stop a command: it was closed after the input.
            grace: ShutdownTimeouts { eof: Duration::ZERO, ..ShutdownTimeouts::default() },
        }
    }
}

#[derive(Debug)]
pub(super) struct ProgramExit {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) cause: Option<LimitCause>,
}

pub(super) async fn run_to_end(
    mut process: Process,
    input: Option<Vec<u8>>,
    mut events: CommandEventReader<'_>,
    cancel: &CancellationToken,
    limits: &ProgramLimits,
) -> Result<ProgramExit, Error> {
    let (stdin, out, err) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
    let pipe = process.events.take();
    let mut stdout = Vec::new();
    let mut stderr = LineTail::default();
    let outcome = {
        let pumps = async {
            tokio::try_join!(
                write(stdin, input, limits.write_timeout),
                read_chunks(out, |bytes| keep(bytes, &mut stdout, limits.stdout)),
                read_chunks(err, |bytes| {
                    stderr.push(bytes);
                    Ok(())
                }),
                read_chunks(pipe, |bytes| {
                    events.feed(bytes);
                    Ok(())
                }),
            )
        };
        wait_for_exit(&mut process, pumps, cancel, limits).await
    };
    let mut warnings: Vec<String> = events.finish().into_iter().collect();
    match outcome {
        Ok((status, drained)) => {
            let stderr = stderr.last(usize::MAX);
            let cause = process.exit_cause(status, &stderr);
            // What it left running in its group is killed now: nothing waits for it. It is waited
            // for briefly, only so that it does not stay as a zombie of ours.
            let now = ShutdownTimeouts {
                eof: Duration::ZERO,
                term: Duration::ZERO,
                kill: Duration::from_millis(50),
            };
            process.shut_down(now).await;
            if !drained {
                warnings.push(
                    "the program ended, but something it started kept its output open: that was \
                     ended and its output may be incomplete"
                        .to_owned(),
                );
            }
            Ok(ProgramExit { status, stdout, stderr, warnings, cause })
        }
        Err(error) => {
            process.shut_down(limits.grace).await;
            Err(error.with_phase(ErrorPhase::Call).with_details(stderr.last(usize::MAX)))
        }
    }
}

/// Waits for the exit and for the pipes, which are independent of each other: a program may close
/// its output long before it ends, and something it started may hold the output long after.
async fn wait_for_exit<T>(
    process: &mut Process,
    pumps: impl Future<Output = Result<T, Error>>,
    cancel: &CancellationToken,
    limits: &ProgramLimits,
) -> Result<(ExitStatus, bool), Error> {
    let lost = |error| Error::internal(format!("cannot get the program's exit status: {error}"));
    let stopped = || Error::interrupted("the program was stopped before it ended");
    tokio::pin!(pumps);
    let mut drained = false;
    let status = loop {
        tokio::select! {
            () = cancel.cancelled() => return Err(stopped()),
            result = &mut pumps, if !drained => {
                result?;
                drained = true;
            }
            status = process.wait() => break status.map_err(lost)?,
        }
    };
    if !drained {
        tokio::select! {
            () = cancel.cancelled() => return Err(stopped()),
            result = tokio::time::timeout(limits.drain_timeout, &mut pumps) => {
                if let Ok(result) = result {
                    result?;
                    drained = true;
                }
            }
        }
    }
    Ok((status, drained))
}

/// Writes the input and closes the pipe. A program that does not read it all is not an error.
async fn write(
    stdin: Option<ChildStdin>,
    input: Option<Vec<u8>>,
    timeout: Duration,
) -> Result<(), Error> {
    let (Some(mut stdin), Some(input)) = (stdin, input) else { return Ok(()) };
    let mut rest = input.as_slice();
    while !rest.is_empty() {
        match tokio::time::timeout(timeout, stdin.write(rest)).await {
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(written)) => rest = rest.get(written..).unwrap_or_default(),
            Err(_) => {
                return Err(Error::timeout(format!(
                    "the program did not read its input for {}",
                    units::show_duration(timeout)
                )));
            }
        }
    }
    Ok(())
}

/// Keeps output, up to `limit` bytes.
fn keep(bytes: &[u8], output: &mut Vec<u8>, limit: u64) -> Result<(), Error> {
    output.extend_from_slice(bytes);
    if output.len() as u64 <= limit {
        return Ok(());
    }
    let message = format!("the program wrote more than the limit of {}", units::show_size(limit));
    Err(Error::protocol(message).with_hint("'max_output' in the entry sets the limit, up to 16MiB"))
}

async fn read_chunks(
    pipe: Option<impl AsyncRead + Unpin>,
    mut take: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(mut pipe) = pipe else { return Ok(()) };
    let mut piece = vec![0; 64 << 10];
    loop {
        let count = pipe.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            return Ok(());
        }
        take(piece.get(..count).unwrap_or_default())?;
    }
}

const MAX_LINE_BYTES: usize = 8 * 1024;

pub(super) struct CommandEventReader<'a> {
    /// What every event of the call carries besides its line.
    call: &'a CallId,
    origin: String,
    lines: LinesCodec,
    received: BytesMut,
    events: LimitedEvents,
    bad_lines: u32,
}

impl<'a> CommandEventReader<'a> {
    /// A reader whose events belong to `call` of the tool `origin`.
    pub(super) fn new(call: &'a CallId, origin: String, sink: &EventSink) -> Self {
        Self {
            call,
            origin,
            lines: LinesCodec::new_with_max_length(MAX_LINE_BYTES),
            received: BytesMut::new(),
            events: LimitedEvents::new(sink.clone()),
            bad_lines: 0,
        }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        while let Some(line) = self.lines.decode(&mut self.received).transpose() {
            self.handle(line);
        }
    }

    /// The warning about lines without events, once the pipe is at its end. A last line may
    /// lack its newline.
    pub(super) fn finish(mut self) -> Option<String> {
        while let Some(line) = self.lines.decode_eof(&mut self.received).transpose() {
            self.handle(line);
        }
        match (self.bad_lines, self.events.dropped()) {
            (0, 0) => None,
            (bad, 0) => Some(format!("{bad} lines on the events pipe could not be read")),
            (bad, over) => Some(format!("{} lines on the events pipe were dropped", bad + over)),
        }
    }

    fn handle(&mut self, line: Result<String, LinesCodecError>) {
        match line {
            Ok(line) if line.trim_ascii().is_empty() => {}
            line => match line.ok().and_then(|line| self.parse(&line)) {
                Some(event) => self.events.emit(event),
                None => self.bad_lines = self.bad_lines.saturating_add(1),
            },
        }
    }

    fn parse(&self, line: &str) -> Option<HostEvent> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key| value.get(key).and_then(Value::as_f64).filter(|n: &f64| n.is_finite());
        if let Some(progress) = number("progress") {
            return Some(HostEvent::Progress {
                call_id: self.call.clone(),
                progress,
                total: number("total"),
                message: text("message"),
            });
        }
        Some(HostEvent::Log {
            origin: self.origin.clone(),
            call_id: Some(self.call.clone()),
            level: LogLevel(text("level").unwrap_or_else(|| "info".to_owned())),
            text: text("text")?,
        })
    }
}

/// Adds the arguments of the call as `TOOLHOST_ARG_…`, for entries with `input: env`.
pub(super) fn add_arguments(
    env: &mut BTreeMap<String, String>,
    entry: &CommandEntry,
    arguments: &JsonObject,
) -> Result<(), Error> {
    if entry.input != CommandInput::Env {
        return Ok(());
    }
    for (name, value) in arguments {
        let Some(value) = value_text(value) else { continue };
        if value.contains('\0') {
            return Err(Error::usage(format!("'{name}' contains a NUL byte"))
                .with_hint("an environment variable cannot contain one"));
        }
        env.insert(variable(name), value);
    }
    Ok(())
}

/// Adds what the call's context says: the session, the user, the trace, the
/// caller's directory, the caller's variables.
pub(super) fn add_context(
    env: &mut BTreeMap<String, String>,
    context: &ToolContext,
) -> Result<(), Error> {
    for (name, value) in &context.environment {
        if !is_variable(name) || value.contains('\0') {
            return Err(Error::usage(format!("'{name}' cannot be an environment variable")));
        }
        if !call_may_set(name, std::slice::from_ref(name)) {
            return Err(Error::usage(format!("'{name}' cannot be set by a call"))
                .with_hint("it may decide which code runs: set it under 'env' in the entry"));
        }
        env.insert(name.clone(), value.clone());
    }
    let cwd = context.cwd.to_string_lossy();
    for (name, value) in [
        ("TOOLHOST_CALL_ID", &*context.call_id.0),
        ("TOOLHOST_SESSION_ID", &context.session_id),
        ("TOOLHOST_CWD", &cwd),
    ] {
        env.insert(name.to_owned(), value.replace('\0', ""));
    }
    let trace = context.trace.as_ref();
    for (name, value) in [
        ("TOOLHOST_USER", context.user_id.as_deref()),
        ("TRACEPARENT", trace.map(TraceContext::traceparent)),
        ("TRACESTATE", trace.and_then(TraceContext::tracestate)),
    ] {
        env.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }
    if !context.metadata.is_empty() {
        let metadata = serde_json::Value::Object(context.metadata.clone()).to_string();
        env.insert("TOOLHOST_CONTEXT".to_owned(), metadata);
    }
    env.insert("TOOLHOST_EVENTS_FD".to_owned(), EVENTS_FD.to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;

    use super::*;
    use crate::providers::limited_events::MAX_EVENTS;

    fn read(chunks: &[&[u8]]) -> (Vec<String>, Option<String>) {
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&recorded);
        let sink = EventSink::new(move |event| log.lock().unwrap().push(format!("{event:?}")));
        let call = CallId("c".into());
        let mut reader = CommandEventReader::new(&call, "t".to_owned(), &sink);
        for chunk in chunks {
            reader.feed(chunk);
        }
        let notice = reader.finish();
        let events = recorded.lock().unwrap().clone();
        (events, notice)
    }

    #[test]
    fn progress_and_log_lines_become_events() {
        let (events, notice) = read(&[
            b"{\"progress\":1,\"tot",
            b"al\":4,\"message\":\"one\"}\n\n{\"level\":\"warning\",\"text\":\"hm\"}\n{\"progress\":2}",
        ]);
        assert_eq!(notice, None);
        insta::assert_debug_snapshot!(events, @r#"
        [
            "Progress { call_id: CallId(\"c\"), progress: 1.0, total: Some(4.0), message: Some(\"one\") }",
            "Log { origin: \"t\", call_id: Some(CallId(\"c\")), level: LogLevel(\"warning\"), text: \"hm\" }",
            "Progress { call_id: CallId(\"c\"), progress: 2.0, total: None, message: None }",
        ]
        "#);
    }

    #[test]
    fn what_cannot_be_read_is_counted() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        let (events, notice) = read(&[b"hello\n[1]\n", &long, b"\n{\"text\":\"ok\"}\n"]);
        assert_eq!(events.len(), 1);
        assert_eq!(notice.as_deref(), Some("3 lines on the events pipe could not be read"));
    }

    #[test]
    fn a_flood_is_cut_off() {
        let line = b"{\"progress\":1}\n".repeat(MAX_EVENTS as usize + 5);
        let (events, notice) = read(&[&line]);
        assert_eq!(events.len(), MAX_EVENTS as usize);
        assert_eq!(notice.as_deref(), Some("5 lines on the events pipe were dropped"));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200) {
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(read(&[&bytes]), read(&[head, tail]));
        }
    }
}
