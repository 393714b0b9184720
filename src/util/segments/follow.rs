//! Following appended lines across rotated files.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::RecordLine;
use crate::util::append::{AppendError, FileIdentity, RecordLocation};

const BLOCK: usize = 64 << 10;

/// How often a file is still read after it was set aside. Processes notice within a second (see
/// `append`), and followers poll a few times a second.
const LINGER: u32 = 8;

const LONGEST: usize = 8 << 20;

#[derive(Debug)]
pub struct LineFollower {
    location: RecordLocation,
    /// The files that may still grow, the oldest first: one that was just set aside may get the
    /// last line of a process that has not noticed yet.
    open: VecDeque<FollowedFile>,
    has_skipped: bool,
}

#[derive(Debug)]
struct FollowedFile {
    file: File,
    identity: FileIdentity,
    offset: u64,
    /// The beginning of a line whose end was not written yet.
    partial: Vec<u8>,
    too_long: bool,
    /// How often it was read since it was set aside.
    lingered: u32,
}

impl LineFollower {
    pub fn from_end(location: RecordLocation) -> Result<Self, AppendError> {
        let mut open = VecDeque::new();
        if let Some((file, identity)) = location.open_to_read()? {
            let mut reading = FollowedFile::new(file, identity);
            reading.offset = reading.file.metadata().map_or(0, |metadata| metadata.len());
            open.push_back(reading);
        }
        Ok(Self { location, open, has_skipped: false })
    }

    /// Hands out the lines of the newest `segments` files, and follows the growing one from then on.
    pub fn from_beginning(
        location: RecordLocation,
        segments: usize,
        mut take: impl FnMut(RecordLine),
    ) -> Result<Self, AppendError> {
        // Opened first: should it be set aside now, it is among those that were.
        let growing = location.open_to_read()?;
        let mut set_aside = super::files(&location)?;
        set_aside.pop();
        let skipped = (set_aside.len() + 1).saturating_sub(segments);
        let mut open = VecDeque::new();
        for file in set_aside.iter().skip(skipped) {
            if let Some((opened, identity)) = file.open_to_read()?
                && growing.as_ref().is_none_or(|(_, growing)| *growing != identity)
            {
                let mut reading = FollowedFile::new(opened, identity);
                reading.read(&mut take).map_err(|error| file.unreadable(&error))?;
                open = VecDeque::from([reading]);
            }
        }
        open.extend(growing.map(|(file, identity)| FollowedFile::new(file, identity)));
        let mut lines = Self { location, open, has_skipped: skipped > 0 };
        lines.poll_each(take)?;
        Ok(lines)
    }

    /// Whether older files were left out.
    pub fn has_skipped(&self) -> bool {
        self.has_skipped
    }

    pub fn path(&self) -> &std::path::Path {
        &self.location.path
    }

    /// The lines that were appended since the last time.
    pub fn poll(&mut self) -> Result<Vec<RecordLine>, AppendError> {
        let mut lines = Vec::new();
        self.poll_each(|line| lines.push(line))?;
        Ok(lines)
    }

    /// Hands out the same one by one.
    pub fn poll_each(&mut self, mut take: impl FnMut(RecordLine)) -> Result<(), AppendError> {
        let growing = self.location.open_to_read()?;
        let moved = match (&growing, self.open.back()) {
            (Some((_, identity)), Some(last)) => *identity != last.identity,
            (Some(_), None) => true,
            (None, _) => false,
        };
        // Read before anything newer is opened: whatever was in the old file is older.
        let old = self.open.len();
        let mut read = |file: &mut FollowedFile| {
            file.read(&mut take).map_err(|error| self.location.unreadable(&error))
        };
        self.open.iter_mut().try_for_each(&mut read)?;
        if moved {
            let newer = self.newer(growing)?;
            self.open.extend(newer);
            self.open.iter_mut().skip(old).try_for_each(&mut read)?;
        }
        let older = self.open.len().saturating_sub(1);
        for reading in self.open.iter_mut().take(older) {
            reading.lingered += 1;
        }
        while self.open.len() > 1 && self.open.front().is_some_and(|old| old.lingered > LINGER) {
            self.open.pop_front();
        }
        Ok(())
    }

    /// What came after the last file.
    fn newer(
        &self,
        growing: Option<(File, FileIdentity)>,
    ) -> Result<VecDeque<FollowedFile>, AppendError> {
        let mut newer = VecDeque::new();
        newer.extend(growing.map(|(file, identity)| FollowedFile::new(file, identity)));
        if let Some(last) = self.open.back() {
            // Several files may have been set aside since.
            let set_aside = super::files(&self.location)?;
            let mut between = Vec::new();
            for location in set_aside.iter().rev().skip(1) {
                match location.open_to_read()? {
                    Some((_, identity)) if identity == last.identity => {
                        for (file, identity) in between {
                            newer.push_front(FollowedFile::new(file, identity));
                        }
                        break;
                    }
                    // One that was removed instead is not found, and then nothing lies between.
                    segments => between.extend(segments),
                }
            }
        }
        Ok(newer)
    }
}

impl FollowedFile {
    fn new(file: File, identity: FileIdentity) -> Self {
        Self { file, identity, offset: 0, partial: Vec::new(), too_long: false, lingered: 0 }
    }

    fn read(&mut self, take: &mut impl FnMut(RecordLine)) -> std::io::Result<()> {
        let mut block = vec![0; BLOCK];
        loop {
            let length = self.file.read_at(&mut block, self.offset)?;
            if length == 0 {
                return Ok(());
            }
            self.offset += length as u64;
            for piece in block.get(..length).unwrap_or_default().split_inclusive(|b| *b == b'\n') {
                match piece.split_last() {
                    Some((b'\n', text)) => {
                        self.partial.extend_from_slice(text);
                        let text = std::mem::take(&mut self.partial);
                        if std::mem::take(&mut self.too_long) {
                            take(RecordLine::TooLong);
                        } else if !text.is_empty() {
                            take(RecordLine::Text(text));
                        }
                    }
                    _ => self.partial.extend_from_slice(piece),
                }
                if self.partial.len() > LONGEST {
                    self.too_long = true;
                    self.partial.clear();
                }
            }
        }
    }
}
