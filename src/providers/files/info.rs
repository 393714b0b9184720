//! Metadata of a directory entry, read without opening it.

use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use serde_json::{Value, json};

use super::job::FileJob;
use super::open;
use crate::model::{Error, ToolResult};
use crate::providers::arguments::Arguments;

/// Answers a call of `info`: what kind of file it is, its size and times.
pub(super) fn run(job: &FileJob, arguments: Arguments<'_>) -> Result<ToolResult, Error> {
    let path = job.path(arguments, "path")?;
    let dir = job.dir()?;
    let error = |cause| job.io_error("look at", path.path(), &cause);
    let metadata = dir.symlink_metadata(path.path()).map_err(error)?;
    let mut value = entry(&path.shown(), &metadata);
    value["mode"] = json!(format!("{:04o}", metadata.mode() & 0o7777));
    value["links"] = json!(metadata.nlink());
    if metadata.is_symlink() {
        let target = target(dir, path.path()).map_err(error)?;
        value["target"] = json!(target);
    }
    Ok(ToolResult::json(value))
}

/// Where a link points, as written in the link.
fn target(dir: &Dir, path: &std::path::Path) -> std::io::Result<String> {
    Ok(dir.read_link_contents(path)?.display().to_string())
}

pub(super) fn entry(path: &str, metadata: &Metadata) -> Value {
    json!({
        "path": path,
        "type": open::type_name(metadata.file_type()),
        "size": metadata.len(),
        "modified": modified(metadata),
    })
}

/// The date of the last change, to the second, in UTC.
pub(super) fn modified(metadata: &Metadata) -> Option<String> {
    jiff::Timestamp::from_second(metadata.mtime()).ok().map(|at| at.to_string())
}
