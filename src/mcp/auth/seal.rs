//! Encryption of the file of stored logins.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use secrecy::{ExposeSecret as _, SecretBox, SecretString};

pub const VARIABLE: &str = "TOOLHOST_ENCRYPTION_KEY";
pub(super) const KEY_LEN: usize = 32;

const SALT_LEN: usize = 16;
const INFO: &[u8] = b"toolhost logins 1";
const BY_VARIABLE: &[u8] = b"toolhost logins 1, key: variable\n";
const BY_FILE: &[u8] = b"toolhost logins 1, key: file\n";
const BY_KEYCHAIN: &[u8] = b"toolhost logins 1, key: keychain\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeySource {
    Variable,
    File,
    Keychain,
}

pub(super) enum KeyMaterial {
    Variable(SecretString),
    File(SecretBox<[u8; KEY_LEN]>),
    Keychain(SecretBox<[u8; KEY_LEN]>),
}

impl KeyMaterial {
    fn header(&self) -> &'static [u8] {
        match self {
            Self::Variable(_) => BY_VARIABLE,
            Self::File(_) => BY_FILE,
            Self::Keychain(_) => BY_KEYCHAIN,
        }
    }

    fn key(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let bytes = match self {
            Self::Variable(text) => text.expose_secret().as_bytes(),
            Self::File(bytes) | Self::Keychain(bytes) => bytes.expose_secret().as_slice(),
        };
        let drawn = Salt::new(HKDF_SHA256, salt).extract(bytes);
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
            .seal_in_place_append_tag(unique, Aad::from(self.header()), &mut sealed)
            .ok()?;
        Some([self.header(), &salt, &nonce, &sealed].concat())
    }

    /// Opens what this key sealed; `None` when it did not, or it was changed.
    pub(super) fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let rest = sealed.strip_prefix(self.header())?;
        let (salt, rest) = rest.split_at_checked(SALT_LEN)?;
        let (nonce, rest) = rest.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = rest.to_vec();
        let length =
            self.key(salt)?.open_in_place(nonce, Aad::from(self.header()), &mut text).ok()?.len();
        text.truncate(length);
        Some(text)
    }
}

/// Which key sealed this; `None` when it is nothing of ours.
pub(super) fn key_source(sealed: &[u8]) -> Option<KeySource> {
    if sealed.starts_with(BY_VARIABLE) {
        Some(KeySource::Variable)
    } else if sealed.starts_with(BY_FILE) {
        Some(KeySource::File)
    } else if sealed.starts_with(BY_KEYCHAIN) {
        Some(KeySource::Keychain)
    } else {
        None
    }
}

/// A new key for a key file; `None` when the system provides no random numbers.
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
        let one = KeyMaterial::Variable("correct horse".into());
        let sealed = one.seal(b"hunter2".to_vec()).unwrap();
        assert!(!sealed.windows(7).any(|bytes| bytes == b"hunter2"));
        assert_eq!(key_source(&sealed), Some(KeySource::Variable));
        assert_eq!(one.open(&sealed).unwrap(), b"hunter2");
        assert_ne!(one.seal(b"hunter2".to_vec()).unwrap(), sealed);
        assert!(KeyMaterial::Variable("battery staple".into()).open(&sealed).is_none());
        assert!(KeyMaterial::File(SecretBox::new(Box::new([0; KEY_LEN]))).open(&sealed).is_none());
        for at in 0..sealed.len() {
            let mut broken = sealed.clone();
            broken[at] ^= 1;
            assert!(one.open(&broken).is_none(), "{at}");
            assert!(one.open(&sealed[..at]).is_none(), "{at}");
        }
    }
}
