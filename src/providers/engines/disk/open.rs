//! Opening the file: only where it may be, only if it is ours, and never half made.

use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::Mode;

use super::layout::LAYOUT;
use super::{File, Sync, trouble};
use crate::model::Fault;
use crate::util::database::{self, Durability, Place, Recognised, Standing};
use crate::util::private;

/// An open store.
pub(super) struct Opened {
    /// The connection.
    pub(super) db: Connection,
    /// Why nothing can be written, when that is so.
    pub(super) read_only: Option<Fault>,
}

/// Opens the store, and makes it when it is not there and may be written.
pub(super) fn open(file: &File) -> Result<Opened, Fault> {
    let shown = file.path.display();
    let place = find(file)?;
    if !check(&place, file)? {
        if !file.writable {
            return Err(Fault::unreachable(format!("the store {shown} does not exist yet"))
                .hint("a write through an entry without 'access: read' makes it"));
        }
        make(&place, file)?;
    }
    let failed = |error: rusqlite::Error| trouble::fault(&file.path, &error);
    let access = if file.writable {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    let db = database::connect(&place.file(), access, trouble::PATIENCE).map_err(failed)?;
    let read_only = match LAYOUT.recognise(&db).map_err(failed)? {
        Recognised::Foreign => {
            return Err(Fault::denied(format!("{shown} is a database of another program"))
                .hint("give the store a file of its own"));
        }
        Recognised::Newer(version) => Some(
            Fault::unreachable(format!(
                "the store {shown} was made by a newer toolhost (layout {version}) and is only read"
            ))
            .hint("write to it with that version"),
        ),
        Recognised::Ours if !file.writable => {
            Some(Fault::denied(format!("the store {shown} was opened for reading")))
        }
        Recognised::Ours => {
            database::settle(&db, durability(file.sync), place.journal()).map_err(failed)?;
            LAYOUT.bring_up(&db).map_err(failed)?;
            None
        }
    };
    Ok(Opened { db, read_only })
}

fn durability(sync: Sync) -> Durability {
    match sync {
        Sync::Off => Durability::Off,
        Sync::Normal => Durability::Normal,
        Sync::Full => Durability::Full,
    }
}

/// The place of the file; its directory is made when it may be.
fn find(file: &File) -> Result<Place, Fault> {
    let (Some(parent), Some(name)) = (file.path.parent(), file.path.file_name()) else {
        return Err(Fault::config(format!("{} is not the name of a file", file.path.display())));
    };
    let cannot = |error: io::Error| {
        Fault::unreachable(format!("the directory {} cannot be used: {error}", parent.display()))
    };
    stays_within(file, parent)?;
    if !parent.exists() && file.writable {
        private::make_directory(parent).map_err(cannot)?;
    }
    let place = Place::find(parent, name).map_err(cannot)?;
    if file.own_directory {
        let directory = place.directory();
        let stat = rustix::fs::fstat(directory).map_err(|errno| cannot(errno.into()))?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Fault::denied(format!("{} belongs to another user", parent.display())));
        }
        if stat.st_mode & 0o077 != 0 {
            rustix::fs::fchmod(directory, Mode::RWXU).map_err(|errno| cannot(errno.into()))?;
        }
    }
    Ok(place)
}

/// Whether there is a file; it has to be a private one of ours with something in it.
fn check(place: &Place, file: &File) -> Result<bool, Fault> {
    let shown = file.path.display();
    let standing = place
        .look()
        .map_err(|error| Fault::unreachable(format!("{shown} cannot be looked at: {error}")))?;
    match standing {
        Standing::Nothing => return Ok(false),
        Standing::Link => {
            return Err(Fault::denied(format!("{shown} is a symbolic link"))
                .hint("write the path of the file itself"));
        }
        Standing::NoFile => return Err(Fault::denied(format!("{shown} is not a regular file"))),
        Standing::Foreign => return Err(Fault::denied(format!("{shown} belongs to another user"))),
        Standing::File { size: 0, .. } => return Err(trouble::damaged(&file.path, "it is empty")),
        Standing::File { mode, .. } if mode & 0o077 != 0 && file.writable => {
            // A store is as private as what people put into it.
            place.make_private().map_err(|error| {
                Fault::unreachable(format!("{shown} cannot be made private: {error}"))
            })?;
        }
        Standing::File { .. } => {}
    }
    Ok(true)
}

/// Makes a whole, empty store. When somebody else was faster, theirs stays.
fn make(place: &Place, file: &File) -> Result<(), Fault> {
    let fill = |db: &Connection| {
        database::settle(db, Durability::Full, place.journal())?;
        LAYOUT.make(db)
    };
    place.make(trouble::PATIENCE, fill).map_err(|what| {
        Fault::unreachable(format!("the store {} cannot be made: {what}", file.path.display()))
    })
}

/// Refuses a directory that leads out of where it may be, through links.
fn stays_within(file: &File, parent: &Path) -> Result<(), Fault> {
    let Some(root) = &file.within else { return Ok(()) };
    let there = parent.ancestors().find_map(|at| at.canonicalize().ok());
    // What does not exist yet is made later, and is ours then.
    let root =
        root.canonicalize().ok().or_else(|| root.ancestors().find_map(|at| at.canonicalize().ok()));
    match (there, root) {
        (Some(there), Some(root)) if there.starts_with(&root) => Ok(()),
        _ => Err(Fault::denied(format!(
            "{} leads out of {} through a link",
            file.path.display(),
            file.within.as_deref().unwrap_or(parent).display()
        ))
        .hint("write the real path of the file")),
    }
}
