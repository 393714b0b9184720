//! Append-only files of lines, shared by many processes.
//!
//! Owns: appending whole lines with one `write` each, which is what survives a `kill -9` and keeps
//! the lines of several processes apart; and noticing that the file was moved away, so that the
//! next line goes to the new one. Never does: know what is in a line, or move a file (see
//! `segments`).

mod open;

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::AtFlags;
use thiserror::Error;

use open::OpenAppendFile;
pub(super) use open::failed;
pub use open::{FileIdentity, RecordLocation};

use super::json::escape_invisible;

/// The time between two checks that the path still leads to the open file: on some systems that
/// costs more than writing a line.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Why a line was not appended.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum AppendError {
    /// The file or its directory is not what it should be: another user may be tampering with it.
    #[error("{0}")]
    Unsafe(String),
    /// The system could not write.
    #[error("{0}")]
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryOwner {
    /// Our own: made with mode 0700, kept that way, and refused when it is a symbolic link.
    Own,
    /// One that a person named: created if missing, otherwise left unchanged.
    Named,
}

/// A file to append lines to; opened with the first line.
#[derive(Debug)]
pub struct AppendFile {
    location: RecordLocation,
    sync: bool,
    state: Mutex<AppendState>,
}

#[derive(Debug, Default)]
struct AppendState {
    opened: Option<OpenAppendFile>,
    /// The last line in the file is incomplete, so the next one must start with a line break.
    has_torn_end: bool,
    /// Where our last line ended; a line of ours that does not begin there follows one of another
    /// process.
    end: u64,
    checked_at: Option<Duration>,
    notes: Vec<String>,
}

impl AppendFile {
    /// Names the file; nothing is opened yet. With `sync` each line is forced to the disk.
    pub fn new(location: RecordLocation, sync: bool) -> Self {
        Self { location, sync, state: Mutex::default() }
    }

    pub fn path(&self) -> &Path {
        &self.location.path
    }

    /// Opens the file without writing to it, to learn early whether that is possible.
    pub fn open(&self, now: Duration) -> Result<(), AppendError> {
        self.ensure_open(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), now)
    }

    /// Appends one line and gives the file's length after it; `json` must hold no line break, and
    /// `now` is the time since the Unix epoch. Characters that could steer a terminal are written
    /// as `\u` escapes, so that the file can be read with `cat`.
    pub fn append(&self, now: Duration, json: &str) -> Result<u64, AppendError> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        self.ensure_open(state, now)?;
        let Some(opened) = &state.opened else {
            return Err(self.location.failed("was not opened", &io::Error::other("no file")));
        };
        let mut line = String::with_capacity(json.len() + 2);
        if state.has_torn_end {
            line.push('\n');
        }
        line.push_str(&escape_invisible(json));
        line.push('\n');
        let before = state.end;
        state.end = self.write(&opened.file, &line, &mut state.has_torn_end)?;
        let start = state.end.saturating_sub(line.len() as u64);
        // Another process wrote in between, and may have run out of room in the middle of a line:
        // then ours was lost with it, and is written once more. It is on its own line now.
        if start != before && !ends_with_newline(&opened.file, start).unwrap_or(true) {
            state.end = self.write(&opened.file, &line, &mut state.has_torn_end)?;
        }
        if self.sync {
            opened
                .file
                .sync_data()
                .map_err(|error| self.location.failed("cannot be synced", &error))?;
        }
        Ok(state.end)
    }

    /// Writes a line and gives the file's length after it.
    fn write(&self, file: &File, line: &str, torn: &mut bool) -> Result<u64, AppendError> {
        let written = write_once(file, line.as_bytes())
            .map_err(|error| self.location.failed("cannot be written", &error))?;
        *torn = written < line.len();
        if *torn {
            // The rest is not written with a second call: another process may have come between.
            let error = io::Error::from(io::ErrorKind::StorageFull);
            return Err(self.location.failed("stored only part of a line", &error));
        }
        // Where an appending write ended is where the file ended: much cheaper than asking for its
        // length, and not changed by the next writer.
        let mut file = file;
        file.stream_position().map_err(|error| self.location.failed("cannot be read", &error))
    }

    /// Makes sure that the open file is the one at the path, as far as it was not looked at just
    /// now, and that it is known whether its last line has an end.
    fn ensure_open(&self, state: &mut AppendState, now: Duration) -> Result<(), AppendError> {
        if let (Some(opened), Some(name)) = (&state.opened, self.path().file_name()) {
            if state.checked_at.is_some_and(|looked| looked.abs_diff(now) < RECHECK_INTERVAL) {
                return Ok(());
            }
            let stat = rustix::fs::statat(&opened.directory, name, AtFlags::SYMLINK_NOFOLLOW);
            if stat.is_ok_and(|stat| FileIdentity::of(&stat) == opened.identity) {
                state.checked_at = Some(now);
                return Ok(());
            }
            // Moved away or removed: the next line starts a new file.
            state.opened = None;
        }
        let opened = self.location.open(&mut state.notes)?;
        let failed = |error| self.location.failed("cannot be read", &error);
        state.has_torn_end = has_torn_end(&opened.file).map_err(failed)?;
        state.end = opened.file.metadata().map_err(failed)?.len();
        state.checked_at = Some(now);
        state.opened = Some(opened);
        Ok(())
    }

    /// Hands the open file, if there is one, to `work`, while no line is being written by this
    /// process. The file may be moved: the next line looks for it again.
    pub(super) fn with_open<R>(
        &self,
        work: impl FnOnce(&File, &rustix::fd::OwnedFd, FileIdentity, &mut Vec<String>) -> R,
    ) -> Option<R> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let AppendState { opened, notes, checked_at: looked, .. } = &mut *guard;
        *looked = None;
        let opened = opened.as_ref()?;
        Some(work(&opened.file, &opened.directory, opened.identity, notes))
    }

    /// Repairs made when the file was opened; each note is returned once.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).notes)
    }
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
fn has_torn_end(file: &File) -> io::Result<bool> {
    const LOOKS: u32 = 3;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);
    for look in 1..=LOOKS {
        if ends_with_newline(file, file.metadata()?.len())? {
            return Ok(false);
        }
        if look < LOOKS {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(true)
}

/// Whether the byte before `length` ends a line; an empty file does.
fn ends_with_newline(file: &File, length: u64) -> io::Result<bool> {
    let Some(at) = length.checked_sub(1) else { return Ok(true) };
    let mut last = [0];
    file.read_exact_at(&mut last, at)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::util::text;

    const NOW: Duration = Duration::from_secs(1_000);

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn own(path: &Path) -> AppendFile {
        file(path, DirectoryOwner::Own)
    }

    fn file(path: &Path, directory: DirectoryOwner) -> AppendFile {
        AppendFile::new(RecordLocation { path: path.to_owned(), directory_owner: directory }, false)
    }

    #[test]
    fn the_first_line_makes_a_private_file_in_a_private_directory() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("state/deep/log.jsonl");
        let file = own(&path);
        assert!(!path.exists(), "nothing is opened before the first line");
        file.append(NOW, r#"{"a":1}"#).unwrap();
        file.append(NOW, r#"{"a":2}"#).unwrap();
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
        let error = file(&link, DirectoryOwner::Named).append(NOW, "{}").unwrap_err();
        assert!(matches!(&error, AppendError::Unsafe(m) if m.ends_with("is a symbolic link")));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "x");
    }

    #[test]
    fn a_linked_directory_is_refused_when_it_should_be_ours() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("real")).unwrap();
        symlink(root.path().join("real"), root.path().join("state")).unwrap();
        let path = root.path().join("state/log.jsonl");
        assert!(matches!(own(&path).append(NOW, "{}"), Err(AppendError::Unsafe(_))));
        let in_a_file = root.path().join("file/log.jsonl");
        std::fs::write(root.path().join("file"), "").unwrap();
        assert!(matches!(own(&in_a_file).append(NOW, "{}"), Err(AppendError::Failed(_))));
        file(&path, DirectoryOwner::Named).append(NOW, "{}").unwrap();
    }

    #[test]
    fn a_file_open_to_others_is_closed_with_a_note() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log.jsonl");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let location =
            RecordLocation { path: path.clone(), directory_owner: DirectoryOwner::Named };
        let file = AppendFile::new(location, true);
        file.append(NOW, "{}").unwrap();
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
            assert!(own(&path).append(NOW, "{}").is_err(), "{}", path.display());
        }
    }

    #[test]
    fn a_torn_line_is_ended_before_the_next_one() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log.jsonl");
        std::fs::write(&path, "{\"half\":").unwrap();
        own(&path).append(NOW, "{}").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"half\":\n{}\n");
    }

    #[test]
    fn a_line_that_another_process_left_torn_is_ended() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log.jsonl");
        let file = own(&path);
        file.append(NOW, "1").unwrap();
        let mut other = File::options().append(true).open(&path).unwrap();
        other.write_all(b"{\"half\":").unwrap();
        file.append(NOW, "2").unwrap();
        file.append(NOW, "3").unwrap();
        // The line that ran into the torn one is there once more, whole.
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n{\"half\":2\n2\n3\n");
    }

    #[test]
    fn a_file_that_was_moved_away_is_begun_anew() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log.jsonl");
        let file = own(&path);
        file.append(NOW, "1").unwrap();
        std::fs::rename(&path, root.path().join("old.jsonl")).unwrap();
        // Not at once: it was looked at just now.
        file.append(NOW, "2").unwrap();
        assert!(!path.exists());
        file.append(NOW + RECHECK_INTERVAL, "3").unwrap();
        std::fs::remove_file(&path).unwrap();
        // However the clock was set in between.
        file.append(Duration::ZERO, "4").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "4\n");
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn a_link_put_in_the_place_of_an_open_file_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log.jsonl");
        let target = root.path().join("precious");
        std::fs::write(&target, "x").unwrap();
        let file = own(&path);
        file.append(NOW, "1").unwrap();
        std::fs::remove_file(&path).unwrap();
        symlink(&target, &path).unwrap();
        assert!(matches!(file.append(NOW * 2, "2"), Err(AppendError::Unsafe(_))));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "x");
    }

    #[test]
    fn a_full_disk_is_said() {
        let file = file(Path::new("/dev/full"), DirectoryOwner::Named);
        // Not a regular file; the point is that the device is refused before it is written to.
        assert!(matches!(
            file.append(NOW, "{}"),
            Err(AppendError::Unsafe(_) | AppendError::Failed(_))
        ));
    }

    #[test]
    fn what_steers_a_terminal_is_escaped_and_means_the_same() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log.jsonl");
        let text = "é \u{9b}31m \u{202e} \u{e0041} \u{7f}";
        own(&path).append(NOW, &serde_json::to_string(text).unwrap()).unwrap();
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
                        file.append(NOW, &format!("[{writer},{line},\"{pad}\"]")).unwrap();
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
