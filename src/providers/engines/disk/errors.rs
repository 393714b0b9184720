//! Errors of the `SQLite` file, with what to do about them.

use std::path::Path;
use std::time::Duration;

use rusqlite::ErrorCode;

use super::StoreFile;
use crate::model::Error;

pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn database_error(file: Option<&StoreFile>, error: &rusqlite::Error) -> Error {
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
pub(super) fn damaged(path: &Path, why: &str) -> Error {
    let shown = path.display();
    Error::protocol(format!("{shown} is damaged or not a store: {why}")).with_hint(format!(
        "nothing was changed; recover its contents with `sqlite3 {shown} .recover`, or move it \
         away to start over"
    ))
}
