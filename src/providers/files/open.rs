//! Opening entries of the directory: regular files only, never pipes or devices.

use std::ffi::OsStr;
use std::path::Path;

use cap_std::fs::{
    Dir, File, FileType, FileTypeExt as _, Metadata, OpenOptions, OpenOptionsExt as _,
};
use rustix::fs::OFlags;

use super::job::FileJob;
use super::relative_path::RelativePath;
use crate::model::Error;

pub(super) fn kind_phrase(kind: FileType) -> &'static str {
    if kind.is_file() {
        "a file"
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else {
        "neither a file nor a directory"
    }
}

pub(super) fn type_name(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_file() => "file",
        kind if kind.is_dir() => "directory",
        kind if kind.is_symlink() => "link",
        _ => "other",
    }
}

pub(super) fn no_file(path: &Path, file_type: FileType) -> Error {
    let message = format!("'{}' is {}, not a file", path.display(), kind_phrase(file_type));
    if file_type.is_dir() { Error::tool(message) } else { Error::denied(message) }
}

/// Opening must neither wait for the other end of a pipe nor take over a terminal.
fn options(more: OFlags) -> OpenOptions {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | more;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    options
}

/// Opens a regular file for reading. Links are followed as long as they stay in the directory.
pub(super) fn file(job: &FileJob, path: &RelativePath) -> Result<(File, Metadata), Error> {
    let dir = job.dir()?;
    let path = path.path();
    let error = |cause| job.io_error("read", path, &cause);
    // Checked first, because merely opening some devices makes them act; checked again when open,
    // because it may have changed in between.
    let file_type = dir.metadata(path).map_err(error)?.file_type();
    if !file_type.is_file() {
        return Err(no_file(path, file_type));
    }
    let file = dir.open_with(path, &options(OFlags::empty())).map_err(error)?;
    let metadata = file.metadata().map_err(error)?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(no_file(path, metadata.file_type())) }
}

/// Opens the regular file `name` of `dir` for reading; no link is followed.
pub(super) fn open_no_follow(dir: &Dir, name: &OsStr) -> std::io::Result<Option<(File, Metadata)>> {
    if !dir.symlink_metadata(name)?.is_file() {
        return Ok(None);
    }
    let file = dir.open_with(name, &options(OFlags::NOFOLLOW))?;
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata)))
}
