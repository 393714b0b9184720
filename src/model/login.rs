//! Logins at a server's authorization server: the trait that takes a person there, and the result.

use async_trait::async_trait;
use serde::Serialize;

use super::error::Error;

/// A visit to an authorization server that a person must make.
#[derive(Debug, Clone)]
pub struct AuthorizationRequest {
    /// The server's name in the config files.
    pub server: String,
    /// Who will request the login: the issuer, or the origin of a server that names none.
    pub issuer: String,
    /// The requested scopes; empty leaves the choice to the authorization server.
    pub scopes: Vec<String>,
    /// The page to open, checked: `https`, or `http` on this machine.
    pub url: String,
    /// The `state` that the redirect back must carry.
    pub state: String,
}

/// Takes a person to an authorization server and returns the address where the visit ended.
#[async_trait]
pub trait Browser: Send + Sync {
    /// Prepares for one visit and returns the address it ends at, such as
    /// `http://127.0.0.1:49152/callback`. `port` is the one to listen on if it is free, because an
    /// authorization server may know it from last time.
    ///
    /// # Errors
    /// When no callback address is available.
    async fn redirect_uri(&self, port: Option<u16>) -> Result<String, Error>;

    /// Makes the visit; returns the address it ended at, with its query.
    ///
    /// # Errors
    /// When the visit was not completed within the time limit.
    async fn authorize(&self, visit: &AuthorizationRequest) -> Result<String, Error>;
}

/// A stored login. Contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoginReport {
    /// The server's address, without query.
    pub url: String,
    /// The URL of the authorization server that issued the token.
    pub issuer: String,
    /// The client id at that issuer.
    pub client_id: String,
    /// The granted scopes, which may be fewer than requested.
    pub scopes: Vec<String>,
    /// When the token expires, in seconds since the Unix epoch; `None` if not given.
    pub expires_at: Option<u64>,
    /// Whether it is renewed without a person.
    pub renewable: bool,
}
