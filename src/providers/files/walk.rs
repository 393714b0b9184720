//! Going through a directory in a fixed order, without following links.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, FileType};

use super::job::{Job, is_dotfile};
use crate::model::Fault;

/// How deep it goes; deeper directories are named but not entered.
const DEEPEST: usize = 64;
/// How many names of one directory are looked at.
const MOST_NAMES: usize = 100_000;
/// How often the call is asked whether it should stop, and told about, in entries.
const BEAT: u64 = 512;

/// What was met.
pub(super) struct Met<'a> {
    /// The directory it stands in.
    pub(super) dir: &'a Dir,
    /// Its name there.
    pub(super) name: &'a OsStr,
    /// Its path relative to the topmost directory.
    pub(super) path: &'a Path,
    /// Its path relative to where the walk began.
    pub(super) below: &'a Path,
    /// What it is; a link is a link.
    pub(super) kind: FileType,
}

/// Whether to go on after an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Go on, and into it when it is a directory.
    On,
    /// Go on, but not into it.
    Past,
    /// That was all.
    End,
}

/// A walk, and what it could not see.
pub(super) struct Walk<'a> {
    job: &'a Job,
    /// Entries met so far.
    met: u64,
    /// Directories that could not be read, or not wholly.
    pub(super) unseen: Vec<String>,
}

impl<'a> Walk<'a> {
    /// A walk for `job`.
    pub(super) fn new(job: &'a Job) -> Self {
        Self { job, met: 0, unseen: Vec::new() }
    }

    /// Meets everything below `start`, each directory before what is in it, names in the order of
    /// their bytes.
    ///
    /// # Errors
    /// When `start` cannot be read, the call was told to stop, or `meet` fails.
    pub(super) fn through(
        &mut self,
        start: &Path,
        meet: &mut dyn FnMut(&Met<'_>) -> Result<Next, Fault>,
    ) -> Result<(), Fault> {
        let dir = self.job.dir()?;
        let fault = |error| self.job.fault("list", start, &error);
        let opened = dir.open_dir(start).map_err(fault)?;
        let names = self.names(&opened, start).map_err(fault)?;
        let top = if start == Path::new(".") { Path::new("") } else { start };
        self.enter(&opened, names, top, &PathBuf::new(), 1, meet).map(drop)
    }

    fn enter(
        &mut self,
        dir: &Dir,
        names: Vec<(OsString, FileType)>,
        at: &Path,
        below: &Path,
        depth: usize,
        meet: &mut dyn FnMut(&Met<'_>) -> Result<Next, Fault>,
    ) -> Result<Next, Fault> {
        for (name, kind) in names {
            self.beat()?;
            let (path, below) = (at.join(&name), below.join(&name));
            let met = Met { dir, name: &name, path: &path, below: &below, kind };
            match meet(&met)? {
                Next::End => return Ok(Next::End),
                Next::On if kind.is_dir() => {}
                Next::On | Next::Past => continue,
            }
            if depth >= DEEPEST {
                self.unseen.push(format!("'{}' is too deep", path.display()));
                continue;
            }
            // The directory may have become a link since: it is opened beneath `dir`, so that it
            // cannot lead anywhere else.
            let inner = dir.open_dir(&name).and_then(|inner| {
                let names = self.names(&inner, &path)?;
                Ok((inner, names))
            });
            match inner {
                Ok((inner, names)) => {
                    let next = self.enter(&inner, names, &path, &below, depth + 1, meet)?;
                    if next == Next::End {
                        return Ok(Next::End);
                    }
                }
                Err(error) => {
                    let why = super::trouble::words(&error);
                    self.unseen.push(format!("'{}': {why}", path.display()));
                }
            }
        }
        Ok(Next::On)
    }

    fn beat(&mut self) -> Result<(), Fault> {
        self.met += 1;
        if self.met.is_multiple_of(BEAT) {
            self.job.go_on()?;
            self.job.progress(self.met, None, format!("{} entries", self.met));
        }
        Ok(())
    }

    /// The names in a directory, in order.
    fn names(&mut self, dir: &Dir, path: &Path) -> std::io::Result<Vec<(OsString, FileType)>> {
        let mut names = Vec::new();
        for entry in dir.entries()? {
            let entry = entry?;
            if names.len() == MOST_NAMES {
                let shown = path.display();
                self.unseen.push(format!("'{shown}' has more than {MOST_NAMES} entries"));
                break;
            }
            if self.job.hides_dotfiles && is_dotfile(&entry.file_name()) {
                continue;
            }
            names.push((entry.file_name(), entry.file_type()?));
        }
        names.sort_unstable_by(|(a, _), (b, _)| a.as_bytes().cmp(b.as_bytes()));
        Ok(names)
    }
}

/// A line about what a walk could not see.
pub(super) fn unseen(unseen: &[String]) -> Option<String> {
    const SHOWN: usize = 5;
    let more = unseen.len().saturating_sub(SHOWN);
    let first = unseen.get(..SHOWN).unwrap_or(unseen).join(", ");
    match (unseen.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(format!("not looked at: {first}")),
        (false, more) => Some(format!("not looked at: {first} and {more} more")),
    }
}
