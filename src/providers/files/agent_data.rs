//! The directories of agents' data: one for each project, and one for each user of it.

use std::path::{Path, PathBuf};

use crate::providers::engines::config::hash;

/// The predefined directory of agents' data in the state directory, of which each project and user
/// has its own part. Earlier versions kept everything in it.
pub(super) const DIRECTORY: &str = "agent";

pub(super) fn of_project(state_dir: &Path, project: Option<&str>) -> PathBuf {
    let root = project.unwrap_or("no project");
    let name = root.rsplit('/').next().unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = name.chars().filter(is_plain).take(32).collect();
    state_dir.join("agents").join(format!("{name}-{}", hash(root, 6))).join("all")
}

/// Where the data of a user is, beside that of calls that name none.
pub(super) fn of_user(shared: &Path, user: &str) -> PathBuf {
    shared.with_file_name(format!("user-{}", hash(user, 16)))
}
