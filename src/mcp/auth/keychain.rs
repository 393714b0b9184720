//! The encryption key of stored logins, in the system's keychain.
//!
//! Owns: reading it there and keeping it there, off the thread that waits for servers, because a
//! keychain may ask a person to unlock it. Never does: fall back to anything else. A build without
//! the feature `keyring` says so.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretBox};

use super::seal::KEY_LEN;
use crate::model::Error;

/// The variable that asks for the keychain, with the value 1.
pub const VARIABLE: &str = "TOOLHOST_KEYCHAIN";
/// How long unlocking may take.
const UNLOCK_TIMEOUT: Duration = Duration::from_mins(2);

/// The key, if one was kept.
///
/// # Errors
/// When there is no keychain, or it stays locked.
pub(super) async fn load_key() -> Result<Option<SecretBox<[u8; KEY_LEN]>>, Error> {
    let Some(bytes) = run_blocking(system::read).await? else { return Ok(None) };
    match <[u8; KEY_LEN]>::try_from(bytes) {
        Ok(key) => Ok(Some(SecretBox::new(Box::new(key)))),
        Err(_) => Err(unusable(&KeychainError::NotAKey)),
    }
}

/// Keeps a key.
///
/// # Errors
/// As [`load_key`].
pub(super) async fn store_key(key: &SecretBox<[u8; KEY_LEN]>) -> Result<(), Error> {
    let key = *key.expose_secret();
    run_blocking(move || system::write(&key)).await
}

/// Works on a thread of its own.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeychainError> + Send + 'static,
) -> Result<T, Error> {
    match tokio::time::timeout(UNLOCK_TIMEOUT, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => done.map_err(|why| unusable(&why)),
        Ok(Err(_)) => Err(unusable(&KeychainError::Crashed)),
        Err(_elapsed) => Err(unusable(&KeychainError::Locked)),
    }
}

/// Why the system's keychain gives or takes no key.
#[derive(Debug, thiserror::Error)]
enum KeychainError {
    /// The entry has another length than a key of ours.
    #[error("what it keeps for toolhost is no key")]
    NotAKey,
    /// The thread that asked panicked.
    #[error("it broke down")]
    Crashed,
    /// The keychain was not unlocked in time.
    #[error("it stayed locked for two minutes")]
    Locked,
    /// This system has no keychain that can be used.
    #[cfg(feature = "keyring")]
    #[error("{0}")]
    NoStore(&'static keyring::Error),
    /// The keychain is there and refused.
    #[cfg(feature = "keyring")]
    #[error(transparent)]
    Store(#[from] keyring::Error),
    /// There is no code for keychains in this build.
    #[cfg(not(feature = "keyring"))]
    #[error("this build was made without the feature 'keyring'")]
    NotBuilt,
}

fn unusable(why: &KeychainError) -> Error {
    Error::auth(format!("the keychain of the system cannot be used: {why}"))
        .with_hint(format!("without {VARIABLE} the key is kept in a file"))
}

#[cfg(feature = "keyring")]
mod system {
    use keyring::Entry;

    use super::KeychainError;

    fn entry() -> Result<Entry, KeychainError> {
        Entry::new("toolhost", "logins").map_err(|error| match Entry::store_status() {
            Err(reason) => KeychainError::NoStore(reason),
            Ok(()) => KeychainError::Store(error),
        })
    }

    pub(super) fn read() -> Result<Option<Vec<u8>>, KeychainError> {
        match entry()?.get_secret() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn write(key: &[u8]) -> Result<(), KeychainError> {
        Ok(entry()?.set_secret(key)?)
    }
}

#[cfg(not(feature = "keyring"))]
mod system {
    use super::KeychainError;

    pub(super) fn read() -> Result<Option<Vec<u8>>, KeychainError> {
        Err(KeychainError::NotBuilt)
    }

    pub(super) fn write(_key: &[u8]) -> Result<(), KeychainError> {
        Err(KeychainError::NotBuilt)
    }
}
