//! The directory of an entry, opened once and kept open.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use cap_std::fs::Dir;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use super::{agent_data, errors};
use crate::model::{Error, ErrorPhase};
use crate::util::private_file;

/// A directory that is only passed through or held needs no right to be read.
#[cfg(target_os = "linux")]
const HOLD: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HOLD: OFlags = OFlags::empty();

#[derive(Debug)]
pub(super) struct RootDirectory {
    configured_path: PathBuf,
    real: PathBuf,
    create: bool,
    /// Where its content is until it is first used, if an earlier version kept it elsewhere.
    former: Option<PathBuf>,
    opened: OnceLock<Dir>,
}

impl RootDirectory {
    /// The directory at `written`, an absolute path. With `create` it is made when it is first
    /// used, readable only by its owner.
    pub(super) fn new(written: PathBuf, create: bool) -> Self {
        let real = real(&written);
        Self { configured_path: written, real, create, former: None, opened: OnceLock::new() }
    }

    /// The same for one whose content is at `former` until it is first used.
    pub(super) fn moved_from(former: PathBuf, written: PathBuf, create: bool) -> Self {
        Self { former: Some(former), ..Self::new(written, create) }
    }

    pub(super) fn of_user(&self, user: &str) -> Self {
        Self::new(agent_data::of_user(&self.configured_path, user), self.create)
    }

    /// Its path without links, for people.
    pub(super) fn shown(&self) -> String {
        self.real.display().to_string()
    }

    pub(super) fn spellings(&self) -> [&Path; 2] {
        [&self.real, &self.configured_path]
    }

    pub(super) fn will_be_created(&self) -> bool {
        self.create && !self.real.exists()
    }

    /// Why it cannot be used, as far as that can be seen without opening it.
    pub(super) fn obstacle(&self) -> Option<Error> {
        if self.opened.get().is_some() {
            return None;
        }
        match std::fs::symlink_metadata(&self.real) {
            Ok(metadata) if metadata.is_dir() => None,
            Ok(_) => Some(self.unusable(&Errno::NOTDIR.into())),
            Err(error)
                if (self.create || self.former.as_ref().is_some_and(|path| path.exists()))
                    && error.kind() == io::ErrorKind::NotFound =>
            {
                None
            }
            Err(error) => Some(self.unusable(&error)),
        }
    }

    pub(super) fn open(&self) -> Result<&Dir, Error> {
        if let Some(dir) = self.opened.get() {
            return Ok(dir);
        }
        self.take_former().map_err(|error| self.unusable(&error))?;
        let dir = descend(&self.real, self.create).map_err(|error| self.unusable(&error))?;
        Ok(self.opened.get_or_init(|| dir))
    }

    /// Moves what an earlier version kept elsewhere here, once.
    fn take_former(&self) -> io::Result<()> {
        let Some(former) = self.former.as_ref().filter(|path| path.is_dir()) else {
            return Ok(());
        };
        let Some(parent) = self.real.parent().filter(|_| !self.real.exists()) else {
            return Ok(());
        };
        private_file::make_directory(parent)?;
        match std::fs::rename(former, &self.real) {
            // Another process was first.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            moved => moved,
        }
    }

    fn unusable(&self, cause: &io::Error) -> Error {
        let path = self.real.display();
        let error = match cause.kind() {
            io::ErrorKind::NotFound => {
                Error::unreachable(format!("the directory {path} does not exist"))
                    .with_hint("create it, or set 'create: true' in the entry")
            }
            io::ErrorKind::NotADirectory => {
                Error::unreachable(format!("{path} is not a directory"))
                    .with_hint("'root_dir' in the entry is relative to its file")
            }
            _ => Error::unreachable(format!(
                "the directory {path} cannot be used: {}",
                errors::io_error_text(cause)
            )),
        };
        error.with_phase(ErrorPhase::Start)
    }
}

/// The path without links, as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => real(parent).join(name),
        (Some(parent), Some(Component::ParentDir)) => {
            let parent = real(parent);
            parent.parent().map_or(parent.clone(), Path::to_path_buf)
        }
        (Some(parent), Some(_)) => real(parent),
        _ => path.to_path_buf(),
    }
}

fn descend(path: &Path, create: bool) -> io::Result<Dir> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | HOLD;
    let mut at = openat(CWD, "/", flags, Mode::empty())?;
    for component in path.components() {
        let Component::Normal(name) = component else { continue };
        at = match openat(&at, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if create => {
                match mkdirat(&at, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(&at, name, flags, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok(Dir::from_std_file(std::fs::File::from(at)))
}
