//! Untrusted JSON text: limits before it is parsed, and repair of invalid strings.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::Error;

/// How deep JSON of a server may nest; the limit of the tree parser too.
const DEPTH_LIMIT: usize = 128;
/// How many values one tree may hold. Two bytes of text (`0,`) become a hundred of tree, so the
/// limit on the bytes of a message does not bound the memory that reading it takes.
pub(super) const VALUES_LIMIT: usize = 500_000;

/// Parses JSON text into a tree, with the cause named when it cannot be.
pub fn parse(text: &str) -> Result<Value, Error> {
    if too_many(text) {
        return Err(Error::protocol(format!("limit: JSON of more than {VALUES_LIMIT} values")));
    }
    serde_json::from_str(text).map_err(|error| not_json(&error, text))
}

pub(super) fn too_deep(text: &str) -> bool {
    nests_deeper(text.as_bytes(), DEPTH_LIMIT)
}

/// What of a text stands outside of its strings.
fn structure(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let (mut in_text, mut escaped) = (false, false);
    text.iter().copied().filter(move |byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            _ => return !in_text,
        }
        false
    })
}

fn nests_deeper(text: &[u8], limit: usize) -> bool {
    // Few texts have so many brackets at all.
    if memchr::memchr2_iter(b'[', b'{', text).nth(limit).is_none() {
        return false;
    }
    let mut depth = 0_usize;
    structure(text).any(|byte| {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > limit
    })
}

/// Whether a text holds more values than a tree may: each follows an opening bracket, a comma or a
/// colon, and a colon comes with one of the others.
pub(super) fn too_many(text: &str) -> bool {
    let separators = || memchr::memchr3_iter(b'[', b',', b'{', text.as_bytes());
    text.len() > VALUES_LIMIT
        && separators().nth(VALUES_LIMIT).is_some()
        && structure(text.as_bytes()).filter(|byte| b"[{,".contains(byte)).count() > VALUES_LIMIT
}

pub(super) fn too_deep_error() -> Error {
    Error::protocol(format!("limit: JSON nested deeper than {DEPTH_LIMIT} levels"))
}

pub(super) fn not_json(error: &serde_json::Error, text: &str) -> Error {
    if is_depth_error(error, text) {
        too_deep_error()
    } else {
        Error::protocol(format!("not valid JSON: {error}"))
            .with_detail(excerpt_around(text, position(error, text)))
    }
}

/// Whether a parser failed because of the depth: it stopped at a bracket at its limit, which is one
/// level less than ours.
pub(super) fn is_depth_error(error: &serde_json::Error, text: &str) -> bool {
    let read = text.as_bytes().get(..position(error, text)).unwrap_or(text.as_bytes());
    error.is_syntax()
        && matches!(read.last(), Some(b'[' | b'{'))
        && nests_deeper(read, DEPTH_LIMIT - 1)
}

/// How many bytes of the text a parser had read when it failed.
fn position(error: &serde_json::Error, text: &str) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    lines.map(str::len).sum::<usize>() + error.column()
}

fn excerpt_around(text: &str, position: usize) -> String {
    let from = text.floor_char_boundary(position.saturating_sub(60));
    text.get(from..).unwrap_or_default().chars().take(120).collect()
}

/// Replaces `\uD800`–`\uDFFF` escapes that are not a pair by `\uFFFD`; borrows when there is none.
pub(super) fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    // Few messages have any escape, and a search for two bytes is set up for each.
    let is_suspect = memchr::memchr(b'\\', bytes).is_some()
        && [b"\\ud", b"\\uD"].iter().any(|half| memchr::memmem::find(bytes, *half).is_some());
    if !is_suspect {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut changed = false;
    let mut i = 0;
    while let Some(byte) = bytes.get(i) {
        // An escape is six bytes when it names a code unit and two otherwise.
        let length = match (byte, unit(bytes, i)) {
            (b'\\', Some(0xD800..0xDC00)) if is_low(unit(bytes, i + 6)) => 12,
            (b'\\', Some(0xD800..0xE000)) => {
                changed = true;
                out.extend_from_slice(b"\\ufffd");
                i += 6;
                continue;
            }
            (b'\\', _) => 2,
            _ => 1,
        };
        let end = (i + length).min(bytes.len());
        out.extend_from_slice(bytes.get(i..end).unwrap_or_default());
        i = end;
    }
    match String::from_utf8(out) {
        Ok(repaired) if changed => Cow::Owned(repaired),
        _ => Cow::Borrowed(text),
    }
}

fn is_low(unit: Option<u32>) -> bool {
    matches!(unit, Some(0xDC00..0xE000))
}

/// The code unit of a `\uXXXX` escape that starts at `at`.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + 6)?;
    if escape.get(..2)? != b"\\u" {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(escape.get(2..)?).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excerpt_of_broken_json_shows_the_line_that_is_broken() {
        for filler in ["plain", "größer"] {
            let lines = format!("  \"{filler}\": 1,\n").repeat(100);
            let text = format!("{{\n{lines}  \"here\": oops\n}}");
            let error = parse(&text).unwrap_err();
            let details = format!("{:?}", error.details());
            assert!(details.contains("oops"), "{details}");
        }
    }
}
