//! Percent-encoding of values in URLs.

use std::fmt::Write as _;

/// A value encoded for a path segment or a query: every byte but letters, digits, `-._~`
/// and `*()` is encoded, so that no value can end its segment, its pair or the path.
pub(super) fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~*()".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ignored = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_could_end_a_segment_is_encoded() {
        assert_eq!(percent("a/b?c#d&e=f%2e"), "a%2Fb%3Fc%23d%26e%3Df%252e");
        assert_eq!(percent("é\r\n\\@:"), "%C3%A9%0D%0A%5C%40%3A");
        assert_eq!(percent("A-z_0.9~"), "A-z_0.9~");
    }
}
