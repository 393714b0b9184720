//! A project's virtual environment: what of it runs by itself, and what its packages list as their
//! files.
//!
//! The names of Python's standard library.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::{CodeFiles, TooManyFiles, is_code};

/// The largest text file that is read here, in bytes.
const MAX_TEXT_BYTES: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::providers::python) struct PackageEnvironment {
    prefix: PathBuf,
}

impl PackageEnvironment {
    /// The environment an interpreter belongs to: any virtual one, and one inside of `places`. None
    /// for the user's own Python.
    pub(in crate::providers::python) fn of(interpreter: &Path, places: &[&Path]) -> Option<Self> {
        let prefix = interpreter.parent()?.parent()?.to_path_buf();
        let is_virtual =
            interpreter_config_files(interpreter).iter().any(|file| file.ends_with("pyvenv.cfg"));
        let is_inside = || {
            let real = interpreter.canonicalize().ok();
            places.iter().any(|place| {
                let real_place = place.canonicalize().ok();
                interpreter.starts_with(place)
                    || real.iter().zip(real_place).any(|(real, place)| real.starts_with(place))
            })
        };
        (is_virtual || is_inside()).then_some(Self { prefix })
    }

    pub(in crate::providers::python) fn packages(&self) -> Vec<PathBuf> {
        let libraries = ["lib", "lib64"].map(|name| self.prefix.join(name));
        let versions = libraries.iter().flat_map(|library| names_in(library)).filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("python") || name.starts_with("pypy")
        });
        let directories: BTreeSet<PathBuf> = versions
            .flat_map(|version| ["site-packages", "dist-packages"].map(|name| version.join(name)))
            .filter_map(|place| place.canonicalize().ok())
            .collect();
        directories.into_iter().collect()
    }

    pub(super) fn collect(&self, code_files: &mut CodeFiles) -> Result<(), TooManyFiles> {
        self.packages().iter().try_for_each(|place| directory_of_packages(place, code_files))
    }
}

pub(in crate::providers::python) fn interpreter_config_files(interpreter: &Path) -> Vec<PathBuf> {
    let real = interpreter.canonicalize().ok();
    let [bin, real_bin] = [Some(interpreter), real.as_deref()].map(|path| path?.parent());
    let mut directories: Vec<PathBuf> = [bin, bin.and_then(Path::parent)]
        .into_iter()
        .flatten()
        .map(|directory| directory.join("pyvenv.cfg"))
        .chain([bin, real_bin].into_iter().flatten().map(|bin| bin.join("pybuilddir.txt")))
        .filter(|file| file.exists())
        .collect();
    directories.dedup();
    directories
}

/// What is at the top of a directory of packages: what runs by itself, RECORD files, and whatever no
/// RECORD speaks for.
fn directory_of_packages(place: &Path, code_files: &mut CodeFiles) -> Result<(), TooManyFiles> {
    let names = names_in(place);
    let mut recorded = HashSet::new();
    for path in &names {
        let record = path.join("RECORD");
        if path.extension().is_some_and(|end| end == "dist-info") && record.is_file() {
            code_files.file(&record)?;
            recorded.extend(recorded_top_levels(&text(&record)));
        }
    }
    for path in &names {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (stem, _) = name.split_once('.').unwrap_or((name, ""));
        if path.extension().is_some_and(|end| end == "pth") {
            code_files.file(path)?;
            for added in pth_directories(place, &text(path)) {
                code_files.directory(&added)?;
            }
        } else if name.starts_with("__editable__") && is_code(name) {
            code_files.file(path)?;
            for added in editable_packages(&text(path)) {
                if added.is_dir() {
                    code_files.directory(&added)?;
                } else {
                    code_files.file(&added.with_extension("py"))?;
                }
            }
        } else if !recorded.contains(name) || matches!(stem, "sitecustomize" | "usercustomize") {
            if is_code(name) {
                code_files.file(path)?;
            } else if path.is_dir() && name != "__pycache__" && !name.ends_with("-info") {
                code_files.directory(path)?;
            }
        }
    }
    Ok(())
}

fn recorded_top_levels(record: &str) -> impl Iterator<Item = String> + '_ {
    record.lines().filter_map(|line| {
        let (rest, _size) = line.rsplit_once(',')?;
        let (name, hash) = rest.rsplit_once(',')?;
        let name = name.trim_matches('"');
        (hash.starts_with("sha256=") && is_code(name))
            .then(|| name.split('/').next().unwrap_or_default().to_owned())
    })
}

/// The directories that a `.pth` file puts on the path.
fn pth_directories(place: &Path, text: &str) -> Vec<PathBuf> {
    let is_path = |line: &&str| {
        let is_code = line.starts_with("import ") || line.starts_with("import\t");
        !line.is_empty() && !line.starts_with('#') && !is_code
    };
    let lines = text.lines().map(str::trim_end).filter(is_path);
    let added = lines.map(|line| place.join(line));
    // What lies in the directory of packages itself is looked at there.
    added.filter(|added| added.is_dir() && !added.starts_with(place)).collect()
}

fn editable_packages(text: &str) -> Vec<PathBuf> {
    let quoted = text.split(['\'', '"', '\n']).filter(|part| part.starts_with('/'));
    quoted.map(PathBuf::from).filter(|path| path.parent().is_some()).collect()
}

fn names_in(directory: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = names.map(|name| name.path()).collect();
    paths.sort_unstable();
    paths
}

fn text(file: &Path) -> String {
    let is_small = |meta: std::fs::Metadata| meta.is_file() && meta.len() <= MAX_TEXT_BYTES;
    if !std::fs::metadata(file).is_ok_and(is_small) {
        return String::new();
    }
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}

/// `sys.stdlib_module_names` of Python 3.11 to 3.14, all of them, without `test`: no module of the
/// library imports that one, and it is what many projects call their tests.
const NAMES: &str = include_str!("stdlib.txt");

/// Whether a module of this name would be imported in the place of one that Python brings along.
pub(super) fn is_standard(name: &str) -> bool {
    static KNOWN: LazyLock<HashSet<&str>> =
        LazyLock::new(|| NAMES.split_ascii_whitespace().collect());
    KNOWN.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_interpreter_are_known() {
        // The interpreter of this machine may be newer or older; these are in all of them.
        for name in ["json", "os", "asyncio", "_json", "sysconfig", "annotationlib", "imp"] {
            assert!(is_standard(name), "{name}");
        }
        for name in ["test", "tests", "numpy", "json2", ""] {
            assert!(!is_standard(name), "{name}");
        }
    }
}
