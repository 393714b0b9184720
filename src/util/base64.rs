//! Base64 (RFC 4648, section 4), as content blocks carry binary data.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Padding is written; before decoding it has been taken off, because peers leave it out or add
/// too much of it. Bits that are left over in the last character are ignored.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

pub fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// Decodes standard base64. Line breaks are skipped and missing padding is accepted, because
/// peers send both; anything else that is not of the alphabet gives `None`.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches(['=', '\n', '\r']);
    if !body.contains(['\n', '\r']) {
        return ENGINE.decode(body).ok();
    }
    ENGINE.decode(body.replace(['\n', '\r'], "")).ok()
}

pub fn decoded_len(text: &str) -> u64 {
    let signs = text.bytes().filter(|b| !matches!(b, b'\n' | b'\r' | b'=')).count();
    u64::try_from(signs).unwrap_or(u64::MAX).saturating_mul(3) / 4
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
