//! Which configuration files changed since a host was built from them. Only their metadata is looked
//! at.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::config::spec::{Configuration, Layer};

/// The files that a project usually has.
const USUAL: [&str; 2] = ["tools.yaml", "mcp.yaml"];

/// Tells one content of a file from another without reading it.
pub(super) type FileStamp = (u64, u64, i64, i64);

/// The configuration files as they were when a host was built from them.
#[derive(Debug, Default)]
pub(super) struct WatchedFiles {
    files: Mutex<StampedFiles>,
}

#[derive(Debug, Default)]
struct StampedFiles {
    /// How many hosts were built from them.
    generation: u64,
    files: Vec<(PathBuf, Option<FileStamp>)>,
}

impl WatchedFiles {
    /// Remembers the files that a host was built from, as they are now. A project without one of the
    /// usual files may get it later: that it is not there is remembered, too.
    pub(super) fn remember(&self, configuration: &Configuration) {
        let read = configuration.files.iter().map(|file| file.path.clone());
        // What the command line names is all that is read; else a directory may get more.
        let is_found = |layer| matches!(layer, Layer::Project | Layer::User);
        let found = configuration.files.iter().filter(|file| is_found(file.layer));
        let beside = found.filter_map(|file| file.path.parent());
        let searched = configuration.searched.iter().map(PathBuf::as_path).chain(beside);
        let usual = searched.flat_map(|directory| USUAL.map(|name| directory.join(name)));
        let stamped = |path: PathBuf| (stamp_of_file(&path), path);
        let files = read.chain(usual).map(stamped).map(|(stamp, path)| (path, stamp));
        let mut files: Vec<_> = files.collect();
        files.sort();
        files.dedup();
        let mut stamped = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        (stamped.generation, stamped.files) = (stamped.generation + 1, files);
    }

    /// How many hosts were built, and the names of the files that are not what they were when the
    /// newest one was.
    pub(super) fn changed(&self) -> (u64, Vec<String>) {
        let stamped = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = stamped.files.iter().filter(|(path, before)| stamp_of_file(path) != *before);
        let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        (stamped.generation, changed.filter_map(|(path, _)| name(path)).collect())
    }
}

/// The stamp of a file that may be a link: of what it leads to.
fn stamp_of_file(path: &Path) -> Option<FileStamp> {
    std::fs::metadata(path).ok().map(|meta| stamp_of(&meta))
}

/// The stamp of a file with this metadata.
pub(super) fn stamp_of(meta: &Metadata) -> FileStamp {
    (meta.ino(), meta.len(), meta.ctime(), meta.ctime_nsec())
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
        let files = WatchedFiles::default();
        files.remember(&configuration);
        assert_eq!(files.changed().1, [""; 0]);
        std::fs::write(path("mcp.yaml"), "").unwrap();
        assert_eq!(files.changed().1, ["mcp.yaml"]);
        std::fs::write(path("tools.yaml"), "tools: [] # and more").unwrap();
        assert_eq!(files.changed().1, ["mcp.yaml", "tools.yaml"]);
        files.remember(&configuration);
        assert_eq!(files.changed().1, [""; 0]);
        std::fs::remove_file(path("mcp.yaml")).unwrap();
        assert_eq!(files.changed().1, ["mcp.yaml"]);
    }
}
