//! Names as a dialect allows them.

use sha2::{Digest as _, Sha256};

use crate::util::hex::hex;

/// How many characters of a digest tell shortened names apart, unless that is too few.
const DIGEST: usize = 8;
const LONGEST_DIGEST: usize = 32;

/// What a dialect allows in a name beside letters and digits of ASCII.
#[derive(Debug, Clone, Copy)]
pub(super) struct NameRule {
    pub(super) longest: usize,
    pub(super) extra: &'static str,
    pub(super) begins_with_letter: bool,
}

/// Whether a name ends like one that [`NameRule::apply`] made.
pub(super) fn has_digest(name: &str) -> bool {
    let digest = name.rsplit('_').next().unwrap_or_default();
    !digest.is_empty()
        && digest.len().is_multiple_of(DIGEST)
        && digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

impl NameRule {
    pub(super) fn allows(self, name: &str) -> bool {
        !name.is_empty()
            && self.allows_beginning(name)
            && name.len() <= self.longest
            && name.chars().all(|c| self.allows_char(c))
    }

    /// The name itself when it is allowed; otherwise one that is, with a digest of the whole name at
    /// its end.
    pub(super) fn apply(self, name: &str) -> String {
        if self.allows(name) { name.to_owned() } else { self.shortened(name, DIGEST) }
    }

    /// A name that is allowed and that `is_free`: digests that are alike become longer.
    pub(super) fn apply_unique(self, name: &str, is_free: impl Fn(&str) -> bool) -> String {
        let lengths = (DIGEST..=LONGEST_DIGEST).step_by(DIGEST);
        let mut candidates = lengths.map(|digits| self.shortened(name, digits));
        let free_name = candidates.find(|candidate| is_free(candidate));
        free_name.unwrap_or_else(|| self.shortened(name, LONGEST_DIGEST))
    }

    fn allows_char(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || self.extra.contains(c)
    }

    fn allows_beginning(self, name: &str) -> bool {
        !self.begins_with_letter || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }

    fn shortened(self, name: &str, digits: usize) -> String {
        let digest = hex(&Sha256::digest(name.as_bytes()));
        let room = self.longest - digits - 2;
        let legal = name.chars().map(|c| if self.allows_char(c) { c } else { '_' }).take(room);
        let mut allowed = if self.allows_beginning(name) { String::new() } else { "_".to_owned() };
        allowed.extend(legal);
        allowed.push('_');
        allowed.extend(digest.chars().take(digits));
        allowed
    }
}
