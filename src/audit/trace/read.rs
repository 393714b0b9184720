//! Reading a trace file, within bounds: its content is untrusted.

use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use super::{TraceHeader, TraceRow, VERSION};
use crate::model::{Error, Traffic, unreadable_file};
use crate::util::regular_file;

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
            match serde_json::from_slice::<TraceRow>(&line).ok().and_then(TraceRow::traffic) {
                Some(item) => read.items.push(item),
                None => read.damaged += 1,
            }
        }
    }
    if read.runs == 0 { Err(TraceFileError::Empty) } else { Ok(read) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"toolhost_trace":1,"program":"x","started":1}"#;
    const ITEM: &str = r#"{"n":1,"t":1.5,"server":"a","what":"noise","text":"x","later":true}"#;

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
}
