//! The interpreter of an entry and the files of its installation, found without running it.
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
use crate::util::regular_file;

/// The longest chain of links that is followed, as in the kernel.
const MAX_LINKS: usize = 40;
/// The largest settings that are read, in bytes.
const MAX_CONFIG_BYTES: u64 = 64 << 10;

/// What an interpreter reads that stands neither beside it nor beside the file it leads to: links
/// on the way there, and the installation that its virtual environment names.
pub(super) fn interpreter_paths(interpreter: &Path) -> Vec<PathBuf> {
    let real = interpreter.canonicalize().unwrap_or_else(|_| interpreter.to_path_buf());
    let near = [interpreter.parent(), real.parent()];
    let mut candidates = links(interpreter);
    candidates.extend(base_of(interpreter).into_iter().flat_map(|bin| {
        let beside = bin.parent().unwrap_or(&bin);
        [bin.clone(), beside.join("lib"), beside.join("lib64")]
    }));
    let is_near = |path: &PathBuf| {
        near.iter().flatten().any(|bin| {
            let libraries = bin.parent().map(|prefix| [prefix.join("lib"), prefix.join("lib64")]);
            path.starts_with(bin) || libraries.is_some_and(|directory| directory.contains(path))
        })
    };
    candidates.retain(|path| path.exists() && !is_near(path));
    candidates.dedup();
    candidates
}

fn links(path: &Path) -> Vec<PathBuf> {
    let next = |path: &PathBuf| Some(path.parent()?.join(std::fs::read_link(path).ok()?));
    let chain = std::iter::successors(next(&path.to_path_buf()), next);
    chain.take(MAX_LINKS).collect()
}

/// Where the installation behind a virtual environment has its programs: `home` in `pyvenv.cfg`.
fn base_of(interpreter: &Path) -> Option<PathBuf> {
    let bin = interpreter.parent()?;
    let settings = [bin.parent(), Some(bin)]
        .into_iter()
        .flatten()
        .find_map(|directory| read_small_file(&directory.join("pyvenv.cfg")))?;
    let home = settings.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        key.trim().eq_ignore_ascii_case("home").then(|| PathBuf::from(value.trim()))
    })?;
    home.is_absolute().then_some(home)
}

/// The interpreter that a shim of pyenv would start in `directory`: a shim is a script that reads
/// the whole of pyenv, and takes longer than Python itself. `version` is what `PYENV_VERSION` says.
/// Nothing for anything but a shim, and when only pyenv can tell.
pub(super) fn behind_shim(
    program: &Path,
    directory: &Path,
    version: Option<&str>,
) -> Option<PathBuf> {
    let shims = program.parent().filter(|parent| parent.ends_with("shims"))?;
    let versions = shims.parent()?.join("versions");
    if !versions.is_dir() {
        return None;
    }
    let chosen = match version.filter(|text| !text.is_empty()) {
        Some(version) => version.to_owned(),
        None => directory
            .ancestors()
            .map(|above| above.join(".python-version"))
            .chain([versions.with_file_name("version")])
            .find_map(|file| read_small_file(&file))?,
    };
    let uncommented = chosen.lines().map(|line| line.split('#').next().unwrap_or_default());
    let name = program.file_name()?;
    uncommented
        .flat_map(|line| line.split(|c: char| c == ':' || c.is_whitespace()))
        // A name of a directory and no path: the file may come with a project.
        .filter(|version| {
            !version.is_empty() && !version.contains('/') && !version.starts_with('.')
        })
        .map(|version| versions.join(version).join("bin").join(name))
        .find(|interpreter| interpreter.is_file())
}

fn read_small_file(file: &Path) -> Option<String> {
    regular_file::text(file, MAX_CONFIG_BYTES).ok()
}

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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn an_environment_leads_to_the_installation_it_was_made_from() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().canonicalize().unwrap().join(path);
        program(&at("cpython-3.12.5/bin/python3.12"));
        std::fs::create_dir(at("cpython-3.12.5/lib")).unwrap();
        symlink("cpython-3.12.5", at("cpython-3.12")).unwrap();
        std::fs::create_dir_all(at(".venv/bin")).unwrap();
        symlink(at("cpython-3.12/bin/python3.12"), at(".venv/bin/python")).unwrap();
        let home = at("cpython-3.12/bin").display().to_string();
        std::fs::write(at(".venv/pyvenv.cfg"), format!("home = {home}\nversion = 3\n")).unwrap();
        assert_eq!(
            interpreter_paths(&at(".venv/bin/python")),
            ["cpython-3.12/bin/python3.12", "cpython-3.12/bin", "cpython-3.12/lib"].map(at)
        );
        assert_eq!(interpreter_paths(&at("cpython-3.12.5/bin/python3.12")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_shim_is_looked_behind_and_leads_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for path in ["shims/python3", "versions/3.11.7/bin/python3", "versions/3.12.1/bin/python3"]
        {
            program(&at(path));
        }
        program(&at("project/bin/python3"));
        std::fs::write(at("version"), "3.11.7\n").unwrap();
        let of = |version| behind_shim(&at("shims/python3"), &at("project/deep"), version);
        let python = |version: &str| Some(at(&format!("versions/{version}/bin/python3")));
        assert_eq!(of(None), python("3.11.7"));
        assert_eq!(of(Some("3.13.0:3.12.1")), python("3.12.1"));
        std::fs::write(at("project/.python-version"), "# ours\n3.12.1\n").unwrap();
        assert_eq!(of(None), python("3.12.1"));
        for wrong in ["../project", "..", "3.13"] {
            std::fs::write(at("project/.python-version"), wrong).unwrap();
            assert_eq!(of(None), None, "{wrong}");
        }
        assert_eq!(behind_shim(&at("versions/3.11.7/bin/python3"), &at("project"), None), None);
    }
}
