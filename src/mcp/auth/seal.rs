//! Encryption of the file of stored logins.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretSlice};

pub const VARIABLE: &str = "TOOLHOST_ENCRYPTION_KEY";
pub(super) const KEY_LEN: usize = 32;

const SALT_LEN: usize = 16;
const INFO: &[u8] = b"toolhost logins 1";

/// Where the key of the stored logins is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeySource {
    Variable,
    File,
    Keychain,
}

impl KeySource {
    /// What a file begins with that such a key sealed.
    fn header(self) -> &'static [u8] {
        match self {
            Self::Variable => b"toolhost logins 1, key: variable\n",
            Self::File => b"toolhost logins 1, key: file\n",
            Self::Keychain => b"toolhost logins 1, key: keychain\n",
        }
    }

    /// Which key sealed this; `None` when it is nothing of ours.
    pub(super) fn of(sealed: &[u8]) -> Option<Self> {
        let mut all = [Self::Variable, Self::File, Self::Keychain].into_iter();
        all.find(|source| sealed.starts_with(source.header()))
    }
}

pub(super) struct LoginKey {
    source: KeySource,
    secret: SecretSlice<u8>,
}

impl LoginKey {
    pub(super) fn new(source: KeySource, secret: &[u8]) -> Self {
        Self { source, secret: secret.to_vec().into() }
    }

    fn key(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let drawn = Salt::new(HKDF_SHA256, salt).extract(self.secret.expose_secret());
        let info = [INFO];
        let key = drawn.expand(&info, &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(key)))
    }

    /// Seals a text. `None` when the system provides no random numbers.
    pub(super) fn seal(&self, text: Vec<u8>) -> Option<Vec<u8>> {
        let (mut salt, mut nonce) = ([0; SALT_LEN], [0; NONCE_LEN]);
        let random = SystemRandom::new();
        random.fill(&mut salt).and_then(|()| random.fill(&mut nonce)).ok()?;
        let mut sealed = text;
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key(&salt)?
            .seal_in_place_append_tag(unique, Aad::from(self.source.header()), &mut sealed)
            .ok()?;
        Some([self.source.header(), &salt, &nonce, &sealed].concat())
    }

    /// Opens what this key sealed; `None` when it did not, or it was changed.
    pub(super) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let rest = sealed.strip_prefix(self.source.header())?;
        let (salt, rest) = rest.split_at_checked(SALT_LEN)?;
        let (nonce, rest) = rest.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = rest.to_vec();
        let length = self
            .key(salt)?
            .open_in_place(nonce, Aad::from(self.source.header()), &mut text)
            .ok()?
            .len();
        text.truncate(length);
        Some(text)
    }
}

/// A new key; `None` when the system provides no random numbers.
pub(super) fn generate() -> Option<[u8; KEY_LEN]> {
    let mut key = [0; KEY_LEN];
    SystemRandom::new().fill(&mut key).ok()?;
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_opens_and_every_byte_counts() {
        let one = LoginKey::new(KeySource::Variable, b"correct horse");
        let sealed = one.seal(b"hunter2".to_vec()).unwrap();
        assert!(!sealed.windows(7).any(|bytes| bytes == b"hunter2"));
        assert_eq!(KeySource::of(&sealed), Some(KeySource::Variable));
        assert_eq!(one.open(&sealed).unwrap(), b"hunter2");
        assert_ne!(one.seal(b"hunter2".to_vec()).unwrap(), sealed);
        assert!(LoginKey::new(KeySource::Variable, b"battery staple").open(&sealed).is_none());
        assert!(LoginKey::new(KeySource::File, &[0; KEY_LEN]).open(&sealed).is_none());
        for at in 0..sealed.len() {
            let mut broken = sealed.clone();
            broken[at] ^= 1;
            assert!(one.open(&broken).is_none(), "{at}");
            assert!(one.open(&sealed[..at]).is_none(), "{at}");
        }
    }
}
