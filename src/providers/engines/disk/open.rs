//! Opening the `SQLite` file safely: location, ownership and format are checked first.

use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::Mode;

use super::{LAYOUT, StoreFile};
use crate::model::Error;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::database::{self, DatabasePath, Durability, PathStatus, SchemaCheck};
use crate::util::private_file;

pub(super) struct StoreConnection {
    /// The `SQLite` connection, with its schema checked and its pragmas set.
    pub(super) db: Connection,
    /// Why it cannot be written, if so.
    pub(super) read_only: Option<Error>,
}

/// Opens the store, and makes it when it is not there and may be written.
pub(super) fn open(file: Option<&StoreFile>) -> Result<StoreConnection, Error> {
    let Some(file) = file else {
        let failed = |error| super::database_error(None, &error);
        let db = Connection::open_in_memory().map_err(failed)?;
        LAYOUT.create(&db).map_err(failed)?;
        return Ok(StoreConnection { db, read_only: None });
    };
    let shown = file.path.display();
    let place = find(file)?;
    if file.writable {
        place.remove_stale_drafts(SystemClock.unix());
    }
    if !check(&place, file)? {
        if !file.writable {
            return Err(Error::unreachable(format!("the store {shown} does not exist yet"))
                .with_hint("a write through an entry without 'access: read' creates it"));
        }
        make(&place, file)?;
    }
    let failed = |error: rusqlite::Error| super::database_error(Some(file), &error);
    let access = if file.writable {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    let db = database::connect(&place.file(), access, super::BUSY_TIMEOUT).map_err(failed)?;
    let read_only = match LAYOUT.check(&db).map_err(failed)? {
        SchemaCheck::Foreign => {
            return Err(Error::denied(format!("{shown} is a database of another program"))
                .with_hint("give the store its own file"));
        }
        SchemaCheck::Newer(version) => Some(
            Error::unreachable(format!(
                "the store {shown} was written by a newer toolhost (layout {version}) and is opened read-only"
            ))
            .with_hint("write to it with that version"),
        ),
        SchemaCheck::Ours if !file.writable => {
            Some(Error::denied(format!("the store {shown} was opened for reading")))
        }
        SchemaCheck::Ours => {
            database::set_journaling(&db, file.sync, place.journal_mode()).map_err(failed)?;
            LAYOUT.migrate(&db).map_err(failed)?;
            None
        }
    };
    Ok(StoreConnection { db, read_only })
}

/// The place of the file; its directory is created if allowed.
fn find(file: &StoreFile) -> Result<DatabasePath, Error> {
    let (Some(parent), Some(name)) = (file.path.parent(), file.path.file_name()) else {
        return Err(Error::config(format!("{} is not the name of a file", file.path.display())));
    };
    let cannot = |error: io::Error| {
        Error::unreachable(format!("the directory {} cannot be used: {error}", parent.display()))
    };
    stays_within(file, parent)?;
    if !parent.exists() && file.writable {
        private_file::make_directory(parent).map_err(cannot)?;
    }
    let place = DatabasePath::find(parent, name).map_err(cannot)?;
    if file.own_directory {
        let directory = place.directory();
        let stat = rustix::fs::fstat(directory).map_err(|errno| cannot(errno.into()))?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Error::denied(format!("{} belongs to another user", parent.display())));
        }
        if stat.st_mode & 0o077 != 0 {
            rustix::fs::fchmod(directory, Mode::RWXU).map_err(|errno| cannot(errno.into()))?;
        }
    }
    Ok(place)
}

/// Whether there is a file; it must be private, ours and not empty.
fn check(place: &DatabasePath, file: &StoreFile) -> Result<bool, Error> {
    let shown = file.path.display();
    let standing = place
        .inspect()
        .map_err(|error| Error::unreachable(format!("{shown} cannot be inspected: {error}")))?;
    match standing {
        PathStatus::Missing => return Ok(false),
        PathStatus::Link => {
            return Err(Error::denied(format!("{shown} is a symbolic link"))
                .with_hint("write the path of the file itself"));
        }
        PathStatus::NotAFile => {
            return Err(Error::denied(format!("{shown} is not a regular file")));
        }
        PathStatus::Foreign => {
            return Err(Error::denied(format!("{shown} belongs to another user")));
        }
        PathStatus::File { size: 0, .. } => return Err(super::damaged(&file.path, "it is empty")),
        PathStatus::File { mode, .. } if mode & 0o077 != 0 && file.writable => {
            // A store is as private as what people put into it.
            place.make_private().map_err(|error| {
                Error::unreachable(format!("{shown} cannot be made private: {error}"))
            })?;
        }
        PathStatus::File { .. } => {}
    }
    Ok(true)
}

/// Creates a whole, empty store. When another process was faster, its store stays.
fn make(place: &DatabasePath, file: &StoreFile) -> Result<(), Error> {
    let fill = |db: &Connection| {
        database::set_journaling(db, Durability::Full, place.journal_mode())?;
        LAYOUT.create(db)
    };
    place.make(super::BUSY_TIMEOUT, fill).map_err(|what| {
        Error::unreachable(format!("the store {} cannot be created: {what}", file.path.display()))
    })
}

/// Refuses a directory that leads, through links, outside where it may be.
fn stays_within(file: &StoreFile, parent: &Path) -> Result<(), Error> {
    let Some(root) = &file.within else { return Ok(()) };
    let there = parent.ancestors().find_map(|at| at.canonicalize().ok());
    // What does not exist yet is created later, and is ours then.
    let root =
        root.canonicalize().ok().or_else(|| root.ancestors().find_map(|at| at.canonicalize().ok()));
    match (there, root) {
        (Some(there), Some(root)) if there.starts_with(&root) => Ok(()),
        _ => Err(Error::denied(format!(
            "{} is outside {} through a link",
            file.path.display(),
            file.within.as_deref().unwrap_or(parent).display()
        ))
        .with_hint("write the real path of the file")),
    }
}
