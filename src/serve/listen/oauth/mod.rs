//! The server as a protected resource of an OAuth authorization server.

mod issuer;
pub mod signature;
pub mod token;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::access::AccessError;
use super::authentication::AuthenticatedClient;
use crate::host::{ClientScope, ScopeProfile};
use crate::model::Error;
use crate::util::text::truncate;
use issuer::TokenIssuer;
use token::{TokenClaims, UncheckedToken};

/// The path of the metadata; a resource with its own path has that path appended.
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// Maximum number of keys of an issuer to try.
const MAX_KEYS: usize = 64;
/// Maximum number of characters kept of a client's name.
const MAX_NAME: usize = 200;

#[derive(Debug, Clone)]
pub struct AcceptedScope {
    pub name: String,
    /// The profile that a client with this scope sees; `None` shows everything.
    pub profile: Option<String>,
}

/// A server whose tokens come from an authorization server.
pub struct ProtectedResource {
    issuer: Arc<TokenIssuer>,
    /// Where clients reach this server.
    url: Url,
    audiences: Vec<String>,
    scopes: Vec<AcceptedScope>,
}

impl ProtectedResource {
    /// A resource at `url` that takes tokens of `issuer` for one of `audiences`, and for its own
    /// URL when there are none. With `scopes` a token has to have one of them.
    pub fn new(
        issuer: &str,
        url: Url,
        audiences: Vec<String>,
        scopes: Vec<AcceptedScope>,
    ) -> Result<Self, Error> {
        let named = audiences.iter().filter_map(|text| text.parse::<Url>().ok());
        let url = named.into_iter().find(Url::has_host).unwrap_or(url);
        let audiences = if audiences.is_empty() { vec![url.to_string()] } else { audiences };
        Ok(Self { issuer: Arc::new(TokenIssuer::new(issuer)?), url, audiences, scopes })
    }

    /// Whose an access token is.
    pub(super) async fn authenticate(
        &self,
        token: &str,
        now: Duration,
    ) -> Result<AuthenticatedClient, AccessError> {
        let token = UncheckedToken::read(token).ok_or(AccessError::Token)?;
        let keys = self.issuer.keys(|keys| token.is_key_known(keys)).await;
        let keys = keys.ok_or(AccessError::Issuer)?;
        let claims = token.check(&keys, &self.issuer.name, &self.audiences, now);
        self.identity(claims.ok_or(AccessError::Token)?)
    }

    fn identity(&self, claims: TokenClaims) -> Result<AuthenticatedClient, AccessError> {
        let has = |scope: &&AcceptedScope| claims.scopes.contains(&scope.name);
        let granted: Vec<&AcceptedScope> = self.scopes.iter().filter(has).collect();
        if granted.is_empty() && !self.scopes.is_empty() {
            return Err(AccessError::Scope);
        }
        let profiles = |scope: &&AcceptedScope| {
            scope.profile.iter().cloned().map(ScopeProfile::Named).collect()
        };
        let mut views: Vec<Vec<ScopeProfile>> = granted.iter().map(profiles).collect();
        if views.is_empty() {
            views.push(Vec::new());
        }
        let TokenClaims { subject, client, expires, .. } = claims;
        // The same person with other scopes has separate sessions.
        let mut key = Sha256::new();
        for part in [&subject, &client].into_iter().chain(granted.iter().map(|scope| &scope.name)) {
            key.update(part.len().to_be_bytes());
            key.update(part);
        }
        let key = URL_SAFE_NO_PAD.encode(key.finalize());
        // Two clients may be shown alike; they are told apart by the key.
        let shown = if subject == client { client } else { format!("{subject} ({client})") };
        let client = truncate(&shown, MAX_NAME);
        let scope = ClientScope { client, user: Some(subject), views };
        let key = format!("oauth:{key}");
        Ok(AuthenticatedClient { key, scope, expires, is_issued_here: false })
    }

    pub(super) fn metadata(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(METADATA_PATH)?;
        let bare = |path: &str| path.trim_end_matches('/').to_owned();
        if !rest.is_empty() && bare(rest) != bare(self.url.path()) {
            return None;
        }
        // As RFC 9728 has it.
        let mut metadata = json!({
            "resource": self.url,
            "authorization_servers": [self.issuer.name],
            "bearer_methods_supported": ["header"],
            "resource_name": "toolhost",
        });
        if !self.scopes.is_empty() {
            metadata["scopes_supported"] = json!(self.scope_names());
        }
        Some(metadata.to_string())
    }

    pub(super) fn challenge(&self, error: AccessError, has_token: bool) -> String {
        let mut metadata = self.url.clone();
        metadata.set_query(None);
        metadata.set_path(&format!("{METADATA_PATH}{}", self.url.path().trim_end_matches('/')));
        let mut parts =
            vec!["realm=\"toolhost\"".to_owned(), format!("resource_metadata=\"{metadata}\"")];
        if !self.scopes.is_empty() {
            parts.push(format!("scope=\"{}\"", self.scope_names().join(" ")));
        }
        match error {
            AccessError::Scope => parts.push("error=\"insufficient_scope\"".to_owned()),
            _ if has_token => parts.push("error=\"invalid_token\"".to_owned()),
            _ => {}
        }
        format!("Bearer {}", parts.join(", "))
    }

    fn scope_names(&self) -> Vec<&str> {
        self.scopes.iter().map(|scope| scope.name.as_str()).collect()
    }
}
