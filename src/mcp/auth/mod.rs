//! OAuth for HTTP servers.
//!
//! The parts: [`OAuth`] are the [`Credentials`](super::credentials::Credentials) of one server;
//! `discovery` finds who issues tokens; `login` and `token` get one, and `token` renews it;
//! [`vault`] and [`mod@file`] store it; `http` decides which addresses may be contacted. The SDK
//! does discovery, registration, the authorization request, the code exchange and the checks of
//! the responses.

mod discovery;
mod engine;
mod error;
pub mod file;
mod http;
mod keychain;
mod login;
mod seal;
#[cfg(test)]
mod tests;
mod token;
pub mod vault;

use std::fmt;
use std::sync::Arc;

use url::Url;

pub use crate::config::spec::OAuthGrant;
pub use engine::OAuth;
pub use file::FileVault;
pub use http::AddressPolicy;
pub use keychain::VARIABLE as KEYCHAIN_VARIABLE;
pub use seal::VARIABLE as KEY_VARIABLE;
pub use vault::{MemoryVault, Vault};

use crate::mcp::tracer::Tracer;
use crate::model::Browser;
use crate::util::clock::{Clock, SystemClock};

/// Called for each secret as it is learned, with a name and the value.
pub type SecretListener = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// How a server's tokens are got and kept.
#[derive(Clone)]
pub struct OAuthSettings {
    pub server: String,
    /// The address of the server that wants the login.
    pub url: Url,
    /// Whether the command line names the server, and no file.
    pub is_ad_hoc: bool,
    /// On what grounds a token is given. A login without a registered client by default.
    pub grant: OAuthGrant,
    /// Scopes to request in addition to those the server requires; empty by default.
    pub scopes: Vec<String>,
    /// The only issuer whose tokens are taken. It may be private when the user wrote it.
    pub issuer: Option<Url>,
    /// The only port of 127.0.0.1 a login may end at.
    pub redirect_port: Option<u16>,
    /// Where logins are kept; in memory by default.
    pub vault: Arc<dyn Vault>,
    /// Who leads a person to the authorization server. Without one, a login that is needed is a
    /// error with the command that makes it.
    pub browser: Option<Arc<dyn Browser>>,
    /// The user configured OAuth for this server. Otherwise a login is used if there is one, and
    /// unreadable logins are only reported when the server requires one.
    pub is_required: bool,
    /// The user wrote the issuer and the token endpoint. Otherwise a file of a project names them,
    /// and they have to be https and public, like those that a server names.
    pub is_user_configured: bool,
    pub allows_any_local_port: bool,
    /// Whether any TLS certificate is accepted.
    pub insecure: bool,
    pub clock: Arc<dyn Clock>,
    /// Hears of tokens, to keep them out of everything that is shown.
    pub on_secret: SecretListener,
    /// Traces the exchanges with authorization servers, without their secrets.
    pub tracer: Tracer,
}

impl OAuthSettings {
    pub fn new(server: impl Into<String>, url: Url) -> Self {
        Self {
            server: server.into(),
            url,
            is_ad_hoc: false,
            grant: OAuthGrant::default(),
            scopes: Vec::new(),
            issuer: None,
            redirect_port: None,
            vault: Arc::new(MemoryVault::default()),
            browser: None,
            is_required: true,
            is_user_configured: true,
            allows_any_local_port: false,
            insecure: false,
            clock: Arc::new(SystemClock),
            on_secret: Arc::new(|_, _| {}),
            tracer: Tracer::off(),
        }
    }

    /// Whether the grant exchanges a code that another program could have caught.
    fn needs_pkce(&self) -> bool {
        matches!(self.grant, OAuthGrant::Login { .. })
    }

    fn address_policy(&self) -> AddressPolicy {
        let token_url = match &self.grant {
            OAuthGrant::Program { token_url, .. } => token_url.clone(),
            OAuthGrant::Login { .. } => None,
        };
        let named = [self.issuer.clone(), token_url].into_iter().flatten();
        let named = named.filter(|_| self.is_user_configured);
        AddressPolicy {
            user_urls: std::iter::once(self.url.clone()).chain(named).collect(),
            allows_any_local_port: self.allows_any_local_port,
        }
    }
}

impl fmt::Debug for OAuthSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("server", &self.server).finish_non_exhaustive()
    }
}
