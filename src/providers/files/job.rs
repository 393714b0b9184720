//! The context of one call, passed to every operation.
//!
//! File system errors, with what to do about them.
//!
//! Leaving the directory, or anything that is not a file, is refused (denied). A missing file, or
//! one that the system does not permit, is a failure of the tool.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;

use cap_std::fs::Dir;
use tokio_util::sync::CancellationToken;

use super::operation::{DEFAULT_ENTRIES, MAX_ENTRIES};
use super::root::{RelativePath, RootDirectory};
use crate::model::{CallId, Error, EventSink, HostEvent};
use crate::providers::arguments::Arguments;
use crate::util::regular_file::reason;
use crate::util::units::float;

/// What an operation works with. Operations block, so they run beside the others' waiting and ask
/// now and then whether they should stop.
pub(super) struct FileJob {
    pub(super) root: Arc<RootDirectory>,
    /// Maximum part of a file in one result, in bytes.
    pub(super) max_bytes: u64,
    /// Whether names that start with a dot are inaccessible.
    pub(super) hides_dotfiles: bool,
    pub(super) cancel: CancellationToken,
    pub(super) call_id: CallId,
    pub(super) events: EventSink,
}

impl FileJob {
    pub(super) fn dir(&self) -> Result<&Dir, Error> {
        self.root.open()
    }

    pub(super) fn path(&self, arguments: Arguments<'_>, name: &str) -> Result<RelativePath, Error> {
        self.relative_path(arguments.text(name)?)
    }

    /// The directory under `path`; the topmost one when there is none.
    pub(super) fn directory(&self, arguments: Arguments<'_>) -> Result<RelativePath, Error> {
        let text = arguments.optional_text("path")?.unwrap_or(".");
        self.relative_path(text)
    }

    fn relative_path(&self, text: &str) -> Result<RelativePath, Error> {
        let inside = RelativePath::read(text, self.root.spellings())?;
        if self.hides_dotfiles && self.leads_to_a_dotfile(inside.path()) {
            return Err(Error::denied(format!(
                "'{text}' is a hidden file, and this project is not trusted yet"
            ))
            .with_hint("see what the project would do and allow it: toolhost trust"));
        }
        Ok(inside)
    }

    fn leads_to_a_dotfile(&self, path: &Path) -> bool {
        let hidden = |path: &Path| path.components().any(|part| is_dotfile(part.as_os_str()));
        let [real, _] = self.root.spellings();
        let target = real.join(path).canonicalize().ok();
        let below = target.as_deref().and_then(|target| target.strip_prefix(real).ok());
        hidden(path) || below.is_some_and(hidden)
    }

    /// The error for an error while `doing` something with `path`.
    pub(super) fn io_error(&self, doing: &str, path: &Path, error: &std::io::Error) -> Error {
        io_error(doing, &path.display().to_string(), &self.root.shown(), error)
    }

    pub(super) fn check_cancelled(&self) -> Result<(), Error> {
        if self.cancel.is_cancelled() { Err(stopped()) } else { Ok(()) }
    }

    pub(super) fn progress(&self, done: u64, total: Option<u64>, message: String) {
        self.events.emit(HostEvent::Progress {
            call_id: self.call_id.clone(),
            progress: float(done),
            total: total.map(float),
            message: Some(message),
        });
    }
}

/// The most entries or matches that a call wants.
pub(super) fn entry_limit(arguments: Arguments<'_>) -> Result<usize, Error> {
    let limit = arguments.count("limit", 1)?.unwrap_or(DEFAULT_ENTRIES).min(MAX_ENTRIES);
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

pub(super) fn is_base64(arguments: Arguments<'_>) -> Result<bool, Error> {
    match arguments.optional_text("encoding")? {
        None | Some("text") => Ok(false),
        Some("base64") => Ok(true),
        Some(_) => Err(Error::usage("'encoding' must be text or base64")),
    }
}

/// Whether a name is that of a hidden file; `.` and `..` are none.
pub(super) fn is_dotfile(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") && name != b"." && name != b".."
}

/// Whether the path led out of the directory: the capability layer reports it without an error
/// number of the system.
pub(super) fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

pub(super) fn outside(path: &str, root: &str) -> Error {
    Error::denied(format!("'{path}' is outside {root}"))
        .with_hint("give a path relative to that directory; nothing else is accessible")
}

/// The error for an error of the system while `doing` something with `path`.
pub(super) fn io_error(doing: &str, path: &str, root: &str, error: &io::Error) -> Error {
    if is_escape(error) {
        return outside(path, root);
    }
    match error.kind() {
        io::ErrorKind::NotFound => {
            Error::tool(format!("cannot {doing} '{path}': there is no such file or directory"))
        }
        _ => Error::tool(format!("cannot {doing} '{path}': {}", io_error_text(error))),
    }
}

/// The error for an error while new content was written for `path`.
pub(super) fn write_error(path: &str, existed: bool, error: &io::Error) -> Error {
    let still = if existed { "; the old content is kept" } else { "" };
    Error::tool(format!("cannot write '{path}': {}{still}", io_error_text(error)))
}

pub(super) fn already_exists_error(path: &str) -> Error {
    Error::tool(format!("'{path}' exists already")).with_hint("overwrite=true replaces a file")
}

pub(super) fn io_error_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
        io::ErrorKind::FileTooLarge => "the file would exceed the limit on file sizes".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is not a directory".to_owned(),
        io::ErrorKind::InvalidFilename => "the name is too long".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        io::ErrorKind::CrossesDevices => {
            "the other path is on another file system; copy and delete instead".to_owned()
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "too many symbolic links, or one where none is followed".to_owned()
        }
        _ => reason(error),
    }
}

pub(super) fn stopped() -> Error {
    Error::interrupted("the operation was stopped")
}
