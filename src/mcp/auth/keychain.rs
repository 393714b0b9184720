//! The encryption key of stored logins, in the system's keychain.

use std::time::Duration;

use super::seal::{KEY_LEN, KeySource, LoginKey};
use crate::model::Error;
use crate::util::keychain;

pub const VARIABLE: &str = "TOOLHOST_KEYCHAIN";
const SERVICE: &str = "toolhost";
const ACCOUNT: &str = "logins";
const UNLOCK_TIMEOUT: Duration = Duration::from_mins(2);

pub(super) async fn load_key() -> Result<Option<LoginKey>, Error> {
    match run_blocking(|| Ok(keychain::read(SERVICE, ACCOUNT)?)).await? {
        Some(key) if key.len() == KEY_LEN => Ok(Some(LoginKey::new(KeySource::Keychain, &key))),
        Some(_) => Err(unusable(&LoginKeyError::NotAKey)),
        None => Ok(None),
    }
}

pub(super) async fn store_key(key: [u8; KEY_LEN]) -> Result<(), Error> {
    run_blocking(move || Ok(keychain::write(SERVICE, ACCOUNT, &key)?)).await
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LoginKeyError> + Send + 'static,
) -> Result<T, Error> {
    match tokio::time::timeout(UNLOCK_TIMEOUT, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(outcome)) => outcome.map_err(|why| unusable(&why)),
        Ok(Err(_)) => Err(unusable(&LoginKeyError::Crashed)),
        Err(_elapsed) => Err(unusable(&LoginKeyError::Locked)),
    }
}

#[derive(Debug, thiserror::Error)]
enum LoginKeyError {
    #[error("what it stores for toolhost is not a key")]
    NotAKey,
    /// The thread that asked panicked.
    #[error("it broke down")]
    Crashed,
    /// The keychain was not unlocked in time.
    #[error("it stayed locked for two minutes")]
    Locked,
    #[error(transparent)]
    System(#[from] keychain::KeychainError),
}

fn unusable(why: &LoginKeyError) -> Error {
    Error::auth(format!("the keychain of the system cannot be used: {why}"))
        .with_hint(format!("without {VARIABLE} the key is kept in a file"))
}
