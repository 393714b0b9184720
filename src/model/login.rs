//! Logins at a server's authorization server: the port that leads a person there, and the result.

use async_trait::async_trait;
use serde::Serialize;

use super::error::Error;

/// A visit to an authorization server that a person has to make.
#[derive(Debug, Clone)]
pub struct AuthorizationRequest {
    /// The server's name in the files.
    pub server: String,
    /// Who will ask for the login: the issuer, or the origin of a server that names none.
    pub issuer: String,
    /// What is asked for; empty leaves it to the authorization server.
    pub scopes: Vec<String>,
    /// The page to open, checked: `https`, or `http` on this machine.
    pub url: String,
    /// The `state` that the way back has to carry.
    pub state: String,
}

/// Leads a person to an authorization server and brings back where the visit ended.
#[async_trait]
pub trait Browser: Send + Sync {
    /// Prepares for one visit and gives the address it ends at, such as
    /// `http://127.0.0.1:49152/callback`. `port` is the one to listen on if it is free: an
    /// authorization server may know it from last time.
    ///
    /// # Errors
    /// When there is nowhere to come back to.
    async fn redirect_uri(&self, port: Option<u16>) -> Result<String, Error>;

    /// Makes the visit; gives the address it ended at, with its query.
    ///
    /// # Errors
    /// When the visit was not made within the time limit.
    async fn authorize(&self, visit: &AuthorizationRequest) -> Result<String, Error>;
}

/// A login that is kept. Holds no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoginReport {
    /// The server's address, without query.
    pub url: String,
    /// The URL of the authorization server that issued the token.
    pub issuer: String,
    /// The identifier of this client at that issuer.
    pub client_id: String,
    /// The scopes that were granted, which may be fewer than asked for.
    pub scopes: Vec<String>,
    /// When the token expires, in seconds since the Unix epoch; `None` when that was not said.
    pub expires_at: Option<u64>,
    /// Whether it is renewed without a person.
    pub renewable: bool,
}
