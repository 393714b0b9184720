//! Reading a trace file, within bounds: it may have come from anybody.
//!
//! Owns: the bounds, and what is said about a file that is no trace. Never does: judge what
//! crossed the wire.

use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use super::{Header, Row, VERSION};
use crate::model::{Fault, Traffic};
use crate::util::regular;

/// The longest line that is read: the largest message, as text in which much is escaped.
const LINE: u64 = 128 * 1024 * 1024;
/// How much of a file is read.
const BYTES: usize = 512 * 1024 * 1024;
/// How many items are read.
const ITEMS: usize = 1_000_000;

/// What a trace file holds.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Every item, in the order in which it crossed.
    pub items: Vec<Traffic>,
    /// How many runs it holds.
    pub runs: usize,
    /// How many lines could not be read. The last line of a run that was killed may be one.
    pub damaged: usize,
    /// The file holds more than is read.
    pub cut: bool,
}

/// Reads a trace file.
///
/// # Errors
/// A usage fault when there is no such file or it is no trace of a version that is understood.
pub fn file(path: &Path) -> Result<Recorded, Fault> {
    let shown = path.display();
    let unreadable = |why: &dyn std::fmt::Display| {
        Fault::usage(format!("cannot read the recording '{shown}': {why}"))
    };
    let (file, _) = regular::open(path).map_err(|error| unreadable(&error))?;
    lines(BufReader::new(file)).map_err(|why| unreadable(&why).hint(HINT))
}

/// Where such files come from.
const HINT: &str = "recordings are written by record, and by --trace-save of every command";

fn lines(mut input: impl BufRead) -> Result<Recorded, String> {
    let mut read = Recorded::default();
    let (mut line, mut bytes) = (Vec::new(), 0);
    loop {
        line.clear();
        let count = input.by_ref().take(LINE).read_until(b'\n', &mut line);
        let count = count.map_err(|error| error.to_string())?;
        bytes += count;
        if count == 0 {
            break;
        }
        if bytes > BYTES || read.items.len() >= ITEMS || count as u64 == LINE {
            read.cut = true;
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if let Ok(header) = serde_json::from_slice::<Header>(&line) {
            if header.toolhost_trace != VERSION {
                let version = header.toolhost_trace;
                return Err(format!("it has version {version} of the format, not {VERSION}"));
            }
            read.runs += 1;
        } else if read.runs == 0 {
            return Err("it does not begin as a trace does".to_owned());
        } else {
            match serde_json::from_slice::<Row>(&line).ok().and_then(Row::traffic) {
                Some(item) => read.items.push(item),
                None => read.damaged += 1,
            }
        }
    }
    if read.runs == 0 { Err("it is empty".to_owned()) } else { Ok(read) }
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
        assert_eq!(file(Path::new("/dev/null")).unwrap_err().kind().exit_code(), 2);
    }
}
