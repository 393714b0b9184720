//! Files and directories that only their owner may use.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use rustix::fs::OFlags;

pub const FILE: u32 = 0o600;
pub const DIRECTORY: u32 = 0o700;

/// Makes a directory and what is missing above it, each of them private. One that is there stays as
/// it is.
pub fn make_directory(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(DIRECTORY).create(path) {
        // The process may mask out rights of the owner too.
        Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(DIRECTORY)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match path.parent() {
            // Where nothing can be made (`/proc`), that is said of a parent that is there, too.
            Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
                make_directory(parent)?;
                make_directory(path)
            }
            _ => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// The same for a private directory: an existing one loses the access of everyone else.
pub fn make_own_directory(path: &Path) -> io::Result<()> {
    make_directory(path)?;
    restrict_directory(path)
}

/// Removes the access of everyone else to our directory, if it exists. A symbolic link, and what
/// belongs to another user, is left alone.
pub fn restrict_directory(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
        Ok(directory) => File::from(directory),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
            return Ok(());
        }
        Err(errno) => return Err(errno.into()),
    };
    let meta = directory.metadata()?;
    let is_ours = meta.uid() == rustix::process::geteuid().as_raw();
    if is_ours && meta.mode() & 0o077 != 0 {
        directory.set_permissions(Permissions::from_mode(DIRECTORY))?;
    }
    Ok(())
}

/// Makes a private file that was not there before.
pub fn create_new(path: &Path) -> io::Result<File> {
    let file = File::options().write(true).create_new(true).mode(FILE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE))?;
    Ok(file)
}

/// Opens a private file for locking, and makes it when it is missing. A symbolic link is not
/// followed.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = File::options();
    options.create(true).write(true).truncate(false).mode(FILE).custom_flags(flags);
    let file = options.open(path)?;
    if file.metadata()?.mode() & 0o777 != FILE {
        file.set_permissions(Permissions::from_mode(FILE))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    fn open_to_all(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_is_private_with_all_that_is_made_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/c");
        make_own_directory(&path).unwrap();
        for made in ["a", "a/b", "a/b/c"] {
            assert_eq!(mode(&dir.path().join(made)), DIRECTORY, "{made}");
        }
        open_to_all(&path, 0o777);
        make_directory(&path).unwrap();
        assert_eq!(mode(&path), 0o777);
        make_own_directory(&path).unwrap();
        assert_eq!(mode(&path), DIRECTORY);
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(make_own_directory(&dir.path().join("file/below")).is_err());
        assert!(make_own_directory(Path::new("/proc/toolhost/below")).is_err());
    }

    #[test]
    fn a_link_in_the_directory_s_place_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        open_to_all(&real, 0o755);
        std::os::unix::fs::symlink(&real, &link).unwrap();
        restrict_directory(&link).unwrap();
        assert_eq!(mode(&real), 0o755);
    }

    #[test]
    fn a_file_that_was_open_to_others_is_private_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "old").unwrap();
        open_to_all(&path, 0o666);
        drop(open_lock(&path).unwrap());
        assert_eq!(mode(&path), FILE);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(create_new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
