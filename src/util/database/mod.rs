//! Opening and migrating our `SQLite` files.
//!
//! Owns: finding out what is at a path without touching it, creating a new file completely or not
//! at all (`path`), and the versions of the contents. Never does: know what is stored, or word an
//! error about it.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use schemars::JsonSchema;
use serde::Deserialize;

pub use path::{DatabasePath, PathStatus};

mod path;

const STATEMENTS: usize = 32;

/// When a write counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename = "SyncMode", rename_all = "lowercase")]
pub enum Durability {
    /// When it is on the disk (`synchronous=FULL`): survives a power cut.
    #[default]
    Full = 2,
    /// When the system has it (`synchronous=NORMAL`): survives a crash of toolhost; a power cut may
    /// take the last ones.
    Normal = 1,
    /// As `Normal`, and the disk is never waited for at all: a power cut may damage the file.
    Off = 0,
}

/// Opens the file at `path`, in which no link may be; `lock_timeout` is how long the locks of other
/// processes are waited for.
pub fn connect(
    path: &Path,
    access: OpenFlags,
    lock_timeout: Duration,
) -> rusqlite::Result<Connection> {
    // One thread uses it at a time.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(lock_timeout)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(db)
}

pub fn set_journaling(
    db: &Connection,
    durability: Durability,
    journal: &str,
) -> rusqlite::Result<()> {
    let set: String =
        db.pragma_update_and_check(None, "journal_mode", journal, |row| row.get(0))?;
    let level = durability as i64;
    db.pragma_update(None, "synchronous", level)?;
    let synchronous: i64 = db.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if synchronous != level || !set.eq_ignore_ascii_case(journal) {
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some(format!(
                "journal {set} and synchronous {synchronous} instead of {journal} and {level}"
            )),
        ));
    }
    Ok(())
}

/// Whether another process held the lock all the time.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[derive(Debug, Clone, Copy)]
pub struct DatabaseSchema {
    /// Marks a file as one of this kind (`PRAGMA application_id`), so that another program's file
    /// is never written to.
    pub application_id: i32,
    /// Each step leads from one version to the next; the first makes the tables. A file says in
    /// `user_version` how many were taken.
    pub migrations: &'static [&'static str],
}

/// What a database file turns out to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaCheck {
    /// One that this version can use, after the missing steps.
    Ours,
    /// One of a newer toolhost; the number is its version.
    Newer(i64),
    /// A database that another program made.
    Foreign,
}

impl DatabaseSchema {
    pub fn latest_version(&self) -> i64 {
        i64::try_from(self.migrations.len()).unwrap_or(i64::MAX)
    }

    pub fn check(&self, db: &Connection) -> rusqlite::Result<SchemaCheck> {
        let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let version = number("user_version")?;
        Ok(if number("application_id")? != i64::from(self.application_id) {
            SchemaCheck::Foreign
        } else if version > self.latest_version() {
            SchemaCheck::Newer(version)
        } else {
            SchemaCheck::Ours
        })
    }

    /// Takes the steps that are missing, all or none of them.
    pub fn migrate(&self, db: &Connection) -> rusqlite::Result<()> {
        let steps_taken = |db: &Connection| {
            let version =
                db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?;
            Ok::<usize, rusqlite::Error>(usize::try_from(version).unwrap_or(0))
        };
        if steps_taken(db)? == self.migrations.len() {
            return Ok(());
        }
        let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
        // Another process may have taken them while this one waited.
        for step in self.migrations.iter().skip(steps_taken(&transaction)?) {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "user_version", self.latest_version())?;
        transaction.commit()
    }

    /// Makes the tables in an empty file and marks it.
    pub fn create(&self, db: &Connection) -> rusqlite::Result<()> {
        db.pragma_update(None, "application_id", self.application_id)?;
        self.migrate(db)
    }
}
