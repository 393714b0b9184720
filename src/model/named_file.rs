//! Files that a person names on the command line to be read.

use std::fmt::Display;
use std::path::Path;

use super::error::Error;

/// The error for a named file that is missing or cannot be read, of kind
/// [`ErrorKind::Config`](super::error::ErrorKind::Config) for every option. `what` says what the
/// file is for, such as the option.
pub fn unreadable_file(what: &str, path: &Path, why: &dyn Display) -> Error {
    Error::config(format!("{what}: cannot read '{}': {why}", path.display()))
}
