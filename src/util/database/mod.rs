//! Opening and migrating our `SQLite` files.
//!
//! Owns: finding out what is at a path without touching it, creating a new file completely or not
//! at all (`path`), and the versions of the contents (`schema`). Never does: know what is stored,
//! or word an error about it.

mod path;
mod schema;

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use schemars::JsonSchema;
use serde::Deserialize;

pub use path::{DatabasePath, PathStatus};
pub use schema::{DatabaseSchema, SchemaCheck};

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
