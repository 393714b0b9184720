//! Opening the `SQLite` file safely: location, ownership and format are checked first, and a new file is
//! made completely or not at all, so that an empty one always means damage.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{Durability, StoreFile};
use crate::model::Error;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::{atomic_file, private_file};

const STATEMENTS: usize = 32;

/// Marks a file as a store (`PRAGMA application_id`), so that another program's file is never written
/// to: `THst`.
const APPLICATION_ID: i64 = 0x5448_7374;
/// The layout of the tables (`PRAGMA user_version`).
const VERSION: i64 = 1;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

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
        create(&db).map_err(failed)?;
        return Ok(StoreConnection { db, read_only: None });
    };
    let shown = file.path.display();
    let place = Place::find(file)?;
    if file.writable {
        let now = SystemTime::UNIX_EPOCH + SystemClock.unix();
        // What cannot be inspected or removed stays for the next time.
        let _left = atomic_file::remove_abandoned(&place.real, &place.draft(""), now);
    }
    if !place.check(file)? {
        if !file.writable {
            return Err(Error::unreachable(format!("the store {shown} does not exist yet"))
                .with_hint("a write through an entry without 'access: read' creates it"));
        }
        place.make().map_err(|what| {
            Error::unreachable(format!("the store {shown} cannot be created: {what}"))
        })?;
    }
    let failed = |error: rusqlite::Error| super::database_error(Some(file), &error);
    let access = if file.writable {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    let db = connect(&place.real.join(&place.name), access).map_err(failed)?;
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let version = number("user_version").map_err(failed)?;
    if number("application_id").map_err(failed)? != APPLICATION_ID {
        return Err(Error::denied(format!("{shown} is a database of another program"))
            .with_hint("give the store its own file"));
    }
    let read_only = if version > VERSION {
        Some(
            Error::unreachable(format!(
                "the store {shown} was written by a newer toolhost (layout {version}) and is opened read-only"
            ))
            .with_hint("write to it with that version"),
        )
    } else if !file.writable {
        Some(Error::denied(format!("the store {shown} was opened for reading")))
    } else {
        set_journaling(&db, file.sync, place.journal_mode()).map_err(failed)?;
        None
    };
    Ok(StoreConnection { db, read_only })
}

/// Opens the file at `path`, in which no link may be.
fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // One thread uses it at a time.
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(super::BUSY_TIMEOUT)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(db)
}

fn set_journaling(db: &Connection, durability: Durability, journal: &str) -> rusqlite::Result<()> {
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

/// Makes the tables in an empty database and marks it.
fn create(db: &Connection) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.execute_batch(super::LAYOUT)?;
    transaction.commit()
}

/// The directory of the file, open, and the name in it.
struct Place {
    directory: OwnedFd,
    real: PathBuf,
    name: OsString,
}

impl Place {
    /// The place of the file; its directory, whose own links are followed, is created if allowed.
    fn find(file: &StoreFile) -> Result<Self, Error> {
        let (Some(parent), Some(name)) = (file.path.parent(), file.path.file_name()) else {
            let shown = file.path.display();
            return Err(Error::config(format!("{shown} is not the name of a file")));
        };
        let cannot = |error: io::Error| {
            Error::unreachable(format!(
                "the directory {} cannot be used: {error}",
                parent.display()
            ))
        };
        stays_within(file, parent)?;
        if !parent.exists() && file.writable {
            private_file::make_directory(parent).map_err(cannot)?;
        }
        let real = parent.canonicalize().map_err(cannot)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let cannot = |errno: Errno| cannot(errno.into());
        let directory = rustix::fs::open(&real, flags, Mode::empty()).map_err(cannot)?;
        if file.own_directory {
            let stat = rustix::fs::fstat(&directory).map_err(cannot)?;
            if stat.st_uid != rustix::process::geteuid().as_raw() {
                return Err(Error::denied(format!("{} belongs to another user", parent.display())));
            }
            if stat.st_mode & 0o077 != 0 {
                rustix::fs::fchmod(&directory, Mode::RWXU).map_err(cannot)?;
            }
        }
        Ok(Self { directory, real, name: name.to_owned() })
    }

    /// Whether there is a file; it must be private, ours and not empty.
    ///
    /// It is looked at without being opened: closing any descriptor of a file gives up the locks
    /// that `SQLite` holds on it elsewhere in this process.
    fn check(&self, file: &StoreFile) -> Result<bool, Error> {
        let shown = file.path.display();
        let stat = match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
        {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => {
                let why = io::Error::from(errno);
                return Err(Error::unreachable(format!("{shown} cannot be inspected: {why}")));
            }
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => {
                return Err(Error::denied(format!("{shown} is a symbolic link"))
                    .with_hint("write the path of the file itself"));
            }
            _ => return Err(Error::denied(format!("{shown} is not a regular file"))),
        }
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Error::denied(format!("{shown} belongs to another user")));
        }
        if stat.st_size == 0 {
            return Err(super::damaged(&file.path, "it is empty"));
        }
        if stat.st_mode & 0o077 != 0 && file.writable {
            // A store is as private as what people put into it.
            rustix::fs::chmodat(&self.directory, &self.name, PRIVATE, AtFlags::empty()).map_err(
                |errno| {
                    let why = io::Error::from(errno);
                    Error::unreachable(format!("{shown} cannot be made private: {why}"))
                },
            )?;
        }
        Ok(true)
    }

    /// Makes a whole, empty store under another name and puts it into its place. When another process
    /// was faster, its store stays.
    fn make(&self) -> io::Result<()> {
        let name = self.draft(&uuid::Uuid::new_v4().simple().to_string());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let draft = rustix::fs::openat(&self.directory, &name, flags, PRIVATE)?;
        // The logs that SQLite creates next to the file get its permissions.
        rustix::fs::fchmod(&draft, PRIVATE)?;
        drop(draft);
        let fill = |db: Connection| {
            set_journaling(&db, Durability::Full, self.journal_mode())?;
            create(&db)
        };
        let made =
            connect(&self.real.join(&name), OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(fill);
        let linked = made.map_err(io::Error::other).and_then(|()| {
            let directory = &self.directory;
            match rustix::fs::linkat(directory, &name, directory, &self.name, AtFlags::empty()) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(errno.into()),
            }
        });
        // On a full disk SQLite leaves its own files beside it.
        for ending in ["", "-journal", "-wal", "-shm"] {
            let mut file = name.clone();
            file.push(ending);
            let _gone = rustix::fs::unlinkat(&self.directory, &file, AtFlags::empty());
        }
        linked?;
        // The name itself has to survive a power cut too.
        Ok(rustix::fs::fsync(&self.directory)?)
    }

    fn draft(&self, identity: &str) -> OsString {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(".");
        name.push(identity);
        name
    }

    /// How changes are kept until they are in the file: a log beside it needs shared memory, which
    /// file systems of other machines do not give.
    fn journal_mode(&self) -> &'static str {
        if is_remote(&self.directory) { "delete" } else { "wal" }
    }
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
