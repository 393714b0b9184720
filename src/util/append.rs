//! Files that only ever grow, one line at a time, shared by many processes.
//!
//! Owns: opening such a file safely and appending whole lines with one `write` each, which is what
//! survives a `kill -9` and keeps the lines of several processes apart. Never does: know what is
//! in a line.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

use super::text;

/// Why a line was not appended.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum AppendError {
    /// The file or its directory is not what it should be: somebody may be tampering with it.
    #[error("{0}")]
    Unsafe(String),
    /// The system could not write.
    #[error("{0}")]
    Failed(String),
}

/// Whose directory the file stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directory {
    /// Our own: made with mode 0700, kept that way, and refused when it is a symbolic link.
    Own,
    /// One that a person named: made when missing, otherwise left as it is.
    Named,
}

/// A file to append lines to; opened with the first line.
#[derive(Debug)]
pub struct AppendFile {
    path: PathBuf,
    directory: Directory,
    sync: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    /// The last line in the file has no end, so the next one must begin with a line break.
    torn: bool,
    notes: Vec<String>,
}

impl AppendFile {
    /// Names the file; nothing is opened yet. With `sync` each line is forced to the disk.
    pub fn new(path: PathBuf, directory: Directory, sync: bool) -> Self {
        Self { path, directory, sync, state: Mutex::default() }
    }

    /// Where the lines go.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one line; `json` must hold no line break. Characters that could steer a terminal
    /// are written as `\u` escapes, so that the file can be read with `cat`.
    ///
    /// # Errors
    /// When the file is not safe to write to, or the system refuses.
    pub fn append(&self, json: &str) -> Result<(), AppendError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.file.is_none() {
            let (file, torn) = self.open(&mut state.notes)?;
            state.file = Some(file);
            state.torn = torn;
        }
        let mut line = String::with_capacity(json.len() + 2);
        if state.torn {
            line.push('\n');
        }
        escape(json, &mut line);
        line.push('\n');
        let State { file: Some(file), torn, .. } = &mut *state else {
            return Err(self.failed("was not opened", &io::Error::other("no file")));
        };
        let written = write_once(file, line.as_bytes())
            .map_err(|error| self.failed("cannot be written", &error))?;
        *torn = written < line.len();
        if *torn {
            // The rest is not written with a second call: another process may have come between.
            let error = io::Error::from(io::ErrorKind::StorageFull);
            return Err(self.failed("took only a part of a line", &error));
        }
        if self.sync {
            file.sync_data().map_err(|error| self.failed("cannot be synced", &error))?;
        }
        Ok(())
    }

    /// What was put right when the file was opened; each note is handed out once.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).notes)
    }

    fn failed(&self, what: &str, error: &io::Error) -> AppendError {
        AppendError::Failed(format!("{} {what}: {error}", self.path.display()))
    }

    fn refused(&self, path: &Path, why: &str) -> AppendError {
        debug_assert!(self.path.starts_with(path));
        AppendError::Unsafe(format!("{} {why}", path.display()))
    }

    /// Opens the file and says whether its last line has no end.
    fn open(&self, notes: &mut Vec<String>) -> Result<(File, bool), AppendError> {
        let parent = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let Some(name) = self.path.file_name() else {
            return Err(self.refused(&self.path, "is not the name of a file"));
        };
        let directory = self.open_directory(parent, notes)?;
        // Not blocking, so that a FIFO in the file's place is found out instead of waited for.
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, name, flags, Mode::RUSR | Mode::WUSR).map_err(
            |errno| match errno {
                Errno::LOOP => self.refused(&self.path, "is a symbolic link"),
                errno => self.failed("cannot be opened", &errno.into()),
            },
        )?;
        let stat =
            rustix::fs::fstat(&file).map_err(|e| self.failed("cannot be read", &e.into()))?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
            return Err(self.refused(&self.path, "is not a regular file"));
        }
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(self.refused(&self.path, "belongs to another user"));
        }
        if stat.st_mode & 0o077 != 0 {
            rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)
                .map_err(|e| self.failed("cannot be made private", &e.into()))?;
            notes.push(format!(
                "{} could be used by others (mode {:04o}) and was set to 0600",
                self.path.display(),
                stat.st_mode & 0o7777
            ));
        }
        let file = File::from(file);
        let torn = ends_torn(&file).map_err(|e| self.failed("cannot be read", &e))?;
        Ok((file, torn))
    }

    fn open_directory(&self, path: &Path, notes: &mut Vec<String>) -> Result<OwnedFd, AppendError> {
        let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if self.directory == Directory::Own {
            flags |= OFlags::NOFOLLOW;
        }
        let open = || rustix::fs::open(path, flags, Mode::empty());
        let opened = match open() {
            Err(Errno::NOENT) => {
                make_private(path).map_err(|e| {
                    AppendError::Failed(format!("{} cannot be made: {e}", path.display()))
                })?;
                open()
            }
            other => other,
        };
        let directory = opened.map_err(|errno| match errno {
            // Linux says "not a directory" of a link that must not be followed. Anything else in
            // the directory's place is a mishap and leads nowhere.
            Errno::LOOP | Errno::NOTDIR if is_link(path) => {
                self.refused(path, "is a symbolic link")
            }
            errno => AppendError::Failed(format!(
                "{} cannot be opened: {}",
                path.display(),
                io::Error::from(errno)
            )),
        })?;
        if self.directory == Directory::Own {
            let stat = rustix::fs::fstat(&directory)
                .map_err(|e| self.failed("cannot be read", &e.into()))?;
            if stat.st_uid != rustix::process::geteuid().as_raw() {
                return Err(self.refused(path, "belongs to another user"));
            }
            if stat.st_mode & 0o077 != 0 {
                rustix::fs::fchmod(&directory, Mode::RWXU)
                    .map_err(|e| self.failed("cannot be made private", &e.into()))?;
                notes.push(format!(
                    "{} was open to others (mode {:04o}) and was set to 0700",
                    path.display(),
                    stat.st_mode & 0o7777
                ));
            }
        }
        Ok(directory)
    }
}

fn is_link(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// One `write`, repeated only when a signal came before anything was written.
fn write_once(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match file.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Whether the file ends inside a line. What another process is just writing looks the same for
/// a moment, so a torn end is looked at again; if it fools us still, the line break put before our
/// line leaves an empty one, which readers skip.
fn ends_torn(file: &File) -> io::Result<bool> {
    const LOOKS: u32 = 3;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);
    for look in 1..=LOOKS {
        let length = file.metadata()?.len();
        if length == 0 {
            return Ok(false);
        }
        let mut last = [0];
        file.read_exact_at(&mut last, length - 1)?;
        if last == *b"\n" {
            return Ok(false);
        }
        if look < LOOKS {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(true)
}

/// JSON without characters that steer terminals or hide. Only strings can hold such characters,
/// so escaping them everywhere keeps the meaning.
fn escape(json: &str, out: &mut String) {
    use std::fmt::Write as _;
    let harmful = |c: char| c.is_control() || text::is_invisible(c);
    if json.is_ascii() && !json.bytes().any(|b| b < 0x20 || b == 0x7f) {
        out.push_str(json);
        return;
    }
    for c in json.chars() {
        if harmful(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ignored = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn own(path: &Path) -> AppendFile {
        AppendFile::new(path.to_owned(), Directory::Own, false)
    }

    #[test]
    fn the_first_line_makes_a_private_file_in_a_private_directory() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("state/deep/log.jsonl");
        let file = own(&path);
        assert!(!path.exists(), "nothing is opened before the first line");
        file.append(r#"{"a":1}"#).unwrap();
        file.append(r#"{"a":2}"#).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"a\":2}\n");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert!(file.take_notes().is_empty());
    }

    #[test]
    fn a_symbolic_link_is_refused_and_its_target_untouched() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("precious");
        std::fs::write(&target, "x").unwrap();
        let link = root.path().join("log.jsonl");
        symlink(&target, &link).unwrap();
        let error = AppendFile::new(link, Directory::Named, false).append("{}").unwrap_err();
        assert!(matches!(&error, AppendError::Unsafe(m) if m.ends_with("is a symbolic link")));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "x");
    }

    #[test]
    fn a_linked_directory_is_refused_when_it_should_be_ours() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("real")).unwrap();
        symlink(root.path().join("real"), root.path().join("state")).unwrap();
        let path = root.path().join("state/log.jsonl");
        assert!(matches!(own(&path).append("{}"), Err(AppendError::Unsafe(_))));
        let in_a_file = root.path().join("file/log.jsonl");
        std::fs::write(root.path().join("file"), "").unwrap();
        assert!(matches!(own(&in_a_file).append("{}"), Err(AppendError::Failed(_))));
        AppendFile::new(path, Directory::Named, false).append("{}").unwrap();
    }

    #[test]
    fn a_file_open_to_others_is_closed_with_a_note() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log.jsonl");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let file = AppendFile::new(path.clone(), Directory::Named, true);
        file.append("{}").unwrap();
        assert_eq!(mode(&path), 0o600);
        assert!(file.take_notes()[0].contains("mode 0666"));
        assert!(file.take_notes().is_empty());
    }

    #[test]
    fn other_things_in_the_files_place_are_refused_at_once() {
        let root = tempfile::tempdir().unwrap();
        let fifo = root.path().join("fifo");
        let status = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(status.success());
        for path in [fifo, root.path().join("a-file/log.jsonl")] {
            std::fs::write(root.path().join("a-file"), "").unwrap();
            assert!(own(&path).append("{}").is_err(), "{}", path.display());
        }
    }

    #[test]
    fn a_torn_line_is_ended_before_the_next_one() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log.jsonl");
        std::fs::write(&path, "{\"half\":").unwrap();
        own(&path).append("{}").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"half\":\n{}\n");
    }

    #[test]
    fn a_full_disk_is_said() {
        let file = AppendFile::new("/dev/full".into(), Directory::Named, false);
        // Not a regular file; the point is that the device is refused before it is written to.
        assert!(matches!(file.append("{}"), Err(AppendError::Unsafe(_) | AppendError::Failed(_))));
    }

    #[test]
    fn what_steers_a_terminal_is_escaped_and_means_the_same() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log.jsonl");
        let text = "é \u{9b}31m \u{202e} \u{e0041} \u{7f}";
        own(&path).append(&serde_json::to_string(text).unwrap()).unwrap();
        let line = std::fs::read_to_string(&path).unwrap();
        assert!(line.trim_end().chars().all(|c| !c.is_control() && !text::is_invisible(c)));
        assert!(line.contains('é'));
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }

    #[test]
    fn lines_of_many_writers_stay_whole() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log.jsonl");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    // Each has its own descriptor, as processes have.
                    let file = own(path);
                    for line in 0..100 {
                        let pad = "x".repeat(line * 7);
                        file.append(&format!("[{writer},{line},\"{pad}\"]")).unwrap();
                    }
                });
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 800);
        for line in lines {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }
}
