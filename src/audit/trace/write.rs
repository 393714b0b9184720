//! Writing a trace file: each item is appended at once, so that a crash loses none.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::{TraceHeader, TraceRow};
use crate::model::{Error, TrafficSink};
use crate::util::append::{AppendError, AppendFile, RecordLocation};
use crate::util::clock::{Clock as _, SystemClock};

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
            let line = serde_json::to_string(&TraceRow::of(&traffic)).unwrap_or_default();
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
    use std::time::Duration;

    use super::*;
    use crate::audit::trace::read;
    use crate::model::Traffic;
    use crate::model::traffic::TrafficKind;

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
        let read = read::read_file(&path).unwrap();
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
