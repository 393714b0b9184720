//! The workers of a host, at most one for each key and session, and the limit on restarts.
//!
//! They live as long as an entry holds their key, over a reading of the files anew as well.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::sealed::SealedCode;
use super::shim;
use super::worker::PythonWorker;
use crate::model::{Error, ErrorKind, EventSink};
use crate::providers::confinement;
use crate::util::confine::Confinement;
use crate::util::process::Program;

const MAX_CRASHES: usize = 3;
/// The time in which that many crashes of a worker count as a series.
const CRASH_WINDOW: Duration = Duration::from_mins(1);
/// A start that failed is repeated, not retried, for this long.
const START_FAILURE_TTL: Duration = Duration::from_secs(5);
/// The most workers of a host at a time; an idle one makes room for a new one.
const MAX_WORKERS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct WorkerKey {
    pub(super) interpreter: PathBuf,
    pub(super) root: PathBuf,
    /// All variables that the interpreter sees.
    pub(super) env: BTreeMap<String, String>,
    pub(super) confinement: Option<Confinement>,
    pub(super) sealed: Option<SealedCode>,
}

#[derive(Default)]
pub(super) struct WorkerPool {
    keys: Mutex<HashMap<WorkerKey, Weak<KeyWorkers>>>,
    next_number: AtomicU64,
    slots: Arc<WorkerSlots>,
}

/// The workers of all keys, each by the number of its key and its session.
type WorkerSlots = Mutex<HashMap<(u64, Option<String>), Arc<tokio::sync::Mutex<WorkerSlot>>>>;

/// The workers of one key, by session. Dropped, they are killed.
pub(super) struct KeyWorkers {
    pub(super) key: WorkerKey,
    number: u64,
    slots: Arc<WorkerSlots>,
    /// Where what they say outside of calls goes.
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
    pub(super) fn of(&self, key: WorkerKey, events: &EventSink) -> Arc<KeyWorkers> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, workers| workers.strong_count() > 0);
        if let Some(workers) = keys.get(&key).and_then(Weak::upgrade) {
            return workers;
        }
        let workers = Arc::new(KeyWorkers {
            key: key.clone(),
            number: self.next_number.fetch_add(1, Ordering::Relaxed),
            slots: Arc::clone(&self.slots),
            events: events.clone(),
        });
        keys.insert(key, Arc::downgrade(&workers));
        workers
    }

    pub(super) fn is_used(&self) -> bool {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.values().any(|workers| workers.strong_count() > 0)
    }
}

impl KeyWorkers {
    /// The worker of a session, or the one of all; starts one if there is none.
    pub(super) async fn worker(&self, session: Option<&str>) -> Result<Arc<PythonWorker>, Error> {
        let slot = self.slot(session)?;
        // Held while starting, so that callers at the same time start only one.
        let mut slot = slot.lock().await;
        slot.used = Some(Instant::now());
        if let Some(worker) = slot.worker.as_ref().filter(|worker| worker.is_alive()) {
            return Ok(Arc::clone(worker));
        }
        let WorkerKey { interpreter, root, env, confinement, sealed } = &self.key;
        if let Some(sealed) = sealed {
            // Before the failures are counted: a restored file is no reason to wait.
            sealed.check_start(interpreter).await?;
        }
        slot.may_start()?;
        let mut args = sealed.as_ref().map(|sealed| sealed.options(env)).unwrap_or_default();
        args.extend(["-u", "-c", shim::BOOT].map(str::to_owned));
        let program = Program {
            path: interpreter.clone(),
            args,
            env: env.clone(),
            cwd: root.clone(),
            stdin: true,
        };
        let guard = sealed.as_ref().map(|sealed| sealed.guard(interpreter, env));
        let setup = shim::setup(root, guard.as_ref());
        let events = self.events.clone();
        match PythonWorker::start(&program, confinement.as_ref(), setup, events).await {
            Ok(worker) => {
                slot.failure = None;
                Ok(Arc::clone(slot.worker.insert(Arc::new(worker))))
            }
            Err(error) if error.kind() == ErrorKind::Denied => Err(error),
            Err(error) => {
                let within = confinement.as_ref().filter(|_| error.hint().is_none());
                let hint = within.and_then(|within| confinement::for_start(&program, within));
                let error = hint.into_iter().fold(error, Error::with_hint);
                slot.failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn slot(&self, session: Option<&str>) -> Result<Arc<tokio::sync::Mutex<WorkerSlot>>, Error> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let own = (self.number, session.map(str::to_owned));
        if slots.len() >= MAX_WORKERS && !slots.contains_key(&own) {
            let idle = slots.iter().filter_map(|(id, slot)| {
                let slot = slot.try_lock().ok()?;
                let idle = slot.worker.as_ref().is_none_or(|worker| worker.is_idle());
                idle.then(|| (slot.used, id.clone()))
            });
            let Some((_, oldest)) = idle.min_by_key(|(used, _)| *used) else {
                return Err(Error::unreachable(format!(
                    "all {MAX_WORKERS} Python workers are busy"
                )));
            };
            // Dropped, and so ended.
            slots.remove(&oldest);
        }
        Ok(Arc::clone(slots.entry(own).or_default()))
    }

    fn take_slots(&self) -> Vec<Arc<tokio::sync::Mutex<WorkerSlot>>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.extract_if(|(number, _), _| *number == self.number).map(|(_, slot)| slot).collect()
    }

    /// Ends them all, and waits for that, bounded in time.
    pub(super) async fn close(self) {
        let closing = self.take_slots().into_iter().map(|slot| async move {
            let worker = slot.lock().await.worker.take();
            if let Some(worker) = worker {
                worker.close().await;
            }
        });
        join_all(closing).await;
    }
}

impl Drop for KeyWorkers {
    fn drop(&mut self) {
        drop(self.take_slots());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_workers_of_all_entries_together_are_limited() {
        let pool = WorkerPool::default();
        let events = EventSink::new(drop);
        let of = |root: &str| {
            let (env, confinement, sealed) = (BTreeMap::new(), None, None);
            let interpreter = PathBuf::from("python3");
            pool.of(WorkerKey { interpreter, root: root.into(), env, confinement, sealed }, &events)
        };
        let (first, second) = (of("first"), of("second"));
        let slots: Vec<_> =
            (0..MAX_WORKERS).map(|at| first.slot(Some(&at.to_string())).unwrap()).collect();
        let mut busy = join_all(slots.iter().map(|slot| slot.lock())).await;
        assert!(
            second.slot(None).err().unwrap().to_string().contains("all 32 Python workers are busy")
        );
        // One that is idle makes room, whatever entry it is of.
        drop(busy.pop());
        second.slot(None).unwrap();
        assert_eq!(pool.slots.lock().unwrap().len(), MAX_WORKERS);
        drop(busy);
        drop(first);
        assert_eq!(pool.slots.lock().unwrap().len(), 1);
    }
}
