//! Base64 (RFC 4648, section 4), as content blocks carry binary data.

/// Encodes as standard base64 with padding.
pub fn encode(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            (0..3).fold(0_u32, |group, i| group << 8 | u32::from(*chunk.get(i).unwrap_or(&0)));
        for i in 0..4 {
            let index = (group >> (18 - 6 * i) & 63) as usize;
            out.push(if i <= chunk.len() { char::from(ALPHABET[index]) } else { '=' });
        }
    }
    out
}

/// Decodes standard base64. Line breaks are skipped and missing padding is accepted, because
/// peers send both; anything else that is not of the alphabet gives `None`.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches(['=', '\n', '\r']);
    let mut out = Vec::with_capacity(body.len() / 4 * 3 + 3);
    let (mut bits, mut held) = (0_u32, 0_u32);
    for byte in body.bytes().filter(|b| !matches!(b, b'\n' | b'\r')) {
        bits = (bits << 6) | u32::from(sextet(byte)?);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from((bits >> held) & 0xff).ok()?);
        }
    }
    // Six left-over bits are a lone character: something was cut off.
    (held < 6).then_some(out)
}

/// The number of bytes `text` decodes to, without decoding it.
pub fn decoded_len(text: &str) -> u64 {
    let signs = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r' | b'=')).count();
    u64::try_from(signs).unwrap_or(u64::MAX).saturating_mul(3) / 4
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc() {
        for (text, plain) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(plain.as_bytes()), "{text}");
            assert_eq!(decoded_len(text), plain.len() as u64, "{text}");
            assert_eq!(encode(plain.as_bytes()), text, "{plain}");
        }
    }

    #[test]
    fn every_byte_value_is_decoded() {
        assert_eq!(decode("AP/+gA==").unwrap(), [0x00, 0xff, 0xfe, 0x80]);
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn line_breaks_and_missing_padding_are_accepted_and_nonsense_is_not() {
        assert_eq!(decode("Zm9v\r\nYg").as_deref(), Some(&b"foob"[..]));
        assert_eq!(decode("Zm9v!"), None);
        assert_eq!(decode("Zm9vY"), None);
        assert_eq!(decode("Zg==Zg=="), None);
    }
}
