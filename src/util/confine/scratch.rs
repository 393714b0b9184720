//! A private temporary directory, removed when its owner is dropped.

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A directory that only this user can enter. Dropping it removes it with all it holds; when
/// toolhost itself is killed, it stays.
#[derive(Debug)]
pub struct ScratchDir(PathBuf);

impl ScratchDir {
    /// Makes one in `parent`, under a name that cannot be guessed.
    pub fn make(parent: &Path) -> io::Result<Self> {
        let path = parent.join(format!("toolhost-{}", uuid::Uuid::new_v4().simple()));
        // `create` fails when something of that name exists, links included.
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.0).is_err() {
            // A child may have taken rights away from itself.
            make_removable(&self.0, 0);
            // What still stays is beyond our rights; it is in the system's temporary directory.
            let _left_behind = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Gives the user all rights to the directories below `path`. Links are not followed.
fn make_removable(path: &Path, depth: usize) {
    const DEEPEST: usize = 64;
    let is_directory = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    if !is_directory || depth > DEEPEST {
        return;
    }
    let _not_ours = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        make_removable(&entry.path(), depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_private_and_goes_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = ScratchDir::make(parent.path()).unwrap();
        let path = scratch.path().to_path_buf();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let locked = path.join("a/b");
        std::fs::create_dir_all(&locked).unwrap();
        std::fs::write(locked.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(parent.path(), locked.join("link")).unwrap();
        std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
        drop(scratch);
        assert!(!path.exists());
        assert!(parent.path().exists());
    }
}
