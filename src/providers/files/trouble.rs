//! What went wrong with a file, as a fault that says what to do.
//!
//! A way out of the directory and a thing that is no file are refusals (denied). What is not there
//! or not permitted by the system is the tool's own no.

use std::io::{self, ErrorKind};

use crate::model::fault::Signal;
use crate::model::{Fault, FaultKind};

/// Whether the path led out of the directory: the capability layer says so without an error number
/// of the system.
pub(super) fn is_escape(error: &io::Error) -> bool {
    error.kind() == ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// A path that leads out of the directory.
pub(super) fn outside(path: &str, root: &str) -> Fault {
    Fault::denied(format!("'{path}' leads out of {root}"))
        .hint("give a path relative to that directory; nothing else can be reached from here")
}

/// The fault for an error of the system while `doing` something with `path`.
pub(super) fn of(doing: &str, path: &str, root: &str, error: &io::Error) -> Fault {
    if is_escape(error) {
        return outside(path, root);
    }
    match error.kind() {
        ErrorKind::NotFound => {
            Fault::tool(format!("cannot {doing} '{path}': there is no such file or directory"))
        }
        _ => Fault::tool(format!("cannot {doing} '{path}': {}", words(error))),
    }
}

/// The fault for an error while new content was written for `path`.
pub(super) fn unwritten(path: &str, existed: bool, error: &io::Error) -> Fault {
    let still = if existed { "; the old content stays" } else { "" };
    Fault::tool(format!("cannot write '{path}': {}{still}", words(error)))
}

/// A name that is taken already.
pub(super) fn taken(path: &str) -> Fault {
    Fault::tool(format!("'{path}' exists already")).hint("overwrite=true replaces a file")
}

/// The words of an error, without its number where the words say enough.
pub(super) fn words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull => "the disk is full".to_owned(),
        ErrorKind::QuotaExceeded => "the quota of the disk is used up".to_owned(),
        ErrorKind::FileTooLarge => "the file would pass the limit on file sizes".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        ErrorKind::NotADirectory => "a part of the path is no directory".to_owned(),
        ErrorKind::InvalidFilename => "the name is too long".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        ErrorKind::CrossesDevices => {
            "the other path is on another file system; copy and delete instead".to_owned()
        }
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "there are too many symbolic links, or one where none is followed".to_owned()
        }
        _ => {
            let text = error.to_string();
            let end = text.find(" (os error").unwrap_or(text.len());
            text.get(..end).unwrap_or(&text).to_lowercase()
        }
    }
}

/// The fault of a call that was told to stop.
pub(super) fn stopped() -> Fault {
    Fault::new(FaultKind::Interrupted(Signal::Interrupt), "the files were left before the end")
}
