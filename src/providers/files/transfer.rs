//! The tools `copy`, `move` and `delete`, and what they refuse to overwrite.

use std::ffi::OsStr;
use std::io;

use cap_std::fs::{Dir, MetadataExt as _};

use super::job::{self, FileJob};
use super::replace::{self, FileReplacement, open_directory, rename_new};
use super::root::{self, RelativePath};
use super::write::success_result;
use crate::model::{Error, ToolResult};
use crate::providers::arguments::Arguments;
use crate::util::units;

/// Runs one call of `copy`: one file, whose mode the copy keeps.
pub(super) fn copy(job: &FileJob, arguments: Arguments<'_>) -> Result<ToolResult, Error> {
    let from = job.path(arguments, "from")?;
    let (file, metadata) = root::file(job, &from)?;
    let to = destination(job, arguments, &from)?;
    let overwrite = arguments.flag("overwrite")?;
    let target = FileReplacement::open(job, &to, true)?;
    if let Some(before) = target.existing() {
        if (before.dev(), before.ino()) == (metadata.dev(), metadata.ino()) {
            let (from, to) = (from.shown(), to.shown());
            return Err(Error::tool(format!("'{from}' and '{to}' are the same file")));
        }
        if !overwrite {
            return Err(job::already_exists_error(&to.shown()));
        }
    }
    let mut size = 0;
    let warnings = target.commit(Some(metadata.mode()), !overwrite, |new| {
        size = replace::copy_file(job, &file, new, u64::MAX)?;
        Ok(())
    })?;
    let (from, to, size) = (from.shown(), to.shown(), units::show_size(size));
    Ok(success_result(format!("copied '{from}' to '{to}' ({size})"), warnings))
}

/// Runs one call of `move`: a file, a link itself, or a directory with all that is in it.
pub(super) fn rename(job: &FileJob, arguments: Arguments<'_>) -> Result<ToolResult, Error> {
    let from = job.path(arguments, "from")?;
    let top = job.dir()?;
    let error = |cause: io::Error| job.io_error("move", from.path(), &cause);
    let Some((parent, name)) = from.entry_parts() else { return Err(no_name(&from, "move")) };
    let source = top.open_dir(parent).map_err(error)?;
    let moved = source.symlink_metadata(name).map_err(error)?;
    let to = destination(job, arguments, &from)?;
    let Some((parent, new)) = to.entry_parts() else { return Err(no_name(&to, "replace")) };
    let goal =
        open_directory(top, parent).map_err(|cause| job.io_error("write", to.path(), &cause))?;
    let overwrite = arguments.flag("overwrite")? && replaceable(&goal, new, &to)?;
    job.check_cancelled()?;
    let done = if overwrite && !moved.is_dir() {
        source.rename(name, &goal, new)
    } else {
        rename_new(&source, name, &goal, new)
    };
    match done {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
            Err(job::already_exists_error(&to.shown()))
        }
        Err(cause) if cause.kind() == io::ErrorKind::InvalidInput => {
            let from = from.shown();
            Err(Error::tool(format!("'{from}' cannot be moved into itself")))
        }
        Err(cause) => Err(error(cause)),
        Ok(()) => {
            Ok(success_result(format!("moved '{}' to '{}'", from.shown(), to.shown()), Vec::new()))
        }
    }
}

/// Runs one call of `delete`: a file, a link itself, or an empty directory.
pub(super) fn delete(job: &FileJob, arguments: Arguments<'_>) -> Result<ToolResult, Error> {
    let path = job.path(arguments, "path")?;
    let Some((parent, name)) = path.entry_parts() else { return Err(no_name(&path, "delete")) };
    let error = |cause: io::Error| job.io_error("delete", path.path(), &cause);
    let parent = job.dir()?.open_dir(parent).map_err(error)?;
    let metadata = parent.symlink_metadata(name).map_err(error)?;
    job.check_cancelled()?;
    let what = root::kind_phrase(metadata.file_type());
    if metadata.is_dir() {
        parent.remove_dir(name).map_err(|cause| match cause.kind() {
            io::ErrorKind::DirectoryNotEmpty => {
                Error::tool(format!("the directory '{}' is not empty", path.shown()))
                    .with_hint("delete its contents first")
            }
            _ => error(cause),
        })?;
    } else {
        parent.remove_file(name).map_err(error)?;
    }
    Ok(success_result(format!("deleted '{}', {what}", path.shown()), Vec::new()))
}

/// The destination: a path, or an existing directory, which gets it under its own name.
fn destination(
    job: &FileJob,
    arguments: Arguments<'_>,
    from: &RelativePath,
) -> Result<RelativePath, Error> {
    let to = job.path(arguments, "to")?;
    let is_directory = job.dir()?.metadata(to.path()).is_ok_and(|metadata| metadata.is_dir());
    match from.entry_parts() {
        Some((_, name)) if is_directory || to.file_parts().is_none() => Ok(to.join(name)),
        _ => Ok(to),
    }
}

/// Whether there is a file that may be replaced; `false` if there is no file.
fn replaceable(goal: &Dir, name: &OsStr, path: &RelativePath) -> Result<bool, Error> {
    match goal.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(metadata) if metadata.is_symlink() => {
            Err(Error::denied(format!("'{}' is a symbolic link", path.shown())))
        }
        Ok(metadata) => Err(root::no_file(path.path(), metadata.file_type())),
        Err(_) => Ok(false),
    }
}

fn no_name(path: &RelativePath, doing: &str) -> Error {
    Error::denied(format!("cannot {doing} '{}': it is the directory of these tools", path.shown()))
        .with_hint("name what is in it, without '..' at the end")
}
