//! Listing a directory.

use serde_json::json;

use super::arguments::Arguments;
use super::info;
use super::job::Job;
use super::walk::{self, Next, Walk};
use crate::model::{Fault, ToolResult};
use crate::util::text::safe_line;
use crate::util::units;

/// Runs one call.
pub(super) fn run(job: &Job, arguments: &Arguments<'_>) -> Result<ToolResult, Fault> {
    let path = job.directory(arguments)?;
    let recursive = arguments.flag("recursive")?;
    let limit = arguments.limit()?;
    let mut entries = Vec::new();
    let mut lines = Vec::new();
    let mut truncated = false;
    let mut walk = Walk::new(job);
    walk.through(path.path(), &mut |met| {
        if entries.len() == limit {
            truncated = true;
            return Ok(Next::End);
        }
        // What went away since its name was read is not there.
        let Ok(metadata) = met.dir.symlink_metadata(met.name) else { return Ok(Next::Past) };
        let shown = met.path.display().to_string();
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
        Ok(if recursive && met.name != ".git" { Next::On } else { Next::Past })
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
        warnings: walk::unseen(&walk.unseen).into_iter().collect(),
        ..ToolResult::default()
    })
}
