//! The keychain of the system: secrets by service and account.

use std::sync::mpsc;
use std::time::Duration;

use super::units::show_duration;

#[derive(Debug, thiserror::Error)]
pub enum KeychainError {
    #[error("this build was made without the feature 'keyring'")]
    NotBuilt,
    /// The keychain did not respond within this time.
    #[error("it stayed locked for {}", show_duration(*.0))]
    Locked(Duration),
    #[cfg(feature = "keyring")]
    #[error("{0}")]
    NoStore(&'static keyring::Error),
    #[cfg(feature = "keyring")]
    #[error(transparent)]
    Store(#[from] keyring::Error),
}

/// As [`read`], for at most `limit`. A later answer of the keychain is ignored.
pub fn read_within(
    service: &str,
    account: &str,
    limit: Duration,
) -> Result<Option<Vec<u8>>, KeychainError> {
    let (service, account) = (service.to_owned(), account.to_owned());
    let (sender, answer) = mpsc::sync_channel(1);
    std::thread::spawn(move || sender.send(read(&service, &account)));
    answer.recv_timeout(limit).unwrap_or(Err(KeychainError::Locked(limit)))
}

#[cfg(feature = "keyring")]
fn entry(service: &str, account: &str) -> Result<keyring::Entry, KeychainError> {
    keyring::Entry::new(service, account).map_err(|error| match keyring::Entry::store_status() {
        Err(reason) => KeychainError::NoStore(reason),
        Ok(()) => KeychainError::Store(error),
    })
}

/// The secret of an account, if one is kept.
#[cfg(feature = "keyring")]
pub fn read(service: &str, account: &str) -> Result<Option<Vec<u8>>, KeychainError> {
    match entry(service, account)?.get_secret() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(keyring::Error::NoEntry) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(feature = "keyring")]
pub fn write(service: &str, account: &str, secret: &[u8]) -> Result<(), KeychainError> {
    Ok(entry(service, account)?.set_secret(secret)?)
}

/// The secret of an account, if one is kept.
#[cfg(not(feature = "keyring"))]
pub fn read(_service: &str, _account: &str) -> Result<Option<Vec<u8>>, KeychainError> {
    Err(KeychainError::NotBuilt)
}

#[cfg(not(feature = "keyring"))]
pub fn write(_service: &str, _account: &str, _secret: &[u8]) -> Result<(), KeychainError> {
    Err(KeychainError::NotBuilt)
}
