//! Which configuration files changed since they were read.
//!
//! Owns: which files that are, also those that may come to be, and telling one content of a file
//! from another by its metadata. Never does: read a file, or decide what a change means.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::discover;
use super::spec::Configuration;
use crate::model::Layer;

/// Tells one content of a file from another without reading it. The time of the last change of the
/// inode is part of it, which no program can set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of what a path leads to; `None` when nothing is there.
    pub fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|meta| Self::of_metadata(&meta))
    }

    /// The stamp of the file that stands there, be it a link; `None` when nothing is there.
    pub fn of_link(path: &Path) -> Option<Self> {
        std::fs::symlink_metadata(path).ok().map(|meta| Self::of_metadata(&meta))
    }

    fn of_metadata(meta: &Metadata) -> Self {
        let changed = (meta.ctime(), meta.ctime_nsec());
        Self { device: meta.dev(), inode: meta.ino(), length: meta.len(), changed }
    }
}

/// The files of a configuration as they were at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedFiles(Vec<(PathBuf, Option<FileStamp>)>);

impl WatchedFiles {
    /// The files that a configuration was read from, those that the same look-up would also read if
    /// they were there, and `others`, as they are now.
    pub fn of(configuration: &Configuration, others: impl IntoIterator<Item = PathBuf>) -> Self {
        let read = || configuration.files.iter().map(|file| file.path.clone());
        // What the command line names is all that is read; else a directory may get more.
        let is_found = |layer| matches!(layer, Layer::Project | Layer::User);
        let found = configuration.files.iter().filter(|file| is_found(file.layer));
        let beside = found.filter_map(|file| file.path.parent());
        let searched = configuration.searched.iter().map(PathBuf::as_path).chain(beside);
        let possible = searched.flat_map(discover::usual_files);
        let mut paths: Vec<PathBuf> = read().chain(possible).chain(others).collect();
        paths.sort();
        paths.dedup();
        Self(paths.into_iter().map(|path| (path.clone(), FileStamp::of(&path))).collect())
    }

    /// The same files as they are now.
    #[must_use]
    pub fn looked_at_again(&self) -> Self {
        Self(self.0.iter().map(|(path, _)| (path.clone(), FileStamp::of(path))).collect())
    }

    /// The same files, those that `earlier` has as well as they were then.
    #[must_use]
    pub fn as_they_were(mut self, earlier: &Self) -> Self {
        for (path, stamp) in &mut self.0 {
            if let Ok(known) = earlier.0.binary_search_by(|(other, _)| other.cmp(path)) {
                *stamp = earlier.0[known].1;
            }
        }
        self
    }

    /// The files that are not what they were before.
    pub fn changed_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a Path> {
        let stamped = self.0.iter().zip(&before.0);
        stamped.filter(|(now, before)| now != before).map(|((path, _), _)| path.as_path())
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
        let searched = vec![dir.path().to_owned()];
        let configuration = Configuration { searched, ..Configuration::default() };
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
        std::fs::remove_file(path("mcp.yml")).unwrap();
        assert_eq!(changed(&before), ["mcp.yml"]);
        let after = WatchedFiles::of(&configuration, []);
        assert_eq!(changed(&after), [""; 0]);
        assert_eq!(changed(&after.as_they_were(&before)), ["mcp.yml"]);
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
