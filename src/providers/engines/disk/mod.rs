//! The engine on disk: one `SQLite` file, shared by all processes that name it.
//!
//! Owns: the file (`open`, `layout`), what is done in it (`operations`), the thread that does it
//! and commits for many at once (`writer`), and what its errors mean (`errors`). Never does:
//! block the runtime's thread, or throw away a file that it cannot read.

mod errors;
mod layout;
mod open;
mod operations;
#[cfg(test)]
mod tests;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{Engine, KeyPage, StoredValue, TakeOutcome, WriteOutcome, WriteRequest, millis};
use crate::model::Error;
use crate::util::clock::Clock;
use writer::{DiskJob, QueuedJob};

/// How many operations may wait for the thread; more wait for a place.
const QUEUE_CAPACITY: usize = 64;

/// How long the thread may take to finish when the engine is closed: a lock is waited for that
/// long, and a little more.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(6);

/// When a write counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(in crate::providers) enum SyncMode {
    /// When it is on the disk (`synchronous=FULL`): survives a power cut.
    #[default]
    Full,
    /// When the system has it (`synchronous=NORMAL`): survives a crash of toolhost; a power cut may
    /// take the last ones.
    Normal,
    /// As `Normal`, and the disk is never waited for at all: a power cut may damage the file.
    Off,
}

impl SyncMode {
    /// Reads the word that `sync` has in files: full, normal or off.
    pub(in crate::providers) fn parse(word: &str) -> Option<Self> {
        match word {
            "full" => Some(Self::Full),
            "normal" => Some(Self::Normal),
            "off" => Some(Self::Off),
            _ => None,
        }
    }

    /// What it means, as text for people.
    pub(in crate::providers) fn words(self) -> &'static str {
        match self {
            Self::Full => "each write is flushed to the disk before it returns",
            Self::Normal => "a power cut may lose the last writes",
            Self::Off => "never waits for the disk: a power cut may damage the store",
        }
    }
}

/// Which file, and how it is treated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::providers) struct StoreFile {
    /// Where the `SQLite` file is, or will be after the first write.
    pub(in crate::providers) path: PathBuf,
    /// The directory that it must be in after links are followed; `None` if any is allowed.
    pub(in crate::providers) within: Option<PathBuf>,
    /// Whether its directory is toolhost's own, to be kept private.
    pub(in crate::providers) own_directory: bool,
    /// Whether it may be created and written.
    pub(in crate::providers) writable: bool,
    /// When a write counts as written.
    pub(in crate::providers) sync: SyncMode,
}

/// An engine in a `SQLite` file, opened by the first call that needs it.
pub(super) struct DiskEngine {
    file: StoreFile,
    clock: Arc<dyn Clock>,
    worker: Mutex<Option<WriterThread>>,
}

struct WriterThread {
    jobs: mpsc::Sender<Box<dyn DiskJob>>,
    /// Closed when the thread has closed the file.
    finished: oneshot::Receiver<()>,
}

impl DiskEngine {
    /// Names the file; it is opened with the first operation.
    pub(super) fn new(file: StoreFile, clock: Arc<dyn Clock>) -> Self {
        Self { file, clock, worker: Mutex::default() }
    }

    fn jobs(&self) -> Result<mpsc::Sender<Box<dyn DiskJob>>, Error> {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worker) = worker.as_ref().filter(|worker| !worker.jobs.is_closed()) {
            return Ok(worker.jobs.clone());
        }
        let (jobs, asked) = mpsc::channel(QUEUE_CAPACITY);
        let (alive, gone) = oneshot::channel();
        let file = self.file.clone();
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || {
                writer::run(&file, asked);
                drop(alive);
            })
            .map_err(|error| {
                Error::internal(format!("cannot start a thread for a store: {error}"))
            })?;
        *worker = Some(WriterThread { jobs: jobs.clone(), finished: gone });
        Ok(jobs)
    }

    /// Lets the thread do `work` in a transaction and waits until that is committed.
    async fn transact<T: Send + 'static>(
        &self,
        writes: bool,
        work: impl FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let lost = || Error::internal("the thread of a store ended before it answered");
        let (job, answer) = QueuedJob::job(writes, work);
        self.jobs()?.send(job).await.map_err(|_closed| lost())?;
        answer.await.map_err(|_dropped| lost())?
    }
}

#[async_trait]
impl Engine for DiskEngine {
    async fn read(&self, space: &str, key: &str) -> Result<Option<StoredValue>, Error> {
        let (space, key, now) = (space.to_owned(), key.to_owned(), millis(self.clock.as_ref()));
        self.transact(false, move |db| operations::read(db, &space, &key, now)).await
    }

    async fn write(&self, write: WriteRequest) -> Result<WriteOutcome, Error> {
        let now = millis(self.clock.as_ref());
        self.transact(true, move |db| operations::write(db, &write, now)).await
    }

    async fn take(
        &self,
        space: &str,
        key: &str,
        version: Option<u64>,
    ) -> Result<TakeOutcome, Error> {
        let (space, key, now) = (space.to_owned(), key.to_owned(), millis(self.clock.as_ref()));
        self.transact(true, move |db| operations::take(db, &space, &key, version, now)).await
    }

    async fn page(
        &self,
        space: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<KeyPage, Error> {
        let (space, prefix) = (space.to_owned(), prefix.to_owned());
        let (after, now) = (after.map(str::to_owned), millis(self.clock.as_ref()));
        self.transact(false, move |db| {
            operations::page(db, &space, &prefix, after.as_deref(), limit, now)
        })
        .await
    }

    async fn clear(&self, space: &str) -> Result<u64, Error> {
        let (space, now) = (space.to_owned(), millis(self.clock.as_ref()));
        self.transact(true, move |db| operations::clear(db, &space, now)).await
    }

    async fn spaces(&self, prefix: &str, limit: usize) -> Result<Vec<(String, u64)>, Error> {
        let prefix = prefix.to_owned();
        self.transact(false, move |db| operations::spaces(db, &prefix, limit)).await
    }

    async fn close(&self) {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(WriterThread { jobs, finished }) = worker {
            // Without a sender the thread ends; the last to close a file tidies it up.
            drop(jobs);
            let _late = tokio::time::timeout(SHUTDOWN_TIMEOUT, finished).await;
        }
    }
}
