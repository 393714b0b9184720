//! Opening the file: only where it may be, only if it is ours, and never half made.
//!
//! A new store is made under another name and linked into its place when it is whole, so that a
//! file without content in that place is always the trace of damage.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::layout::{self, Layout};
use super::{File, Sync, trouble};
use crate::model::Fault;
use crate::util::ids::{Ids as _, RandomIds};

/// How many statements stay prepared.
const STATEMENTS: usize = 32;

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
    let place = Place::find(file)?;
    if !place.check(file)? {
        if !file.writable {
            return Err(Fault::unreachable(format!("the store {shown} does not exist yet"))
                .hint("a write through an entry without 'access: read' makes it"));
        }
        place.make(file)?;
    }
    let failed = |error: rusqlite::Error| trouble::fault(&file.path, &error);
    let access = if file.writable {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    let db = connect(&place.file(), access).map_err(failed)?;
    let read_only = match layout::recognise(&db).map_err(failed)? {
        Layout::Foreign => {
            return Err(Fault::denied(format!("{shown} is a database of another program"))
                .hint("give the store a file of its own"));
        }
        Layout::Newer(version) => Some(
            Fault::unreachable(format!(
                "the store {shown} was made by a newer toolhost (layout {version}) and is only read"
            ))
            .hint("write to it with that version"),
        ),
        Layout::Ours if !file.writable => {
            Some(Fault::denied(format!("the store {shown} was opened for reading")))
        }
        Layout::Ours => {
            settle(&db, file.sync, place.journal()).map_err(failed)?;
            layout::bring_up(&db).map_err(failed)?;
            None
        }
    };
    Ok(Opened { db, read_only })
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // One thread uses it; links in the path were resolved before.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(trouble::PATIENCE)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(db)
}

/// Sets how the file is written, and makes sure of it.
fn settle(db: &Connection, sync: Sync, journal: &str) -> rusqlite::Result<()> {
    let set: String =
        db.pragma_update_and_check(None, "journal_mode", journal, |row| row.get(0))?;
    let wanted = match sync {
        Sync::Off => 0,
        Sync::Normal => 1,
        Sync::Full => 2,
    };
    db.pragma_update(None, "synchronous", wanted)?;
    let got: i64 = db.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if got != wanted || !set.eq_ignore_ascii_case(journal) {
        // Whoever asked for durable writes must not get others.
        return Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
            Some(format!("journal {set} and synchronous {got} instead of {journal} and {wanted}")),
        ));
    }
    Ok(())
}

/// The directory of a store, open, and the name in it.
struct Place {
    directory: OwnedFd,
    /// Where the directory really is.
    real: PathBuf,
    name: std::ffi::OsString,
}

impl Place {
    fn find(file: &File) -> Result<Self, Fault> {
        let (Some(parent), Some(name)) = (file.path.parent(), file.path.file_name()) else {
            return Err(Fault::config(format!(
                "{} is not the name of a file",
                file.path.display()
            )));
        };
        let cannot = |error: &io::Error| {
            Fault::unreachable(format!(
                "the directory {} cannot be used: {error}",
                parent.display()
            ))
        };
        stays_within(file, parent)?;
        if !parent.exists() && file.writable {
            use std::os::unix::fs::DirBuilderExt as _;
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
            made.map_err(|error| cannot(&error))?;
        }
        let real = parent.canonicalize().map_err(|error| cannot(&error))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(&real, flags, Mode::empty()).map_err(|errno| cannot(&errno.into()))?;
        if file.own_directory {
            let stat = rustix::fs::fstat(&directory).map_err(|errno| cannot(&errno.into()))?;
            if stat.st_uid != rustix::process::geteuid().as_raw() {
                return Err(Fault::denied(format!("{} belongs to another user", parent.display())));
            }
            if stat.st_mode & 0o077 != 0 {
                rustix::fs::fchmod(&directory, Mode::RWXU)
                    .map_err(|errno| cannot(&errno.into()))?;
            }
        }
        Ok(Self { directory, real, name: name.to_owned() })
    }

    fn file(&self) -> PathBuf {
        self.real.join(&self.name)
    }

    /// Whether there is a file; it has to be a private one of ours with something in it.
    ///
    /// It is looked at without being opened: closing any descriptor of a file gives up the locks
    /// that `SQLite` holds on it elsewhere in this process.
    fn check(&self, file: &File) -> Result<bool, Fault> {
        let shown = file.path.display();
        let stat = match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
        {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => {
                let error = io::Error::from(errno);
                return Err(Fault::unreachable(format!("{shown} cannot be looked at: {error}")));
            }
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => {
                return Err(Fault::denied(format!("{shown} is a symbolic link"))
                    .hint("write the path of the file itself"));
            }
            _ => return Err(Fault::denied(format!("{shown} is not a regular file"))),
        }
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Fault::denied(format!("{shown} belongs to another user")));
        }
        if stat.st_size == 0 {
            return Err(trouble::damaged(&file.path, "it is empty"));
        }
        if stat.st_mode & 0o077 != 0 && file.writable {
            // A store is as private as what people put into it.
            let private = Mode::RUSR | Mode::WUSR;
            rustix::fs::chmodat(&self.directory, &self.name, private, AtFlags::empty()).map_err(
                |errno| {
                    let error = io::Error::from(errno);
                    Fault::unreachable(format!("{shown} cannot be made private: {error}"))
                },
            )?;
        }
        Ok(true)
    }

    /// Makes a whole, empty store under another name and puts it into its place. When somebody
    /// else was faster, theirs stays.
    fn make(&self, file: &File) -> Result<(), Fault> {
        let cannot = |what: &dyn std::fmt::Display| {
            Fault::unreachable(format!("the store {} cannot be made: {what}", file.path.display()))
        };
        let mut name = std::ffi::OsString::from(".");
        name.push(&self.name);
        name.push(format!(".new-{}", RandomIds.next()));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let private = Mode::RUSR | Mode::WUSR;
        drop(
            rustix::fs::openat(&self.directory, &name, flags, private)
                .map_err(|errno| cannot(&io::Error::from(errno)))?,
        );
        let made = connect(&self.real.join(&name), OpenFlags::SQLITE_OPEN_READ_WRITE)
            .and_then(|db| {
                settle(&db, Sync::Full, self.journal())?;
                layout::make(&db)
            })
            .map_err(|error| cannot(&error));
        let linked = made.and_then(|()| {
            let dir = self.directory.as_fd();
            match rustix::fs::linkat(dir, &name, dir, &self.name, AtFlags::empty()) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(cannot(&io::Error::from(errno))),
            }
        });
        let _gone = rustix::fs::unlinkat(&self.directory, &name, AtFlags::empty());
        linked?;
        // The name itself has to survive a power cut too.
        rustix::fs::fsync(&self.directory).map_err(|errno| cannot(&io::Error::from(errno)))
    }

    /// How changes are kept until they are in the file: a log beside it needs shared memory, which
    /// file systems of other machines do not give.
    fn journal(&self) -> &'static str {
        if is_remote(&self.directory) { "delete" } else { "wal" }
    }
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

/// Whether the file system is another machine's, as far as the system says.
#[cfg(target_os = "linux")]
fn is_remote(directory: &OwnedFd) -> bool {
    /// NFS, SMB, CIFS, SMB2, 9P, AFS, Coda, Ceph, Lustre, FUSE (which may be anything).
    const REMOTE: [u64; 10] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x0102_1997,
        0x5346_414f,
        0x7375_7245,
        0x00c3_6400,
        0x0bd0_0bd0,
        0x6573_5546,
    ];
    rustix::fs::fstatfs(directory)
        .is_ok_and(|stat| u64::try_from(stat.f_type).is_ok_and(|kind| REMOTE.contains(&kind)))
}

#[cfg(not(target_os = "linux"))]
fn is_remote(_directory: &OwnedFd) -> bool {
    false
}
