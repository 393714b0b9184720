//! Detects which configuration files changed since they were read.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

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
    /// The files that a configuration was read from, those that the same search would also read if
    /// they existed, and `others`, in their current state.
    pub fn of(configuration: &Configuration, others: impl IntoIterator<Item = PathBuf>) -> Self {
        let read = configuration.files.iter().map(|file| file.path.clone());
        // If the command line names files, only those are read; otherwise a directory may get more.
        let is_found = |layer| matches!(layer, Layer::Project | Layer::User);
        let existing = configuration.files.iter().filter(|file| is_found(file.layer));
        let beside = existing.filter_map(|file| file.path.parent());
        let is_read = |path: &Path| configuration.files.iter().any(|file| file.path == path);
        let searched = configuration.searched.iter().map(PathBuf::as_path);
        let searched = searched.filter(|path| !is_read(path)).chain(beside);
        let possible = searched.flat_map(discover::usual_files);
        let files = read.chain(possible).chain(others).map(|path| (path, None)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
