//! JSON output: valid, in insertion order, and with control and invisible characters escaped.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use serde_json::{Map, Value};

use crate::util::text::{self, is_invisible};

const SHORT: usize = 200;

pub fn compact(value: &impl Serialize) -> String {
    write(value, CompactFormatter)
}

/// Indented JSON, without a final line break.
pub fn pretty(value: &impl Serialize) -> String {
    write(value, PrettyFormatter::new())
}

/// Indented JSON line by line, until `take` wants no more. What comes after that is not made.
pub fn pretty_lines(value: &impl Serialize, take: impl FnMut(&str) -> bool) {
    let mut lines = LineWriter { line: Vec::new(), take };
    let formatter = Escaping(PrettyFormatter::new());
    let written = value.serialize(&mut Serializer::with_formatter(&mut lines, formatter));
    if written.is_ok() {
        // No more follows, whatever is said to the last one.
        let _is_enough = lines.end_line();
    }
}

struct LineWriter<F> {
    line: Vec<u8>,
    take: F,
}

impl<F: FnMut(&str) -> bool> LineWriter<F> {
    fn end_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let is_wanted = (self.take)(&String::from_utf8_lossy(&line));
        is_wanted.then_some(()).ok_or_else(|| io::Error::other("enough"))
    }
}

impl<F: FnMut(&str) -> bool> Write for LineWriter<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        self.line.extend_from_slice(lines.next().unwrap_or_default());
        for line in lines {
            self.end_line()?;
            self.line.extend_from_slice(line);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes of a value as JSON, counted without building it.
pub fn size(value: &impl Serialize) -> u64 {
    let mut count = ByteCounter(0);
    // Counting cannot fail; a value that is no JSON counts as far as it was written.
    let _ignored = serde_json::to_writer(&mut count, value);
    count.0
}

/// Whether a value has more bytes as JSON than so many; no more than that many are looked at.
pub fn is_longer_than(value: &impl Serialize, bytes: u64) -> bool {
    serde_json::to_writer(ByteLimit(bytes), value).is_err()
}

/// A writer that fails when more is written than is left.
struct ByteLimit(u64);

impl Write for ByteLimit {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let rest = self.0.checked_sub(bytes.len() as u64);
        self.0 = rest.ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct ByteCounter(u64);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn map_json(value: &Value, rewrite: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(rewrite(text)),
        Value::Array(items) => items.iter().map(|item| map_json(item, rewrite)).collect(),
        Value::Object(map) => Value::Object(
            map.iter().map(|(key, value)| (rewrite(key), map_json(value, rewrite))).collect(),
        ),
        other => other.clone(),
    }
}

/// The members of an object on one line, as far as there is room: `key=value key=value`.
pub fn short(arguments: &Map<String, Value>) -> String {
    let mut line = String::new();
    for (key, value) in arguments {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(key);
        line.push('=');
        match value.as_str() {
            Some(text) if !text.is_empty() && !text.contains(char::is_whitespace) => {
                line.push_str(text);
            }
            _ => line.push_str(&compact(value)),
        }
        if line.len() > SHORT {
            break;
        }
    }
    text::shorten(&line, SHORT).into_owned()
}

/// A line of JSON without characters that steer terminals or hide, as `\u` escapes. Only strings can
/// hold such characters, so escaping them everywhere keeps the meaning.
pub fn escape_invisible(json: &str) -> Cow<'_, str> {
    if is_plain_ascii(json.as_bytes()) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() || is_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ignored = fmt::Write::write_fmt(&mut out, format_args!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether all bytes are ASCII and none is a control character, eight at a time: every record of every
/// call is looked at.
fn is_plain_ascii(bytes: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    let (blocks, rest) = bytes.as_chunks::<8>();
    // A borrow from the byte below can only come from one that is not plain itself.
    let strange = blocks.iter().map(|word| u64::from_ne_bytes(*word)).fold(0, |strange, word| {
        let is_delete = (word ^ (ONES * 0x7f)).wrapping_sub(ONES);
        strange | ((word | word.wrapping_sub(ONES * 0x20) | is_delete) & HIGH)
    });
    strange == 0 && rest.iter().all(|byte| (0x20..0x7f).contains(byte))
}

fn write(value: &impl Serialize, inner: impl Formatter) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Escaping(inner));
    // Writing plain values with names for keys into memory has no way to fail.
    if value.serialize(&mut serializer).is_err() {
        return String::from("null");
    }
    String::from_utf8(bytes).unwrap_or_else(|_| String::from("null"))
}

/// A formatter that writes controls, format characters and everything else invisible as `\u`
/// escapes (the JSON grammar itself demands this only of C0).
struct Escaping<F>(F);

impl<F: Formatter> Formatter for Escaping<F> {
    fn write_string_fragment<W>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| must_escape(*c)) {
            let (clean, tail) = rest.split_at(at);
            writer.write_all(clean.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = tail.split_at(c.len_utf8()).1;
        }
        writer.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(w, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(w, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

fn must_escape(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

const MAX_LISTED_NAMES: usize = 12;

/// What a value is, after its subject: `has a, b`, `is text`.
pub fn summary(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "is an empty object".to_owned(),
        Value::Object(map) => {
            let mut names: Vec<&str> =
                map.keys().map(String::as_str).take(MAX_LISTED_NAMES).collect();
            if map.len() > MAX_LISTED_NAMES {
                names.push("…");
            }
            format!("has {}", names.join(", "))
        }
        Value::Array(items) => format!("is a list of {}", items.len()),
        Value::String(_) => "is text".to_owned(),
        Value::Null => "is null".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("is {value}"),
    }
}

/// The end of the quoted string that a text starts with.
pub fn quoted_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.strip_prefix('"')?.bytes().position(|byte| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    });
    end.map(|end| end + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn controls_and_invisible_characters_become_escapes() {
        let value = json!({ "k\u{7f}": "\x1b[2J\u{9b}\u{202e}\u{200b}\u{e0041} é日" });
        assert_eq!(compact(&value), r#"{"k\u007f":"\u001b[2J\u009b\u202e\u200b\udb40\udc41 é日"}"#);
    }

    #[test]
    fn lines_are_made_as_long_as_they_are_wanted() {
        let value = json!({ "a": [1, "x\ny"], "e": {} });
        let mut lines = Vec::new();
        pretty_lines(&value, |line| {
            lines.push(line.to_owned());
            true
        });
        assert_eq!(lines.join("\n"), pretty(&value));
        let mut made = 0;
        pretty_lines(&json!(vec![1; 1_000]), |_| {
            made += 1;
            made < 3
        });
        assert_eq!(made, 3);
    }

    #[test]
    fn numbers_stay_as_they_were_written() {
        let value: Value = serde_json::from_str("[1.10,12345678901234567890123,1e400]").unwrap();
        assert_eq!(compact(&value), "[1.10,12345678901234567890123,1e+400]");
    }

    #[test]
    fn indented_json_has_two_blanks() {
        assert_eq!(pretty(&json!({ "a": [1] })), "{\n  \"a\": [\n    1\n  ]\n}");
    }

    #[test]
    fn every_byte_that_is_not_plain_is_seen_wherever_it_stands() {
        for length in [1, 7, 8, 9, 24] {
            for (at, byte) in (0..length).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte))) {
                for around in [b' ', b'~'] {
                    let mut bytes = vec![around; length];
                    bytes[at] = byte;
                    let is_plain = (0x20..0x7f).contains(&byte);
                    assert_eq!(is_plain_ascii(&bytes), is_plain, "{byte:#x} at {at} of {length}");
                }
            }
        }
    }

    #[test]
    fn arguments_are_short() {
        let arguments = json!({ "a": 1, "b": "x", "c": "two words", "d": [true], "e": "" });
        let arguments = arguments.as_object().unwrap();
        assert_eq!(short(arguments), r#"a=1 b=x c="two words" d=[true] e="""#);
        let long = json!({ "a": "x".repeat(5_000), "b": 1 });
        assert!(short(long.as_object().unwrap()).chars().count() < 250);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_and_is_harmless(key in any::<String>(), text in any::<String>()) {
            let value = json!({ key: [text] });
            for written in [compact(&value), pretty(&value)] {
                prop_assert!(written.chars().all(|c| c == '\n' || !must_escape(c)));
                prop_assert_eq!(&serde_json::from_str::<Value>(&written).unwrap(), &value);
            }
        }
    }
}
