//! The tool `read`: text by lines or from an offset, and bytes in base64.

use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use cap_std::fs::File;
use serde_json::{Value, json};

use super::job::{FileJob, is_base64};
use super::root::{self, RelativePath};
use crate::model::{Error, ToolResult};
use crate::providers::arguments::Arguments;
use crate::util::{base64, units};

/// Number of bytes inspected to tell text from binary.
const SNIFF_BYTES: usize = 8 << 10;

/// Answers a call of `read`: the text of a file or a part of it.
pub(super) fn run(job: &FileJob, arguments: Arguments<'_>) -> Result<ToolResult, Error> {
    let path = job.path(arguments, "path")?;
    let line = arguments.count("offset", 1)?;
    let lines = arguments.count("limit", 1)?;
    let byte = arguments.count("byte_offset", 0)?;
    let as_bytes = is_base64(arguments)?;
    if line.is_some() && (byte.is_some() || as_bytes) {
        return Err(Error::usage("'offset' counts lines; with base64 use 'byte_offset' alone")
            .with_hint("leave one of them out"));
    }
    let (mut file, metadata) = root::file(job, &path)?;
    let error = |cause| job.io_error("read", path.path(), &cause);
    let mut head = Vec::with_capacity(SNIFF_BYTES);
    (&mut file).take(SNIFF_BYTES as u64).read_to_end(&mut head).map_err(error)?;
    // A file that grows while it is read, or one that the system makes up, is larger than it says.
    let size = metadata.len().max(head.len() as u64);
    file.seek(SeekFrom::Start(byte.unwrap_or(0))).map_err(error)?;
    let piece = FileExcerpt { job, path: &path, file, size };
    if as_bytes {
        return piece.bytes(byte.unwrap_or(0), &head);
    }
    if let Some(what) = binary(&head) {
        let size = units::show_size(size);
        return Err(Error::tool(format!("'{}' is not text: {what}, {size}", path.shown()))
            .with_hint("encoding=base64 returns its bytes"));
    }
    match byte {
        Some(start) => piece.text(None, start, lines),
        None => piece.text(Some(line.unwrap_or(1)), 0, lines),
    }
}

struct FileExcerpt<'a> {
    job: &'a FileJob,
    path: &'a RelativePath,
    file: File,
    size: u64,
}

impl FileExcerpt<'_> {
    fn error(&self, cause: &std::io::Error) -> Error {
        self.job.io_error("read", self.path.path(), cause)
    }

    /// Text from line `line`, or from byte `start` on.
    fn text(self, line: Option<u64>, start: u64, lines: Option<u64>) -> Result<ToolResult, Error> {
        let most = usize::try_from(self.job.max_bytes).unwrap_or(usize::MAX);
        let mut reader = BufReader::with_capacity(64 << 10, &self.file);
        let mut at = start;
        for passed in 1..line.unwrap_or(1) {
            match self.pass_line(&mut reader)? {
                0 => return Err(self.past_end_error(passed - 1)),
                bytes => at += bytes,
            }
        }
        let mut bytes = Vec::new();
        let mut whole = 0_u64;
        let mut cut = false;
        while lines.is_none_or(|lines| whole < lines) {
            self.job.check_cancelled()?;
            let room = (most - bytes.len()) as u64;
            let before = bytes.len();
            let read = (&mut reader).take(room).read_until(b'\n', &mut bytes);
            if read.map_err(|cause| self.error(&cause))? == 0 {
                break;
            }
            if bytes.last() == Some(&b'\n') {
                whole += 1;
            } else if bytes.len() == most && !self.is_at_end(&mut reader)? {
                // A line that does not fit is left to the next call, unless it is the first.
                cut = true;
                bytes.truncate(if whole > 0 { before } else { character_end(&bytes) });
                break;
            }
        }
        let end = at + bytes.len() as u64;
        let more = cut || !self.is_at_end(&mut reader)?;
        if bytes.is_empty() && line.is_some_and(|line| line > 1) && !more {
            return Err(self.past_end_error(line.unwrap_or(1) - 1));
        }
        let next = more.then(|| match line {
            Some(line) if whole > 0 => ("offset", line + whole),
            _ => ("byte_offset", end),
        });
        Ok(self.text_result(bytes, line, whole, (at, end), next))
    }

    fn is_at_end(&self, reader: &mut BufReader<&File>) -> Result<bool, Error> {
        reader.fill_buf().map(<[u8]>::is_empty).map_err(|cause| self.error(&cause))
    }

    /// Passes over the rest of a line, piece by piece; how many bytes that were, 0 at the end.
    fn pass_line(&self, reader: &mut BufReader<&File>) -> Result<u64, Error> {
        let mut passed = 0_u64;
        loop {
            self.job.check_cancelled()?;
            let held = reader.fill_buf().map_err(|cause| self.error(&cause))?;
            if held.is_empty() {
                return Ok(passed);
            }
            let (count, ends) = match memchr::memchr(b'\n', held) {
                Some(at) => (at + 1, true),
                None => (held.len(), false),
            };
            reader.consume(count);
            passed += count as u64;
            if ends {
                return Ok(passed);
            }
        }
    }

    fn past_end_error(&self, lines: u64) -> Error {
        let noun = if lines == 1 { "line" } else { "lines" };
        Error::tool(format!("'{}' has only {lines} {noun}", self.path.shown()))
    }

    fn text_result(
        &self,
        bytes: Vec<u8>,
        line: Option<u64>,
        whole: u64,
        (at, end): (u64, u64),
        next: Option<(&str, u64)>,
    ) -> ToolResult {
        let broken = std::str::from_utf8(&bytes).is_err();
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        let mut result = ToolResult::text(text);
        if broken {
            result.warnings.push(format!(
                "'{}' is not all UTF-8: invalid bytes are shown as \u{fffd}; encoding=base64 returns \
                 the bytes unchanged",
                self.path.shown()
            ));
        }
        if let Some((key, value)) = next {
            let size = units::show_size(self.size);
            let shown = match line {
                Some(line) if whole > 0 => format!("lines {line} to {}", line + whole - 1),
                _ => format!("bytes {at} to {end}"),
            };
            let note = format!("[{shown} of {size}; continue with {key}={value}]");
            result.content.push(json!({ "type": "text", "text": note }));
            result.meta = Some(json!({ "truncated": true, "size": self.size, (key): value }));
        }
        result
    }

    /// The bytes from `start` on, in base64.
    fn bytes(self, start: u64, head: &[u8]) -> Result<ToolResult, Error> {
        let mut bytes = Vec::new();
        let read = (&self.file).take(self.job.max_bytes).read_to_end(&mut bytes);
        read.map_err(|cause| self.error(&cause))?;
        let end = start + bytes.len() as u64;
        let media_type = media_type(head);
        let blob = base64::encode(&bytes);
        let block = if media_type.starts_with("image/") && start == 0 && end >= self.size {
            json!({ "type": "image", "mimeType": media_type, "data": blob })
        } else {
            json!({ "type": "resource", "resource":
                { "uri": self.uri(), "mimeType": media_type, "blob": blob } })
        };
        let mut result = ToolResult {
            success: true,
            output: Value::String(blob),
            content: vec![block],
            ..ToolResult::default()
        };
        if end < self.size {
            let size = units::show_size(self.size);
            let note =
                format!("[bytes {start} to {end} of {size}; continue with byte_offset={end}]");
            result.content.push(json!({ "type": "text", "text": note }));
            result.meta = Some(json!({ "truncated": true, "size": self.size, "byte_offset": end }));
        }
        Ok(result)
    }

    /// A URI for the file, without the path of the directory, which only the host knows.
    fn uri(&self) -> String {
        let base = url::Url::parse("file:///");
        let joined = base.and_then(|base| base.join(&self.path.shown()));
        joined.map_or_else(|_| "file:///".to_owned(), String::from)
    }
}

fn character_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to().max(1),
        _ => bytes.len(),
    }
}

/// The type of a file that is not text; `None` for text.
pub(super) fn binary(head: &[u8]) -> Option<&'static str> {
    let kind = media_type(head);
    if kind == "text/plain" { None } else { Some(kind) }
}

pub(super) fn media_type(head: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 17] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"BM", "image/bmp"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"BZh", "application/x-bzip2"),
        (b"\xfd7zXZ\0", "application/x-xz"),
        (b"\x28\xb5\x2f\xfd", "application/zstd"),
        (b"\x7fELF", "application/x-executable"),
        (b"SQLite format 3\0", "application/vnd.sqlite3"),
        (b"OggS", "audio/ogg"),
        (b"ID3", "audio/mpeg"),
        (b"\0asm", "application/wasm"),
        (b"\xff\xfe", "text/plain; charset=utf-16"),
        (b"\xfe\xff", "text/plain; charset=utf-16"),
    ];
    // Text may start with one of the short marks; only a file with a NUL byte, or invalid UTF-8,
    // is taken for more than text.
    let odd = memchr::memchr(0, head).is_some();
    let broken = std::str::from_utf8(head).is_err_and(|error| error.error_len().is_some());
    let starts = |mark: &[u8]| head.starts_with(mark) && (odd || broken || mark == b"%PDF-");
    if let Some((_, media_type)) = KNOWN.iter().find(|(mark, _)| starts(mark)) {
        return media_type;
    }
    match head {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "audio/wav",
        [_, _, _, _, b'f', b't', b'y', b'p', ..] if odd => "video/mp4",
        _ if odd => "application/octet-stream",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_what_a_file_is() {
        for (head, expected) in [
            (&b""[..], None),
            (b"BM is no picture", None),
            (b"plain \xff latin", None),
            (b"a\0b", Some("application/octet-stream")),
            (b"\x89PNG\r\n\x1a\n\0", Some("image/png")),
            (b"%PDF-1.7\n", Some("application/pdf")),
            (b"\xff\xfeh\0i\0", Some("text/plain; charset=utf-16")),
        ] {
            assert_eq!(binary(head), expected, "{head:?}");
        }
    }

    #[test]
    fn a_cut_falls_between_characters() {
        assert_eq!(character_end("aé".as_bytes()), 3);
        assert_eq!(character_end(&"aé".as_bytes()[..2]), 1);
        assert_eq!(character_end(b"\xc3"), 1);
        assert_eq!(character_end(b"a\xff"), 2);
    }
}
