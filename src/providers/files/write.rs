//! The tools `write`, `append` and `edit`, each replacing the file as a whole.

use std::io::Read as _;

use memchr::memmem;

use super::job::{FileJob, is_base64};
use super::replace::{self, FileReplacement};
use super::root::RelativePath;
use crate::model::{Error, ToolResult};
use crate::providers::arguments::Arguments;
use crate::util::{base64, units};

const MAX_WRITE_BYTES: usize = 16 << 20;
/// The largest file that is added to or edited: it is copied each time.
const MAX_REWRITE_BYTES: u64 = 64 << 20;

/// Runs one call of `write`, or of `append` when `append` is set.
pub(super) fn run(
    job: &FileJob,
    arguments: Arguments<'_>,
    append: bool,
) -> Result<ToolResult, Error> {
    let path = job.path(arguments, "path")?;
    let bytes = bytes(arguments)?;
    let append = append || arguments.flag("append")?;
    let target = FileReplacement::open(job, &path, true)?;
    let old = match target.existing() {
        Some(before) if append => {
            check_size(&path, before.len())?;
            Some(target.open_existing()?)
        }
        _ => None,
    };
    let existed = target.existing().is_some();
    let size = old.as_ref().map_or(0, |(_, metadata)| metadata.len()) + bytes.len() as u64;
    let warnings = target.commit(None, false, |file| {
        if let Some((old, _)) = old {
            replace::copy_file(job, &old, file, MAX_REWRITE_BYTES)?;
        }
        replace::write_bytes(job, file, &bytes)
    })?;
    let (shown, written) = (path.shown(), plural(bytes.len() as u64));
    Ok(success_result(
        match (existed, append) {
            (false, _) => format!("created '{shown}' with {written}"),
            (true, false) => format!("replaced the content of '{shown}' with {written}"),
            (true, true) => format!("added {written} to '{shown}', which now has {size}"),
        },
        warnings,
    ))
}

pub(super) fn edit(job: &FileJob, arguments: Arguments<'_>) -> Result<ToolResult, Error> {
    let path = job.path(arguments, "path")?;
    let old = arguments.text("old")?;
    let new = arguments.text("new")?;
    if old.is_empty() {
        return Err(Error::usage("'old' is empty: there is no text to replace"));
    }
    let target = FileReplacement::open(job, &path, false)?;
    let (file, metadata) = target.open_existing()?;
    check_size(&path, metadata.len())?;
    let mut content = Vec::new();
    file.take(MAX_REWRITE_BYTES)
        .read_to_end(&mut content)
        .map_err(|error| job.io_error("read", path.path(), &error))?;
    let places: Vec<usize> = memmem::find_iter(&content, old).collect();
    let at = match places.as_slice() {
        [at] => *at,
        [] => {
            return Err(Error::tool(format!("'{}' does not contain the old text", path.shown()))
                .with_hint("read the file again: spaces and line breaks count too"));
        }
        several => {
            let line = |at: &usize| line_of(&content, *at).to_string();
            let lines: Vec<String> = several.iter().take(10).map(line).collect();
            return Err(Error::tool(format!(
                "the old text occurs {} times in '{}', on the lines {}",
                several.len(),
                path.shown(),
                lines.join(", ")
            ))
            .with_hint("include more of the surrounding text, so that it is unique"));
        }
    };
    let line = line_of(&content, at);
    let parts = [
        content.get(..at).unwrap_or_default(),
        new.as_bytes(),
        content.get(at + old.len()..).unwrap_or_default(),
    ];
    let warnings = target.commit(None, false, |file| {
        parts.into_iter().try_for_each(|part| replace::write_bytes(job, file, part))
    })?;
    Ok(success_result(format!("changed '{}' at line {line}", path.shown()), warnings))
}

/// The number of the line with byte `at`, from 1.
fn line_of(content: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', content.get(..at).unwrap_or_default()).count() + 1
}

fn bytes(arguments: Arguments<'_>) -> Result<Vec<u8>, Error> {
    let text = arguments.text("text")?;
    let bytes = if is_base64(arguments)? {
        base64::decode(text).ok_or_else(|| Error::usage("'text' is not valid base64"))?
    } else {
        text.as_bytes().to_vec()
    };
    if bytes.len() > MAX_WRITE_BYTES {
        return Err(Error::usage(format!(
            "one call writes at most {}",
            units::show_size(MAX_WRITE_BYTES as u64)
        ))
        .with_hint("write the first part, and append the others"));
    }
    Ok(bytes)
}

fn check_size(path: &RelativePath, size: u64) -> Result<(), Error> {
    if size <= MAX_REWRITE_BYTES {
        return Ok(());
    }
    Err(Error::tool(format!(
        "'{}' has {}; files up to {} are changed, because each change copies the whole",
        path.shown(),
        units::show_size(size),
        units::show_size(MAX_REWRITE_BYTES)
    )))
}

fn plural(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

pub(super) fn success_result(text: String, warnings: Vec<String>) -> ToolResult {
    ToolResult { warnings, ..ToolResult::text(text) }
}
