//! Opening record files safely: no links, no files of other users.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{AppendError, DirectoryOwner};
use crate::util::private_file;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLocation {
    pub path: PathBuf,
    pub directory_owner: DirectoryOwner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub fn of(stat: &Stat) -> Self {
        #[expect(clippy::unnecessary_cast, reason = "the widths differ between systems")]
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
    }
}

#[derive(Debug)]
pub(super) struct OpenAppendFile {
    pub(super) directory: OwnedFd,
    pub(super) file: File,
    pub(super) identity: FileIdentity,
}

impl RecordLocation {
    pub fn own(directory: &Path, file: &str) -> Self {
        Self { path: directory.join(file), directory_owner: DirectoryOwner::Own }
    }

    pub fn named(path: PathBuf) -> Self {
        Self { path, directory_owner: DirectoryOwner::Named }
    }

    /// The directory; `.` for a bare name.
    pub fn parent(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    pub fn unreadable(&self, error: &io::Error) -> AppendError {
        self.failed("cannot be read", error)
    }

    pub(super) fn failed(&self, what: &str, error: &io::Error) -> AppendError {
        failed(&self.path, what, error)
    }

    /// Opens the file for appending, and makes it and its directory when they are missing. What
    /// was put right is added to `notes`.
    pub(super) fn open(&self, notes: &mut Vec<String>) -> Result<OpenAppendFile, AppendError> {
        let Some(name) = self.path.file_name() else {
            return Err(refused(&self.path, "is not the name of a file"));
        };
        let directory = self.directory(notes)?;
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let Some(file) = open_at(&directory, name, &self.path, flags)? else {
            return Err(self.failed("cannot be created", &Errno::NOENT.into()));
        };
        let stat = self.inspect(&file)?;
        // The process may have masked out rights of the owner too.
        let private = Mode::RUSR | Mode::WUSR;
        if Mode::from_raw_mode(stat.st_mode & 0o777) != private {
            rustix::fs::fchmod(&file, private)
                .map_err(|e| self.failed("cannot be made private", &e.into()))?;
        }
        if stat.st_mode & 0o077 != 0 {
            notes.push(format!(
                "{} could be used by others (mode {:04o}) and was set to 0600",
                self.path.display(),
                stat.st_mode & 0o7777
            ));
        }
        Ok(OpenAppendFile { directory, file: File::from(file), identity: FileIdentity::of(&stat) })
    }

    /// Opens the file for reading; `None` when it is not there.
    pub fn open_to_read(&self) -> Result<Option<(File, FileIdentity)>, AppendError> {
        let Some(name) = self.path.file_name() else {
            return Err(refused(&self.path, "is not the name of a file"));
        };
        let directory = match rustix::fs::open(self.parent(), self.flags(), Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(self.no_directory(errno)),
        };
        let Some(file) = open_at(&directory, name, &self.path, OFlags::RDONLY)? else {
            return Ok(None);
        };
        let stat = self.inspect(&file)?;
        Ok(Some((File::from(file), FileIdentity::of(&stat))))
    }

    fn inspect(&self, file: &OwnedFd) -> Result<Stat, AppendError> {
        let stat = rustix::fs::fstat(file).map_err(|e| self.failed("cannot be read", &e.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused(&self.path, "is not a regular file"));
        }
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(refused(&self.path, "belongs to another user"));
        }
        Ok(stat)
    }

    fn flags(&self) -> OFlags {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match self.directory_owner {
            DirectoryOwner::Own => flags | OFlags::NOFOLLOW,
            DirectoryOwner::Named => flags,
        }
    }

    fn no_directory(&self, errno: Errno) -> AppendError {
        let path = self.parent();
        match errno {
            // Linux says "not a directory" of a link that must not be followed. Anything else in
            // the directory's place is a mishap and leads nowhere.
            Errno::LOOP | Errno::NOTDIR if is_link(path) => refused(path, "is a symbolic link"),
            errno => failed(path, "cannot be opened", &errno.into()),
        }
    }

    /// Opens the directory, creating it if missing. Repairs are added to `notes`.
    pub fn directory(&self, notes: &mut Vec<String>) -> Result<OwnedFd, AppendError> {
        let path = self.parent();
        let open = || rustix::fs::open(path, self.flags(), Mode::empty());
        let opened = match open() {
            Err(Errno::NOENT) => {
                private_file::make_directory(path)
                    .map_err(|error| failed(path, "cannot be created", &error))?;
                open()
            }
            other => other,
        };
        let directory = opened.map_err(|errno| self.no_directory(errno))?;
        if self.directory_owner == DirectoryOwner::Own {
            let stat = rustix::fs::fstat(&directory)
                .map_err(|e| self.failed("cannot be read", &e.into()))?;
            if stat.st_uid != rustix::process::geteuid().as_raw() {
                return Err(refused(path, "belongs to another user"));
            }
            if stat.st_mode & 0o077 != 0 {
                rustix::fs::fchmod(&directory, Mode::RWXU)
                    .map_err(|e| self.failed("cannot be made private", &e.into()))?;
                notes.push(format!(
                    "{} was open to others (mode {:04o}) and was set to 0700",
                    path.display(),
                    stat.st_mode & 0o7777
                ));
            }
        }
        Ok(directory)
    }
}

/// `None` if the file does not exist.
fn open_at(
    directory: &OwnedFd,
    name: &std::ffi::OsStr,
    path: &Path,
    how: OFlags,
) -> Result<Option<OwnedFd>, AppendError> {
    // Not blocking, so that a FIFO in the file's place is found out instead of waited for.
    let flags = how | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(Some(file)),
        Err(Errno::LOOP) => Err(refused(path, "is a symbolic link")),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(failed(path, "cannot be opened", &errno.into())),
    }
}

pub(in crate::util) fn failed(path: &Path, what: &str, error: &io::Error) -> AppendError {
    AppendError::Failed(format!("{} {what}: {error}", path.display()))
}

fn refused(path: &Path, why: &str) -> AppendError {
    AppendError::Unsafe(format!("{} {why}", path.display()))
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}
