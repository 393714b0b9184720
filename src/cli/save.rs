//! `--save`: writing a result's content to files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::model::Error;
use crate::util::atomic_file::{self, FileMode};

pub use crate::util::output_paths::output_paths;

pub fn check(path: &Path) -> Result<(), Error> {
    if path.is_dir() || path.file_name().is_none() {
        return Err(Error::usage(format!(
            "cannot save to '{}': it is a directory",
            path.display()
        ))
        .with_hint("name a file inside it"));
    }
    let directory = parent(path);
    if directory.is_dir() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "cannot save to '{}': there is no directory '{}'",
        path.display(),
        directory.display()
    )))
}

/// Checks that a file can be created or replaced there, without doing it.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    check(path)?;
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    // A file is replaced by a new one next to it; a device or pipe is written directly.
    let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    let written = if special { path.clone() } else { parent(path) };
    rustix::fs::access(&written, rustix::fs::Access::WRITE_OK).map_err(|errno| {
        let why = io::Error::from(errno);
        Error::usage(format!("cannot write to '{}': {why}", written.display()))
    })
}

/// Writes a file atomically: it has either all of `bytes` or its earlier content.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    replace(path, bytes).map_err(|error| {
        Error::internal(format!("cannot write '{}': {error}", path.display()))
            .with_hint("the call was made, but its result is lost unless printed")
    })
}

/// The same, with only the system's reason as error.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A device or a pipe (`--save /dev/stdout`) is written, not replaced.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    atomic_file::replace(path, bytes, FileMode::Kept(0o666))
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result.txt");
        fs::write(&path, "old").unwrap();
        write(&path, b"new\0").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new\0");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn directories_are_refused_before_the_call() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check(dir.path()).is_err());
        assert!(check(&dir.path().join("missing/file")).is_err());
        assert!(check(&dir.path().join("file")).is_ok());
        assert!(check(Path::new("file")).is_ok());
    }
}
