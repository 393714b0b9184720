//! Copying, moving and deleting.

use std::ffi::OsStr;
use std::io;

use cap_std::fs::{Dir, MetadataExt as _};

use super::arguments::Arguments;
use super::inside::Inside;
use super::job::Job;
use super::replace::{Target, rename_new, way};
use super::write::told;
use super::{fill, open, trouble};
use crate::model::{Fault, ToolResult};
use crate::util::units;

const FROM: [&str; 2] = ["from", "source_path"];
const TO: [&str; 2] = ["to", "destination_path"];

/// Runs one call of `copy`: one file, whose mode the copy keeps.
pub(super) fn copy(job: &Job, arguments: &Arguments<'_>) -> Result<ToolResult, Fault> {
    let from = job.path(arguments, &FROM)?;
    let (file, metadata) = open::file(job, &from)?;
    let to = destination(job, arguments, &from)?;
    let overwrite = arguments.flag("overwrite")?;
    let target = Target::open(job, &to, true)?;
    if let Some(before) = target.before() {
        if (before.dev(), before.ino()) == (metadata.dev(), metadata.ino()) {
            let (from, to) = (from.shown(), to.shown());
            return Err(Fault::tool(format!("'{from}' and '{to}' are the same file")));
        }
        if !overwrite {
            return Err(trouble::taken(&to.shown()));
        }
    }
    let mut size = 0;
    let warnings = target.put(Some(metadata.mode()), !overwrite, |new| {
        size = fill::from(job, &file, new, u64::MAX)?;
        Ok(())
    })?;
    let (from, to, size) = (from.shown(), to.shown(), units::show_size(size));
    Ok(told(format!("copied '{from}' to '{to}' ({size})"), warnings))
}

/// Runs one call of `move`: a file, a link itself, or a directory with all that is in it.
pub(super) fn rename(job: &Job, arguments: &Arguments<'_>) -> Result<ToolResult, Fault> {
    let from = job.path(arguments, &FROM)?;
    let top = job.dir()?;
    let fault = |error: io::Error| job.fault("move", from.path(), &error);
    let Some((parent, name)) = from.place() else { return Err(no_name(&from, "move")) };
    let source = top.open_dir(parent).map_err(fault)?;
    let moved = source.symlink_metadata(name).map_err(fault)?;
    let to = destination(job, arguments, &from)?;
    let Some((parent, new)) = to.place() else { return Err(no_name(&to, "replace")) };
    let goal = way(top, parent).map_err(|error| job.fault("write", to.path(), &error))?;
    let overwrite = arguments.flag("overwrite")? && replaceable(&goal, new, &to)?;
    job.go_on()?;
    let done = if overwrite && !moved.is_dir() {
        source.rename(name, &goal, new)
    } else {
        rename_new(&source, name, &goal, new)
    };
    match done {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(trouble::taken(&to.shown()))
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let from = from.shown();
            Err(Fault::tool(format!("'{from}' cannot be moved into itself")))
        }
        Err(error) => Err(fault(error)),
        Ok(()) => Ok(told(format!("moved '{}' to '{}'", from.shown(), to.shown()), Vec::new())),
    }
}

/// Runs one call of `delete`: a file, a link itself, or an empty directory.
pub(super) fn delete(job: &Job, arguments: &Arguments<'_>) -> Result<ToolResult, Fault> {
    let path = job.path(arguments, &["path", "file_path"])?;
    let Some((parent, name)) = path.place() else { return Err(no_name(&path, "delete")) };
    let fault = |error: io::Error| job.fault("delete", path.path(), &error);
    let parent = job.dir()?.open_dir(parent).map_err(fault)?;
    let found = parent.symlink_metadata(name).map_err(fault)?;
    job.go_on()?;
    let what = open::kind(found.file_type());
    if found.is_dir() {
        parent.remove_dir(name).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty => {
                Fault::tool(format!("the directory '{}' is not empty", path.shown()))
                    .hint("delete what is in it first")
            }
            _ => fault(error),
        })?;
    } else {
        parent.remove_file(name).map_err(fault)?;
    }
    Ok(told(format!("deleted '{}', {what}", path.shown()), Vec::new()))
}

/// Where something goes: a path, or a directory that is there and takes it under its own name.
fn destination(job: &Job, arguments: &Arguments<'_>, from: &Inside) -> Result<Inside, Fault> {
    let to = job.path(arguments, &TO)?;
    let is_directory = job.dir()?.metadata(to.path()).is_ok_and(|found| found.is_dir());
    match from.place() {
        Some((_, name)) if is_directory || to.split().is_none() => Ok(to.join(name)),
        _ => Ok(to),
    }
}

/// Whether there is a file that may be replaced; `false` when there is nothing.
fn replaceable(goal: &Dir, name: &OsStr, path: &Inside) -> Result<bool, Fault> {
    match goal.symlink_metadata(name) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(found) if found.is_symlink() => {
            Err(Fault::denied(format!("'{}' is a symbolic link", path.shown())))
        }
        Ok(found) => Err(open::no_file(path.path(), found.file_type())),
        Err(_) => Ok(false),
    }
}

fn no_name(path: &Inside, doing: &str) -> Fault {
    Fault::denied(format!("cannot {doing} '{}': it is the directory of these tools", path.shown()))
        .hint("name what is in it, without '..' at the end")
}
