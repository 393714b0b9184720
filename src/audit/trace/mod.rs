//! The trace file: all traffic of servers, one JSON object per line.
//!
//! The first line of a run is its header; a file may hold several runs, one after the other:
//!
//! ```json
//! {"toolhost_trace":1,"program":"toolhost 0.1.0","started":1795326611.25}
//! ```
//!
//! Each further line is one item, a `model::trace_row`. It is appended at once, so that a crash
//! loses none. What is read is untrusted, and bounded.

use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{Error, Traffic, TrafficSink, unreadable_file};
use crate::util::append::{AppendError, AppendFile, RecordLocation};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::regular_file;

pub const VERSION: u32 = 1;

/// The first line of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct TraceHeader {
    /// The version of the format.
    pub toolhost_trace: u32,
    pub program: String,
    /// When the run began, in seconds since the Unix epoch.
    pub started: f64,
}

impl TraceHeader {
    pub fn new(now: Duration) -> Self {
        let program = format!("toolhost {}", env!("CARGO_PKG_VERSION"));
        Self { toolhost_trace: VERSION, program, started: now.as_secs_f64() }
    }
}

/// The longest line that is read: the largest message, as text in which much is escaped.
const MAX_LINE_BYTES: u64 = 128 * 1024 * 1024;
const MAX_BYTES: usize = 512 * 1024 * 1024;
const MAX_ITEMS: usize = 1_000_000;

#[derive(Debug, Default)]
pub struct TraceRecording {
    pub items: Vec<Traffic>,
    pub runs: usize,
    /// How many lines could not be read. The last line of a run that was killed may be one.
    pub damaged: usize,
    /// The file holds more than is read.
    pub is_truncated: bool,
}

pub fn read_file(path: &Path) -> Result<TraceRecording, Error> {
    let (file, _) = regular_file::open(path)
        .map_err(|error| unreadable_file("the recording", path, &error).with_hint(HINT))?;
    lines(BufReader::new(file)).map_err(|why| {
        Error::usage(format!("the recording '{}' cannot be used: {why}", path.display()))
            .with_hint(HINT)
    })
}

const HINT: &str = "recordings are made with 'toolhost record' or --trace-save";

/// Why the content of a file is not read as a trace.
#[derive(Debug, thiserror::Error)]
enum TraceFileError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it has format version {0}, not {VERSION}")]
    UnknownVersion(u32),
    #[error("it does not start with the header of a trace")]
    NoHeader,
    #[error("it is empty")]
    Empty,
}

fn lines(mut input: impl BufRead) -> Result<TraceRecording, TraceFileError> {
    let mut read = TraceRecording::default();
    let (mut line, mut bytes) = (Vec::new(), 0);
    loop {
        line.clear();
        let count = input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        let count = count?;
        bytes += count;
        if count == 0 {
            break;
        }
        if bytes > MAX_BYTES || read.items.len() >= MAX_ITEMS || count as u64 == MAX_LINE_BYTES {
            read.is_truncated = true;
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if let Ok(header) = serde_json::from_slice::<TraceHeader>(&line) {
            if header.toolhost_trace != VERSION {
                return Err(TraceFileError::UnknownVersion(header.toolhost_trace));
            }
            read.runs += 1;
        } else if read.runs == 0 {
            return Err(TraceFileError::NoHeader);
        } else {
            match serde_json::from_slice(&line) {
                Ok(item) => read.items.push(item),
                Err(_) => read.damaged += 1,
            }
        }
    }
    if read.runs == 0 { Err(TraceFileError::Empty) } else { Ok(read) }
}

const BEGINNING: &[u8] = b"{\"toolhost_trace\":";

/// A file that receives items. Readable by its owner only.
pub struct TraceFile {
    file: AppendFile,
    failed: Mutex<Option<Error>>,
}

impl TraceFile {
    /// Opens the file for a new run; one that exists is continued.
    pub fn open(path: PathBuf) -> Result<Arc<Self>, Error> {
        let location = RecordLocation::named(path);
        let shown = location.path.display().to_string();
        let mut beginning = Vec::new();
        if let Some((file, _)) = location.open_to_read().map_err(not_written)? {
            let read = file.take(BEGINNING.len() as u64).read_to_end(&mut beginning);
            read.map_err(|error| not_written(location.unreadable(&error)))?;
        }
        if !BEGINNING.starts_with(&beginning) || (1..BEGINNING.len()).contains(&beginning.len()) {
            return Err(Error::usage(format!("'{shown}' exists and is not a trace"))
                .with_hint("choose a new file; only traces are appended to"));
        }
        let file = AppendFile::new(location, false);
        let now = SystemClock.unix();
        let header = serde_json::to_string(&TraceHeader::new(now)).unwrap_or_default();
        file.append(now, &header).map_err(not_written)?;
        Ok(Arc::new(Self { file, failed: Mutex::default() }))
    }

    /// A sink that writes every item. The first failure is reported to `failed`, and nothing is
    /// written after it: a trace with holes would mislead.
    pub fn sink(self: &Arc<Self>, failed: impl Fn(&Error) + Send + Sync + 'static) -> TrafficSink {
        let file = Arc::clone(self);
        TrafficSink::new(move |traffic| {
            let mut broken = file.failed.lock().unwrap_or_else(PoisonError::into_inner);
            if broken.is_some() {
                return;
            }
            let line = serde_json::to_string(&traffic).unwrap_or_default();
            if let Err(cause) = file.file.append(traffic.at, &line) {
                let error = not_written(cause);
                failed(&error);
                *broken = Some(error);
            }
        })
    }

    /// Why the trace is incomplete, if it is.
    pub fn ensure_complete(&self) -> Result<(), Error> {
        match &*self.failed.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }
}

fn not_written(error: AppendError) -> Error {
    match error {
        AppendError::Unsafe(why) => Error::denied(format!("cannot write the trace: {why}")),
        AppendError::Failed(why) => Error::internal(format!("cannot write the trace: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::model::traffic::TrafficKind;

    const HEADER: &str = r#"{"toolhost_trace":1,"program":"x","started":1}"#;
    const ITEM: &str = r#"{"n":1,"t":1.5,"server":"a","what":"noise","text":"x","later":true}"#;

    #[test]
    fn a_header_tells_the_version_and_when_the_run_began() {
        let header = serde_json::to_value(TraceHeader::new(Duration::from_secs(5))).unwrap();
        assert_eq!((&header["toolhost_trace"], &header["started"]), (&1.into(), &5.0.into()));
    }

    #[test]
    fn damage_costs_a_line_and_a_torn_end_too() {
        let text = format!("{HEADER}\n{ITEM}\n{{}}\nrubbish\n\n{HEADER}\n{ITEM}\n{{\"n\":2,\"t\"");
        let read = lines(text.as_bytes()).unwrap();
        assert_eq!((read.items.len(), read.runs, read.damaged), (2, 2, 3));
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        let newer = HEADER.replace(":1,\"pro", ":2,\"pro");
        for text in ["", "my notes\n", ITEM, &newer] {
            assert!(lines(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(read_file(Path::new("/dev/null")).unwrap_err().kind().exit_code(), 9);
    }

    fn noise(sequence: u64, text: &str) -> Traffic {
        Traffic {
            server: "a".to_owned(),
            sequence,
            at: Duration::from_secs(1),
            call: None,
            kind: TrafficKind::NonJsonLine(text.to_owned()),
        }
    }

    #[test]
    fn a_trace_is_private_and_is_continued_by_the_next_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wire.jsonl");
        for text in ["one\u{1b}", "two"] {
            let file = TraceFile::open(path.clone()).unwrap();
            file.sink(|error| panic!("{error}")).emit(noise(1, text));
            file.ensure_complete().unwrap();
        }
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4);
        assert!(!text.contains('\u{1b}'));
        let read = read_file(&path).unwrap();
        assert_eq!((read.items.len(), read.runs, read.damaged), (2, 2, 0));
        assert!(
            matches!(&read.items[0].kind, TrafficKind::NonJsonLine(text) if text == "one\u{1b}")
        );
    }

    #[test]
    fn a_file_with_other_content_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in [("notes", "my notes\n"), ("short", "{"), ("link", "")] {
            let path = dir.path().join(name);
            if name == "link" {
                std::os::unix::fs::symlink(dir.path().join("notes"), &path).unwrap();
            } else {
                std::fs::write(&path, content).unwrap();
            }
            assert!(TraceFile::open(path.clone()).is_err(), "{name}");
        }
        assert_eq!(std::fs::read_to_string(dir.path().join("notes")).unwrap(), "my notes\n");
        std::fs::write(dir.path().join("empty"), "").unwrap();
        assert!(TraceFile::open(dir.path().join("empty")).is_ok());
    }
}
