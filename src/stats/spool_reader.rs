//! Reading the part of the spool that was not folded yet.
//!
//! A file of the spool is known by its first line, which holds the identity of a call and so is
//! like no other: names change when a file is set aside, and numbers of files are used again. Of
//! each file it is remembered how far it was read.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::count::SpoolBatch;
use super::spool::SpoolRow;
use crate::util::append::{AppendError, RecordLocation};
use crate::util::hex::hex;
use crate::util::segments;

/// How much is read at once, a whole number of lines: as much as a file is long before it is set
/// aside.
pub const CHUNK: u64 = 4 << 20;

const LONGEST: usize = 64 << 10;

/// How many identities are remembered at the place where reading ended. A writer that finds its
/// line behind a torn one of another process writes it once more, right behind it.
const RECENT: usize = 16;

/// How long ago a file must have changed last, after it was set aside, to be taken as finished.
/// Writers look where their file went once a second (see `util::append`); this is for one that was
/// stopped in between.
const LINGER: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpoolPosition {
    /// The byte after the last line that was read.
    pub offset: u64,
    /// The identities of the last rows, the newest last.
    pub recent: VecDeque<String>,
}

/// How far each file was read, by its key.
pub type SpoolPositions = BTreeMap<String, SpoolPosition>;

#[derive(Debug)]
pub struct SpoolFile {
    /// The current path; a file keeps its key when it is set aside.
    pub path: PathBuf,
    pub key: String,
    /// The length in bytes when it was opened.
    pub length: u64,
    /// Whether it was set aside so long ago that no process appends to it any more.
    pub is_finished: bool,
    file: File,
}

#[derive(Debug)]
pub struct SpoolChunk {
    pub batch: SpoolBatch,
    pub position: SpoolPosition,
}

/// All files of the spool, the oldest first; `now` is the time since the Unix epoch.
pub fn files(spool: &RecordLocation, now: Duration) -> Result<Vec<SpoolFile>, AppendError> {
    let mut all = Vec::new();
    for location in segments::files(spool)? {
        all.extend(SpoolFile::open(&location, location != *spool, now)?);
    }
    Ok(all)
}

impl SpoolFile {
    /// Opens a file; `None` when it is not there, or no line of it is whole yet.
    fn open(
        location: &RecordLocation,
        set_aside: bool,
        now: Duration,
    ) -> Result<Option<Self>, AppendError> {
        let Some((file, _)) = location.open_to_read()? else { return Ok(None) };
        let unreadable = |error: io::Error| location.unreadable(&error);
        let metadata = file.metadata().map_err(unreadable)?;
        let mut head = vec![0; LONGEST];
        let read = file.read_at(&mut head, 0).map_err(unreadable)?;
        head.truncate(read);
        let end = match head.iter().position(|byte| *byte == b'\n') {
            Some(end) => end,
            // A line without end is damage, and begins like no other file all the same.
            None if read == LONGEST => read,
            None => return Ok(None),
        };
        head.truncate(end);
        let changed = Duration::from_secs(u64::try_from(metadata.mtime()).unwrap_or(0));
        Ok(Some(Self {
            path: location.path.clone(),
            key: key(&head, metadata.ino()),
            length: metadata.len(),
            is_finished: set_aside && now.saturating_sub(changed) > LINGER,
            file,
        }))
    }

    pub fn has_more(&self, position: &SpoolPosition) -> bool {
        self.length > position.offset
    }

    /// Reads whole lines from a position on, about [`CHUNK`] bytes of them. Of a finished file the
    /// end is taken even when it is no whole line.
    pub fn read(&self, position: &SpoolPosition) -> io::Result<SpoolChunk> {
        let mut bytes = Vec::new();
        // The file may have been truncated; what was folded of it stays folded.
        let from = position.offset.min(self.length);
        let length = usize::try_from((self.length - from).min(CHUNK)).unwrap_or(usize::MAX);
        bytes.resize(length, 0);
        let mut read = 0;
        while read < length {
            let rest = bytes.get_mut(read..).unwrap_or_default();
            match self.file.read_at(rest, from + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(read);
        let at_end = from + read as u64 >= self.length;
        let whole = match memchr::memrchr(b'\n', &bytes) {
            // No line is as long as a chunk: this is no text of ours, and is passed over.
            None if !at_end || (self.is_finished && read > 0) => read,
            _ if self.is_finished && at_end => read,
            Some(end) => end + 1,
            None => 0,
        };
        bytes.truncate(whole);
        let mut recent = position.recent.clone();
        let mut batch = SpoolBatch::default();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let text = if line.len() <= LONGEST { std::str::from_utf8(line).ok() } else { None };
            match text.and_then(SpoolRow::parse) {
                None => batch.damaged += 1,
                Some(row) if recent.contains(&row.id) => {}
                Some(row) => {
                    if recent.len() == RECENT {
                        recent.pop_front();
                    }
                    recent.push_back(row.id.clone());
                    batch.add(row);
                }
            }
        }
        Ok(SpoolChunk { batch, position: SpoolPosition { offset: from + whole as u64, recent } })
    }
}

/// What a file is known by: a digest of its first line. One that is no row could stand in several
/// files, so the file's number makes it its own.
fn key(head: &[u8], inode: u64) -> String {
    let key = hex(&Sha256::digest(head)[..16]);
    match std::str::from_utf8(head).ok().and_then(SpoolRow::parse) {
        Some(_) => key,
        None => format!("{key}-{inode}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(2_000_000_000);

    fn line(id: u32) -> String {
        format!(
            "{{\"t\":1700000000123,\"id\":\"id-{id}\",\"tool\":\"t\",\"k\":\"ok\",\"us\":5,\"n\":1,\"b\":0}}\n"
        )
    }

    fn only(location: &RecordLocation) -> SpoolFile {
        let mut all = files(location, NOW).unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    #[test]
    fn whole_lines_are_read_once_and_a_half_one_later() {
        let root = tempfile::tempdir().unwrap();
        let spool = RecordLocation::own(root.path(), "stats.spool");
        let text = line(1) + &line(2) + "torn{\n\n" + &line(3);
        let (head, tail) = text.split_at(text.len() - 10);
        std::fs::write(&spool.path, head).unwrap();
        let first = only(&spool).read(&SpoolPosition::default()).unwrap();
        assert_eq!((first.batch.calls, first.batch.damaged), (2, 1));
        std::fs::write(&spool.path, format!("{head}{tail}")).unwrap();
        let file = only(&spool);
        assert!(file.has_more(&first.position));
        let second = file.read(&first.position).unwrap();
        assert_eq!((second.batch.calls, second.batch.damaged), (1, 0));
        assert!(!file.has_more(&second.position));
    }

    #[test]
    fn a_line_that_was_written_once_more_counts_once() {
        let root = tempfile::tempdir().unwrap();
        let spool = RecordLocation::own(root.path(), "stats.spool");
        std::fs::write(&spool.path, line(1) + &line(2) + &line(1)).unwrap();
        let first = only(&spool).read(&SpoolPosition::default()).unwrap();
        assert_eq!(first.batch.calls, 2);
        // Across two readings too.
        std::fs::write(&spool.path, line(1) + &line(2) + &line(1) + &line(2) + &line(3)).unwrap();
        assert_eq!(only(&spool).read(&first.position).unwrap().batch.calls, 1);
    }

    #[test]
    fn a_file_keeps_its_key_when_it_is_set_aside() {
        let root = tempfile::tempdir().unwrap();
        let spool = RecordLocation::own(root.path(), "stats.spool");
        std::fs::write(&spool.path, line(1)).unwrap();
        let key = only(&spool).key;
        let aside = root.path().join("stats-20261122T013000Z.spool");
        std::fs::rename(&spool.path, aside).unwrap();
        std::fs::write(&spool.path, line(2)).unwrap();
        let all = files(&spool, NOW).unwrap();
        assert_eq!((all.len(), &all[0].key), (2, &key));
        assert!(all[0].is_finished && !all[1].is_finished);
        assert_ne!(all[1].key, key);
    }

    #[test]
    fn the_torn_end_of_a_finished_file_is_damage_and_no_reason_to_wait() {
        let root = tempfile::tempdir().unwrap();
        let spool = RecordLocation::own(root.path(), "stats.spool");
        let aside = root.path().join("stats-20261122T013000Z.spool");
        std::fs::write(aside, line(1) + "{\"t\":17").unwrap();
        let file = only(&spool);
        let chunk = file.read(&SpoolPosition::default()).unwrap();
        assert_eq!((chunk.batch.calls, chunk.batch.damaged), (1, 1));
        assert!(!file.has_more(&chunk.position));
    }

    #[test]
    fn a_file_that_is_no_text_is_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let spool = RecordLocation::own(root.path(), "stats.spool");
        std::fs::write(&spool.path, vec![b'x'; 5 << 20]).unwrap();
        let file = only(&spool);
        let mut position = SpoolPosition::default();
        position = file.read(&position).unwrap().position;
        assert_eq!(position.offset, CHUNK);
        // Its end may still become a line.
        assert_eq!(file.read(&position).unwrap().position.offset, CHUNK);
    }
}
