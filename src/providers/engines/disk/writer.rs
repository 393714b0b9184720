//! The thread of one file: takes what waits, does it in one transaction, answers after the commit.
//!
//! Group commit: whatever is asked while the disk is busy with one commit shares the next one, so
//! that many writers pay for one flush together. Nobody is answered before the commit.

use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::{File, open, trouble};
use crate::model::Fault;
use crate::util::database;

/// How many operations share a commit.
const TOGETHER: usize = 64;

/// Something to do in a transaction. It may be done more than once, when a transaction fails.
pub(super) trait Job: Send {
    /// Whether it changes anything.
    fn writes(&self) -> bool;
    /// Whether somebody still waits for it.
    fn is_wanted(&self) -> bool;
    /// Does it; the result is kept until it is settled.
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<()>;
    /// Answers: with the result after a commit, else with the fault.
    fn settle(self: Box<Self>, outcome: Result<(), Fault>);
}

/// A job with its result and who waits for it.
pub(super) struct Asked<T, W> {
    writes: bool,
    work: W,
    result: Option<T>,
    answer: oneshot::Sender<Result<T, Fault>>,
}

impl<T, W> Asked<T, W>
where
    T: Send + 'static,
    W: FnMut(&Connection) -> rusqlite::Result<T> + Send + 'static,
{
    /// A job, and where its answer will come from.
    pub(super) fn job(
        writes: bool,
        work: W,
    ) -> (Box<dyn Job>, oneshot::Receiver<Result<T, Fault>>) {
        let (answer, waiting) = oneshot::channel();
        (Box::new(Self { writes, work, result: None, answer }), waiting)
    }
}

impl<T: Send, W: FnMut(&Connection) -> rusqlite::Result<T> + Send> Job for Asked<T, W> {
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

    fn settle(self: Box<Self>, outcome: Result<(), Fault>) {
        let Self { result, answer, .. } = *self;
        let outcome = outcome.and_then(|()| {
            result.ok_or_else(|| Fault::internal("a store committed what it did not do"))
        });
        // Whoever asked may have gone; then nobody needs to know.
        let _gone = answer.send(outcome);
    }
}

/// Serves one file until nobody can ask any more, then closes it.
pub(super) fn run(file: &File, mut asked: mpsc::Receiver<Box<dyn Job>>) {
    let mut store = None;
    while let Some(first) = asked.blocking_recv() {
        let mut jobs = vec![first];
        while jobs.len() < TOGETHER
            && let Ok(next) = asked.try_recv()
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
            Err(fault) => refuse(jobs, &fault),
        }
    }
}

/// Does what was asked. Says whether the connection can be used again.
fn serve(file: &File, store: &open::Opened, jobs: Vec<Box<dyn Job>>) -> bool {
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
    file: &File,
    db: &Connection,
    behavior: TransactionBehavior,
    mut jobs: Vec<Box<dyn Job>>,
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
        // One of them may be the reason, so each gets a transaction of its own; but nobody can
        // do anything about a lock.
        Err(error) if jobs.len() > 1 && !database::is_busy(&error) => {
            let mut good = true;
            for job in jobs {
                good &= commit(file, db, behavior, vec![job]);
            }
            good
        }
        Err(error) => {
            let fault = trouble::fault(&file.path, &error);
            refuse(jobs, &fault);
            database::is_busy(&error)
        }
    }
}

fn refuse(jobs: Vec<Box<dyn Job>>, fault: &Fault) {
    for job in jobs {
        job.settle(Err(fault.clone()));
    }
}

fn transact(
    db: &Connection,
    behavior: TransactionBehavior,
    jobs: &mut [Box<dyn Job>],
) -> rusqlite::Result<()> {
    // Dropped without a commit it is rolled back.
    let transaction = Transaction::new_unchecked(db, behavior)?;
    for job in jobs {
        job.apply(&transaction)?;
    }
    transaction.commit()
}
