//! JSON output: valid, in insertion order, and with control and invisible characters escaped.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::util::text::{self, is_invisible};

const SHORT: usize = 200;

/// JSON on one line.
pub fn compact(value: &impl Serialize) -> String {
    escaped(serde_json::to_string(value))
}

/// Indented JSON, without a final line break.
pub fn pretty(value: &impl Serialize) -> String {
    escaped(serde_json::to_string_pretty(value))
}

fn escaped(json: serde_json::Result<String>) -> String {
    // Plain values with names for keys have no way to fail.
    let Ok(json) = json else { return "null".to_owned() };
    match escape_within(&json) {
        Cow::Borrowed(_) => json,
        Cow::Owned(escaped) => escaped,
    }
}

/// Indented JSON line by line, until `take` wants no more. What comes after that is not made.
pub fn pretty_lines(value: &impl Serialize, take: impl FnMut(&str) -> bool) {
    let mut lines = LineWriter { line: Vec::new(), take };
    if serde_json::to_writer_pretty(&mut lines, value).is_ok() {
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
        let is_wanted = (self.take)(&escape_within(&String::from_utf8_lossy(&line)));
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
    let mut counter = ByteCounter { bytes: 0, most: u64::MAX };
    // Counting cannot fail; a value that is no JSON counts as far as it was written.
    let _ignored = serde_json::to_writer(&mut counter, value);
    counter.bytes
}

/// Whether a value has more bytes as JSON than so many; no more than that many are looked at.
pub fn is_longer_than(value: &impl Serialize, most: u64) -> bool {
    serde_json::to_writer(ByteCounter { bytes: 0, most }, value).is_err()
}

/// A writer that fails when more is written than it may count.
struct ByteCounter {
    bytes: u64,
    most: u64,
}

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
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
    escape(json, |_| false)
}

/// The same, with the white space between the parts of a value as it is.
fn escape_within(json: &str) -> Cow<'_, str> {
    escape(json, |c| matches!(c, '\n' | '\r' | '\t'))
}

fn escape(json: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    if json.bytes().all(|byte| (0x20..0x7f).contains(&byte) || is_kept(char::from(byte))) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if (c.is_control() || is_invisible(c)) && !is_kept(c) {
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
                prop_assert!(written.chars().all(|c| c == '\n' || !(c.is_control() || is_invisible(c))));
                prop_assert_eq!(&serde_json::from_str::<Value>(&written).unwrap(), &value);
            }
        }
    }
}
