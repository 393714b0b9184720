//! The root of the project that calls belong to.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::discover;
use super::environment::Environment;

#[derive(Debug, Clone, Default)]
pub struct ProjectRoot {
    named: Option<NamedFile>,
    found: OnceLock<Option<PathBuf>>,
}

#[derive(Debug, Clone)]
struct NamedFile {
    path: PathBuf,
    cwd: PathBuf,
    user: Option<PathBuf>,
}

impl ProjectRoot {
    pub(super) fn at(root: PathBuf) -> Self {
        Self { named: None, found: OnceLock::from(Some(root)) }
    }

    /// The root for an explicitly named file, see [`discover::project_of_named`].
    pub(super) fn of_named(path: PathBuf, environment: &dyn Environment) -> Self {
        let named = NamedFile { path, cwd: environment.cwd(), user: environment.config_dir() };
        Self { named: Some(named), found: OnceLock::new() }
    }

    /// The root, links resolved; `None` if there is no project.
    pub(super) fn get(&self) -> Option<&PathBuf> {
        let search = || {
            let NamedFile { path, cwd, user } = self.named.as_ref()?;
            discover::project_of_named(path, cwd, user.as_deref())
        };
        self.found.get_or_init(search).as_ref()
    }
}
