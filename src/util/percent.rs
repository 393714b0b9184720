//! Percent-encoding of texts in URLs.

use std::fmt::Write as _;

/// Every byte but letters, digits and those in `kept` is encoded.
pub fn encode(text: &str, kept: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ignored = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Text that does not decode to UTF-8 is left unchanged.
pub fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|two| std::str::from_utf8(two).ok());
        let code = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        if let (b'%', Some(code)) = (first, code) {
            bytes.push(code);
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_hexadecimal_digits_are_a_code() {
        assert_eq!(decode("%2Fa%c3%A9"), "/aé");
        for text in ["%+f", "%-1", "%g0", "% 1", "%1", "%", "%é"] {
            assert_eq!(decode(text), text);
        }
    }
}
