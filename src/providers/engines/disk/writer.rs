//! The writer thread of one file: batches pending operations into one transaction, answers after
//! the commit.
//!
//! Group commit: operations that arrive while the disk is busy with one commit share the next one,
//! so many writers share the cost of one flush. No job is answered before the commit.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::{StoreFile, errors, open};
use crate::model::Error;
use crate::util::database;

/// How many operations share a commit.
const MAX_BATCH: usize = 64;

/// An operation within a transaction. It may run more than once, if a transaction fails.
pub(super) trait DiskJob: Send {
    /// Whether it changes the file, so that it needs the writing transaction.
    fn writes(&self) -> bool;
    /// Whether its caller still waits for the result.
    fn is_wanted(&self) -> bool;
    /// Does it; the result is kept until it is settled.
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<()>;
    /// Sends the answer: the result after a commit, otherwise the error.
    fn settle(self: Box<Self>, outcome: Result<(), Error>);
}

/// A job with its result and who waits for it.
pub(super) struct QueuedJob<T, W> {
    writes: bool,
    work: W,
    result: Option<T>,
    answer: oneshot::Sender<Result<T, Error>>,
}

impl<T, W> QueuedJob<T, W>
where
    T: Send + 'static,
    W: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    /// A job, and the receiver of its answer.
    pub(super) fn job(
        writes: bool,
        work: W,
    ) -> (Box<dyn DiskJob>, oneshot::Receiver<Result<T, Error>>) {
        let (answer, waiting) = oneshot::channel();
        (Box::new(Self { writes, work, result: None, answer }), waiting)
    }
}

impl<T: Send, W: FnMut(&Connection) -> rusqlite::Result<T> + Send> DiskJob for QueuedJob<T, W> {
    fn writes(&self) -> bool {
        self.writes
    }

    fn is_wanted(&self) -> bool {
        !self.answer.is_closed()
    }

    fn apply(&mut self, db: &Connection) -> rusqlite::Result<()> {
        self.result = Some((self.work)(db)?);
        Ok(())
    }

    fn settle(self: Box<Self>, outcome: Result<(), Error>) {
        let Self { result, answer, .. } = *self;
        let outcome = outcome.and_then(|()| {
            result.ok_or_else(|| Error::internal("a store committed what it did not do"))
        });
        // The caller may have been cancelled; then the result has no reader.
        let _gone = answer.send(outcome);
    }
}

/// Serves one file until every sender of jobs is dropped, then closes it.
pub(super) fn run(file: &StoreFile, mut queue: mpsc::Receiver<Box<dyn DiskJob>>) {
    let mut store = None;
    while let Some(first) = queue.blocking_recv() {
        let mut jobs = vec![first];
        while jobs.len() < MAX_BATCH
            && let Ok(next) = queue.try_recv()
        {
            jobs.push(next);
        }
        jobs.retain(|job| job.is_wanted());
        let opened = match store.take() {
            Some(opened) => Ok(opened),
            None => open::open(file),
        };
        match opened {
            Ok(opened) => {
                if serve(file, &opened, jobs) {
                    store = Some(opened);
                }
            }
            Err(error) => refuse(jobs, &error),
        }
    }
}

/// Runs a batch of jobs. Returns whether the connection can be used again.
fn serve(file: &StoreFile, store: &open::StoreConnection, jobs: Vec<Box<dyn DiskJob>>) -> bool {
    let (writes, reads): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.writes());
    // Reads need no lock, so they do not wait for the one that writes need.
    let good = commit(file, &store.db, TransactionBehavior::Deferred, reads);
    match &store.read_only {
        None => commit(file, &store.db, TransactionBehavior::Immediate, writes) && good,
        Some(why) => {
            refuse(writes, why);
            good
        }
    }
}

fn commit(
    file: &StoreFile,
    db: &Connection,
    behavior: TransactionBehavior,
    mut jobs: Vec<Box<dyn DiskJob>>,
) -> bool {
    if jobs.is_empty() {
        return true;
    }
    match transact(db, behavior, &mut jobs) {
        Ok(()) => {
            for job in jobs {
                job.settle(Ok(()));
            }
            true
        }
        // One of them may be the reason, so each gets its own transaction; but a lock held by
        // another process fails them all alike.
        Err(cause) if jobs.len() > 1 && !database::is_busy(&cause) => {
            let mut good = true;
            for job in jobs {
                good &= commit(file, db, behavior, vec![job]);
            }
            good
        }
        Err(cause) => {
            let error = errors::database_error(&file.path, &cause);
            refuse(jobs, &error);
            database::is_busy(&cause)
        }
    }
}

fn refuse(jobs: Vec<Box<dyn DiskJob>>, error: &Error) {
    for job in jobs {
        job.settle(Err(error.clone()));
    }
}

fn transact(
    db: &Connection,
    behavior: TransactionBehavior,
    jobs: &mut [Box<dyn DiskJob>],
) -> rusqlite::Result<()> {
    // Dropped without a commit it is rolled back.
    let transaction = Transaction::new_unchecked(db, behavior)?;
    for job in jobs {
        job.apply(&transaction)?;
    }
    transaction.commit()
}
