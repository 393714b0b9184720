//! The root of the project that calls belong to.
//!
//! Owns: that it is looked for when it is first asked for, because most of the search is to find that
//! files are not there, and a run whose calls another process makes never asks. Never does: know where
//! configuration files lie.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::discover;
use super::environment::Environment;

/// The root, or what is needed to look for it.
#[derive(Debug, Clone, Default)]
pub struct ProjectRoot {
    named: Option<NamedFile>,
    found: OnceLock<Option<PathBuf>>,
}

/// A file that was named, and where it was.
#[derive(Debug, Clone)]
struct NamedFile {
    path: PathBuf,
    cwd: PathBuf,
    user: Option<PathBuf>,
}

impl ProjectRoot {
    /// A root that is known.
    pub(super) fn known(root: PathBuf) -> Self {
        Self { named: None, found: OnceLock::from(Some(root)) }
    }

    /// That of a file which was named, see [`discover::project_of_named`].
    pub(super) fn of_named(path: PathBuf, environment: &dyn Environment) -> Self {
        let named = NamedFile { path, cwd: environment.cwd(), user: environment.config_dir() };
        Self { named: Some(named), found: OnceLock::new() }
    }

    /// The root, links resolved; `None` where there is no project.
    pub(super) fn get(&self) -> Option<&PathBuf> {
        let search = || {
            let NamedFile { path, cwd, user } = self.named.as_ref()?;
            discover::project_of_named(path, cwd, user.as_deref())
        };
        self.found.get_or_init(search).as_ref()
    }
}
