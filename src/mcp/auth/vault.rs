//! Stored logins, and the port to where they are kept.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::model::{Error, LoginReport};

/// What is known of a client at one authorization server, for one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthLogin {
    /// The server: its address without query (see [`server_key`]).
    pub server: String,
    /// Who issues tokens: the issuer, or the origin of a server that names none.
    pub issuer: String,
    pub client: OAuthClient,
    /// The token; only one login of a server has one.
    pub token: Option<OAuthToken>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthClient {
    pub id: String,
    pub secret: Option<String>,
    /// Where logins end, as it was registered.
    pub redirect: String,
    pub registered: bool,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OAuthToken {
    pub access: String,
    pub refresh: Option<String>,
    /// Seconds since the Unix epoch; `None` when the authorization server did not say.
    pub expires_at: Option<u64>,
    pub scopes: Vec<String>,
    /// What was asked for; grants may be narrower.
    pub asked: Vec<String>,
}

impl fmt::Debug for OAuthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for OAuthToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

impl OAuthLogin {
    /// The part of a login that may be shown; `None` without a token.
    pub fn report(&self) -> Option<LoginReport> {
        let token = self.token.as_ref()?;
        Some(LoginReport {
            url: self.server.clone(),
            issuer: self.issuer.clone(),
            client_id: self.client.id.clone(),
            scopes: token.scopes.clone(),
            expires_at: token.expires_at,
            renewable: token.refresh.is_some(),
        })
    }
}

/// What logins of a server are kept under: its address without user, query and fragment.
pub fn server_key(url: &Url) -> String {
    crate::net::address::display_url(url)
}

/// Held while a token is renewed; dropping it lets the next one in.
pub type RenewalLock = Box<dyn Send>;

pub type VaultEdit<'a> = &'a mut (dyn FnMut(&mut Vec<OAuthLogin>) + Send);

/// Keeps logins. Reads return what was last written, by this or another process.
#[async_trait]
pub trait Vault: Send + Sync + fmt::Debug {
    async fn load(&self) -> Result<Vec<OAuthLogin>, Error>;

    async fn edit(&self, change: VaultEdit<'_>) -> Result<(), Error>;

    /// Waits until no other task or process renews the token of this server.
    async fn lock_renewal(&self, server: &str) -> Result<RenewalLock, Error>;
}

/// Keeps logins as long as it lives.
#[derive(Debug, Default)]
pub struct MemoryVault {
    logins: Mutex<Vec<OAuthLogin>>,
    renewal_lock: Arc<tokio::sync::Mutex<()>>,
}

#[async_trait]
impl Vault for MemoryVault {
    async fn load(&self) -> Result<Vec<OAuthLogin>, Error> {
        Ok(self.logins.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    async fn edit(&self, change: VaultEdit<'_>) -> Result<(), Error> {
        change(&mut self.logins.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    async fn lock_renewal(&self, _: &str) -> Result<RenewalLock, Error> {
        Ok(Box::new(Arc::clone(&self.renewal_lock).lock_owned().await))
    }
}

/// Puts a login in: it replaces the one for the same server at the same issuer, and the tokens of
/// the server at other issuers, which are worth nothing any more.
pub fn insert_login(logins: &mut Vec<OAuthLogin>, login: &OAuthLogin) {
    logins.retain(|stored| stored.server != login.server || stored.issuer != login.issuer);
    if login.token.is_some() {
        for stored in logins.iter_mut().filter(|stored| stored.server == login.server) {
            stored.token = None;
        }
    }
    logins.push(login.clone());
}
