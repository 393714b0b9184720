//! Running a program: feeding stdin, draining output, and ending its whole process group.

use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdin;
use tokio_util::sync::CancellationToken;

use super::events::CommandEventReader;
use crate::model::error::Signal;
use crate::model::{Error, ErrorKind, ErrorPhase};
use crate::util::confine::LimitCause;
use crate::util::process::{Process, ShutdownTimeouts};
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
    let stopped = || {
        Error::new(
            ErrorKind::Interrupted(Signal::Interrupt),
            "the program was stopped before it ended",
        )
    };
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
