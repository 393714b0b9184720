//! `builtin.hash`: SHA-2 digests of text or bytes. MD5 and SHA-1 are broken and not offered.

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use serde_json::json;
use sha2::{Digest as _, Sha256, Sha512};

use super::{BuiltinFunction, FunctionBody, input};
use crate::model::{Error, ToolResult};
use crate::providers::arguments::{Arguments, text};
use crate::util::hex::hex;

pub(super) const DIGEST: BuiltinFunction = BuiltinFunction {
    module: "builtin.hash",
    name: "digest",
    aliases: &[],
    title: "Hash",
    description: "Computes the SHA-256 or SHA-512 digest of a text, or of bytes given in \
                  hexadecimal or base64; the digest is hexadecimal.",
    input: || {
        let algorithm =
            json!({ "type": "string", "enum": ["sha256", "sha512"], "default": "sha256" });
        let mut hashed = text("The text, hashed as UTF-8");
        hashed["examples"] = json!(["hello"]);
        let properties = [
            ("text", hashed),
            ("hex", text("Bytes in hexadecimal instead")),
            ("base64", text("Bytes in base64 instead")),
            ("algorithm", algorithm),
        ];
        let mut schema = input(&properties, &[]);
        schema["minProperties"] = 1.into();
        schema
    },
    output: None,
    idempotent: true,
    run: FunctionBody::Sync(|_, arguments| {
        let bytes = bytes(arguments)?;
        Ok(ToolResult::text(match arguments.word("algorithm", &["sha256", "sha512"])? {
            "sha512" => hex(&Sha512::digest(&bytes)),
            _ => hex(&Sha256::digest(&bytes)),
        }))
    }),
};

fn bytes(arguments: Arguments<'_>) -> Result<Vec<u8>, Error> {
    let (text, hex, base64) = (
        arguments.optional_text("text")?,
        arguments.optional_text("hex")?,
        arguments.optional_text("base64")?,
    );
    match (text, hex, base64) {
        (Some(text), None, None) => Ok(text.as_bytes().to_vec()),
        (None, Some(hex), None) => {
            from_hex(hex).ok_or_else(|| Error::usage("'hex' is not hexadecimal"))
        }
        (None, None, Some(base64)) => {
            from_base64(base64).ok_or_else(|| Error::usage("'base64' is not base64"))
        }
        _ => Err(Error::usage("exactly one of 'text', 'hex' and 'base64' is needed")),
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect()
}

/// Base64 whose padding may be missing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Reads base64 in both alphabets, with or without padding.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text.replace('-', "+").replace('_', "/")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(arguments: serde_json::Value) -> String {
        let serde_json::Value::Object(arguments) = arguments else { panic!("not an object") };
        let FunctionBody::Sync(run) = DIGEST.run else { panic!("runs at once") };
        match run(&crate::util::clock::SystemClock, Arguments(&arguments)) {
            Ok(result) => result.output.as_str().unwrap().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_published_test_vectors() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(json!({ "text": "abc" })), abc);
        assert_eq!(digest(json!({ "hex": "616263" })), abc);
        assert_eq!(digest(json!({ "base64": "YWJj" })), abc);
        assert!(
            digest(json!({ "text": "abc", "algorithm": "sha512" })).starts_with("ddaf35a193617aba")
        );
    }

    #[test]
    fn base64_with_every_length_of_padding() {
        assert_eq!(from_base64("").unwrap(), b"");
        assert_eq!(from_base64("Zg==").unwrap(), b"f");
        assert_eq!(from_base64("Zm8").unwrap(), b"fo");
        assert_eq!(from_base64("-_-_").unwrap(), [0xfb, 0xff, 0xbf]);
        assert_eq!(from_base64("Z"), None);
        assert_eq!(from_base64("Zg==="), None);
        assert_eq!(from_base64("Zm 8"), None);
    }

    #[test]
    fn unclear_input_is_refused() {
        assert_eq!(digest(json!({ "hex": "6" })), "'hex' is not hexadecimal");
        let one = "exactly one of 'text', 'hex' and 'base64' is needed";
        assert_eq!(digest(json!({ "algorithm": "sha256" })), one);
        assert_eq!(digest(json!({ "text": "a", "hex": "61" })), one);
    }
}
