//! File system errors, with what to do about them.
//!
//! Leaving the directory, or anything that is not a file, is refused (denied). A missing file, or
//! one that the system does not permit, is a failure of the tool.

use std::io;

use crate::model::error::Signal;
use crate::model::{Error, ErrorKind};
use crate::util::regular_file::reason;

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
    Error::new(ErrorKind::Interrupted(Signal::Interrupt), "the operation was stopped")
}
