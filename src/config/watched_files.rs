//! Detects which configuration files changed since they were read, and which files of a server's own code
//! its `watch` names.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::discover;
use super::spec::Configuration;
use crate::model::Layer;

/// Identifies the content of a file without reading it. It includes the change time of the
/// inode, which no program can set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of what a path resolves to; `None` if nothing exists there.
    pub fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|meta| Self::of_metadata(&meta))
    }

    /// The stamp of the file itself, even if it is a link; `None` if nothing exists there.
    pub fn of_link(path: &Path) -> Option<Self> {
        std::fs::symlink_metadata(path).ok().map(|meta| Self::of_metadata(&meta))
    }

    fn of_metadata(meta: &Metadata) -> Self {
        let changed = (meta.ctime(), meta.ctime_nsec());
        Self { device: meta.dev(), inode: meta.ino(), length: meta.len(), changed }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedFiles {
    files: BTreeMap<PathBuf, Option<FileStamp>>,
    /// In these, every file that `discover:` would read counts.
    directories: Vec<PathBuf>,
}

impl WatchedFiles {
    /// The files that a configuration was read from or should have been, those that the same search would also read if
    /// they existed, and `others`, in their current state.
    pub fn of(configuration: &Configuration, others: impl IntoIterator<Item = PathBuf>) -> Self {
        let read = configuration.files.iter().map(|file| (&file.path, file.layer));
        let unread = configuration.unread.iter().map(|(path, layer)| (path, *layer));
        let named: Vec<(&PathBuf, Layer)> = read.chain(unread).collect();
        // If the command line names files, only those are read; otherwise a directory may get more.
        let is_found = |layer| matches!(layer, Layer::Project | Layer::User);
        let existing = named.iter().filter(|(_, layer)| is_found(*layer));
        let beside = existing.filter_map(|(path, _)| path.parent());
        let is_file = |path: &Path| named.iter().any(|(file, _)| *file == path);
        let searched = configuration.searched.iter().map(PathBuf::as_path);
        let searched = searched.filter(|path| !is_file(path)).chain(beside);
        let possible = searched.flat_map(discover::usual_files);
        let files = named
            .iter()
            .map(|(path, _)| (*path).clone())
            .chain(possible)
            .chain(others)
            .map(|path| (path, None))
            .collect();
        Self { files, directories: configuration.directories.clone() }.looked_at_again()
    }

    #[must_use]
    pub fn looked_at_again(&self) -> Self {
        let listed = self.directories.iter().filter_map(|path| discover::directory(path).ok());
        let listed = listed.map(|listing| listing.files);
        let paths = self.files.keys().cloned().chain(listed.flatten());
        let stamped = paths.map(|path| (FileStamp::of(&path), path));
        Self {
            files: stamped.map(|(stamp, path)| (path, stamp)).collect(),
            directories: self.directories.clone(),
        }
    }

    #[must_use]
    pub fn with_state_of(mut self, earlier: &Self) -> Self {
        for (path, stamp) in &mut self.files {
            if let Some(previous) = earlier.files.get(path) {
                *stamp = *previous;
            }
        }
        self
    }

    pub fn changed_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a Path> {
        let was = |path: &Path| before.files.get(path).copied().flatten();
        let changed = self.files.iter().filter(move |(path, now)| **now != was(path));
        changed.map(|(path, _)| path.as_path())
    }
}

const MAX_PATTERNS: usize = 32;
/// How many files and directories are looked at, matching or not.
const MAX_ENTRIES: usize = 20_000;
/// Directories that no author edits, besides hidden ones.
const SKIPPED: [&str; 4] = ["node_modules", "target", "venv", "__pycache__"];

#[derive(Debug, Clone)]
pub struct CodePatterns {
    files: GlobSet,
    /// Where to begin for each pattern: its directories before the first wildcard.
    beginnings: Vec<PathBuf>,
}

/// The matching files, in their current state.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CodeState {
    files: BTreeMap<PathBuf, Option<FileStamp>>,
    /// Whether there are more files than are looked at.
    pub is_partial: bool,
}

impl CodePatterns {
    /// Patterns as written, which lead to files below a directory and nowhere else.
    pub fn read(patterns: &[String]) -> Result<Self, String> {
        if patterns.is_empty() || patterns.len() > MAX_PATTERNS {
            return Err(format!("expected 1 to {MAX_PATTERNS} patterns"));
        }
        let (mut files, mut beginnings) = (GlobSetBuilder::new(), Vec::new());
        for written in patterns {
            let pattern = written.strip_prefix("./").unwrap_or(written);
            let path = Path::new(pattern);
            let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
            if pattern.is_empty() || !is_below || pattern.contains("${") || pattern.starts_with('~')
            {
                return Err(format!(
                    "the pattern '{written}' must be a path below the working directory"
                ));
            }
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            files.add(glob.map_err(|error| format!("invalid pattern: {error}"))?);
            let plain =
                |part: &&OsStr| !part.to_string_lossy().contains(['*', '?', '[', '{', '\\']);
            beginnings.push(path.parent().unwrap_or(path).iter().take_while(plain).collect());
        }
        let files = files.build().map_err(|error| format!("invalid pattern: {error}"))?;
        Ok(Self { files, beginnings })
    }

    /// The state of the files in `directory` that match. Links are not followed.
    pub fn state_in(&self, directory: &Path) -> CodeState {
        let mut state = CodeState::default();
        let Ok(root) = directory.canonicalize() else { return state };
        let places = self.beginnings.iter().map(|beginning| root.join(beginning));
        let is_no_link = |place: &PathBuf| place.canonicalize().is_ok_and(|real| real == *place);
        let mut pending: Vec<PathBuf> = places.filter(is_no_link).collect();
        pending.sort();
        pending.dedup();
        let mut count = 0;
        while let Some(place) = pending.pop() {
            for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
                count += 1;
                if count > MAX_ENTRIES {
                    state.is_partial = true;
                    return state;
                }
                let (Ok(kind), name, path) = (entry.file_type(), entry.file_name(), entry.path())
                else {
                    continue;
                };
                let name = name.to_string_lossy();
                let is_code = !name.starts_with('.') && !SKIPPED.contains(&&*name);
                if kind.is_dir() && is_code {
                    pending.push(path);
                } else if kind.is_file()
                    && path.strip_prefix(&root).is_ok_and(|path| self.files.is_match(path))
                {
                    let stamp = FileStamp::of_link(&path);
                    state.files.insert(path, stamp);
                }
            }
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::discover::LoadRequest;
    use crate::config::environment::FixedEnvironment;
    use crate::config::load::load;

    #[test]
    fn files_that_are_written_appear_or_go_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("tools.yaml"), "tools: []").unwrap();
        std::fs::create_dir(path("tools.d")).unwrap();
        let (searched, directories) = (vec![dir.path().to_owned()], vec![path("tools.d")]);
        let configuration = Configuration { searched, directories, ..Configuration::default() };
        let before = WatchedFiles::of(&configuration, [path("other")]);
        let changed = |before: &WatchedFiles| -> Vec<String> {
            let now = before.looked_at_again();
            let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
            now.changed_since(before).map(name).collect()
        };
        assert_eq!(changed(&before), [""; 0]);
        std::fs::write(path("mcp.yml"), "").unwrap();
        std::fs::write(path("unrelated"), "").unwrap();
        assert_eq!(changed(&before), ["mcp.yml"]);
        std::fs::write(path("tools.yaml"), "tools: [] # and more").unwrap();
        std::fs::write(path("other"), "").unwrap();
        assert_eq!(changed(&before), ["mcp.yml", "other", "tools.yaml"]);
        let before = before.looked_at_again();
        assert_eq!(changed(&before), [""; 0]);
        std::fs::write(path("tools.d/notes.txt"), "").unwrap();
        assert_eq!(changed(&before), [""; 0]);
        std::fs::write(path("tools.d/more.yaml"), "").unwrap();
        assert_eq!(changed(&before), ["more.yaml"]);
        std::fs::remove_file(path("tools.d/more.yaml")).unwrap();
        assert_eq!(changed(&before), [""; 0]);
        std::fs::remove_file(path("mcp.yml")).unwrap();
        assert_eq!(changed(&before), ["mcp.yml"]);
        let after = WatchedFiles::of(&configuration, []);
        assert_eq!(changed(&after), [""; 0]);
        assert_eq!(changed(&after.with_state_of(&before)), ["mcp.yml"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_seen_when_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let environment =
            FixedEnvironment { cwd: dir.path().into(), ..FixedEnvironment::default() };
        let path = dir.path().join("tools.yaml");
        let named = LoadRequest { tools: vec![path.clone()], ..LoadRequest::default() };
        for request in [LoadRequest::default(), named.clone()] {
            std::fs::write(&path, "tools: [").unwrap();
            let watched = WatchedFiles::of(&load(&request, &[], &environment), []);
            std::fs::write(&path, "tools: []").unwrap();
            let now = watched.looked_at_again();
            assert_eq!(now.changed_since(&watched).collect::<Vec<_>>(), [path.as_path()]);
        }
        std::fs::remove_file(&path).unwrap();
        let watched = WatchedFiles::of(&load(&named, &[], &environment), []);
        std::fs::write(&path, "tools: []").unwrap();
        let now = watched.looked_at_again();
        assert_eq!(now.changed_since(&watched).collect::<Vec<_>>(), [path.as_path()]);
    }

    #[test]
    fn a_file_that_was_replaced_by_one_as_long_and_as_old_is_told_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("store"), "one").unwrap();
        let (before, time) =
            (FileStamp::of_link(&path("store")), path("store").metadata().unwrap().modified());
        assert_eq!(FileStamp::of_link(&path("store")), before);
        std::fs::write(path("next"), "two").unwrap();
        let next = std::fs::File::options().write(true).open(path("next")).unwrap();
        next.set_modified(time.unwrap()).unwrap();
        std::fs::rename(path("next"), path("store")).unwrap();
        assert!(before.is_some() && FileStamp::of_link(&path("store")) != before);
    }

    fn patterns(written: &[&str]) -> Result<CodePatterns, String> {
        CodePatterns::read(&written.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn matching_files_count_and_what_is_hidden_built_or_linked_does_not() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = |name: &str| dir.path().join(name);
        let write = |name: &str| {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), "").unwrap();
        };
        for name in [
            "src/a.py",
            "src/deep/b.py",
            "src/c.txt",
            "src/.git/d.py",
            "src/node_modules/e.py",
            "src/target/f.py",
            "other/g.py",
            "main.py",
        ] {
            write(name);
        }
        std::fs::write(outside.path().join("h.py"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), path("src/link")).unwrap();
        std::os::unix::fs::symlink(outside.path(), path("linked")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("h.py"), path("src/h.py")).unwrap();
        let names = |written: &[&str]| -> Vec<String> {
            let state = patterns(written).unwrap().state_in(dir.path());
            let root = dir.path().canonicalize().unwrap();
            let name = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
            state.files.keys().map(name).collect()
        };
        assert_eq!(names(&["src/**/*.py"]), ["src/a.py", "src/deep/b.py"]);
        assert_eq!(names(&["./*.py", "src/*.txt"]), ["main.py", "src/c.txt"]);
        assert_eq!(names(&["src/a.py", "src/a.py"]), ["src/a.py"]);
        assert_eq!(names(&["linked/*.py", "nothing/*"]), [""; 0]);

        let python = patterns(&["**/*.py"]).unwrap();
        let before = python.state_in(dir.path());
        write("src/c.txt");
        assert_eq!(python.state_in(dir.path()), before);
        std::fs::write(path("src/a.py"), "changed").unwrap();
        assert_ne!(python.state_in(dir.path()), before);
    }

    #[test]
    fn a_pattern_leads_nowhere_else() {
        for written in
            ["", "/etc/*", "../*.py", "a/../../*", "~/*.py", "${HOME}/*.py", "src/[", "."]
        {
            assert!(patterns(&[written]).is_err(), "{written}");
        }
        assert!(patterns(&[]).is_err() && patterns(&["*"; MAX_PATTERNS + 1]).is_err());
    }

    #[test]
    fn more_files_than_are_looked_at_are_told_from_all() {
        let dir = tempfile::tempdir().unwrap();
        for at in 0..=MAX_ENTRIES {
            std::fs::File::create(dir.path().join(at.to_string())).unwrap();
        }
        assert!(patterns(&["*"]).unwrap().state_in(dir.path()).is_partial);
        assert!(!patterns(&["sub/*"]).unwrap().state_in(dir.path()).is_partial);
    }
}
