//! The destination of log lines: stderr, or a private file.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tracing_subscriber::fmt::MakeWriter;

use crate::cli::options::LogFormat;
use crate::cli::output::Output;
use crate::model::Error;
use crate::util::append::{AppendError, RecordLocation};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::json::escape_invisible;
use crate::util::segments::{SegmentRetention, SegmentedLog};
use crate::util::text;

/// Maximum total size of the rotated files of one log, not counting the current one of 16 MiB.
const MAX_OLD_BYTES: u64 = 64 << 20;

pub(super) struct LogWriter {
    output: Arc<Output>,
    /// Where lines go in place of stderr.
    file: Option<SegmentedLog>,
    format: LogFormat,
    /// The failure of the file was reported, or must not be.
    has_failed: AtomicBool,
}

impl LogWriter {
    /// Opens the file, if there is one, so that a run whose log cannot be written does not start. A
    /// later failure of it is reported on stderr, unless the console is active.
    pub(super) fn open(
        output: Arc<Output>,
        location: Option<RecordLocation>,
        format: LogFormat,
        is_console: bool,
    ) -> Result<Self, Error> {
        let retention =
            SegmentRetention { max_total_bytes: MAX_OLD_BYTES, ..SegmentRetention::default() };
        let file = location.map(|location| SegmentedLog::new(location, false, retention));
        if let Some(file) = &file {
            file.open(SystemClock.unix()).map_err(|error| match error {
                AppendError::Unsafe(why) => Error::denied(format!("cannot write the log: {why}")),
                AppendError::Failed(why) => Error::internal(format!("cannot write the log: {why}"))
                    .with_hint("name another file with --log-file"),
            })?;
        }
        Ok(Self { output, file, format, has_failed: AtomicBool::new(is_console) })
    }

    fn line(&self, line: &str) {
        let line = self.output.masked_log_line(line);
        let line = match self.format {
            LogFormat::Text => text::safe_line(&line),
            LogFormat::Json => escape_invisible(&line),
        };
        let Some(file) = &self.file else { return self.output.log_line(&line) };
        if let Err(error) = file.append(SystemClock.unix(), &line)
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            self.output.warn(&format!("the log is incomplete: {error}"));
        }
    }
}

/// Writes one event, which the formatter passes in one piece.
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
