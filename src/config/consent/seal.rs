//! Seals: files and programs bound to their content at the time of consent.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::bundle::{Bundle, Difference};
use super::command_files::CommandLine;
use super::decision::ProjectRecord;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::hex::hex;
use crate::util::regular_file;

/// The most bytes of a project that are hashed. Files beyond it are bound by size and time of change.
pub(super) const MAX_HASHED: u64 = 512 << 20;

/// What stands before the size and time of a file that is bound by them.
const STAMP: &str = "stat:";

/// What is smaller is hashed at every start, which takes a millisecond.
const LARGE: u64 = 1 << 20;
/// A file that changed less long ago may change again without another time of change.
const SETTLED: Duration = Duration::from_secs(2);

/// What a path resolved to, and the content there. The default says that there is no regular file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct BoundFile {
    pub resolved: PathBuf,
    /// SHA-256 of the content as lower-case hexadecimal digits; `None` if only the system's
    /// administrator can write, so that the path is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The size, number and time of change of a large file when it was hashed. While they are the same, so
    /// is its content: on a local disk only the system's administrator can set the time of change. Programs
    /// of a hundred megabytes are common, and are not hashed at every start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<String>,
}

/// Whether the content is the same, whenever it was looked at.
impl PartialEq for BoundFile {
    fn eq(&self, other: &Self) -> bool {
        (&self.resolved, &self.sha256) == (&other.resolved, &other.sha256)
    }
}

impl Eq for BoundFile {}

impl BoundFile {
    /// What is at `path` now; `None` if there is no regular file.
    pub(super) fn at(path: &Path, root: &Path, hashing: &mut Hashing<'_>) -> Option<Self> {
        let resolved = path.canonicalize().ok()?;
        if is_system(&resolved, root) {
            return resolved.is_file().then_some(Self { resolved, ..Self::default() });
        }
        Self::by_content(path, hashing)
    }

    /// What is at `path` now, by content regardless of its location; `None` if there is no regular
    /// file.
    pub(super) fn by_content(path: &Path, hashing: &mut Hashing<'_>) -> Option<Self> {
        let resolved = path.canonicalize().ok()?;
        hashing.file(path, resolved)
    }

    pub(super) fn is_missing(&self) -> bool {
        self.resolved.as_os_str().is_empty()
    }

    /// Whether it is bound by size and time of change, because there was too much to hash.
    pub(super) fn is_stamp(&self) -> bool {
        self.sha256.as_ref().is_some_and(|hash| hash.starts_with(STAMP))
    }
}

/// How many bytes may still be hashed, and what was trusted before: what was bound by size and time
/// then is compared by them.
pub(super) struct Hashing<'b> {
    bytes_left: u64,
    before: Option<&'b Bundle>,
}

impl<'b> Hashing<'b> {
    pub(super) fn new(before: Option<&'b Bundle>) -> Self {
        Self { bytes_left: MAX_HASHED, before }
    }

    /// What the content of a regular file is bound by; `None` if it is not regular or cannot be read.
    fn file(&mut self, path: &Path, resolved: PathBuf) -> Option<BoundFile> {
        let (file, meta) = regular_file::open(&resolved).ok()?;
        let before = self.before.and_then(|before| before.code.get(path));
        let changed = format!("{}.{}", meta.ctime(), meta.ctime_nsec());
        let stamp = Some(format!("{}:{}:{changed}", meta.len(), meta.ino()));
        if let Some(before) = before.filter(|file| file.stamp == stamp && file.resolved == resolved)
        {
            return Some(before.clone());
        }
        let by_time = Some(format!("{STAMP}{}:{changed}", meta.len()));
        let bound = |sha256, stamp| Some(BoundFile { resolved, sha256, stamp });
        if meta.len() > self.bytes_left || before.is_some_and(BoundFile::is_stamp) {
            return bound(by_time, None);
        }
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        // It may hold more than it says: what is in /proc has no size and may be endless.
        let mut file = file.take(self.bytes_left.saturating_add(1));
        loop {
            let read = file.read(&mut buffer).ok()?;
            if read == 0 {
                let is_stamped = is_known_by_time(meta.len(), meta.ctime(), SystemClock.unix());
                return bound(Some(hex(&hash.finalize())), stamp.filter(|_| is_stamped));
            }
            hash.update(buffer.get(..read)?);
            match self.bytes_left.checked_sub(read as u64) {
                Some(left) => self.bytes_left = left,
                None => return bound(by_time, None),
            }
        }
    }
}

/// Whether a file of this size, last changed at this second, is hashed only once.
fn is_known_by_time(size: u64, changed: i64, now: Duration) -> bool {
    let changed = u64::try_from(changed).map_or(Duration::MAX, Duration::from_secs);
    size >= LARGE && now > changed.saturating_add(SETTLED)
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
    let guarded =
        |path: &Path| std::fs::metadata(path).is_ok_and(|meta| is_guarded(meta.uid(), meta.mode()));
    resolved.ancestors().all(guarded)
}

/// Whether only root can change a file, or take away what root put into a directory.
fn is_guarded(uid: u32, mode: u32) -> bool {
    // Numbers, because the type of a mode has another size on each system.
    let is_sticky_directory = mode & 0o170_000 == 0o40_000 && mode & 0o1000 != 0;
    uid == 0 && (mode & 0o022 == 0 || is_sticky_directory)
}

/// What one entry starts and is described by, from which its part of a bundle is computed: for the
/// question, for the comparison with what was trusted, and again just before a start.
#[derive(Debug, Clone, Default)]
pub(super) struct EntryFiles {
    pub name: String,
    pub commands: Vec<CommandLine>,
    pub documents: Vec<PathBuf>,
}

impl EntryFiles {
    /// Adds what the entry would run now to a bundle of the project rooted at `root`.
    pub fn bind(&self, root: &Path, hashing: &mut Hashing<'_>, bundle: &mut Bundle) {
        let mut bind = |path: PathBuf, keeps_missing: bool| {
            if !bundle.code.contains_key(&path) {
                let bound = BoundFile::at(&path, root, hashing);
                let bound = bound.or_else(|| keeps_missing.then(BoundFile::default));
                bundle.code.extend(bound.map(|bound| (path, bound)));
            }
        };
        self.documents.iter().for_each(|path| bind(path.clone(), false));
        let mut programs = Vec::new();
        for files in self.commands.iter().map(|command| command.files(root)) {
            files.code.into_iter().for_each(|path| bind(path, false));
            files.settings.into_iter().for_each(|path| bind(path, true));
            programs.extend(files.programs);
        }
        let named = |(word, value)| (format!("{}: {word}", self.name), value);
        bundle.resolved_paths.extend(programs.into_iter().map(named));
    }
}

/// What must be unchanged when an entry starts something. An empty seal checks nothing: the entry
/// is the user's own, or was allowed for this run.
#[derive(Debug, Clone, Default)]
pub struct Seal(Option<Arc<SealedState>>);

struct SealedState {
    record: Arc<ProjectRecord>,
    files: EntryFiles,
    /// Everything in the bundle that is bound by hash, for programs that load code by themselves.
    manifest: Arc<BTreeMap<PathBuf, String>>,
}

impl fmt::Debug for SealedState {
    /// Only what concerns this entry: a reload takes an entry for changed if this changed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProjectRecord { root, allows_code_changes, bundle: trusted, .. } = &*self.record;
        let mut paths = self.files.documents.clone();
        for files in self.files.commands.iter().map(|command| command.files(root)) {
            paths.extend(files.code.into_iter().chain(files.settings));
        }
        let code: BTreeMap<_, _> =
            paths.iter().map(|path| (path, trusted.code.get(path))).collect();
        let programs = trusted.resolved_paths.iter();
        let own = format!("{}: ", self.files.name);
        let programs: Vec<_> = programs.filter(|(name, _)| name.starts_with(&own)).collect();
        f.debug_tuple("SealedState")
            .field(&(root, allows_code_changes, &self.files, code, programs, &self.manifest))
            .finish()
    }
}

impl Seal {
    pub(super) fn new(
        record: Arc<ProjectRecord>,
        files: EntryFiles,
        manifest: Arc<BTreeMap<PathBuf, String>>,
    ) -> Self {
        Self(Some(Arc::new(SealedState { record, files, manifest })))
    }

    #[cfg(test)]
    pub(crate) fn of_code(manifest: Arc<BTreeMap<PathBuf, String>>) -> Self {
        Self::new(Arc::default(), EntryFiles::default(), manifest)
    }

    /// Compares what would run now with what was trusted.
    pub fn verify(&self) -> Result<(), Vec<String>> {
        let Some(sealed) = &self.0 else { return Ok(()) };
        let ProjectRecord { root, bundle: trusted, .. } = &*sealed.record;
        let mut now = Bundle::default();
        sealed.files.bind(root, &mut Hashing::new(Some(trusted)), &mut now);
        let changed: Vec<String> = now
            .code_differences(&sealed.record)
            .into_iter()
            .map(|difference| match difference {
                Difference::Resolved(name, now) => match trusted.resolved_paths.get(&name) {
                    Some(before) => format!(
                        "'{name}' is now {}, but {} was trusted",
                        now.display(),
                        before.display()
                    ),
                    None => format!("'{name}' is now {}", now.display()),
                },
                Difference::Code(path) => {
                    format!("changed since it was trusted: {}", path.display())
                }
                other => format!("{other:?}"),
            })
            .collect();
        if changed.is_empty() { Ok(()) } else { Err(changed) }
    }

    /// The hashes of everything that was trusted, for interpreters that load code by themselves;
    /// `None` if code is not bound: the entry is the user's own, was allowed for this run, or its
    /// author trusts all changes to the code below the root.
    pub fn manifest(&self) -> Option<Arc<BTreeMap<PathBuf, String>>> {
        let bound = self.0.as_ref().filter(|bound| !bound.record.allows_code_changes)?;
        Some(Arc::clone(&bound.manifest))
    }

    pub fn root(&self) -> Option<&Path> {
        self.0.as_ref().map(|bound| bound.record.root.as_path())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn at(path: &Path, root: &Path) -> Option<BoundFile> {
        BoundFile::at(path, root, &mut Hashing::new(None))
    }

    #[test]
    fn a_file_is_bound_by_its_content_and_by_where_links_lead() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let script = root.join("run.sh");
        std::fs::write(&script, "one").unwrap();
        let before = at(&script, &root).unwrap();
        assert_eq!(before.sha256.as_deref().map(str::len), Some(64));
        std::fs::write(&script, "two").unwrap();
        assert_ne!(at(&script, &root).unwrap(), before);
        std::fs::remove_file(&script).unwrap();
        assert_eq!(at(&script, &root), None);
        symlink("/bin/sh", &script).unwrap();
        let linked = at(&script, &root).unwrap();
        assert_eq!(linked.resolved, Path::new("/bin/sh").canonicalize().unwrap());
        assert_eq!(linked.sha256, None, "the system's own");
    }

    #[test]
    fn a_seal_notices_a_changed_file_and_another_program() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let script = root.join("run.sh");
        std::fs::write(&script, "one").unwrap();
        let command = CommandLine {
            argv: vec![Some("sh".to_owned()), Some("run.sh".to_owned())],
            cwd: Some(root.clone()),
            found_from: Some(root.clone()),
            path: Some("bin:/usr/bin:/bin".to_owned()),
            ..CommandLine::default()
        };
        let files = EntryFiles { commands: vec![command], ..EntryFiles::default() };
        let mut bundle = Bundle::default();
        files.bind(&root, &mut Hashing::new(None), &mut bundle);
        let seal = |allows_code_changes| {
            let (root, bundle) = (root.clone(), bundle.clone());
            let record = ProjectRecord { root, allows_code_changes, bundle, ..Default::default() };
            Seal::new(Arc::new(record), files.clone(), Arc::default())
        };
        assert_eq!(seal(false).verify(), Ok(()));
        std::fs::write(&script, "two").unwrap();
        assert_eq!(seal(false).verify().unwrap_err().len(), 1);
        assert_eq!(seal(true).verify(), Ok(()), "its author changes it");
        std::fs::create_dir(root.join("bin")).unwrap();
        std::os::unix::fs::symlink("/usr/bin/env", root.join("bin/sh")).unwrap();
        assert_eq!(seal(true).verify().unwrap_err().len(), 1, "another program");
        assert!(Seal::default().verify().is_ok());
        assert_eq!((seal(false).root(), Seal::default().root()), (Some(root.as_path()), None));
    }

    #[test]
    fn what_was_bound_by_its_size_and_time_is_compared_by_them() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let paths = ["a", "b"].map(|name| root.join(name));
        for path in &paths {
            std::fs::write(path, "0123456789").unwrap();
        }
        let files = EntryFiles { documents: paths.to_vec(), ..EntryFiles::default() };
        let mut trusted = Bundle::default();
        for bytes_left in [15, 10] {
            trusted = Bundle::default();
            files.bind(&root, &mut Hashing { bytes_left, before: None }, &mut trusted);
            assert_eq!(paths.each_ref().map(|path| trusted.code[path].is_stamp()), [false, true]);
        }
        let record = ProjectRecord { bundle: trusted.clone(), ..ProjectRecord::default() };
        let changed = |now: &Bundle| now.differences(&record).len();
        let mut now = Bundle::default();
        files.bind(&root, &mut Hashing::new(Some(&trusted)), &mut now);
        assert_eq!(changed(&now), 0);
        std::fs::write(&paths[1], "012345678").unwrap();
        now = Bundle::default();
        files.bind(&root, &mut Hashing::new(Some(&trusted)), &mut now);
        assert_eq!(changed(&now), 1);
    }

    #[test]
    fn a_file_that_did_not_change_is_not_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let path = root.join("program");
        std::fs::write(&path, "one").unwrap();
        let fresh = at(&path, &root).unwrap();
        let meta = std::fs::metadata(&path).unwrap();
        let stamp = format!("{}:{}:{}.{}", meta.len(), meta.ino(), meta.ctime(), meta.ctime_nsec());
        let trusted_file =
            BoundFile { sha256: Some("known".to_owned()), stamp: Some(stamp), ..fresh };
        let mut trusted = Bundle::default();
        trusted.code.insert(path.clone(), trusted_file.clone());
        let again = || BoundFile::at(&path, &root, &mut Hashing::new(Some(&trusted))).unwrap();
        assert_eq!(again(), trusted_file);
        std::fs::write(&path, "two").unwrap();
        assert_ne!(again(), trusted_file, "its time of change is another one");
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        crate::util::named_pipe::make(&pipe);
        assert_eq!(at(&pipe, dir.path()), None);
    }

    #[test]
    fn a_large_file_is_remembered_by_its_time_when_that_has_passed() {
        let now = Duration::from_secs(100);
        for (size, changed, is_remembered) in [
            (LARGE, 97, true),
            (LARGE, 98, false),
            (LARGE, 101, false),
            (LARGE, -1, false),
            (LARGE - 1, 1, false),
        ] {
            assert_eq!(is_known_by_time(size, changed, now), is_remembered, "{size} {changed}");
        }
        let stamp_of = |path| {
            let file = BoundFile::by_content(Path::new(path), &mut Hashing::new(None)).unwrap();
            assert!(!file.is_missing());
            file.stamp
        };
        // A large program that has been there for long, and a small one.
        assert!(stamp_of(env!("CARGO")).is_some() && stamp_of("/bin/ls").is_none());
        assert!(BoundFile::default().is_missing());
    }

    #[test]
    fn only_what_root_alone_can_change_is_the_systems() {
        let (file, directory) = (0o100_000, 0o040_000);
        for (uid, mode, expected) in [
            (0, file | 0o755, true),
            (1, file | 0o755, false),
            (0, file | 0o775, false),
            (0, file | 0o757, false),
            (0, file | 0o1777, false),
            (0, directory | 0o755, true),
            (0, directory | 0o777, false),
            (0, directory | 0o1777, true),
            (1, directory | 0o1777, false),
        ] {
            assert_eq!(is_guarded(uid, mode), expected, "{uid} {mode:o}");
        }
    }
}
