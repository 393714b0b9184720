//! Where the lines of the log go: standard error, or a private file.
//!
//! Owns: that a line is masked, that it cannot steer a terminal, and that a file that cannot be
//! written any more is reported once. Never does: lay a line out.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use crate::cli::options::LogFormat;
use crate::cli::output::Output;
use crate::model::Error;
use crate::util::append::{AppendError, RecordLocation};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::json::escape_invisible;
use crate::util::segments::{SegmentRetention, SegmentedLog};
use crate::util::text;

/// What all files of one log may take together, the growing one of 16 MiB aside.
const MAX_OLD_BYTES: u64 = 64 << 20;

/// Where lines go.
pub(super) enum LogDestination {
    /// Standard error.
    Stderr,
    /// A file that was opened already.
    File(SegmentedLog),
}

impl LogDestination {
    /// Opens the file, if there is one, so that a run whose log cannot be written does not begin.
    ///
    /// # Errors
    /// Denied when the file is not safe to write to; internal when it cannot be written.
    pub(super) fn open(location: Option<RecordLocation>, now: Duration) -> Result<Self, Error> {
        let Some(location) = location else { return Ok(Self::Stderr) };
        let retention =
            SegmentRetention { max_total_bytes: MAX_OLD_BYTES, ..SegmentRetention::default() };
        let file = SegmentedLog::new(location, false, retention);
        file.open(now).map_err(|error| match error {
            AppendError::Unsafe(why) => Error::denied(format!("the log is not written: {why}")),
            AppendError::Failed(why) => Error::internal(format!("the log is not written: {why}"))
                .with_hint("name another file with --log-file"),
        })?;
        Ok(Self::File(file))
    }
}

/// Writes lines of the log.
pub(super) struct LogWriter {
    output: Arc<Output>,
    destination: LogDestination,
    format: LogFormat,
    /// That the file failed was reported, or must not be.
    has_failed: AtomicBool,
}

impl LogWriter {
    /// A writer that tells on standard error when its file fails, unless the console is there.
    pub(super) fn new(
        output: Arc<Output>,
        destination: LogDestination,
        format: LogFormat,
        is_console: bool,
    ) -> Self {
        Self { output, destination, format, has_failed: AtomicBool::new(is_console) }
    }

    fn line(&self, line: &str) {
        let line = self.output.masked_log_line(line);
        let line = match self.format {
            LogFormat::Text => text::safe_line(&line),
            LogFormat::Json => escape_invisible(&line),
        };
        match &self.destination {
            LogDestination::Stderr => self.output.log_line(&line),
            LogDestination::File(file) => {
                if let Err(error) = file.append(SystemClock.unix(), &line)
                    && !self.has_failed.swap(true, Ordering::Relaxed)
                {
                    self.output.warn(&format!("the log is not complete: {error}"));
                }
            }
        }
    }
}

/// Takes one event, which the formatter hands over in one piece.
pub(super) struct LogLine<'w>(&'w LogWriter);

impl Write for LogLine<'_> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        self.0.line(text.trim_end_matches('\n'));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for LogWriter {
    type Writer = LogLine<'w>;

    fn make_writer(&'w self) -> Self::Writer {
        LogLine(self)
    }
}
