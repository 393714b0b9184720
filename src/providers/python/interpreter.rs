//! Which Python runs an entry's function.
//!
//! In this order: what the entry names, the virtual environment (`.venv`, `venv`) of the root or of
//! the file's directory, `python3` in `PATH`.

use std::path::{Path, PathBuf};

use super::entry::Entry;
use crate::config::environment::Environment;
use crate::config::node::Node;
use crate::config::spec::Site;
use crate::model::{Fault, Phase};
use crate::util::process::{ResolveError, resolve};

/// Where a virtual environment has its interpreter.
const OF_A_PROJECT: [&str; 2] = [".venv/bin/python", "venv/bin/python"];

/// The interpreter of an entry, as an absolute path that is executable.
///
/// # Errors
/// Where it was looked for.
pub(super) fn find(entry: &Entry, environment: &dyn Environment) -> Result<PathBuf, Fault> {
    let path = entry.env.get("PATH").cloned().or_else(|| environment.var("PATH"));
    locate(entry.python.as_deref(), &entry.root, &entry.base_dir, path.as_deref()).map_err(
        |error| {
            let fault = Fault::unreachable(error.to_string()).phase(Phase::Start);
            match (&entry.python, error) {
                (None, ResolveError::NotInPath { searched, .. }) => {
                    let searched: Vec<_> =
                        searched.iter().map(|d| d.display().to_string()).collect();
                    fault
                        .detail(format!("no .venv in {}", entry.root.display()))
                        .detail(format!("searched: {}", searched.join(":")))
                        .hint("install Python, or name an interpreter with 'python' in the entry")
                }
                _ => fault.hint("'python' in the entry is a name, or a path relative to its file"),
            }
        },
    )
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
    let in_project = [root, base_dir].into_iter().flat_map(|directory| {
        OF_A_PROJECT.iter().filter_map(|inside| resolve(inside, None, directory).ok())
    });
    match in_project.into_iter().next() {
        Some(found) => Ok(found),
        None => resolve("python3", path, base_dir),
    }
}

/// Lines about the interpreter of an entry, for a person who is asked to trust it.
pub(super) fn lines(entry: &Node, root: &Path, site: &Site<'_>) -> Vec<String> {
    let named = entry.get("python").and_then(|node| node.as_text().ok());
    let path = entry.get("env").and_then(|env| env.get("PATH"));
    let path = path.and_then(|node| node.as_scalar_text().ok());
    let path = path.or_else(|| site.environment.var("PATH"));
    let Ok(found) = locate(named, root, site.base_dir, path.as_deref()) else {
        return vec![format!("interpreter: {}, which is nowhere", named.unwrap_or("python3"))];
    };
    let real = found.canonicalize().unwrap_or_else(|_| found.clone());
    let mut lines = vec![if real == found {
        format!("interpreter: {}", found.display())
    } else {
        format!("interpreter: {} ({})", found.display(), real.display())
    }];
    if found.starts_with(site.base_dir) || found.starts_with(root) {
        lines.push(
            "warning: the interpreter and the packages installed for it are part of the project"
                .to_owned(),
        );
    }
    lines
}
