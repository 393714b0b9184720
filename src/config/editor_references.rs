//! References that editors know beside variables: places of the project, and what a person is asked.
//!
//! Owns: what each stands for. Never does: read a variable.

use std::path::Path;

use super::environment::Environment;

/// What a reference to a place stands for, as editors write it: the directory `base` of the file
/// that says it, its name, or the home directory. Such a reference holds nothing of the user's.
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

/// The variable that holds what an editor would ask a person for.
pub fn input_variable(input: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("TOOLHOST_INPUT_{}", input.chars().map(fits).collect::<String>())
}
