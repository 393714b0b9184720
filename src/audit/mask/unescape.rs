//! Undoing escapes in a text, with the source offset of each byte.

use std::ops::Range;

/// How often escapes inside escapes are undone: JSON inside a string of JSON inside a message.
pub(super) const MAX_UNESCAPE_DEPTH: usize = 3;

pub(super) struct UnescapedText {
    pub(super) bytes: Vec<u8>,
    /// Where each byte began in the text before, and last the length of that text.
    origins: Vec<u32>,
}

impl UnescapedText {
    fn with_room(length: usize) -> Self {
        Self { bytes: Vec::with_capacity(length), origins: Vec::with_capacity(length + 1) }
    }

    fn push(&mut self, bytes: &[u8], origin: usize) {
        let origin = u32::try_from(origin).unwrap_or(u32::MAX);
        for byte in bytes {
            self.bytes.push(*byte);
            self.origins.push(origin);
        }
    }

    /// Takes over what is not escaped.
    fn plain(&mut self, text: &[u8], at: Range<usize>) {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        self.origins.extend(offset(at.start)..offset(at.end));
        self.bytes.extend_from_slice(text.get(at).unwrap_or_default());
    }

    fn finish(mut self, length: usize) -> Self {
        self.origins.push(u32::try_from(length).unwrap_or(u32::MAX));
        self
    }

    /// Where the byte at `at` began in the text before.
    pub(super) fn origin(&self, at: usize) -> usize {
        self.origins.get(at).map_or(usize::MAX, |origin| *origin as usize)
    }

    /// The text without percent-encoding; `None` when there is none.
    pub(super) fn percent(text: &[u8]) -> Option<Self> {
        let escaped = |at: usize| {
            let high = hex(*text.get(at + 1)?)?;
            Some(high << 4 | hex(*text.get(at + 2)?)?)
        };
        Self::unescape(text, b'%', |at| {
            Some((Unescaped::Byte(u8::try_from(escaped(at)?).ok()?), 3))
        })
    }

    /// The text without backslash escapes; `None` when there are none.
    pub(super) fn backslash(text: &[u8]) -> Option<Self> {
        Self::unescape(text, b'\\', |at| {
            let rest = text.get(at + 1..)?;
            let simple = |c: char| Some((Unescaped::Char(c), 2));
            match rest.first()? {
                b'n' => simple('\n'),
                b't' => simple('\t'),
                b'r' => simple('\r'),
                b'b' => simple('\u{8}'),
                b'f' => simple('\u{c}'),
                c @ (b'"' | b'\'' | b'\\' | b'/') => simple(char::from(*c)),
                b'u' => unicode(rest),
                b'x' => {
                    let byte = number(rest.get(1..3)?)?;
                    Some((Unescaped::Byte(u8::try_from(byte).ok()?), 4))
                }
                _ => None,
            }
        })
    }

    /// `read` tells what the escape at an offset stands for and how long it is.
    fn unescape(
        text: &[u8],
        mark: u8,
        read: impl Fn(usize) -> Option<(Unescaped, usize)>,
    ) -> Option<Self> {
        // Offsets are kept in 32 bits.
        u32::try_from(text.len()).ok()?;
        let first = memchr::memchr_iter(mark, text).find(|at| read(*at).is_some())?;
        let mut view = Self::with_room(text.len());
        let mut at = 0;
        let mut next = Some(first);
        while let Some(escape) = next {
            view.plain(text, at..escape);
            at = match read(escape) {
                Some((Unescaped::Byte(byte), length)) => {
                    view.push(&[byte], escape);
                    escape + length
                }
                Some((Unescaped::Char(c), length)) => {
                    view.push(c.encode_utf8(&mut [0; 4]).as_bytes(), escape);
                    escape + length
                }
                None => {
                    view.push(&[mark], escape);
                    escape + 1
                }
            };
            let rest = text.get(at..).unwrap_or_default();
            next = memchr::memchr(mark, rest).map(|offset| at + offset);
        }
        view.plain(text, at..text.len());
        Some(view.finish(text.len()))
    }
}

enum Unescaped {
    Byte(u8),
    Char(char),
}

fn hex(digit: u8) -> Option<u32> {
    char::from(digit).to_digit(16)
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |sum, digit| Some(sum << 4 | hex(*digit)?))
}

/// `uXXXX`, a pair of them for what lies beyond 16 bits, or Rust's `u{…}`.
fn unicode(rest: &[u8]) -> Option<(Unescaped, usize)> {
    if rest.get(1) == Some(&b'{') {
        let end = rest.iter().take(9).position(|byte| *byte == b'}')?;
        let c = char::from_u32(number(rest.get(2..end)?)?)?;
        return Some((Unescaped::Char(c), end + 2));
    }
    let unit = number(rest.get(1..5)?)?;
    if let Some(c) = char::from_u32(unit) {
        return Some((Unescaped::Char(c), 6));
    }
    let low = rest.get(5..7).filter(|next| *next == b"\\u").and_then(|_| rest.get(7..11));
    let units = [u16::try_from(unit).ok()?, u16::try_from(number(low?)?).ok()?];
    let c = char::decode_utf16(units).next()?.ok()?;
    Some((Unescaped::Char(c), 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_known_where_they_stood() {
        let text = br#"a\u00e4\ud83d\ude00\"\q\x41\u{e4}"#;
        let view = UnescapedText::backslash(text).unwrap();
        assert_eq!(String::from_utf8(view.bytes.clone()).unwrap(), "aä😀\"\\qAä");
        assert_eq!(view.origin(1), 1);
        assert_eq!(view.origin(3), 7);
        assert_eq!(view.origin(7), 19);
        assert_eq!(view.origin(view.bytes.len()), text.len());
        let view = UnescapedText::percent(b"100%41%2fb%").unwrap();
        assert_eq!(view.bytes, b"100A/b%");
        assert_eq!((view.origin(4), view.origin(5)), (6, 9));
        assert!(UnescapedText::percent(b"100%").is_none());
        assert!(UnescapedText::backslash(b"a\\").is_none());
    }
}
