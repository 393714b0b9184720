//! Replacing a file as a whole: readers see the old content or the new one, never a mixture, also
//! after a crash.
//!
//! The new content goes into a temporary file beside the old one, is forced to the disk and takes
//! its name. Writers of one directory take turns by a lock on it, so that what a change is based on
//! cannot change meanwhile, and so that a temporary file that is found belongs to no running
//! process: the next writer removes it. Where there are no locks (some network file systems) the
//! temporary file has a unique name, and one that was left behind stays.
//!
//! Writing a new file in pieces, so that the call can be cancelled in between.

use std::ffi::{OsStr, OsString};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cap_std::fs::{
    Dir, File, FileExt as _, Metadata, MetadataExt, OpenOptions, OpenOptionsExt as _, Permissions,
    PermissionsExt as _,
};
use rustix::fs::{Access, AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::job::{self, FileJob};
use super::root::{self, RelativePath};
use crate::model::Error;
use crate::util::units;

/// The temporary file of the writer whose turn it is. The name is taken: a file of this name that
/// is found is removed.
const TEMPORARY_NAME: &str = ".toolhost-write.tmp";

/// How long a writer waits for its turn: this often, this long each time.
const LOCK_ATTEMPTS: u32 = 500;
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

pub(super) struct FileReplacement<'a> {
    job: &'a FileJob,
    path: PathBuf,
    parent: Dir,
    name: OsString,
    temporary: OsString,
    /// The directory itself, locked and open for synchronising; `None` when it cannot be.
    lock: Option<OwnedFd>,
    /// The file that the new one will replace; `None` if there is none.
    existing: Option<Metadata>,
}

impl<'a> FileReplacement<'a> {
    /// Takes the turn in the directory of `path`, which is created when `make_way` says so, and
    /// inspects what is there.
    pub(super) fn open(
        job: &'a FileJob,
        path: &RelativePath,
        make_way: bool,
    ) -> Result<Self, Error> {
        let Some((parent, name)) = path.file_parts() else {
            return Err(Error::tool(format!("'{}' is a directory, not a file", path.shown())));
        };
        if name == TEMPORARY_NAME {
            return Err(Error::denied(format!(
                "the name '{TEMPORARY_NAME}' is reserved by toolhost"
            )));
        }
        let error = |cause: io::Error| job.io_error("write", path.path(), &cause);
        let top = job.dir()?;
        let parent = if make_way { open_directory(top, parent) } else { top.open_dir(parent) }
            .map_err(error)?;
        let turn = lock_directory(job, &parent, path)?;
        let temporary = if turn.is_some() {
            match parent.remove_file(TEMPORARY_NAME) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(error(cause)),
                _ => OsString::from(TEMPORARY_NAME),
            }
        } else {
            OsString::from(format!(".toolhost-{}.tmp", uuid::Uuid::new_v4().simple()))
        };
        let before = match parent.symlink_metadata(name) {
            Ok(metadata) if metadata.is_file() => Some(metadata),
            Ok(metadata) if metadata.is_symlink() => {
                let shown = path.shown();
                return Err(Error::denied(format!("'{shown}' is a symbolic link"))
                    .with_hint("links are not followed when writing; name the file itself"));
            }
            Ok(metadata) => return Err(root::no_file(path.path(), metadata.file_type())),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => return Err(error(cause)),
        };
        if before.is_some() {
            // A new file can take the name of one that must not be written; its mode is a wish of
            // its owner all the same.
            rustix::fs::accessat(&parent, name, Access::WRITE_OK, AtFlags::EACCESS)
                .map_err(|cause| error(cause.into()))?;
        }
        let (path, name) = (path.path().to_path_buf(), name.to_owned());
        Ok(Self { job, path, parent, name, temporary, lock: turn, existing: before })
    }

    /// The file that is replaced; `None` if there is none yet.
    pub(super) fn existing(&self) -> Option<&Metadata> {
        self.existing.as_ref()
    }

    pub(super) fn open_existing(&self) -> Result<(File, Metadata), Error> {
        let error = |cause: io::Error| self.job.io_error("read", &self.path, &cause);
        let opened = root::open_no_follow(&self.parent, &self.name).map_err(error)?;
        opened.ok_or_else(|| error(Errno::NOENT.into()))
    }

    /// Lets `fill` write the new content and puts it in place, with the mode of what it replaces or
    /// with `mode`. A file created meanwhile is kept if `fresh` is set. Returns
    /// warnings for the result.
    pub(super) fn commit(
        self,
        mode: Option<u32>,
        fresh: bool,
        fill: impl FnOnce(&mut File) -> Result<(), FillError>,
    ) -> Result<Vec<String>, Error> {
        let done = self.try_commit(mode, fresh, fill);
        if done.is_err() {
            // It may never have been created; what cannot be removed is removed by the next writer.
            let _left = self.parent.remove_file(&self.temporary);
        }
        let path = || self.path.display().to_string();
        match done {
            Ok(()) => Ok(self.warnings()),
            Err(FillError::Cancelled(error)) => Err(error),
            Err(FillError::Io(cause)) if cause.kind() == io::ErrorKind::AlreadyExists => {
                Err(job::already_exists_error(&path()))
            }
            Err(FillError::Io(cause)) => {
                Err(job::write_error(&path(), self.existing.is_some(), &cause))
            }
        }
    }

    fn try_commit(
        &self,
        mode: Option<u32>,
        fresh: bool,
        fill: impl FnOnce(&mut File) -> Result<(), FillError>,
    ) -> Result<(), FillError> {
        let mode = self.existing.as_ref().map(MetadataExt::mode).or(mode);
        let mut options = OpenOptions::new();
        // A file that is to be private is unreadable for others while it is being written.
        let at_first = if mode.is_some() { 0o600 } else { 0o666 };
        options.write(true).create_new(true).mode(at_first);
        let mut file = self.parent.open_with(&self.temporary, &options)?;
        fill(&mut file)?;
        if let Some(mode) = mode {
            file.set_permissions(Permissions::from_mode(mode & 0o777))?;
        }
        file.sync_all()?;
        self.job.check_cancelled()?;
        if fresh && self.existing.is_none() {
            rename_new(&self.parent, &self.temporary, &self.parent, &self.name)?;
        } else {
            self.parent.rename(&self.temporary, &self.parent, &self.name)?;
        }
        if let Some(turn) = &self.lock {
            // Some file systems cannot force a directory to the disk; the file itself is there.
            let _unsupported = rustix::fs::fsync(turn);
        }
        Ok(())
    }

    fn warnings(&self) -> Vec<String> {
        let links = self.existing.as_ref().map_or(0, MetadataExt::nlink);
        let shown = self.path.display();
        (links > 1)
            .then(|| {
                format!(
                    "'{shown}' was one of {links} hard links to one file: this name has the new \
                     content, the others keep the old one"
                )
            })
            .into_iter()
            .collect()
    }
}

pub(super) fn open_directory(top: &Dir, path: &Path) -> io::Result<Dir> {
    match top.open_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            top.create_dir_all(path)?;
            top.open_dir(path)
        }
        opened => opened,
    }
}

/// Renames, unless the new name is taken.
pub(super) fn rename_new(from: &Dir, old: &OsStr, to: &Dir, new: &OsStr) -> io::Result<()> {
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // The file system cannot do it in one step; the look before the step is all there is.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match to.symlink_metadata(new) {
            Ok(_) => Err(Errno::EXIST.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => from.rename(old, to, new),
            Err(error) => Err(error),
        },
        done => done.map_err(io::Error::from),
    }
}

/// Waits until no other process writes in `dir`. `None` when the directory cannot be locked.
fn lock_directory(job: &FileJob, dir: &Dir, path: &RelativePath) -> Result<Option<OwnedFd>, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(handle) = rustix::fs::openat(dir, ".", flags, Mode::empty()) else { return Ok(None) };
    for _ in 0..LOCK_ATTEMPTS {
        match rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(handle)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
        job.check_cancelled()?;
        std::thread::sleep(LOCK_RETRY_INTERVAL);
    }
    Err(Error::tool(format!(
        "cannot write '{}': another program has its directory locked",
        path.shown()
    )))
}

/// How much is written between two looks at whether to stop, in bytes.
const CHUNK_BYTES: usize = 256 << 10;
const PROGRESS_INTERVAL_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(super) enum FillError {
    Io(io::Error),
    Cancelled(Error),
}

impl From<io::Error> for FillError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for FillError {
    fn from(error: Error) -> Self {
        Self::Cancelled(error)
    }
}

pub(super) fn write_bytes(job: &FileJob, file: &mut File, bytes: &[u8]) -> Result<(), FillError> {
    for piece in bytes.chunks(CHUNK_BYTES) {
        job.check_cancelled()?;
        file.write_all(piece)?;
    }
    Ok(())
}

/// Copies at most `most` bytes of one file into a new one, and stands at its end; gives how many.
/// Holes are passed over and stay holes, so that they cost neither time nor space.
pub(super) fn copy_file(
    job: &FileJob,
    old: &File,
    new: &mut File,
    most: u64,
) -> Result<u64, FillError> {
    let mut piece = vec![0; CHUNK_BYTES];
    let (mut done, mut reported) = (0_u64, 0_u64);
    loop {
        job.check_cancelled()?;
        match rustix::fs::seek(old, rustix::fs::SeekFrom::Data(done)) {
            Ok(data) if data > done => {
                done = data.min(most);
                new.seek(SeekFrom::Start(done))?;
            }
            // Only a hole is left, or nothing.
            Err(Errno::NXIO) => done = done.max(old.metadata()?.len().min(most)),
            // The file system does not support holes.
            Ok(_) | Err(_) => {}
        }
        let room = usize::try_from(most - done).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let count = old.read_at(piece.get_mut(..room).unwrap_or_default(), done)?;
        if count == 0 {
            // A hole at the very end was passed over too, but it counts.
            new.set_len(done)?;
            new.seek(SeekFrom::Start(done))?;
            return Ok(done);
        }
        new.write_all(piece.get(..count).unwrap_or_default())?;
        done += count as u64;
        if done - reported >= PROGRESS_INTERVAL_BYTES {
            reported = done;
            job.progress(done, None, format!("{} copied", units::show_size(done)));
        }
    }
}
