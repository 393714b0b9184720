//! Seals: files and programs bound to their content at the time of consent.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::util::process::resolve;
use crate::util::regular_file;

/// The largest file that is hashed: larger ones are bound by size and change time (ctime).
const MAX_HASHED: u64 = 1 << 30;

/// What a path resolved to, and the content there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundFile {
    /// The path with links resolved.
    pub resolved: PathBuf,
    /// SHA-256 of the content as lower-case hexadecimal digits; `None` if only the system's
    /// administrator can write, so that the path is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl BoundFile {
    /// What is at `path` now; `None` if there is no regular file.
    pub fn at(path: &Path, root: &Path) -> Option<Self> {
        let resolved = path.canonicalize().ok()?;
        if is_system(&resolved, root) {
            return resolved.is_file().then_some(Self { resolved, sha256: None });
        }
        Self::by_content(path)
    }

    /// What is at `path` now, by content regardless of its location; `None` if there is no regular
    /// file.
    pub(super) fn by_content(path: &Path) -> Option<Self> {
        let resolved = path.canonicalize().ok()?;
        let sha256 = hash_file(&resolved)?;
        Some(Self { resolved, sha256: Some(sha256) })
    }
}

/// SHA-256 of a regular file's content; `None` if it is not regular or cannot be read.
pub(super) fn hash_file(path: &Path) -> Option<String> {
    let (mut file, meta) = regular_file::open(path).ok()?;
    let mut hash = Sha256::new();
    if meta.len() > MAX_HASHED {
        for part in [meta.len(), meta.ctime().cast_unsigned(), meta.ctime_nsec().cast_unsigned()] {
            hash.update(part.to_be_bytes());
        }
        return Some(hex(&hash.finalize()));
    }
    // A kernel file, such as in /proc, reports no size and may be endless.
    let mut rest = MAX_HASHED;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut buffer).ok()?;
        if read == 0 {
            return Some(hex(&hash.finalize()));
        }
        hash.update(buffer.get(..read)?);
        rest = rest.checked_sub(read as u64)?;
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            hex.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    hex
}

/// Whether only the system's administrator can change what is at a path: it and every directory
/// above it are owned by root and writable by root only. For root itself, who owns everything,
/// the directories of the system's packages count.
pub(super) fn is_system(resolved: &Path, root: &Path) -> bool {
    const OF_PACKAGES: [&str; 8] =
        ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store", "/snap"];
    if resolved.starts_with(root) {
        return false;
    }
    if rustix::process::geteuid().is_root() && !OF_PACKAGES.iter().any(|d| resolved.starts_with(d))
    {
        return false;
    }
    let guarded = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| {
            let sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
            meta.uid() == 0 && (meta.mode() & 0o022 == 0 || sticky)
        })
    };
    resolved.ancestors().all(guarded)
}

/// A program that is looked up by name when it starts, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BoundProgram {
    /// The program name to look up.
    pub program: String,
    /// The `PATH` to search for it.
    pub path: Option<String>,
    /// The directory that relative paths are relative to.
    pub base_dir: PathBuf,
    /// Where it was found, links resolved.
    pub resolved: PathBuf,
}

/// What must be unchanged when an entry starts something. An empty seal checks nothing: the entry
/// is the user's own, or was allowed for this run.
#[derive(Debug, Clone, Default)]
pub struct Seal(Option<Arc<SealedState>>);

#[derive(Debug)]
struct SealedState {
    root: PathBuf,
    allows_code_changes: bool,
    files: Vec<(PathBuf, BoundFile)>,
    program: Option<BoundProgram>,
    /// Everything in the bundle that is bound by hash, for programs that load code by themselves.
    manifest: Arc<BTreeMap<PathBuf, String>>,
}

impl Seal {
    pub(super) fn new(
        root: PathBuf,
        allows_code_changes: bool,
        files: Vec<(PathBuf, BoundFile)>,
        program: Option<BoundProgram>,
        manifest: Arc<BTreeMap<PathBuf, String>>,
    ) -> Self {
        Self(Some(Arc::new(SealedState { root, allows_code_changes, files, program, manifest })))
    }

    /// A seal over the code that an interpreter loads by itself, and nothing else.
    #[cfg(test)]
    pub(crate) fn of_code(manifest: Arc<BTreeMap<PathBuf, String>>) -> Self {
        Self::new(PathBuf::from("/nowhere"), false, Vec::new(), None, manifest)
    }

    /// Compares what would run now with what was trusted.
    ///
    /// # Errors
    /// What differs, as lines for people.
    pub fn verify(&self) -> Result<(), Vec<String>> {
        let Some(bound) = &self.0 else { return Ok(()) };
        let exempt =
            |file: &BoundFile| bound.allows_code_changes && file.resolved.starts_with(&bound.root);
        let mut changed: Vec<String> = bound
            .files
            .iter()
            .filter_map(|(path, trusted)| {
                let now = BoundFile::at(path, &bound.root);
                let same = now.as_ref() == Some(trusted)
                    || now.as_ref().is_some_and(|now| exempt(now) && exempt(trusted));
                (!same).then(|| format!("changed since it was trusted: {}", path.display()))
            })
            .collect();
        if let Some(program) = &bound.program {
            let now = resolve(&program.program, program.path.as_deref(), &program.base_dir).ok();
            let now = now.map(|path| path.canonicalize().unwrap_or(path));
            if now.as_ref() != Some(&program.resolved) {
                changed.push(match now {
                    Some(now) => format!(
                        "'{}' is now {}, but {} was trusted",
                        program.program,
                        now.display(),
                        program.resolved.display()
                    ),
                    None => format!("'{}' is gone", program.program),
                });
            }
        }
        if changed.is_empty() { Ok(()) } else { Err(changed) }
    }

    /// The hashes of everything that was trusted, for interpreters that load code by themselves;
    /// `None` if code is not bound: the entry is the user's own, was allowed for this run, or its
    /// author trusts all changes to the code below the root.
    pub fn manifest(&self) -> Option<Arc<BTreeMap<PathBuf, String>>> {
        let bound = self.0.as_ref().filter(|bound| !bound.allows_code_changes)?;
        Some(Arc::clone(&bound.manifest))
    }

    /// The root of the project whose consent this is based on.
    pub fn root(&self) -> Option<&Path> {
        self.0.as_ref().map(|bound| bound.root.as_path())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_bound_by_its_content_and_by_where_links_lead() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let script = root.join("run.sh");
        std::fs::write(&script, "one").unwrap();
        let before = BoundFile::at(&script, &root).unwrap();
        assert_eq!(before.sha256.as_deref().map(str::len), Some(64));
        std::fs::write(&script, "two").unwrap();
        assert_ne!(BoundFile::at(&script, &root).unwrap(), before);
        std::fs::remove_file(&script).unwrap();
        assert_eq!(BoundFile::at(&script, &root), None);
        symlink("/bin/sh", &script).unwrap();
        let linked = BoundFile::at(&script, &root).unwrap();
        assert_eq!(linked.resolved, Path::new("/bin/sh").canonicalize().unwrap());
        assert_eq!(linked.sha256, None, "the system's own");
    }

    #[test]
    fn a_seal_notices_a_changed_file_and_another_program() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let script = root.join("run.sh");
        std::fs::write(&script, "one").unwrap();
        let bound = BoundFile::at(&script, &root).unwrap();
        let seal = |author| {
            let files = vec![(script.clone(), bound.clone())];
            Seal::new(root.clone(), author, files, None, Arc::default())
        };
        assert_eq!(seal(false).verify(), Ok(()));
        std::fs::write(&script, "two").unwrap();
        assert_eq!(seal(false).verify().unwrap_err().len(), 1);
        assert_eq!(seal(true).verify(), Ok(()), "its author changes it");
        assert!(Seal::default().verify().is_ok());
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        crate::util::named_pipe::make(&pipe);
        assert_eq!(BoundFile::at(&pipe, dir.path()), None);
    }
}
