//! The tool `list`: the entries of a directory, optionally recursive.

use serde_json::json;

use super::info;
use super::job::{FileJob, entry_limit};
use super::walk::{self, Walk, WalkControl};
use crate::model::{Error, ToolResult};
use crate::providers::arguments::Arguments;
use crate::util::text::safe_line;
use crate::util::units;

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
        let date = info::modified(&metadata).unwrap_or_default();
        let mark = match kind {
            kind if kind.is_dir() => "/",
            kind if kind.is_symlink() => "@",
            _ => "",
        };
        lines.push(format!("{date:<20} {size:>10}  {}{mark}", safe_line(&shown)));
        entries.push(info::entry(&shown, &metadata));
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
