//! Opening the file: only if it is ours, never half made; and putting a damaged one aside.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::layout::LAYOUT;
use super::{Store, Trouble};
use crate::model::Fault;
use crate::util::append::{AppendError, Directory, Location};
use crate::util::database::{self, Durability, Place, Recognised, Standing};
use crate::util::replace;

/// What stands where the store belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::stats) enum Found {
    /// Nothing, or not even a directory.
    Nothing,
    /// A file of ours, with its number.
    File(u64),
}

/// Looks what stands where the store belongs, and takes a file that others can use from them; that
/// is added to `notes`.
pub(in crate::stats) fn look(store: &Location, notes: &mut Vec<String>) -> Result<Found, Trouble> {
    let Some(place) = place(store)? else { return Ok(Found::Nothing) };
    let shown = store.path.display();
    let refused = |why: &str| {
        Trouble::Refused(
            Fault::denied(format!("not read: {shown} {why}"))
                .hint("look who made it, and remove it"),
        )
    };
    match place.look().map_err(|error| Trouble::Failed(error.to_string()))? {
        Standing::Nothing => Ok(Found::Nothing),
        Standing::Link => Err(refused("is a symbolic link")),
        Standing::NoFile => Err(refused("is not a regular file")),
        Standing::Foreign => Err(refused("belongs to another user")),
        Standing::File { inode, mode, .. } => {
            if mode & 0o077 != 0 && place.make_private().is_ok() {
                notes.push(format!(
                    "{shown} could be used by others (mode {mode:04o}) and was set to 0600"
                ));
            }
            Ok(Found::File(inode))
        }
    }
}

/// Opens the store, and makes it when nothing is there. Locks of others are waited for as long as
/// `patience`.
pub(in crate::stats) fn open(
    store: &Location,
    patience: Duration,
    notes: &mut Vec<String>,
) -> Result<Store, Trouble> {
    let found = look(store, notes)?;
    if found == Found::Nothing {
        make(store, patience, notes)?;
    }
    let Some(place) = place(store)? else {
        return Err(Trouble::Failed("it has no directory".to_owned()));
    };
    if let Standing::File { size: 0, .. } =
        place.look().map_err(|error| Trouble::Failed(error.to_string()))?
    {
        return Err(Trouble::Damaged("it is empty".to_owned()));
    }
    match writable(&place, patience) {
        Err(Unwritable::Forbidden(why)) => read_only(&place, patience, &why),
        Err(Unwritable::Newer(version)) => {
            let why = format!("was made by a newer toolhost (layout {version}) and is only read");
            Ok(Store { db: reader(&place, patience)?, read_only: Some(why) })
        }
        Err(Unwritable::Foreign) => Err(Trouble::Refused(
            Fault::denied(format!("{} is a database of another program", store.path.display()))
                .hint("give the statistics a file of their own (stats: { path: FILE })"),
        )),
        Err(Unwritable::Trouble(trouble)) => Err(trouble),
        Ok(db) => Ok(Store { db, read_only: None }),
    }
}

/// Moves a damaged store away, so that a new one can be made, and says where it is now; `None` when
/// somebody else was faster. `inode` is the number of the damaged file.
pub(in crate::stats) fn move_aside(
    store: &Location,
    inode: u64,
    now: Duration,
) -> io::Result<Option<PathBuf>> {
    // One at a time, so that nobody moves away what another one has just made.
    let _turn = replace::lock(&store.path)?;
    let Some(place) = place(store).map_err(|trouble| io::Error::other(trouble.words()))? else {
        return Ok(None);
    };
    if !matches!(place.look()?, Standing::File { inode: found, .. } if found == inode) {
        return Ok(None);
    }
    let second = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX);
    let with = |path: &std::path::Path, ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let path = place.file();
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

/// Removes what killed processes left of making a store.
pub(in crate::stats) fn sweep(store: &Location, now: Duration) {
    if let Ok(Some(place)) = place(store) {
        place.sweep(now);
    }
}

/// Where the store is; `None` without a directory.
fn place(store: &Location) -> Result<Option<Place>, Trouble> {
    let Some(name) = store.path.file_name() else {
        let why = format!("{} is not the name of a file", store.path.display());
        return Err(Trouble::Refused(Fault::config(why)));
    };
    if store.directory == Directory::Own && store.parent().is_symlink() {
        let why = format!("not read: {} is a symbolic link", store.parent().display());
        return Err(Trouble::Refused(Fault::denied(why).hint("look who made it, and remove it")));
    }
    match Place::find(store.parent(), name) {
        Ok(place) => Ok(Some(place)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Trouble::Failed(error.to_string())),
    }
}

fn make(store: &Location, patience: Duration, notes: &mut Vec<String>) -> Result<(), Trouble> {
    drop(store.directory(notes).map_err(|error| match error {
        AppendError::Unsafe(why) => Trouble::Refused(Fault::denied(format!("not made: {why}"))),
        AppendError::Failed(why) => Trouble::Failed(why),
    })?);
    let Some(place) = place(store)? else {
        return Err(Trouble::Failed("it has no directory".to_owned()));
    };
    let fill = |db: &Connection| {
        // Before there is a table; pages that become free are given back without a copy.
        db.pragma_update(None, "auto_vacuum", 2)?;
        database::settle(db, Durability::Full, place.journal())?;
        LAYOUT.make(db)
    };
    place.make(patience, fill).map_err(Trouble::Failed)
}

enum Unwritable {
    /// The file or its directory may only be read.
    Forbidden(String),
    Newer(i64),
    Foreign,
    Trouble(Trouble),
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
            _ => Self::Trouble(error.into()),
        }
    }
}

fn writable(place: &Place, patience: Duration) -> Result<Connection, Unwritable> {
    let db = database::connect(&place.file(), OpenFlags::SQLITE_OPEN_READ_WRITE, patience)?;
    if db.is_readonly(rusqlite::MAIN_DB)? {
        return Err(Unwritable::Forbidden("the file may only be read".to_owned()));
    }
    match LAYOUT.recognise(&db)? {
        Recognised::Foreign => return Err(Unwritable::Foreign),
        Recognised::Newer(version) => return Err(Unwritable::Newer(version)),
        Recognised::Ours => {}
    }
    // A file that was folded is removed, so what was folded has to be on the disk.
    database::settle(&db, Durability::Full, place.journal())?;
    LAYOUT.bring_up(&db)?;
    Ok(db)
}

fn reader(place: &Place, patience: Duration) -> rusqlite::Result<Connection> {
    database::connect(&place.file(), OpenFlags::SQLITE_OPEN_READ_ONLY, patience)
}

/// Opens a store that cannot be written.
fn read_only(place: &Place, patience: Duration, why: &str) -> Result<Store, Trouble> {
    let open = || -> rusqlite::Result<Connection> {
        let db = reader(place, patience)?;
        // Opening does not read, and reading may need a file beside the store.
        LAYOUT.recognise(&db)?;
        Ok(db)
    };
    let db = match open() {
        Ok(db) => db,
        Err(error) => unchanging(place, patience).ok_or(error)??,
    };
    if LAYOUT.recognise(&db)? == Recognised::Foreign {
        return Err(Trouble::Failed("it is a database of another program".to_owned()));
    }
    Ok(Store { db, read_only: Some(format!("cannot be written: {why}")) })
}

/// A store that nobody can write, so that it can be read without locks. `None` while there is
/// something in the log beside it, which is not read in this way.
fn unchanging(place: &Place, patience: Duration) -> Option<rusqlite::Result<Connection>> {
    let path = place.file();
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let uri = url::Url::from_file_path(&path).ok()?;
    let access = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let uri = PathBuf::from(format!("{uri}?immutable=1"));
    Some(database::connect(&uri, access, patience))
}
