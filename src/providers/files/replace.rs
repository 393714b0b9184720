//! Replacing a file as a whole: a reader sees the old content or the new one, never a mixture, and
//! so does whoever comes after a crash.
//!
//! The new content goes into a temporary file beside the old one, is forced to the disk and takes
//! its name. Writers of one directory take turns by a lock on it, so that what a change is based on
//! cannot change meanwhile, and so that a temporary file that is found belongs to nobody alive: it
//! is removed by whoever writes there next. Where there are no locks (some network file systems)
//! the temporary file has a name of its own, and one that was left behind stays.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cap_std::fs::{
    Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt as _, Permissions,
    PermissionsExt as _,
};
use rustix::fs::{Access, AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::fill::Broken;
use super::inside::Inside;
use super::job::Job;
use super::{open, trouble};
use crate::model::Fault;

/// The temporary file of the writer whose turn it is. The name is taken: a file of this name that
/// is found is removed.
const TEMPORARY: &str = ".toolhost-write.tmp";

/// How long a writer waits for its turn: this often, this long each time.
const TURNS: u32 = 500;
const TURN: Duration = Duration::from_millis(10);

/// A file that is about to be replaced or created.
pub(super) struct Target<'a> {
    job: &'a Job,
    path: PathBuf,
    parent: Dir,
    name: OsString,
    temporary: OsString,
    /// The directory itself, locked and open for synchronising; `None` when it cannot be.
    turn: Option<OwnedFd>,
    /// What stands there now.
    before: Option<Metadata>,
}

impl<'a> Target<'a> {
    /// Takes the turn in the directory of `path`, which is created when `make_way` says so, and
    /// looks at what is there.
    ///
    /// # Errors
    /// Denied for a way out, a link and what is no file; the tool's no for a directory and for
    /// what the system does not permit.
    pub(super) fn open(job: &'a Job, path: &Inside, make_way: bool) -> Result<Self, Fault> {
        let Some((parent, name)) = path.split() else {
            return Err(Fault::tool(format!("'{}' is a directory, not a file", path.shown())));
        };
        if name == TEMPORARY {
            return Err(Fault::denied(format!(
                "the name '{TEMPORARY}' is taken by toolhost itself"
            )));
        }
        let fault = |error: io::Error| job.fault("write", path.path(), &error);
        let top = job.dir()?;
        let parent =
            if make_way { way(top, parent) } else { top.open_dir(parent) }.map_err(fault)?;
        let turn = take_turn(job, &parent, path)?;
        let temporary = if turn.is_some() {
            match parent.remove_file(TEMPORARY) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fault(error)),
                _ => OsString::from(TEMPORARY),
            }
        } else {
            OsString::from(format!(".toolhost-{}.tmp", uuid::Uuid::new_v4().simple()))
        };
        let before = match parent.symlink_metadata(name) {
            Ok(found) if found.is_file() => Some(found),
            Ok(found) if found.is_symlink() => {
                let shown = path.shown();
                return Err(Fault::denied(format!("'{shown}' is a symbolic link")).hint(
                    "links are not followed when something is written; name the file itself",
                ));
            }
            Ok(found) => return Err(open::no_file(path.path(), found.file_type())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fault(error)),
        };
        if before.is_some() {
            // A new file can take the name of one that must not be written; its mode is a wish of
            // its owner all the same.
            rustix::fs::accessat(&parent, name, Access::WRITE_OK, AtFlags::EACCESS)
                .map_err(|error| fault(error.into()))?;
        }
        let (path, name) = (path.path().to_path_buf(), name.to_owned());
        Ok(Self { job, path, parent, name, temporary, turn, before })
    }

    /// What stands there now.
    pub(super) fn before(&self) -> Option<&Metadata> {
        self.before.as_ref()
    }

    /// Opens what stands there now.
    ///
    /// # Errors
    /// When there is nothing, or it cannot be read.
    pub(super) fn content(&self) -> Result<(File, Metadata), Fault> {
        let fault = |error: io::Error| self.job.fault("read", &self.path, &error);
        let opened = open::plain(&self.parent, &self.name).map_err(fault)?;
        opened.ok_or_else(|| fault(Errno::NOENT.into()))
    }

    /// Lets `fill` write the new content and puts it in place, with the mode of what it replaces or
    /// with `mode`. An existing file that came meanwhile stays when `fresh` is set. Gives doubts
    /// to tell.
    ///
    /// # Errors
    /// With the reason; what stood there before stands there still.
    pub(super) fn put(
        self,
        mode: Option<u32>,
        fresh: bool,
        fill: impl FnOnce(&mut File) -> Result<(), Broken>,
    ) -> Result<Vec<String>, Fault> {
        let done = self.try_put(mode, fresh, fill);
        if done.is_err() {
            // It may never have been created; what cannot be removed is removed by the next writer.
            let _left = self.parent.remove_file(&self.temporary);
        }
        let path = || self.path.display().to_string();
        match done {
            Ok(()) => Ok(self.doubts()),
            Err(Broken::Stopped(fault)) => Err(fault),
            Err(Broken::System(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(trouble::taken(&path()))
            }
            Err(Broken::System(error)) => {
                Err(trouble::unwritten(&path(), self.before.is_some(), &error))
            }
        }
    }

    fn try_put(
        &self,
        mode: Option<u32>,
        fresh: bool,
        fill: impl FnOnce(&mut File) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let mode = self.before.as_ref().map(MetadataExt::mode).or(mode);
        let mut options = OpenOptions::new();
        // Nobody else reads what is to be private while it is being written.
        let at_first = if mode.is_some() { 0o600 } else { 0o666 };
        options.write(true).create_new(true).mode(at_first);
        let mut file = self.parent.open_with(&self.temporary, &options)?;
        fill(&mut file)?;
        if let Some(mode) = mode {
            file.set_permissions(Permissions::from_mode(mode & 0o777))?;
        }
        file.sync_all()?;
        self.job.go_on().map_err(Broken::Stopped)?;
        if fresh && self.before.is_none() {
            rename_new(&self.parent, &self.temporary, &self.parent, &self.name)?;
        } else {
            self.parent.rename(&self.temporary, &self.parent, &self.name)?;
        }
        if let Some(turn) = &self.turn {
            // Some file systems cannot force a directory to the disk; the file itself is there.
            let _unsupported = rustix::fs::fsync(turn);
        }
        Ok(())
    }

    fn doubts(&self) -> Vec<String> {
        let links = self.before.as_ref().map_or(0, MetadataExt::nlink);
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

/// Opens a directory, and makes it when it is missing.
///
/// # Errors
/// Those of the system, and a way out.
pub(super) fn way(top: &Dir, path: &Path) -> io::Result<Dir> {
    match top.open_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            top.create_dir_all(path)?;
            top.open_dir(path)
        }
        opened => opened,
    }
}

/// Renames, unless the new name is taken.
///
/// # Errors
/// That it exists, and those of the system.
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

/// Waits until nobody else writes in `dir`. `None` when the directory cannot be locked.
fn take_turn(job: &Job, dir: &Dir, path: &Inside) -> Result<Option<OwnedFd>, Fault> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(handle) = rustix::fs::openat(dir, ".", flags, Mode::empty()) else { return Ok(None) };
    for _ in 0..TURNS {
        match rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(handle)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(_) => return Ok(None),
        }
        job.go_on()?;
        std::thread::sleep(TURN);
    }
    Err(Fault::tool(format!(
        "cannot write '{}': another program has its directory locked",
        path.shown()
    )))
}
