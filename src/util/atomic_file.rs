//! Replacing a file atomically.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use super::private_file;

/// Waits until this process is the only writer of the files in the directory of `path`, which is
/// made, readable by its owner only, when it is missing. The turn ends when the file is closed.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    Private,
    /// Those of the old file; a new one gets these, less what the process masks out.
    Kept(u32),
}

/// Writes a new file beside the old one and renames it into place, so that a reader never sees half
/// of it. Its directory has to exist. Of a symbolic link the target is replaced.
pub fn replace(path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", uuid::Uuid::new_v4().simple()));
    let temporary = path.with_file_name(name);
    let write = || {
        let mut file = match mode {
            FileMode::Private => private_file::create_new(&temporary)?,
            FileMode::Kept(new) => create_like(path, new, &temporary)?,
        };
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        // The error that is reported is the first one.
        let _absent = std::fs::remove_file(&temporary);
    })
}

fn create_like(path: &Path, new: u32, temporary: &Path) -> io::Result<File> {
    let old = std::fs::metadata(path).ok().map(|metadata| metadata.permissions().mode() & 0o777);
    let mode = old.unwrap_or(new);
    let file = OpenOptions::new().create_new(true).write(true).mode(mode).open(temporary)?;
    if old.is_some() {
        // The process may mask out what the old file allows.
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(file)
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
        replace(&path, b"one", FileMode::Kept(0o600)).unwrap();
        drop(turn);
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, b"two", FileMode::Kept(0o600)).unwrap();
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("two", 0o644));
        replace(&path, b"three", FileMode::Private).unwrap();
        assert_eq!((std::fs::read(&path).unwrap().as_slice(), mode(&path)), (&b"three"[..], 0o600));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_left_beside_a_file_that_cannot_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("directory");
        std::fs::create_dir(&path).unwrap();
        replace(&path, b"one", FileMode::Private).unwrap_err();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"two", FileMode::Kept(0o600)).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
    }
}
