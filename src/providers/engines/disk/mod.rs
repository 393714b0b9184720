//! The engine in `SQLite`: in memory, or one file, shared by all processes that name it; its schema, and its
//! errors with what to do about them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::TransactionBehavior::{self, Deferred, Immediate};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Transaction, named_params};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;

use super::{
    Engine, KeyInfo, KeyPage, StoredValue, TakeOutcome, WriteOutcome, WriteRequest, expiry, millis,
    numbered,
};
use crate::model::Error;
use crate::util::clock::Clock;
use open::StoreConnection;

mod open;
#[cfg(test)]
mod tests;

/// How long closing may take: a lock is waited for that long, and a little more.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(6);

/// When a write counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename = "SyncMode", rename_all = "lowercase")]
pub(in crate::providers) enum Durability {
    /// When it is on the disk (`synchronous=FULL`): survives a power cut.
    #[default]
    Full = 2,
    /// When the system has it (`synchronous=NORMAL`): survives a crash of toolhost; a power cut may
    /// take the last ones.
    Normal = 1,
    /// As `Normal`, and the disk is never waited for at all: a power cut may damage the file.
    Off = 0,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::providers) struct StoreFile {
    /// Where the `SQLite` file is, or will be after the first write.
    pub(in crate::providers) path: PathBuf,
    /// The directory that it must be in after links are followed; `None` if any is allowed.
    pub(in crate::providers) within: Option<PathBuf>,
    pub(in crate::providers) own_directory: bool,
    /// Whether it may be created and written.
    pub(in crate::providers) writable: bool,
    /// When a write counts as written.
    pub(in crate::providers) sync: Durability,
}

/// An engine in `SQLite`, opened by the first call that needs it.
pub(super) struct SqliteEngine(Arc<SharedStore>);

struct SharedStore {
    /// `None` keeps everything in memory, as long as this process lives.
    file: Option<StoreFile>,
    clock: Arc<dyn Clock>,
    connection: Mutex<Option<StoreConnection>>,
    written: Option<Notify>,
}

impl SqliteEngine {
    pub(super) fn new(file: Option<StoreFile>, clock: Arc<dyn Clock>) -> Self {
        let written = file.is_none().then(Notify::new);
        Self(Arc::new(SharedStore { file, clock, connection: Mutex::default(), written }))
    }

    /// Does `work` in one transaction; what `work` did has happened when this returns.
    async fn transact<T: Send + 'static>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Connection, u64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let store = Arc::clone(&self.0);
        let transaction = tokio::task::spawn_blocking(move || store.transact(behavior, work));
        let lost = |why| Error::internal(format!("an operation of a store ended early: {why}"));
        transaction.await.map_err(lost)?
    }
}

impl SharedStore {
    fn transact<T>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Connection, u64) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match connection.take() {
            Some(store) => store,
            None => open::open(self.file.as_ref())?,
        };
        if let (Some(why), TransactionBehavior::Immediate) = (&store.read_only, behavior) {
            let why = why.clone();
            *connection = Some(store);
            return Err(why);
        }
        // Dropped without a commit it is rolled back.
        let outcome = Transaction::new_unchecked(&store.db, behavior).and_then(|transaction| {
            let outcome = work(&transaction, millis(self.clock.as_ref()))?;
            transaction.commit()?;
            Ok(outcome)
        });
        // After other errors than a lock a file is opened, and so checked, again.
        if self.file.is_none() || outcome.as_ref().map_or_else(is_busy, |_| true) {
            *connection = Some(store);
        }
        outcome.map_err(|error| database_error(self.file.as_ref(), &error))
    }
}

#[async_trait]
impl Engine for SqliteEngine {
    async fn read(&self, space: &str, key: &str) -> Result<Option<StoredValue>, Error> {
        let (space, key) = (space.to_owned(), key.to_owned());
        self.transact(Deferred, move |db, now| read(db, &space, &key, now)).await
    }

    async fn write(&self, write: WriteRequest) -> Result<WriteOutcome, Error> {
        let written = self.transact(Immediate, move |db, now| {
            forget_expired(db, now)?;
            let (total, last): (i64, i64) = db
                .prepare_cached("SELECT bytes, version FROM total")?
                .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let version = from_sql_integer(last) + 1;
            let key = write.key.clone().unwrap_or_else(|| numbered(version));
            let current: Option<(i64, i64)> = db
                .prepare_cached("SELECT version, size FROM entry WHERE space = ?1 AND key = ?2")?
                .query_row([&write.space, &key], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let at = current.map(|(version, _)| from_sql_integer(version));
            if !write.condition.holds(at) {
                return Ok(WriteOutcome::Conflict(at));
            }
            let keys: Option<i64> = db
                .prepare_cached("SELECT keys FROM space WHERE name = ?1")?
                .query_row([&write.space], |row| row.get(0))
                .optional()?;
            let (keys, total) =
                (from_sql_integer(keys.unwrap_or_default()), from_sql_integer(total));
            let size = write.size(&key);
            let bytes =
                total.saturating_sub(current.map_or(0, |(_, size)| from_sql_integer(size))) + size;
            let refused =
                write.quota.refuses((keys, keys + u64::from(at.is_none())), (total, bytes));
            if let Some(refused) = refused {
                return Ok(refused);
            }
            db.prepare_cached("UPDATE total SET version = ?1")?
                .execute([to_sql_integer(version)])?;
            db.prepare_cached(
                "INSERT INTO entry (space, key, value, version, size, expires)
                 VALUES (:space, :key, :value, :version, :size, :expires)
                 ON CONFLICT DO UPDATE SET value = :value, version = :version, size = :size,
                                           expires = :expires",
            )?
            .execute(named_params! {
                ":space": write.space,
                ":key": key,
                ":value": write.value,
                ":version": to_sql_integer(version),
                ":size": to_sql_integer(size),
                ":expires": expiry(now, write.ttl).map(to_sql_integer),
            })?;
            Ok(WriteOutcome::Done { key, version })
        });
        let written = written.await;
        if let Some(notify) = &self.0.written {
            notify.notify_waiters();
        }
        written
    }

    async fn take(
        &self,
        space: &str,
        key: &str,
        version: Option<u64>,
    ) -> Result<TakeOutcome, Error> {
        let (space, key) = (space.to_owned(), key.to_owned());
        self.transact(Immediate, move |db, now| {
            forget_expired(db, now)?;
            let Some(entry) = read(db, &space, &key, now)? else { return Ok(TakeOutcome::Absent) };
            if version.is_some_and(|version| version != entry.version) {
                return Ok(TakeOutcome::Conflict(entry.version));
            }
            db.prepare_cached("DELETE FROM entry WHERE space = ?1 AND key = ?2")?
                .execute([&space, &key])?;
            Ok(TakeOutcome::Removed(entry))
        })
        .await
    }

    async fn page(
        &self,
        space: &str,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<KeyPage, Error> {
        let (space, prefix, after) =
            (space.to_owned(), prefix.to_owned(), after.map(str::to_owned));
        self.transact(Deferred, move |db, now| {
            // The cursor itself may be at hand still; it is skipped below.
            let from = after.as_ref().filter(|after| **after >= prefix).unwrap_or(&prefix);
            let mut statement = db.prepare_cached(
                "SELECT key, version, octet_length(value) FROM entry
                 WHERE space = :space AND key >= :from AND (expires IS NULL OR expires > :now)
                 ORDER BY key",
            )?;
            let parameters =
                named_params! { ":space": space, ":from": from, ":now": to_sql_integer(now) };
            let mut rows = statement.query(parameters)?;
            let mut page = KeyPage::default();
            while let Some(row) = rows.next()? {
                let key: String = row.get(0)?;
                if Some(&key) == after.as_ref() {
                    continue;
                }
                if !key.starts_with(&prefix) {
                    break;
                }
                if page.items.len() == limit {
                    page.more = true;
                    break;
                }
                page.items.push(KeyInfo {
                    key,
                    version: from_sql_integer(row.get(1)?),
                    bytes: from_sql_integer(row.get(2)?),
                });
            }
            Ok(page)
        })
        .await
    }

    async fn clear(&self, space: &str) -> Result<u64, Error> {
        let space = space.to_owned();
        self.transact(Immediate, move |db, now| {
            forget_expired(db, now)?;
            let removed =
                db.prepare_cached("DELETE FROM entry WHERE space = ?1")?.execute([space])?;
            Ok(removed as u64)
        })
        .await
    }

    async fn spaces(&self, prefix: &str, limit: usize) -> Result<Vec<(String, u64)>, Error> {
        let prefix = prefix.to_owned();
        self.transact(Deferred, move |db, _| {
            let mut statement =
                db.prepare_cached("SELECT name, keys FROM space WHERE name >= ?1 ORDER BY name")?;
            let mut rows = statement.query([&prefix])?;
            let mut spaces = Vec::new();
            while spaces.len() < limit
                && let Some(row) = rows.next()?
            {
                let name: String = row.get(0)?;
                if !name.starts_with(&prefix) {
                    break;
                }
                spaces.push((name, from_sql_integer(row.get(1)?)));
            }
            Ok(spaces)
        })
        .await
    }

    fn write_notify(&self) -> Option<&Notify> {
        self.0.written.as_ref()
    }

    async fn close(&self) {
        if self.0.file.is_none() {
            return;
        }
        let store = Arc::clone(&self.0);
        let close = move || drop(store.connection.lock().map(|mut connection| connection.take()));
        let _late =
            tokio::time::timeout(SHUTDOWN_TIMEOUT, tokio::task::spawn_blocking(close)).await;
    }
}

/// Numbers beyond what `SQLite` can hold stand for "as many as there are".
fn to_sql_integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn from_sql_integer(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}

fn read(
    db: &Connection,
    space: &str,
    key: &str,
    now: u64,
) -> rusqlite::Result<Option<StoredValue>> {
    db.prepare_cached(
        "SELECT value, version FROM entry
         WHERE space = :space AND key = :key AND (expires IS NULL OR expires > :now)",
    )?
    .query_row(named_params! { ":space": space, ":key": key, ":now": to_sql_integer(now) }, |row| {
        Ok(StoredValue { value: row.get(0)?, version: from_sql_integer(row.get(1)?) })
    })
    .optional()
}

fn forget_expired(db: &Connection, now: u64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM entry WHERE expires <= ?1")?.execute([to_sql_integer(now)])?;
    Ok(())
}

/// Whether another process held the lock all the time.
fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

fn database_error(file: Option<&StoreFile>, error: &rusqlite::Error) -> Error {
    let Some(path) = file.map(|file| &file.path) else {
        return Error::internal(format!("a store in memory failed: {error}"));
    };
    let shown = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::unreachable(format!(
            "the store {shown} has been locked by another process for {} s",
            BUSY_TIMEOUT.as_secs()
        ))
        .with_hint("nothing was changed; try again when the other process has finished"),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            damaged(path, &error.to_string())
        }
        Some(ErrorCode::DiskFull) => {
            Error::unreachable(format!("the disk is full: the store {shown} cannot grow"))
                .with_hint("what it holds is intact; make room and try again")
        }
        Some(ErrorCode::SystemIoFailure) => {
            Error::unreachable(format!("the store {shown} cannot be read or written: {error}"))
                .with_hint("the disk may be full, or a limit on the size of files reached")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            Error::unreachable(format!("the store {shown} cannot be opened: {error}"))
                .with_hint("its owner, its mode or its directory does not allow it")
        }
        _ => Error::unreachable(format!("the store {shown} failed: {error}")),
    }
}

/// The error for an existing file that is not a store, or is damaged. It is never changed.
fn damaged(path: &Path, why: &str) -> Error {
    let shown = path.display();
    Error::protocol(format!("{shown} is damaged or not a store: {why}")).with_hint(format!(
        "nothing was changed; recover its contents with `sqlite3 {shown} .recover`, or move it \
         away to start over"
    ))
}

/// Entries and their spaces; triggers keep the sums that quotas are about.
const LAYOUT: &str = "
    CREATE TABLE entry (
        space TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        version INTEGER NOT NULL,
        size INTEGER NOT NULL,
        expires INTEGER,
        PRIMARY KEY (space, key)
    ) STRICT;
    CREATE INDEX expiring ON entry (expires) WHERE expires IS NOT NULL;
    CREATE TABLE space (name TEXT PRIMARY KEY NOT NULL, keys INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE total (bytes INTEGER NOT NULL, version INTEGER NOT NULL) STRICT;
    INSERT INTO total VALUES (0, 0);
    CREATE TRIGGER entry_came AFTER INSERT ON entry BEGIN
        INSERT INTO space VALUES (new.space, 1) ON CONFLICT DO UPDATE SET keys = keys + 1;
        UPDATE total SET bytes = bytes + new.size;
    END;
    CREATE TRIGGER entry_changed AFTER UPDATE OF size ON entry BEGIN
        UPDATE total SET bytes = bytes + new.size - old.size;
    END;
    CREATE TRIGGER entry_went AFTER DELETE ON entry BEGIN
        UPDATE space SET keys = keys - 1 WHERE name = old.space;
        DELETE FROM space WHERE name = old.space AND keys = 0;
        UPDATE total SET bytes = bytes - old.size;
    END;
";
