//! Filling a new file: pieces between which the call can stop.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use cap_std::fs::File;

use super::job::Job;
use crate::model::Fault;
use crate::util::units;

/// How much is written between two looks at whether to stop, in bytes.
const PIECE: usize = 256 << 10;
/// How much is copied between two words about it, in bytes.
const BEAT: u64 = 64 << 20;

/// Why filling a file ended early.
#[derive(Debug)]
pub(super) enum Broken {
    /// An error of the system.
    System(io::Error),
    /// The call was told to stop.
    Stopped(Fault),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Writes all of `bytes`.
///
/// # Errors
/// Those of the system, and the wish to stop.
pub(super) fn with(job: &Job, file: &mut File, bytes: &[u8]) -> Result<(), Broken> {
    for piece in bytes.chunks(PIECE) {
        job.go_on().map_err(Broken::Stopped)?;
        file.write_all(piece)?;
    }
    Ok(())
}

/// Copies at most `most` bytes of one file into a new one, and stands at its end; gives how many.
/// What is zero is left out, so that a file with holes stays one.
///
/// # Errors
/// Those of the system, and the wish to stop.
pub(super) fn from(job: &Job, old: File, new: &mut File, most: u64) -> Result<u64, Broken> {
    let mut old = old.take(most);
    let mut piece = vec![0; PIECE];
    let (mut done, mut told) = (0_u64, 0_u64);
    loop {
        job.go_on().map_err(Broken::Stopped)?;
        let count = old.read(&mut piece)?;
        let bytes = piece.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            // Zeros at the very end were left out too, but they count.
            new.set_len(done)?;
            return Ok(done);
        }
        done += count as u64;
        if bytes.iter().all(|byte| *byte == 0) {
            new.seek(SeekFrom::Start(done))?;
        } else {
            new.write_all(bytes)?;
        }
        if done - told >= BEAT {
            told = done;
            job.progress(done, None, format!("{} copied", units::show_size(done)));
        }
    }
}
