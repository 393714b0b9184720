//! The keychain of the system: secrets by service and account.
//!
//! Owns: which keychain that is, and what a build without the feature `keyring` says. Never does:
//! wait for anything but the keychain, which may ask a person to unlock it: whoever calls bounds that.

/// Why the system's keychain gives or takes nothing.
#[derive(Debug, thiserror::Error)]
pub enum KeychainError {
    /// There is no code for keychains in this build.
    #[error("this build was made without the feature 'keyring'")]
    NotBuilt,
    /// This system has no keychain that can be used.
    #[cfg(feature = "keyring")]
    #[error("{0}")]
    NoStore(&'static keyring::Error),
    /// The keychain is there and refused.
    #[cfg(feature = "keyring")]
    #[error(transparent)]
    Store(#[from] keyring::Error),
}

#[cfg(feature = "keyring")]
fn entry(service: &str, account: &str) -> Result<keyring::Entry, KeychainError> {
    keyring::Entry::new(service, account).map_err(|error| match keyring::Entry::store_status() {
        Err(reason) => KeychainError::NoStore(reason),
        Ok(()) => KeychainError::Store(error),
    })
}

/// The secret of an account, if one is kept.
///
/// # Errors
/// When there is no keychain, or it refuses.
#[cfg(feature = "keyring")]
pub fn read(service: &str, account: &str) -> Result<Option<Vec<u8>>, KeychainError> {
    match entry(service, account)?.get_secret() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(keyring::Error::NoEntry) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Keeps the secret of an account, in place of the one before.
///
/// # Errors
/// As [`read`].
#[cfg(feature = "keyring")]
pub fn write(service: &str, account: &str, secret: &[u8]) -> Result<(), KeychainError> {
    Ok(entry(service, account)?.set_secret(secret)?)
}

/// The secret of an account, if one is kept.
///
/// # Errors
/// Always [`KeychainError::NotBuilt`]: this build has no code for keychains.
#[cfg(not(feature = "keyring"))]
pub fn read(_service: &str, _account: &str) -> Result<Option<Vec<u8>>, KeychainError> {
    Err(KeychainError::NotBuilt)
}

/// Keeps the secret of an account, in place of the one before.
///
/// # Errors
/// Always [`KeychainError::NotBuilt`]: this build has no code for keychains.
#[cfg(not(feature = "keyring"))]
pub fn write(_service: &str, _account: &str, _secret: &[u8]) -> Result<(), KeychainError> {
    Err(KeychainError::NotBuilt)
}
