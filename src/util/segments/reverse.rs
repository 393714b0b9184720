//! Reading lines from newest to oldest over all segments.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::util::append::{AppendError, RecordLocation};

const BLOCK: u64 = 64 << 10;

const LONGEST: usize = 8 << 20;

/// One line of a log as it was read, without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordLine {
    /// Its bytes, without the line break.
    Text(Vec<u8>),
    TooLong,
}

/// Lines from the newest to the oldest. Empty ones are left out.
#[derive(Debug)]
pub struct ReverseLines {
    /// What is still to be read, the oldest first.
    files: Vec<RecordLocation>,
    reader: Option<ReverseReader>,
}

impl ReverseLines {
    pub fn all(location: &RecordLocation) -> Result<Self, AppendError> {
        Ok(Self { files: super::files(location)?, reader: None })
    }
}

impl Iterator for ReverseLines {
    type Item = Result<RecordLine, AppendError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(reader) = &mut self.reader else {
                let location = self.files.pop()?;
                match ReverseReader::open(&location) {
                    Ok(reader) => self.reader = reader,
                    Err(error) => return Some(Err(error)),
                }
                continue;
            };
            match reader.line() {
                Ok(Some(RecordLine::Text(text))) if text.is_empty() => {}
                Ok(Some(line)) => return Some(Ok(line)),
                Ok(None) => self.reader = None,
                Err(error) => {
                    let error = reader.location.unreadable(&error);
                    self.reader = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

#[derive(Debug)]
struct ReverseReader {
    location: RecordLocation,
    file: File,
    /// Where `held` begins in the file.
    start: u64,
    /// What was read and not yet handed out.
    held: Vec<u8>,
    /// Where in `held` no line break is, for certain.
    searched: usize,
    block: u64,
    too_long: bool,
}

impl ReverseReader {
    /// `None` when the file is not there, or not any more.
    fn open(location: &RecordLocation) -> Result<Option<Self>, AppendError> {
        let Some((file, _)) = location.open_to_read()? else { return Ok(None) };
        let length = file.metadata().map_err(|error| location.unreadable(&error))?;
        Ok(Some(Self {
            location: location.clone(),
            file,
            start: length.len(),
            held: Vec::new(),
            searched: 0,
            block: BLOCK,
            too_long: false,
        }))
    }

    fn line(&mut self) -> io::Result<Option<RecordLine>> {
        loop {
            let unsearched = self.held.len().saturating_sub(self.searched);
            let head = self.held.get(..unsearched).unwrap_or_default();
            if let Some(at) = memchr::memrchr(b'\n', head) {
                let text = self.held.split_off(at + 1);
                self.held.pop();
                self.searched = 0;
                self.block = BLOCK;
                return Ok(Some(self.finished(text)));
            }
            self.searched = self.held.len();
            if self.held.len() > LONGEST {
                self.too_long = true;
                self.held.clear();
                self.searched = 0;
            }
            if self.start == 0 {
                let text = std::mem::take(&mut self.held);
                self.searched = 0;
                let ended = text.is_empty() && !self.too_long;
                return Ok((!ended).then(|| self.finished(text)));
            }
            let size = self.block.min(self.start);
            self.block = (self.block * 2).min(LONGEST as u64);
            self.start -= size;
            let mut block = vec![0; usize::try_from(size).unwrap_or(0)];
            self.file.read_exact_at(&mut block, self.start)?;
            block.append(&mut self.held);
            self.held = block;
        }
    }

    fn finished(&mut self, text: Vec<u8>) -> RecordLine {
        let too_long = std::mem::take(&mut self.too_long) || text.len() > LONGEST;
        if too_long { RecordLine::TooLong } else { RecordLine::Text(text) }
    }
}
