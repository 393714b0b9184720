//! References that editors support besides variables: project directories, and user input.

use std::path::Path;

use super::environment::Environment;
use crate::util::text::variable_name;

/// The value of a reference to a directory, as editors define it: the directory `base` of the file
/// that contains it, its name, or the home directory. Such a reference reveals no user data.
pub fn place(reference: &str, base: &Path, environment: &dyn Environment) -> Option<String> {
    let place = match reference {
        "workspaceFolder" | "workspaceRoot" => base.to_string_lossy(),
        "workspaceFolderBasename" => base.file_name()?.to_string_lossy(),
        "userHome" => return Some(environment.home()?.to_string_lossy().into_owned()),
        "pathSeparator" | "/" => "/".into(),
        _ => return None,
    };
    Some(place.into_owned())
}

pub fn input_variable(input: &str) -> String {
    format!("TOOLHOST_INPUT_{}", variable_name(input))
}
