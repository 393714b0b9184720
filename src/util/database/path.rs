//! The path of a database file, and creating a new one atomically.
//!
//! A new file is created under another name and linked into place when complete, so that an empty
//! file there always means damage.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;

use super::connect;
use crate::util::ids::{Ids as _, RandomIds};

const MAX_DRAFT_AGE: Duration = Duration::from_mins(1);

/// The directory of a file, open, and the name in it.
#[derive(Debug)]
pub struct DatabasePath {
    directory: OwnedFd,
    real: PathBuf,
    name: OsString,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStatus {
    /// There is nothing of this name.
    Missing,
    File {
        /// The length of the file in bytes.
        size: u64,
        inode: u64,
        /// The permission bits, such as `0o600`.
        mode: RawMode,
    },
    /// A symbolic link, which is never followed.
    Link,
    /// A directory, a device, a pipe.
    NotAFile,
    /// A file of another user.
    Foreign,
}

impl DatabasePath {
    /// The place of a file below `directory`, whose own links are followed.
    pub fn find(directory: &Path, name: &OsStr) -> io::Result<Self> {
        let real = directory.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&real, flags, Mode::empty())?;
        Ok(Self { directory, real, name: name.to_owned() })
    }

    /// The open directory, for system calls relative to it.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub fn file(&self) -> PathBuf {
        self.real.join(&self.name)
    }

    /// What stands there.
    ///
    /// It is looked at without being opened: closing any descriptor of a file gives up the locks
    /// that `SQLite` holds on it elsewhere in this process.
    pub fn inspect(&self) -> io::Result<PathStatus> {
        let stat = match rustix::fs::statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)
        {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(PathStatus::Missing),
            Err(errno) => return Err(errno.into()),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => PathStatus::Link,
            FileType::RegularFile if stat.st_uid != rustix::process::geteuid().as_raw() => {
                PathStatus::Foreign
            }
            FileType::RegularFile => PathStatus::File {
                size: u64::try_from(stat.st_size).unwrap_or(0),
                inode: stat.st_ino,
                mode: stat.st_mode & 0o7777,
            },
            _ => PathStatus::NotAFile,
        })
    }

    /// Removes the access of everyone but the owner.
    pub fn make_private(&self) -> io::Result<()> {
        let private = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::chmodat(&self.directory, &self.name, private, AtFlags::empty())?)
    }

    /// Makes a file under another name, lets `fill` make it whole, and puts it into its place. When
    /// another process was faster, its file stays.
    pub fn make(
        &self,
        lock_timeout: Duration,
        fill: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> io::Result<()> {
        let name = self.draft(&RandomIds.next());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let private = Mode::RUSR | Mode::WUSR;
        let draft = rustix::fs::openat(&self.directory, &name, flags, private)?;
        // The logs that SQLite creates next to the file get its permissions.
        rustix::fs::fchmod(&draft, private)?;
        drop(draft);
        let made = connect(&self.real.join(&name), OpenFlags::SQLITE_OPEN_READ_WRITE, lock_timeout)
            .and_then(|db| fill(&db))
            .map_err(io::Error::other);
        let linked = made.and_then(|()| {
            let dir = self.directory.as_fd();
            match rustix::fs::linkat(dir, &name, dir, &self.name, AtFlags::empty()) {
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

    /// Removes what was left of making a file by a process that was killed: drafts that were not
    /// changed for a minute. `now` is the time since the Unix epoch.
    pub fn remove_stale_drafts(&self, now: Duration) {
        use std::os::unix::ffi::OsStrExt as _;
        let beginning = self.draft("");
        // What cannot be inspected or removed stays for the next time.
        let Ok(entries) = rustix::fs::Dir::read_from(&self.directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !name.to_bytes().starts_with(beginning.as_bytes()) {
                continue;
            }
            let stat = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
            let old = |changed: i64| {
                now.saturating_sub(Duration::from_secs(changed.unsigned_abs())) > MAX_DRAFT_AGE
            };
            if stat.is_ok_and(|stat| old(stat.st_mtime)) {
                let _gone = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
            }
        }
    }

    fn draft(&self, identity: &str) -> OsString {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(format!(".new-{identity}"));
        name
    }

    /// How changes are kept until they are in the file: a log beside it needs shared memory, which
    /// file systems of other machines do not give.
    pub fn journal_mode(&self) -> &'static str {
        if is_remote(&self.directory) { "delete" } else { "wal" }
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
