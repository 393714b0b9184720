//! Choosing the interpreter of an entry.
//!
//! In this order: what the entry names, the virtual environment (`.venv`, `venv`) of the root or of
//! the file's directory, `python3` in `PATH`. Of pyenv, what stands behind its shim.

use std::path::{Path, PathBuf};

use super::entry::PythonEntry;
use super::installation;
use crate::config::consent::EntrySite;
use crate::config::environment::Environment;
use crate::model::{Error, ErrorPhase};
use crate::providers::program_env::ProgramKeys;
use crate::util::process::{ResolveError, resolve};

const VENV_INTERPRETERS: [&str; 2] = [".venv/bin/python", "venv/bin/python"];

const PYENV_VERSION: &str = "PYENV_VERSION";

pub(super) fn find(entry: &PythonEntry, environment: &dyn Environment) -> Result<PathBuf, Error> {
    let path = entry.env.get("PATH").cloned().or_else(|| environment.var("PATH"));
    let passed = entry.env_keys.iter().any(|key| key == PYENV_VERSION);
    let passed = || passed.then(|| environment.var(PYENV_VERSION)).flatten();
    let version = entry.env.get(PYENV_VERSION).cloned().or_else(passed);
    let named = entry.python.as_deref();
    let interpreter = locate(named, &entry.root, &entry.base_dir, path.as_deref());
    interpreter
        .map(|interpreter| without_shim(interpreter, &entry.root, version.as_deref()))
        .map_err(|cause| {
            let error = Error::unreachable(cause.to_string()).with_phase(ErrorPhase::Start);
            let (None, ResolveError::NotInPath { searched, .. }) = (named, cause) else {
                return error
                    .with_hint("'python' in the entry is a name, or a path relative to its file");
            };
            let searched: Vec<_> = searched.iter().map(|d| d.display().to_string()).collect();
            error
                .with_detail(format!("no .venv in {}", entry.root.display()))
                .with_detail(format!("searched: {}", searched.join(":")))
                .with_hint("install Python, or name an interpreter with 'python' in the entry")
        })
}

fn locate(
    named: Option<&str>,
    root: &Path,
    base_dir: &Path,
    path: Option<&str>,
) -> Result<PathBuf, ResolveError> {
    if let Some(named) = named {
        return resolve(named, path, base_dir);
    }
    match in_project(&[root, base_dir]) {
        Some(interpreter) => Ok(interpreter),
        None => resolve("python3", path, base_dir),
    }
}

/// The interpreter of a virtual environment in one of these directories.
fn in_project(directories: &[&Path]) -> Option<PathBuf> {
    directories.iter().find_map(|directory| {
        VENV_INTERPRETERS.iter().find_map(|inside| resolve(inside, None, directory).ok())
    })
}

fn without_shim(interpreter: PathBuf, root: &Path, version: Option<&str>) -> PathBuf {
    let behind = installation::behind_shim(&interpreter, root, version);
    behind.and_then(|path| resolve(path.to_str()?, None, root).ok()).unwrap_or(interpreter)
}

/// The interpreter of an entry as written: the one it names, else that of a virtual environment
/// of the project, else the one in `PATH`.
pub(super) fn named(written: Option<&str>, root: Option<&Path>, base_dir: &Path) -> String {
    if let Some(named) = written {
        return named.to_owned();
    }
    let directories: Vec<&Path> = root.into_iter().chain([base_dir]).collect();
    in_project(&directories)
        .map_or_else(|| "python3".to_owned(), |path| path.to_string_lossy().into_owned())
}

/// The interpreter of an entry that was not read yet, as far as no variable decides it.
pub(super) fn as_written(
    named: Option<&str>,
    program: &ProgramKeys,
    root: &Path,
    site: &EntrySite<'_>,
) -> Result<PathBuf, ResolveError> {
    let path = site.search_path(program.variable("PATH"));
    let version = program.variable(PYENV_VERSION).filter(|version| !version.contains("${"));
    let interpreter = locate(named, root, site.base_dir, path.as_deref())?;
    Ok(without_shim(interpreter, root, version))
}
