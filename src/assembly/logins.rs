//! The stored OAuth logins of servers, for `toolhost auth`.

use std::sync::Arc;

use crate::config::environment::Environment;
use crate::mcp::auth::vault::OAuthLogin;
use crate::mcp::auth::{FileVault, KEY_VARIABLE, KEYCHAIN_VARIABLE, MemoryVault, Vault};
use crate::model::{Error, LoginReport};

/// Where logins are stored; without a state directory, only in memory.
pub(super) fn vault(environment: &dyn Environment) -> Arc<dyn Vault> {
    match file(environment) {
        Some(file) => Arc::new(file),
        None => Arc::new(MemoryVault::default()),
    }
}

fn file(environment: &dyn Environment) -> Option<FileVault> {
    let key = environment.var(KEY_VARIABLE);
    let keychain = environment.var(KEYCHAIN_VARIABLE).is_some_and(|value| value == "1");
    let file = |directory| FileVault::new(directory, key).with_keychain(keychain);
    environment.state_dir().as_deref().map(file)
}

/// All stored logins, in the order they were created.
pub async fn list(environment: &dyn Environment) -> Result<Vec<LoginReport>, Error> {
    let logins = vault(environment).load().await?;
    Ok(logins.iter().filter_map(OAuthLogin::report).collect())
}

/// Removes all logins, even if they can no longer be read; returns whether there were any.
pub async fn forget_all(environment: &dyn Environment) -> Result<bool, Error> {
    match file(environment) {
        Some(file) => file.clear().await,
        None => Ok(false),
    }
}
