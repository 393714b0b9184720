//! The worker pool of a host, and the limit on restarts.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::sealed::SealedCode;
use super::shim;
use super::worker::PythonWorker;
use crate::model::{Error, ErrorKind, EventSink};
use crate::util::confine::Confinement;
use crate::util::process::Program;

/// A worker may die this often…
const MAX_CRASHES: usize = 3;
/// The time in which that many crashes of a worker count as a series.
const CRASH_WINDOW: Duration = Duration::from_mins(1);
/// A start that failed is repeated, not retried, for this long.
const START_FAILURE_TTL: Duration = Duration::from_secs(5);
/// The most workers at a time; an idle one makes room for a new one.
const MAX_WORKERS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct WorkerKey {
    pub(super) interpreter: PathBuf,
    pub(super) root: PathBuf,
    /// All variables that the interpreter sees.
    pub(super) env: BTreeMap<String, String>,
    pub(super) confinement: Option<Confinement>,
    pub(super) sealed: Option<SealedCode>,
    pub(super) session: Option<String>,
}

/// The workers of all entries, at most one for each key.
pub(super) struct WorkerPool {
    slots: Mutex<HashMap<WorkerKey, Arc<tokio::sync::Mutex<WorkerSlot>>>>,
    claims: Mutex<HashMap<WorkerKey, usize>>,
    events: EventSink,
}

#[derive(Default)]
struct WorkerSlot {
    worker: Option<Arc<PythonWorker>>,
    crashes: VecDeque<Instant>,
    failure: Option<(Instant, Error)>,
    used: Option<Instant>,
}

impl WorkerSlot {
    fn may_start(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if let Some((when, error)) = &self.failure
            && now.duration_since(*when) < START_FAILURE_TTL
        {
            return Err(error.clone());
        }
        // A worker that we ended does not mean that the next will end the same way.
        let gone = self.worker.take().filter(|worker| worker.has_crashed());
        if gone.is_some() {
            self.crashes.push_back(now);
        }
        while self.crashes.front().is_some_and(|death| now.duration_since(*death) > CRASH_WINDOW) {
            self.crashes.pop_front();
        }
        if self.crashes.len() < MAX_CRASHES {
            return Ok(());
        }
        let error = Error::unreachable(format!(
            "the Python worker died {MAX_CRASHES} times within a minute and is not restarted yet"
        ));
        Err(match gone.map(|worker| worker.exit_error()) {
            Some(last) => {
                let error = error.with_detail(last.message()).with_details(last.details().to_vec());
                self.failure = Some((now, error.clone()));
                error
            }
            None => error,
        })
    }
}

impl WorkerPool {
    /// None yet; what they say outside of calls goes to `events`.
    pub(super) fn new(events: EventSink) -> Self {
        Self { slots: Mutex::default(), claims: Mutex::default(), events }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<WorkerKey, Arc<tokio::sync::Mutex<WorkerSlot>>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker of a key; starts one if there is none.
    pub(super) async fn get(&self, key: &WorkerKey) -> Result<Arc<PythonWorker>, Error> {
        let slot = self.slot(key)?;
        // Held while starting, so that callers at the same time start only one.
        let mut slot = slot.lock().await;
        slot.used = Some(Instant::now());
        if let Some(worker) = slot.worker.as_ref().filter(|worker| worker.is_alive()) {
            return Ok(Arc::clone(worker));
        }
        if let Some(sealed) = &key.sealed {
            // Before the failures are counted: a restored file is no reason to wait.
            sealed.check_start(&key.interpreter).await?;
        }
        slot.may_start()?;
        let mut args = key.sealed.as_ref().map(|sealed| sealed.options(&key.env));
        args.get_or_insert_default().extend(["-u", "-c", shim::BOOT].map(str::to_owned));
        let program = Program {
            path: key.interpreter.clone(),
            args: args.unwrap_or_default(),
            env: key.env.clone(),
            cwd: key.root.clone(),
            stdin: true,
        };
        let confinement = key.confinement.as_ref();
        let guard = key.sealed.as_ref().map(|sealed| sealed.guard(&key.interpreter, &key.env));
        let setup = shim::setup(&key.root, guard.as_ref());
        match PythonWorker::start(&program, confinement, setup, self.events.clone()).await {
            Ok(worker) => {
                let worker = Arc::new(worker);
                slot.failure = None;
                slot.worker = Some(Arc::clone(&worker));
                Ok(worker)
            }
            Err(error) => {
                if error.kind() != ErrorKind::Denied {
                    slot.failure = Some((Instant::now(), error.clone()));
                }
                Err(error)
            }
        }
    }

    fn slot(&self, key: &WorkerKey) -> Result<Arc<tokio::sync::Mutex<WorkerSlot>>, Error> {
        let mut slots = self.slots();
        if let Some(slot) = slots.get(key) {
            return Ok(Arc::clone(slot));
        }
        if slots.len() >= MAX_WORKERS {
            let idle = slots.iter().filter_map(|(key, slot)| {
                let slot = slot.try_lock().ok()?;
                let idle = slot.worker.as_ref().is_none_or(|worker| worker.is_idle());
                idle.then(|| (slot.used, key.clone()))
            });
            let Some((_, oldest)) = idle.min_by_key(|(used, _)| *used) else {
                return Err(Error::unreachable(format!(
                    "all {MAX_WORKERS} Python workers are busy"
                )));
            };
            // Dropped, and so ended.
            slots.remove(&oldest);
        }
        Ok(Arc::clone(slots.entry(key.clone()).or_default()))
    }

    fn claims(&self) -> MutexGuard<'_, HashMap<WorkerKey, usize>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_claims(&self) -> bool {
        !self.claims().is_empty()
    }

    /// Keeps the workers of this key, which has no session, until it is given to
    /// [`WorkerPool::release`].
    pub(super) fn claim(&self, key: &WorkerKey) {
        *self.claims().entry(key.clone()).or_default() += 1;
    }

    /// Gives up claims, and ends the workers that none is left for. Those have ended when what is
    /// returned has been waited for; when it is dropped they are killed.
    pub(super) fn release(&self, keys: Vec<WorkerKey>) -> impl Future<Output = ()> + use<> {
        let mut claims = self.claims();
        let unclaimed: HashSet<WorkerKey> = keys
            .into_iter()
            .filter(|key| {
                let count = claims.get_mut(key).map_or(0, |count| {
                    *count = count.saturating_sub(1);
                    *count
                });
                count == 0
            })
            .collect();
        claims.retain(|_, count| *count > 0);
        drop(claims);
        let is_unclaimed = |key: &WorkerKey, _: &mut _| match &key.session {
            None => unclaimed.contains(key),
            Some(_) => unclaimed.contains(&WorkerKey { session: None, ..key.clone() }),
        };
        let slots: Vec<_> = self.slots().extract_if(is_unclaimed).map(|(_, slot)| slot).collect();
        let end = |slot: Arc<tokio::sync::Mutex<WorkerSlot>>| async move {
            let worker = slot.lock().await.worker.take();
            if let Some(worker) = worker {
                worker.close().await;
            }
        };
        let ends: Vec<_> = slots.into_iter().map(end).collect();
        async move {
            join_all(ends).await;
        }
    }
}
