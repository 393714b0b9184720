//! Replacing a file atomically.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::private_file;

/// A draft older than this was left by a killed process.
const MAX_DRAFT_AGE: Duration = Duration::from_mins(1);
const DRAFT_DIGITS: usize = 32;

/// Waits until this process is the only writer of the files in the directory of `path`, which is
/// made, readable by its owner only, when it is missing. The turn ends when the file is closed.
pub fn lock(path: &Path) -> io::Result<File> {
    let directory = directory_of(path);
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
/// of it. Its directory has to exist. Of a symbolic link the target is replaced. What was left beside
/// it by a process that was killed is removed.
pub fn replace(path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".");
    let beginning = name.clone();
    name.push(uuid::Uuid::new_v4().simple().to_string());
    let temporary = path.with_file_name(name);
    let write = || {
        let mut file = match mode {
            FileMode::Private => private_file::create_new(&temporary)?,
            FileMode::Kept(new) => create_like(path, new, &temporary)?,
        };
        // What cannot be removed stays for the next time.
        let _left = file
            .metadata()
            .and_then(|metadata| metadata.modified())
            .and_then(|now| remove_abandoned(directory_of(&temporary), &beginning, now));
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        // The name itself has to survive a power cut too; the file is replaced in any case.
        let _synced = File::open(directory_of(path)).and_then(|directory| directory.sync_all());
        Ok(())
    };
    write().inspect_err(|_| {
        // The error that is reported is the first one.
        let _absent = std::fs::remove_file(&temporary);
    })
}

/// Removes drafts that are more than a minute old at `now`, with the files that `SQLite` leaves beside a
/// draft. `beginning` is what the names of all drafts of a file have in common; the digits of a UUID follow.
pub fn remove_abandoned(directory: &Path, beginning: &OsStr, now: SystemTime) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)?.flatten() {
        let name = entry.file_name();
        let rest = name.as_encoded_bytes().strip_prefix(beginning.as_encoded_bytes());
        let is_draft = rest.and_then(|rest| rest.split_at_checked(DRAFT_DIGITS)).is_some_and(
            |(digits, ending)| {
                digits.iter().all(u8::is_ascii_hexdigit)
                    && matches!(ending, b"" | b"-journal" | b"-wal" | b"-shm")
            },
        );
        let is_old = || {
            let changed = entry.metadata().and_then(|metadata| metadata.modified()).ok();
            let age = changed.and_then(|changed| now.duration_since(changed).ok());
            age.is_some_and(|age| age > MAX_DRAFT_AGE)
        };
        if is_draft && is_old() {
            let _stays = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
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
    fn what_a_killed_process_left_goes_when_it_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        replace(&path, b"one", FileMode::Private).unwrap();
        let now = std::fs::metadata(&path).unwrap().modified().unwrap();
        let digits = "0123456789abcdef0123456789abcdef";
        for (name, seconds) in [
            (format!(".file.{digits}"), 3600),
            (format!(".file.{digits}-journal"), 3600),
            (format!(".file.{digits}-notes"), 3600),
            (format!(".file.{}", digits.replace('0', "1")), 0),
            (format!(".other.{digits}"), 3600),
            (".file.notes".to_owned(), 3600),
        ] {
            let left = File::create(dir.path().join(name)).unwrap();
            left.set_modified(now - Duration::from_secs(seconds)).unwrap();
        }
        replace(&path, b"two", FileMode::Private).unwrap();
        assert!(!dir.path().join(format!(".file.{digits}")).exists());
        assert!(!dir.path().join(format!(".file.{digits}-journal")).exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 5);
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
