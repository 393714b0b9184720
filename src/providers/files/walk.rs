//! Walking a directory in a fixed order, without following links.
//!
//! The tool `list`: the entries of a directory, optionally recursive.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, FileType};
use serde_json::json;

use super::job::{FileJob, entry_limit, is_dotfile};
use super::{root, walk};
use crate::model::{Error, ToolResult};
use crate::providers::arguments::Arguments;
use crate::util::text::safe_line;
use crate::util::units;

/// How deep it goes; deeper directories are named but not entered.
const MAX_DEPTH: usize = 64;
const MAX_NAMES: usize = 100_000;
/// How many entries are visited between checks for cancellation and progress reports.
const PROGRESS_INTERVAL: u64 = 512;

pub(super) struct WalkEntry<'a> {
    pub(super) dir: &'a Dir,
    pub(super) name: &'a OsStr,
    pub(super) path: &'a Path,
    pub(super) relative_path: &'a Path,
    /// What it is; a link is a link.
    pub(super) kind: FileType,
}

/// Whether to go on after an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkControl {
    Continue,
    /// Go on, but not into it.
    SkipChildren,
    /// End the walk; the rest is not visited.
    Stop,
}

pub(super) struct Walk<'a> {
    job: &'a FileJob,
    visited: u64,
    /// Directories that could not be read, or not wholly.
    pub(super) unreadable: Vec<String>,
}

impl<'a> Walk<'a> {
    /// A walk under the rules of `job`; it reads nothing before `for_each`.
    pub(super) fn new(job: &'a FileJob) -> Self {
        Self { job, visited: 0, unreadable: Vec::new() }
    }

    /// Meets everything below `start`, each directory before what is in it, names in the order of
    /// their bytes.
    pub(super) fn for_each(
        &mut self,
        start: &Path,
        meet: &mut dyn FnMut(&WalkEntry<'_>) -> Result<WalkControl, Error>,
    ) -> Result<(), Error> {
        let dir = self.job.dir()?;
        let error = |cause| self.job.io_error("list", start, &cause);
        let opened = dir.open_dir(start).map_err(error)?;
        let names = self.names(&opened, start).map_err(error)?;
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
        meet: &mut dyn FnMut(&WalkEntry<'_>) -> Result<WalkControl, Error>,
    ) -> Result<WalkControl, Error> {
        for (name, kind) in names {
            self.report_progress()?;
            let (path, below) = (at.join(&name), below.join(&name));
            let met = WalkEntry { dir, name: &name, path: &path, relative_path: &below, kind };
            match meet(&met)? {
                WalkControl::Stop => return Ok(WalkControl::Stop),
                WalkControl::Continue if kind.is_dir() => {}
                WalkControl::Continue | WalkControl::SkipChildren => continue,
            }
            if depth >= MAX_DEPTH {
                self.unreadable.push(format!("'{}' is nested too deeply", path.display()));
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
                    if next == WalkControl::Stop {
                        return Ok(WalkControl::Stop);
                    }
                }
                Err(error) => {
                    let why = super::job::io_error_text(&error);
                    self.unreadable.push(format!("'{}': {why}", path.display()));
                }
            }
        }
        Ok(WalkControl::Continue)
    }

    fn report_progress(&mut self) -> Result<(), Error> {
        self.visited += 1;
        if self.visited.is_multiple_of(PROGRESS_INTERVAL) {
            self.job.check_cancelled()?;
            self.job.progress(self.visited, None, format!("{} entries", self.visited));
        }
        Ok(())
    }

    fn names(&mut self, dir: &Dir, path: &Path) -> std::io::Result<Vec<(OsString, FileType)>> {
        let mut names = Vec::new();
        for entry in dir.entries()? {
            let entry = entry?;
            if names.len() == MAX_NAMES {
                let shown = path.display();
                self.unreadable.push(format!("'{shown}' has more than {MAX_NAMES} entries"));
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

pub(super) fn unreadable_line(unseen: &[String]) -> Option<String> {
    const SHOWN: usize = 5;
    let more = unseen.len().saturating_sub(SHOWN);
    let first = unseen.get(..SHOWN).unwrap_or(unseen).join(", ");
    match (unseen.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(format!("skipped: {first}")),
        (false, more) => Some(format!("skipped: {first} and {more} more")),
    }
}

/// Answers a call of `list`, up to the limit of entries.
pub(super) fn run(job: &FileJob, arguments: Arguments<'_>) -> Result<ToolResult, Error> {
    let path = job.directory(arguments)?;
    let recursive = arguments.flag("recursive")?;
    let limit = entry_limit(arguments)?;
    let mut entries = Vec::new();
    let mut lines = Vec::new();
    let mut truncated = false;
    let mut walk = Walk::new(job);
    walk.for_each(path.path(), &mut |entry| {
        if entries.len() == limit {
            truncated = true;
            return Ok(WalkControl::Stop);
        }
        // Entries removed since their names were read are skipped.
        let Ok(metadata) = entry.dir.symlink_metadata(entry.name) else {
            return Ok(WalkControl::SkipChildren);
        };
        let shown = entry.path.display().to_string();
        let kind = metadata.file_type();
        let size = if kind.is_file() { units::show_size(metadata.len()) } else { String::new() };
        let date = root::modified(&metadata).unwrap_or_default();
        let mark = match kind {
            kind if kind.is_dir() => "/",
            kind if kind.is_symlink() => "@",
            _ => "",
        };
        lines.push(format!("{date:<20} {size:>10}  {}{mark}", safe_line(&shown)));
        entries.push(root::entry(&shown, &metadata));
        Ok(if recursive && entry.name != ".git" {
            WalkControl::Continue
        } else {
            WalkControl::SkipChildren
        })
    })?;
    if entries.is_empty() {
        lines.push("(empty)".to_owned());
    }
    if truncated {
        lines.push(format!("[only the first {limit} entries; 'limit' allows more]"));
    }
    let structured = json!({ "path": path.shown(), "entries": entries, "truncated": truncated });
    Ok(ToolResult {
        success: true,
        output: structured.clone(),
        content: vec![json!({ "type": "text", "text": lines.join("\n") + "\n" })],
        structured: Some(structured),
        warnings: walk::unreadable_line(&walk.unreadable).into_iter().collect(),
        ..ToolResult::default()
    })
}
