//! Checking that the files named on the command line were read.
//!
//! Owns: the error of a command whose file cannot be read. Never does: read one.

use std::path::Path;

use crate::config::LoadRequest;
use crate::config::spec::Configuration;
use crate::model::Error;

/// Requires that every file given with `--tools` or `--mcp` could be read.
///
/// # Errors
/// A configuration error that names the first of them.
pub fn require_readable(
    request: &LoadRequest,
    cwd: &Path,
    configuration: &Configuration,
) -> Result<(), Error> {
    let named: Vec<_> = request
        .tools
        .iter()
        .chain(&request.added_tools)
        .chain(&request.servers)
        .map(|path| cwd.join(path))
        .collect();
    // A problem inside a file has a line, or the name of an entry.
    let unreadable = configuration.diagnostics.iter().find(|problem| {
        let place = problem.location.as_ref().filter(|place| place.line == 0);
        problem.is_error()
            && problem.entry.is_none()
            && place.is_some_and(|place| named.contains(&place.file))
    });
    let Some(problem) = unreadable else { return Ok(()) };
    let error = Error::config(problem.message.clone());
    Err(match &problem.hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    })
}
