//! The files that importing an entry's module may execute: what the user is asked to trust, and
//! what consent is bound to.
//!
//! Owns: what a module root offers for import, with links resolved, and its limits. Never does: run
//! an interpreter, or follow what code does once it runs. What is not listed here is refused when it
//! is imported, so leaving a file out is safe and only makes code unavailable.

mod packages;

use std::collections::{BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub(super) use self::packages::{PackageEnvironment, interpreter_config_files};
use super::entry::PythonKeys;
use super::installation;
use crate::config::consent::EntrySite;
use crate::config::node::ConfigNode;
use crate::config::typed;

use crate::model::Diagnostic;
use crate::providers::program_env::ProgramKeys;

const MAX_FILES: usize = 10_000;
const MAX_NAMES: usize = 200_000;

/// The files of code of an entry: everything below its root that can be imported, what `PYTHONPATH`
/// of the entry adds, and what a virtual environment or an interpreter of the project runs by itself
/// (see [`PackageEnvironment`]). Absolute, links resolved, sorted. Files that only root can write are
/// the system's and not listed.
///
/// `entry` is the entry as written.
pub fn code_files(entry: &ConfigNode, site: &EntrySite<'_>) -> Result<Vec<PathBuf>, Diagnostic> {
    let keys = typed::peek::<PythonKeys>(entry).zip(typed::peek::<ProgramKeys>(entry));
    let Some((keys, program)) = keys else { return Ok(Vec::new()) };
    let written = keys.root.as_ref().map_or(".", |root| root);
    let Some(root) = site.path(written) else {
        let diagnostic = Diagnostic::error(format!("'root' is set by a variable: {written}"));
        return Err(diagnostic
            .with_hint("write the directory itself: its code is part of what is trusted")
            .with_location(keys.root.map_or(entry.location(), |root| root.location)));
    };
    let mut roots = vec![root.clone()];
    roots.extend(search_path(&program, &root));
    for root in &roots {
        if let Some(file) = shadows(root) {
            let name = file.file_name().unwrap_or_default().display().to_string();
            return Err(Diagnostic::error(format!(
                "'{name}' in {} has the name of a module of Python's standard library and would be imported instead",
                root.display()
            ))
            .with_hint("rename it, or set 'root' to a directory without it")
            .with_location(entry.location()));
        }
    }
    let mut code_files = CodeFiles::default();
    let complete = roots.iter().try_for_each(|root| code_files.directory(root)).and_then(|()| {
        let named = keys.python.as_ref().map(|python| python.as_str());
        let Ok(interpreter) = installation::as_written(named, &program, &root, site) else {
            return Ok(());
        };
        code_files.interpreter(&interpreter, named, &[&root, site.base_dir])
    });
    match complete {
        Ok(()) => Ok(code_files.files.into_iter().collect()),
        Err(TooManyFiles) => Err(Diagnostic::error(format!(
            "more than {MAX_FILES} files can be imported below {}",
            root.display()
        ))
        .with_hint("set 'root' to a narrower directory with the modules and little else")
        .with_location(entry.location())),
    }
}

fn search_path(program: &ProgramKeys, root: &Path) -> Vec<PathBuf> {
    let text = program.variable("PYTHONPATH").unwrap_or_default();
    let places = text.split(':').filter(|place| !place.is_empty() && !place.contains("${"));
    places.map(|place| root.join(place)).collect()
}

/// What in a module root has the name of a module of the standard library. A directory without
/// `__init__` gives way to it, and so does not count.
fn shadows(root: &Path) -> Option<PathBuf> {
    let names = std::fs::read_dir(root).ok()?.flatten();
    let mut candidates: Vec<PathBuf> = names
        .map(|name| name.path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let (stem, rest) = name.split_once('.').unwrap_or((name, ""));
            packages::is_standard(stem)
                && if path.is_dir() { rest.is_empty() && is_package(path) } else { is_code(name) }
                && !only_root_writes(path)
        })
        .collect();
    candidates.sort_unstable();
    candidates.into_iter().next()
}

fn is_package(directory: &Path) -> bool {
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten();
    names.map(|name| name.file_name()).any(|name| {
        name.to_str().is_some_and(|name| name.starts_with("__init__.") && is_code(name))
    })
}

/// Whether a file of this name can be imported: source or an extension module.
fn is_code(name: &str) -> bool {
    matches!(Path::new(name).extension().and_then(|end| end.to_str()), Some("py" | "so"))
}

/// There are more files than [`MAX_FILES`], or more names than [`MAX_NAMES`].
#[derive(Debug)]
struct TooManyFiles;

#[derive(Debug, Default)]
struct CodeFiles {
    files: BTreeSet<PathBuf>,
    walked: HashSet<PathBuf>,
    names: usize,
}

impl CodeFiles {
    fn directory(&mut self, directory: &Path) -> Result<(), TooManyFiles> {
        let mut left = vec![directory.to_path_buf()];
        while let Some(directory) = left.pop() {
            let Ok(directory) = directory.canonicalize() else { continue };
            if !self.walked.insert(directory.clone()) {
                continue;
            }
            let Ok(names) = std::fs::read_dir(&directory) else { continue };
            for entry in names.flatten() {
                self.names += 1;
                if self.names > MAX_NAMES {
                    return Err(TooManyFiles);
                }
                let (path, name) = (entry.path(), entry.file_name());
                let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
                    continue;
                };
                if is_code(name) {
                    self.file(&path)?;
                } else if !matches!(name, "__pycache__" | "node_modules")
                    && path.is_dir()
                    && !is_excluded(&path)
                {
                    left.push(path);
                }
            }
        }
        Ok(())
    }

    /// One file, unless it is the system's.
    fn file(&mut self, path: &Path) -> Result<(), TooManyFiles> {
        let Ok(real) = path.canonicalize() else { return Ok(()) };
        if real.is_file() && !only_root_writes(&real) {
            self.files.insert(real);
        }
        if self.files.len() > MAX_FILES { Err(TooManyFiles) } else { Ok(()) }
    }

    /// What an interpreter runs before any code of the entry.
    fn interpreter(
        &mut self,
        program: &Path,
        named: Option<&str>,
        places: &[&Path],
    ) -> Result<(), TooManyFiles> {
        let environment = PackageEnvironment::of(program, places);
        if is_hashed(named, environment.as_ref()) {
            self.file(program)?;
        }
        for file in packages::interpreter_config_files(program) {
            self.file(&file)?;
        }
        environment.map_or(Ok(()), |environment| environment.collect(self))
    }
}

/// Whether the file of an interpreter counts as code: one that is named by its path or belongs to an
/// environment. One from `PATH` is the user's, and known by its path.
pub(super) fn is_hashed(named: Option<&str>, environment: Option<&PackageEnvironment>) -> bool {
    environment.is_some() || named.is_some_and(|named| named.contains('/'))
}

/// Whether a directory is no part of a project's code: an environment of packages, which counts when
/// its interpreter is used, or a cache (<https://bford.info/cachedir/>).
fn is_excluded(directory: &Path) -> bool {
    ["pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"].iter().any(|mark| directory.join(mark).exists())
        || (directory.join("bin/python3").exists() && directory.join("lib").is_dir())
}

/// Whether only root can change a file or put another in its place. For root itself, which would
/// include every file, no file counts as such.
pub(super) fn only_root_writes(path: &Path) -> bool {
    if rustix::process::geteuid().is_root() {
        return false;
    }
    let Ok(real) = path.canonicalize() else { return false };
    let roots_own = |path: &Path| {
        std::fs::symlink_metadata(path)
            .is_ok_and(|meta| meta.uid() == 0 && meta.mode() & 0o022 == 0)
    };
    real.ancestors().all(roots_own)
}

#[cfg(test)]
mod tests;
