//! Names as a dialect allows them.

use sha2::{Digest as _, Sha256};

/// How many characters of a digest tell shortened names apart.
const DIGEST: usize = 8;

/// What a dialect allows in a name beside letters and digits of ASCII.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameRule {
    /// The most characters a name may have.
    pub(super) longest: usize,
    /// The other characters that may stand in it.
    pub(super) extra: &'static str,
}

/// Whether a name ends like one that [`NameRule::apply`] made.
pub(super) fn has_digest(name: &str) -> bool {
    let digest = name.rsplit('_').next().unwrap_or_default();
    digest.len() == DIGEST && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

impl NameRule {
    /// The name itself when it is allowed; otherwise one that is, with a digest of the whole name at
    /// its end, so that two names never become one.
    pub(super) fn apply(self, name: &str) -> String {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || self.extra.contains(c);
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if begins_well && name.len() <= self.longest && name.chars().all(is_allowed) {
            return name.to_owned();
        }
        let digest = Sha256::digest(name.as_bytes());
        let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let digits = digits.filter_map(|digit| char::from_digit(digit.into(), 16));
        let room = self.longest - DIGEST - 2;
        let kept = name.chars().map(|c| if is_allowed(c) { c } else { '_' }).take(room);
        let mut allowed = if begins_well { String::new() } else { "_".to_owned() };
        allowed.extend(kept);
        allowed.push('_');
        allowed.extend(digits.take(DIGEST));
        allowed
    }
}
