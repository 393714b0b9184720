//! The forms of a secret that are searched for: the value, its encodings, and parts of them.

use std::collections::BTreeSet;

use super::MIN_SECRET_LEN;
use super::unescape::UnescapedText;
use crate::util::hex::hex;

/// Lines of a value and parts of an address below this length are found everywhere.
const SHORTEST_PART: usize = 8;
/// The same for the path and the query of an address: `/mcp` is no secret.
const SHORTEST_PATH: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SecretForm {
    pub(super) text: String,
    /// Whether case matters: upper-case base64 is something else.
    pub(super) exact: bool,
}

/// Every form of a value, none of them shorter than [`MIN_SECRET_LEN`].
pub(super) fn forms(value: &str) -> BTreeSet<SecretForm> {
    let mut texts = BTreeSet::from([value.to_owned(), value.trim().to_owned()]);
    texts.extend(address_parts(value));
    // Programs undo escapes: a shell's `echo` does, and so do parsers of queries.
    let undone =
        [UnescapedText::backslash(value.as_bytes()), UnescapedText::percent(value.as_bytes())];
    let undone = undone.into_iter().flatten().filter_map(|view| String::from_utf8(view.bytes).ok());
    let undone: Vec<String> = undone.collect();
    // A line of a key is quoted as it is, or the whole key is encoded.
    let lines = undone.iter().map(String::as_str).chain([value]).flat_map(lines);
    let lines = lines.flat_map(rewritten).map(|text| SecretForm { text, exact: false });
    let mut forms: BTreeSet<SecretForm> = lines.collect();
    texts.extend(undone);
    for text in &texts {
        for exact in encoded(text.as_bytes()) {
            forms.insert(SecretForm { text: exact, exact: true });
        }
        for text in rewritten(text).into_iter().chain([hex(text.as_bytes())]) {
            forms.insert(SecretForm { text, exact: false });
        }
    }
    // What is left of a short value at an odd offset in base64 may be a letter or two.
    forms.retain(|form| form.text.len() >= MIN_SECRET_LEN);
    forms
}

fn rewritten(text: &str) -> Vec<String> {
    let mut all = vec![
        text.to_owned(),
        text.replace(' ', "+"),
        text.replace('\'', "'\\''"),
        text.replace('\'', "''"),
        text.replace('"', "\"\""),
    ];
    if !text.is_ascii() {
        // The search itself ignores the case of ASCII only.
        all.extend([text.to_lowercase(), text.to_uppercase()]);
    }
    all
}

fn lines(value: &str) -> impl Iterator<Item = &str> {
    let lines = value.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
    lines.filter(|line| value.contains('\n') && line.len() >= SHORTEST_PART)
}

/// What may be shown of an address without the rest of it.
fn address_parts(value: &str) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some((_scheme, rest)) = value.split_once("://") {
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (credentials, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        parts.push(password.to_owned());
        parts.extend([user].into_iter().filter(|user| user.len() >= SHORTEST_PART).map(Into::into));
        let name = host.rsplit_once(':').map_or(host, |(name, _port)| name);
        if !is_common(name) {
            parts.push(name.to_owned());
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let pairs = query.split(['&', '#']).filter_map(|pair| Some(pair.split_once('=')?.1));
        parts.extend(pairs.filter(|v| v.len() >= SHORTEST_PART).map(str::to_owned));
        let long = [path.trim_start_matches('/'), query].into_iter();
        parts.extend(long.filter(|text| text.len() >= SHORTEST_PATH).map(str::to_owned));
    }
    let decoded: Vec<String> = parts.iter().map(|part| percent_decoded(part)).collect();
    parts.extend(decoded);
    parts
}

/// Hosts that say nothing: this machine, and addresses of digits.
fn is_common(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.ends_with(".localhost")
        || host.starts_with('[')
        || host.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Text without percent-encoding; what is no valid text stays as it is.
fn percent_decoded(text: &str) -> String {
    let Some(view) = UnescapedText::percent(text.as_bytes()) else { return text.to_owned() };
    String::from_utf8(view.bytes).unwrap_or_else(|_| text.to_owned())
}

/// The value inside a longer base64 text, at each of the three offsets, in both alphabets. The
/// letters that depend on what stands beside it are left out, and with them any padding.
fn encoded(bytes: &[u8]) -> BTreeSet<String> {
    let offsets = (0..3).flat_map(|offset| [(offset, STANDARD), (offset, URL_SAFE)]);
    offsets.map(|(offset, alphabet)| base64_core(bytes, offset, alphabet)).collect()
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The letters that `bytes` always give in base64 when `offset` bytes (modulo 3) stand before
/// them: those that depend on a neighbour are left out.
fn base64_core(bytes: &[u8], offset: usize, alphabet: &[u8; 64]) -> String {
    let start = offset * 8;
    let end = start + bytes.len() * 8;
    let bit = |at: usize| -> u8 {
        let at = at - start;
        bytes.get(at / 8).map_or(0, |byte| (byte >> (7 - at % 8)) & 1)
    };
    let mut out = String::new();
    let mut letter = start.div_ceil(6);
    while (letter + 1) * 6 <= end {
        let index = (letter * 6..(letter + 1) * 6).fold(0, |sum, at| (sum << 1) | bit(at));
        out.push(char::from(alphabet[usize::from(index)]));
        letter += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_looked_for_in_parts_and_common_ones_are_not() {
        let plain = |value: &str| -> Vec<String> {
            forms(value).into_iter().filter(|form| !form.exact).map(|form| form.text).collect()
        };
        let forms = plain("https://ada:p%40ss-word@db.corp.example:99/tenant-0815-x?key=abcdefgh1");
        for part in ["p%40ss-word", "p@ss-word", "db.corp.example", "tenant-0815-x", "abcdefgh1"] {
            assert!(forms.iter().any(|form| form == part), "{part} {forms:?}");
        }
        let forms = plain("http://localhost:8080/mcp");
        for part in ["localhost", "/mcp", "mcp", "8080"] {
            assert!(!forms.iter().any(|form| form == part), "{part} {forms:?}");
        }
    }

    #[test]
    fn a_part_that_would_be_found_everywhere_is_not_looked_for() {
        for (value, part, is_looked_for) in [
            ("https://eightltr@db.example", "eightltr", true),
            ("https://sevenlt@db.example", "sevenlt", false),
            ("https://db.example/?a=12345678", "12345678", true),
            ("https://db.example/?a=1234567", "1234567", false),
            ("https://db.example/twelve-chars", "twelve-chars", true),
            ("https://db.example/eleven-char", "eleven-char", false),
            ("https://1.corp/mcp", "1.corp", true),
            ("https://10.0.0.1/mcp", "10.0.0.1", false),
            ("the first line\neightltr\nsevenlt", "eightltr", true),
            ("the first line\neightltr\nsevenlt", "sevenlt", false),
        ] {
            let found = forms(value).iter().any(|form| form.text == part);
            assert_eq!(found, is_looked_for, "{part}: {value:?}");
        }
    }

    #[test]
    fn every_letter_of_base64_that_a_neighbour_cannot_change_counts() {
        for (bytes, offset, letters) in
            [("abc", 0, "YWJj"), ("bc", 1, "Jj"), ("c", 2, "j"), ("ab", 0, "YW")]
        {
            assert_eq!(base64_core(bytes.as_bytes(), offset, STANDARD), letters, "{bytes}");
        }
    }
}
