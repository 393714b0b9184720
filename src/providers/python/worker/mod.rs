//! A worker: an interpreter that serves concurrent requests until it is ended or dies.
//!
//! Owns: its start and end, the calls that wait for it, and cancelling them. The process itself is in
//! the hands of `driver`.
//! Never does: start another one (see `workers`), or know what a function is.

mod driver;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::driver::WorkerDriver;
use super::wire::{self, MAX_LINE_BYTES, WorkerReply, WorkerRequest};
use crate::model::{CallId, Error, ErrorKind, ErrorPhase, EventSink, Signal, ToolContext};
use crate::providers::confinement::not_started;
use crate::providers::lines::LimitedEvents;
use crate::providers::sandbox_hint;
use crate::util::confine::Confinement;
use crate::util::process::{Process, Program, StartError};
use crate::util::units::show_duration;

/// How long an interpreter may take to be ready.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a call that was cancelled may go on before its worker is ended.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(250);
/// How many requests may wait to be written.
const QUEUE_CAPACITY: usize = 64;

/// A request without an answer, by its id in the state of the worker.
struct WorkerCall {
    reply: oneshot::Sender<Result<WorkerReply, Error>>,
    call: CallId,
    origin: String,
    events: LimitedEvents,
}

/// A handle on a running interpreter, shared by all calls of its key.
pub(super) struct PythonWorker {
    shared: Arc<WorkerState>,
    requests: mpsc::Sender<Vec<u8>>,
    next_id: AtomicU64,
    done: CancellationToken,
}

#[derive(Default)]
struct WorkerState {
    calls: Mutex<HashMap<u64, WorkerCall>>,
    /// Why it is not there any more.
    exit_error: OnceLock<Error>,
    /// Whether it died by itself.
    crashed: OnceLock<()>,
    /// Why it must be killed now.
    kill_reason: OnceLock<Error>,
    kill: CancellationToken,
    close: CancellationToken,
}

impl WorkerState {
    fn calls(&self) -> MutexGuard<'_, HashMap<u64, WorkerCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills the worker; the first reason counts.
    fn kill_with(&self, reason: Error) {
        let _first = self.kill_reason.set(reason);
        self.kill.cancel();
    }
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
        let process = match confinement {
            None => Process::start(program).map_err(StartError::from),
            Some(confinement) => Process::start_confined(program, confinement, false),
        };
        let mut process = process.map_err(|error| {
            let failed =
                not_started(&error, |error| format!("'{path}' could not be started: {error}"));
            let within = confinement.filter(|_| matches!(error, StartError::System(_)));
            match within.and_then(|within| sandbox_hint::for_start(program, within)) {
                Some(hint) => failed.with_hint(hint),
                None => failed,
            }
        })?;
        let (requests, queue) = mpsc::channel(QUEUE_CAPACITY);
        let shared = Arc::new(WorkerState::default());
        let done = CancellationToken::new();
        if let Some(stdin) = process.stdin.take() {
            tokio::spawn(driver::write(stdin, setup, queue, Arc::clone(&shared)));
        }
        let (ready, hello) = oneshot::channel();
        let driver = WorkerDriver::new(Arc::clone(&shared), program.path.clone(), ready, events);
        let finished = done.clone().drop_guard();
        tokio::spawn(async move {
            driver.run(process).await;
            drop(finished);
        });
        let worker = Self { shared, requests, next_id: AtomicU64::new(1), done };
        match tokio::time::timeout(START_TIMEOUT, hello).await {
            Ok(Ok(())) => Ok(worker),
            Ok(Err(_died)) => {
                worker.done.cancelled().await;
                let died = worker.exit_error().with_phase(ErrorPhase::Start);
                let hint = confinement.and_then(|within| sandbox_hint::for_start(program, within));
                Err(match hint {
                    Some(hint) if died.hint().is_none() => died.with_hint(hint),
                    _ => died,
                })
            }
            Err(_elapsed) => {
                worker.shared.kill_with(Error::timeout(format!(
                    "'{path}' was not ready within {}",
                    show_duration(START_TIMEOUT)
                )));
                worker.done.cancelled().await;
                Err(worker.exit_error().with_phase(ErrorPhase::Start))
            }
        }
    }

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
    pub(super) fn exit_error(&self) -> Error {
        let end = self.shared.exit_error.get().or_else(|| self.shared.kill_reason.get()).cloned();
        end.unwrap_or_else(|| Error::unreachable("the Python worker is gone"))
    }

    /// Sends one request and waits for the response; events of the call go to `context.events` as
    /// those of `origin`.
    pub(super) async fn request(
        &self,
        request: WorkerRequest<'_>,
        context: &ToolContext,
        origin: &str,
    ) -> Result<WorkerReply, Error> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line = request.line(id, context);
        if line.len() > MAX_LINE_BYTES {
            return Err(Error::usage("the arguments are more than 16 MiB of JSON"));
        }
        let (reply, answer) = oneshot::channel();
        let waiting = WorkerCall {
            reply,
            call: context.call_id.clone(),
            origin: origin.to_owned(),
            events: LimitedEvents::new(context.events.clone()),
        };
        self.shared.calls().insert(id, waiting);
        let entry = WorkerCallGuard { worker: self, id };
        let work = async {
            // When the queue has no reader any more, the worker is gone or about to be.
            if self.requests.send(line).await.is_err() || self.done.is_cancelled() {
                self.done.cancelled().await;
                return Err(self.exit_error());
            }
            tokio::select! {
                biased;
                reply = answer => reply.unwrap_or_else(|_dropped| Err(self.exit_error())),
                // It died after this call arrived and before the waiting calls were failed.
                () = self.done.cancelled() => Err(self.exit_error()),
            }
        };
        tokio::pin!(work);
        tokio::select! {
            biased;
            reply = &mut work => return reply,
            () = context.cancel.cancelled() => {}
        }
        let _full = self.requests.try_send(wire::cancel(id));
        if tokio::time::timeout(CANCEL_TIMEOUT, &mut work).await.is_err() {
            drop(entry);
            self.shared.kill_with(Error::unreachable(format!(
                "'{origin}' did not stop when it was told to, and its Python worker was ended with \
                 it"
            )));
        }
        Err(Error::new(ErrorKind::Interrupted(Signal::Interrupt), "the function was stopped"))
    }

    /// Ends it: it may finish what it does at its end, and is killed when that takes long.
    pub(super) async fn close(&self) {
        self.shared.close.cancel();
        self.done.cancelled().await;
    }
}

impl Drop for PythonWorker {
    fn drop(&mut self) {
        self.shared.kill.cancel();
    }
}

struct WorkerCallGuard<'a> {
    worker: &'a PythonWorker,
    id: u64,
}

impl Drop for WorkerCallGuard<'_> {
    fn drop(&mut self) {
        if self.worker.shared.calls().remove(&self.id).is_some() {
            let _full = self.worker.requests.try_send(wire::cancel(self.id));
        }
    }
}
