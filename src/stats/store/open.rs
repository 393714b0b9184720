//! Opening the store: checks its format, creates it atomically, and sets a damaged one aside.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema::SCHEMA;
use super::{StatsStore, StoreError};
use crate::model::Error;
use crate::util::append::{AppendError, DirectoryOwner, RecordLocation};
use crate::util::atomic_file;
use crate::util::database::{self, DatabasePath, Durability, PathStatus, SchemaCheck};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::stats) enum StoreFileStatus {
    /// Nothing, or not even a directory.
    Missing,
    File(u64),
}

/// Checks what is at the path of the store, and makes a file that others can access private; that
/// is added to `notes`.
pub(in crate::stats) fn inspect(
    store: &RecordLocation,
    notes: &mut Vec<String>,
) -> Result<StoreFileStatus, StoreError> {
    let Some(file) = database_path(store)? else { return Ok(StoreFileStatus::Missing) };
    let shown = store.path.display();
    let refused = |why: &str| {
        StoreError::Refused(
            Error::denied(format!("not read: {shown} {why}"))
                .with_hint("check who created it, and remove it"),
        )
    };
    match file.inspect().map_err(|error| StoreError::Failed(error.to_string()))? {
        PathStatus::Missing => Ok(StoreFileStatus::Missing),
        PathStatus::Link => Err(refused("is a symbolic link")),
        PathStatus::NotAFile => Err(refused("is not a regular file")),
        PathStatus::Foreign => Err(refused("belongs to another user")),
        PathStatus::File { inode, mode, .. } => {
            if mode & 0o077 != 0 && file.make_private().is_ok() {
                notes.push(format!(
                    "{shown} could be used by others (mode {mode:04o}) and was set to 0600"
                ));
            }
            Ok(StoreFileStatus::File(inode))
        }
    }
}

/// Opens the store, and makes it when nothing is there. Locks of others are waited for as long as
/// `lock_timeout`.
pub(in crate::stats) fn open(
    store: &RecordLocation,
    lock_timeout: Duration,
    notes: &mut Vec<String>,
) -> Result<StatsStore, StoreError> {
    let status = inspect(store, notes)?;
    if status == StoreFileStatus::Missing {
        make(store, lock_timeout, notes)?;
    }
    let Some(file) = database_path(store)? else {
        return Err(StoreError::Failed("its path has no directory".to_owned()));
    };
    if let PathStatus::File { size: 0, .. } =
        file.inspect().map_err(|error| StoreError::Failed(error.to_string()))?
    {
        return Err(StoreError::Damaged("it is empty".to_owned()));
    }
    match writable(&file, lock_timeout) {
        Err(Unwritable::Forbidden(why)) => read_only(&file, lock_timeout, &why),
        Err(Unwritable::Newer(version)) => {
            let why = format!(
                "was written by a newer toolhost (layout {version}) and is opened read-only"
            );
            Ok(StatsStore { db: reader(&file, lock_timeout)?, read_only: Some(why) })
        }
        Err(Unwritable::Foreign) => Err(StoreError::Refused(
            Error::denied(format!("{} is a database of another program", store.path.display()))
                .with_hint("configure another file for the statistics (stats: { path: FILE })"),
        )),
        Err(Unwritable::Store(trouble)) => Err(trouble),
        Ok(db) => Ok(StatsStore { db, read_only: None }),
    }
}

/// Moves a damaged store away, so that a new one can be made, and says where it is now; `None` when
/// another process was faster. `inode` is the number of the damaged file.
pub(in crate::stats) fn move_aside(
    store: &RecordLocation,
    inode: u64,
    now: Duration,
) -> io::Result<Option<PathBuf>> {
    // One process at a time, so that none moves away what another one has just made.
    let _turn = atomic_file::lock(&store.path)?;
    let Some(file) =
        database_path(store).map_err(|trouble| io::Error::other(trouble.describe()))?
    else {
        return Ok(None);
    };
    if !matches!(file.inspect()?, PathStatus::File { inode: current, .. } if current == inode) {
        return Ok(None);
    }
    let second = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX);
    let with = |path: &std::path::Path, ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let path = file.file();
    let mut target = with(&path, &format!(".damaged-{}", time.strftime("%Y%m%dT%H%M%SZ")));
    for again in 1.. {
        if target.symlink_metadata().is_err() {
            break;
        }
        target = with(&path, &format!(".damaged-{}-{again}", time.strftime("%Y%m%dT%H%M%SZ")));
    }
    // The log belongs to the file; without the file it would be taken for that of the new one.
    for ending in ["-wal", "-shm"] {
        match std::fs::rename(with(&path, ending), with(&target, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(&path, &target)?;
    Ok(Some(target))
}

pub(in crate::stats) fn remove_stale_drafts(store: &RecordLocation, now: Duration) {
    if let Ok(Some(file)) = database_path(store) {
        file.remove_stale_drafts(now);
    }
}

/// Where the store is; `None` without a directory.
fn database_path(store: &RecordLocation) -> Result<Option<DatabasePath>, StoreError> {
    let Some(name) = store.path.file_name() else {
        let why = format!("{} is not the name of a file", store.path.display());
        return Err(StoreError::Refused(Error::config(why)));
    };
    if store.directory_owner == DirectoryOwner::Own && store.parent().is_symlink() {
        let why = format!("not read: {} is a symbolic link", store.parent().display());
        return Err(StoreError::Refused(
            Error::denied(why).with_hint("check who created it, and remove it"),
        ));
    }
    match DatabasePath::find(store.parent(), name) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::Failed(error.to_string())),
    }
}

fn make(
    store: &RecordLocation,
    lock_timeout: Duration,
    notes: &mut Vec<String>,
) -> Result<(), StoreError> {
    drop(store.directory(notes).map_err(|error| match error {
        AppendError::Unsafe(why) => {
            StoreError::Refused(Error::denied(format!("not created: {why}")))
        }
        AppendError::Failed(why) => StoreError::Failed(why),
    })?);
    let Some(file) = database_path(store)? else {
        return Err(StoreError::Failed("its path has no directory".to_owned()));
    };
    let fill = |db: &Connection| {
        // Before there is a table; pages that become free are given back without a copy.
        db.pragma_update(None, "auto_vacuum", 2)?;
        database::set_journaling(db, Durability::Full, file.journal_mode())?;
        SCHEMA.create(db)
    };
    file.make(lock_timeout, fill).map_err(|error| StoreError::Failed(error.to_string()))
}

enum Unwritable {
    /// The file or its directory may only be read.
    Forbidden(String),
    Newer(i64),
    Foreign,
    Store(StoreError),
}

impl From<rusqlite::Error> for Unwritable {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(
                ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                // A full disk has no room for the log beside it.
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure,
            ) => Self::Forbidden(error.to_string()),
            _ => Self::Store(error.into()),
        }
    }
}

fn writable(file: &DatabasePath, lock_timeout: Duration) -> Result<Connection, Unwritable> {
    let db = database::connect(&file.file(), OpenFlags::SQLITE_OPEN_READ_WRITE, lock_timeout)?;
    if db.is_readonly(rusqlite::MAIN_DB)? {
        return Err(Unwritable::Forbidden("the file is read-only".to_owned()));
    }
    match SCHEMA.check(&db)? {
        SchemaCheck::Foreign => return Err(Unwritable::Foreign),
        SchemaCheck::Newer(version) => return Err(Unwritable::Newer(version)),
        SchemaCheck::Ours => {}
    }
    // A file that was folded is removed, so what was folded has to be on the disk.
    database::set_journaling(&db, Durability::Full, file.journal_mode())?;
    SCHEMA.migrate(&db)?;
    Ok(db)
}

fn reader(file: &DatabasePath, lock_timeout: Duration) -> rusqlite::Result<Connection> {
    database::connect(&file.file(), OpenFlags::SQLITE_OPEN_READ_ONLY, lock_timeout)
}

fn read_only(
    file: &DatabasePath,
    lock_timeout: Duration,
    why: &str,
) -> Result<StatsStore, StoreError> {
    let open = || -> rusqlite::Result<Connection> {
        let db = reader(file, lock_timeout)?;
        // Opening does not read, and reading may need a file beside the store.
        SCHEMA.check(&db)?;
        Ok(db)
    };
    let db = match open() {
        Ok(db) => db,
        Err(error) => open_immutable(file, lock_timeout).ok_or(error)??,
    };
    if SCHEMA.check(&db)? == SchemaCheck::Foreign {
        return Err(StoreError::Failed("it is a database of another program".to_owned()));
    }
    Ok(StatsStore { db, read_only: Some(format!("cannot be written: {why}")) })
}

/// A read-only store, which can be read without locks. `None` while there is something in the log
/// beside it, which is not read in this way.
fn open_immutable(
    file: &DatabasePath,
    lock_timeout: Duration,
) -> Option<rusqlite::Result<Connection>> {
    let path = file.file();
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let uri = url::Url::from_file_path(&path).ok()?;
    let access = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let uri = PathBuf::from(format!("{uri}?immutable=1"));
    Some(database::connect(&uri, access, lock_timeout))
}
