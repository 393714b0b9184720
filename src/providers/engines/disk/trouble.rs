//! What an error of the file means, and what a person can do about it.

use std::path::Path;
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::model::Fault;

/// How long another process is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The fault for an error of the file at `path`.
pub(super) fn fault(path: &Path, error: &rusqlite::Error) -> Fault {
    let shown = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Fault::unreachable(format!(
            "the store {shown} has been locked by somebody else for {} s",
            PATIENCE.as_secs()
        ))
        .hint("nothing was changed; try again when the other process is done"),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            damaged(path, &error.to_string())
        }
        Some(ErrorCode::DiskFull) => {
            Fault::unreachable(format!("the disk is full: the store {shown} cannot grow"))
                .hint("what it holds is intact; make room and try again")
        }
        Some(ErrorCode::SystemIoFailure) => {
            Fault::unreachable(format!("the store {shown} cannot be read or written: {error}"))
                .hint("the disk may be full, or a limit on the size of files reached")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            Fault::unreachable(format!("the store {shown} cannot be opened: {error}"))
                .hint("its owner, its mode or its directory does not allow it")
        }
        _ => Fault::unreachable(format!("the store {shown} failed: {error}")),
    }
}

/// The fault for a file that is there and is no store, or no whole one. It is never changed.
pub(super) fn damaged(path: &Path, why: &str) -> Fault {
    let shown = path.display();
    Fault::protocol(format!("{shown} is damaged or no store: {why}")).hint(format!(
        "nothing was changed; rescue what it holds with `sqlite3 {shown} .recover`, or move it \
         away to begin anew"
    ))
}
