//! Replacing a file atomically.
//!
//! Owns: the turn of a writer, and the way new content takes the place of the old. Never does:
//! know what is in the file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::private_file;

/// Waits until this process is the only writer of the files in the directory of `path`, which is
/// made, readable by its owner only, when it is missing. The turn ends when the file is closed.
///
/// # Errors
/// When the directory cannot be made or opened.
pub fn lock(path: &Path) -> io::Result<File> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        private_file::make_directory(directory)?;
    }
    let directory = File::open(directory)?;
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(directory)
}

/// Writes beside the file and moves it into place, so that a reader never sees half of it; for files
/// that a person named (those of our own are [`private_file::replace`]d). A file
/// that is there keeps its permissions; a new one gets `mode`, less what the process masks out. Of
/// a symbolic link what it leads to is replaced.
///
/// # Errors
/// When it cannot be written; then the old content is still there.
pub fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    let beside: PathBuf = path.with_file_name(name);
    match std::fs::remove_file(&beside) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.create_new(true).write(true).mode(mode).open(&beside)?;
    if let Ok(before) = std::fs::metadata(&path) {
        let permissions = std::fs::Permissions::from_mode(before.permissions().mode() & 0o777);
        file.set_permissions(permissions)?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_made_and_an_old_one_keeps_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/file");
        let turn = lock(&path).unwrap();
        replace(&path, "one", 0o600).unwrap();
        drop(turn);
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, "two", 0o600).unwrap();
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("two", 0o644));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "two", 0o600).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
    }
}
