//! Writing a new file in pieces, so that the call can be cancelled in between.

use std::io::{self, Seek as _, SeekFrom, Write as _};

use cap_std::fs::{File, FileExt as _};
use rustix::io::Errno;

use super::job::FileJob;
use crate::model::Error;
use crate::util::units;

/// How much is written between two looks at whether to stop, in bytes.
const CHUNK_BYTES: usize = 256 << 10;
const PROGRESS_INTERVAL_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub(super) enum FillError {
    Io(io::Error),
    Cancelled(Error),
}

impl From<io::Error> for FillError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for FillError {
    fn from(error: Error) -> Self {
        Self::Cancelled(error)
    }
}

pub(super) fn write_bytes(job: &FileJob, file: &mut File, bytes: &[u8]) -> Result<(), FillError> {
    for piece in bytes.chunks(CHUNK_BYTES) {
        job.check_cancelled()?;
        file.write_all(piece)?;
    }
    Ok(())
}

/// Copies at most `most` bytes of one file into a new one, and stands at its end; gives how many.
/// Holes are passed over and stay holes, so that they cost neither time nor space.
pub(super) fn copy_file(
    job: &FileJob,
    old: &File,
    new: &mut File,
    most: u64,
) -> Result<u64, FillError> {
    let mut piece = vec![0; CHUNK_BYTES];
    let (mut done, mut reported) = (0_u64, 0_u64);
    loop {
        job.check_cancelled()?;
        match rustix::fs::seek(old, rustix::fs::SeekFrom::Data(done)) {
            Ok(data) if data > done => {
                done = data.min(most);
                new.seek(SeekFrom::Start(done))?;
            }
            // Only a hole is left, or nothing.
            Err(Errno::NXIO) => done = done.max(old.metadata()?.len().min(most)),
            // The file system does not support holes.
            Ok(_) | Err(_) => {}
        }
        let room = usize::try_from(most - done).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let count = old.read_at(piece.get_mut(..room).unwrap_or_default(), done)?;
        if count == 0 {
            // A hole at the very end was passed over too, but it counts.
            new.set_len(done)?;
            new.seek(SeekFrom::Start(done))?;
            return Ok(done);
        }
        new.write_all(piece.get(..count).unwrap_or_default())?;
        done += count as u64;
        if done - reported >= PROGRESS_INTERVAL_BYTES {
            reported = done;
            job.progress(done, None, format!("{} copied", units::show_size(done)));
        }
    }
}
