//! Writing, adding to and editing a file, each as one replacement of the whole.

use std::io::Read as _;

use memchr::memmem;

use super::arguments::Arguments;
use super::fill;
use super::inside::Inside;
use super::job::Job;
use super::replace::Target;
use crate::model::{Fault, ToolResult};
use crate::util::{base64, units};

/// The most that one call writes, in bytes.
const MOST: usize = 16 << 20;
/// The largest file that is added to or edited: it is copied each time.
const LARGEST: u64 = 64 << 20;

/// Runs one call of `write`, or of `append` when `append` is set.
pub(super) fn run(job: &Job, arguments: &Arguments<'_>, append: bool) -> Result<ToolResult, Fault> {
    let path = job.path(arguments, &["path", "file_path"])?;
    let bytes = bytes(arguments)?;
    let append = append || arguments.flag("append")?;
    let target = Target::open(job, &path, true)?;
    let old = match target.before() {
        Some(before) if append => {
            changeable(&path, before.len())?;
            Some(target.content()?)
        }
        _ => None,
    };
    let existed = target.before().is_some();
    let size = old.as_ref().map_or(0, |(_, metadata)| metadata.len()) + bytes.len() as u64;
    let warnings = target.put(None, false, |file| {
        if let Some((old, _)) = old {
            fill::from(job, &old, file, LARGEST)?;
        }
        fill::with(job, file, &bytes)
    })?;
    let (shown, written) = (path.shown(), plural(bytes.len() as u64));
    Ok(told(
        match (existed, append) {
            (false, _) => format!("created '{shown}' with {written}"),
            (true, false) => format!("replaced the content of '{shown}' by {written}"),
            (true, true) => format!("added {written} to '{shown}', which has {size} now"),
        },
        warnings,
    ))
}

/// Runs one call of `edit`.
pub(super) fn edit(job: &Job, arguments: &Arguments<'_>) -> Result<ToolResult, Fault> {
    let path = job.path(arguments, &["path", "file_path"])?;
    let old = arguments.required(&["old"])?;
    let new = arguments.required(&["new"])?;
    if old.is_empty() {
        return Err(Fault::usage("'old' is empty: nothing says where the new text belongs"));
    }
    let target = Target::open(job, &path, false)?;
    let (file, metadata) = target.content()?;
    changeable(&path, metadata.len())?;
    let mut content = Vec::new();
    file.take(LARGEST)
        .read_to_end(&mut content)
        .map_err(|error| job.fault("read", path.path(), &error))?;
    let places: Vec<usize> = memmem::find_iter(&content, old).collect();
    let at = match places.as_slice() {
        [at] => *at,
        [] => {
            return Err(Fault::tool(format!("'{}' does not hold the old text", path.shown()))
                .hint("read the file again: spaces and line breaks count too"));
        }
        several => {
            let line = |at: &usize| line_of(&content, *at).to_string();
            let lines: Vec<String> = several.iter().take(10).map(line).collect();
            return Err(Fault::tool(format!(
                "the old text stands {} times in '{}', on the lines {}",
                several.len(),
                path.shown(),
                lines.join(", ")
            ))
            .hint("give more of what surrounds it, so that it stands there once"));
        }
    };
    let line = line_of(&content, at);
    let parts = [
        content.get(..at).unwrap_or_default(),
        new.as_bytes(),
        content.get(at + old.len()..).unwrap_or_default(),
    ];
    let warnings = target.put(None, false, |file| {
        parts.into_iter().try_for_each(|part| fill::with(job, file, part))
    })?;
    Ok(told(format!("changed '{}' at line {line}", path.shown()), warnings))
}

/// The number of the line that holds byte `at`, from 1.
fn line_of(content: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', content.get(..at).unwrap_or_default()).count() + 1
}

/// The bytes a call wants written.
fn bytes(arguments: &Arguments<'_>) -> Result<Vec<u8>, Fault> {
    let text = arguments.required(&["text"])?;
    let bytes = if arguments.base64()? {
        base64::decode(text).ok_or_else(|| Fault::usage("'text' is no base64"))?
    } else {
        text.as_bytes().to_vec()
    };
    if bytes.len() > MOST {
        return Err(Fault::usage(format!(
            "one call writes at most {}",
            units::show_size(MOST as u64)
        ))
        .hint("write the first part, and append the others"));
    }
    Ok(bytes)
}

/// Refuses files whose copy would cost too much.
fn changeable(path: &Inside, size: u64) -> Result<(), Fault> {
    if size <= LARGEST {
        return Ok(());
    }
    Err(Fault::tool(format!(
        "'{}' has {}; files up to {} are changed, because each change copies the whole",
        path.shown(),
        units::show_size(size),
        units::show_size(LARGEST)
    )))
}

fn plural(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

/// A result that says what was done.
pub(super) fn told(words: String, warnings: Vec<String>) -> ToolResult {
    ToolResult { warnings, ..ToolResult::text(words) }
}
