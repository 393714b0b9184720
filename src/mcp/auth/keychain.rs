//! The key that logins are sealed with, in the keychain of the system.
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
        Err(_) => Err(unusable("what it keeps for toolhost is no key")),
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
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, Error> {
    match tokio::time::timeout(UNLOCK_TIMEOUT, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => done.map_err(|why| unusable(&why)),
        Ok(Err(_)) => Err(unusable("it broke down")),
        Err(_elapsed) => Err(unusable("it stayed locked for two minutes")),
    }
}

fn unusable(why: &str) -> Error {
    Error::auth(format!("the keychain of the system cannot be used: {why}"))
        .with_hint(format!("without {VARIABLE} the key is kept in a file"))
}

#[cfg(feature = "keyring")]
mod system {
    use keyring::Entry;

    fn entry() -> Result<Entry, String> {
        Entry::new("toolhost", "logins").map_err(|error| match Entry::store_status() {
            Err(reason) => reason.to_string(),
            Ok(()) => error.to_string(),
        })
    }

    pub(super) fn read() -> Result<Option<Vec<u8>>, String> {
        match entry()?.get_secret() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    pub(super) fn write(key: &[u8]) -> Result<(), String> {
        entry()?.set_secret(key).map_err(|error| error.to_string())
    }
}

#[cfg(not(feature = "keyring"))]
mod system {
    const WITHOUT: &str = "this build was made without the feature 'keyring'";

    pub(super) fn read() -> Result<Option<Vec<u8>>, String> {
        Err(WITHOUT.to_owned())
    }

    pub(super) fn write(_key: &[u8]) -> Result<(), String> {
        Err(WITHOUT.to_owned())
    }
}
