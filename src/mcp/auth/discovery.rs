//! Discovering a server's authorization server, and checking its metadata.

use std::sync::Arc;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource,
};
use url::Url;

use super::OAuthSettings;
use super::error::from_auth_error;
use super::http::AuthHttp;
use crate::model::Error;
use crate::net::address::display_url;

pub(super) struct AuthorizationServer {
    /// The SDK's state machine, with the metadata set.
    pub manager: AuthorizationManager,
    pub metadata: AuthorizationMetadata,
    pub issuer: String,
}

/// Looks for the authorization server, beginning at a challenge when there is one.
pub(super) async fn discover(
    settings: &OAuthSettings,
    http: &Arc<AuthHttp>,
    challenge: Option<&str>,
) -> Result<AuthorizationServer, Error> {
    let failed = |error| from_auth_error(error, http);
    let manager =
        |base: &Url| AuthorizationManager::new_with_oauth_http_client(base.clone(), http.clone());
    let mut own = manager(&settings.url).await.map_err(failed)?;
    let discovered = own.resolve_metadata_from_challenge(challenge).await;
    let unknown = match &discovered {
        Ok(discovered) => discovered.source == AuthorizationMetadataSource::LegacyEndpointFallback,
        Err(error) => matches!(error, AuthError::AuthorizationServersUnavailable { .. }),
    };
    let discovered = match &settings.issuer {
        // The SDK looks at no private address, wherever it is from.
        Some(issuer) if unknown => {
            let there = manager(issuer).await.map_err(failed)?;
            there.resolve_metadata().await.map_err(failed)?
        }
        _ => discovered.map_err(failed)?,
    };
    let metadata = discovered.metadata;
    // Older servers name no issuer. Their tokens belong to the server itself.
    let issuer = match &metadata.issuer {
        Some(issuer) => issuer.clone(),
        None => settings.url.origin().ascii_serialization(),
    };
    if let Some(issuer_url) = &settings.issuer
        && issuer_url.as_str().trim_end_matches('/') != issuer.trim_end_matches('/')
    {
        return Err(Error::auth(format!(
            "the server names a different issuer than the entry: {issuer}"
        ))
        .with_detail(format!("the entry has {issuer_url}"))
        .with_hint("check 'issuer' of the entry; if the server moved, change it"));
    }
    let announced = metadata.code_challenge_methods_supported.as_ref();
    let is_new = discovered.source == AuthorizationMetadataSource::ProtectedResourceMetadata;
    // Servers of 2025-03-26 may say nothing; later ones must announce it.
    if settings.needs_pkce() && is_new && announced.is_none() {
        return Err(Error::auth(format!("{issuer} does not announce PKCE"))
            .with_detail("its metadata has no code_challenge_methods_supported with S256")
            .with_hint("its operator has to enable PKCE with S256"));
    }
    own.set_metadata(metadata.clone());
    Ok(AuthorizationServer { manager: own, metadata, issuer })
}

impl AuthorizationServer {
    pub(super) fn token_endpoint(&self) -> Result<Url, Error> {
        endpoint(&self.metadata.token_endpoint, "token endpoint")
    }

    /// The client authentication methods of the token endpoint; empty when the metadata has none.
    pub(super) fn token_auth_methods(&self) -> Vec<&str> {
        let methods = self.metadata.additional_fields.get("token_endpoint_auth_methods_supported");
        let methods = methods.and_then(|methods| methods.as_array());
        methods.into_iter().flatten().filter_map(|method| method.as_str()).collect()
    }

    /// Whether a field of the metadata is `true`.
    pub(super) fn has_flag(&self, field: &str) -> bool {
        self.metadata.additional_fields.get(field).and_then(serde_json::Value::as_bool)
            == Some(true)
    }

    /// The scopes to request: the required ones, or else those the server names, plus extra ones.
    pub(super) async fn select_scopes(&self, scopes: ScopeRequest) -> Vec<String> {
        let mut selected = scopes.only;
        if selected.is_empty() {
            selected = self.manager.select_initial_scopes(&[]).await;
        }
        selected = union(&selected, &scopes.additional);
        self.add_offline_access(&mut selected);
        selected
    }

    /// Adds `offline_access` when the authorization server knows it: without, some give nothing
    /// that renews a token.
    fn add_offline_access(&self, scopes: &mut Vec<String>) {
        const OFFLINE: &str = "offline_access";
        let supported =
            self.metadata.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE);
        if supported && !scopes.is_empty() && !scopes.iter().any(|scope| scope == OFFLINE) {
            scopes.push(OFFLINE.to_owned());
        }
    }
}

#[derive(Default)]
pub(super) struct ScopeRequest {
    /// The only scopes to request; empty leaves them to the server.
    pub only: Vec<String>,
    pub additional: Vec<String>,
}

pub(super) fn union(first: &[String], second: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for scope in first.iter().chain(second) {
        if !all.contains(scope) {
            all.push(scope.clone());
        }
    }
    all
}

fn endpoint(text: &str, what: &str) -> Result<Url, Error> {
    Url::parse(text)
        .map_err(|_| Error::protocol(format!("the {what} of the metadata is not a URL")))
}

pub(super) fn authorization_page(text: &str, http: &AuthHttp) -> Result<Url, Error> {
    let url = endpoint(text, "authorization endpoint")?;
    if !url.username().is_empty() || url.password().is_some() {
        let place = display_url(&url);
        return Err(Error::denied(format!("{place} is not opened: it contains a user name")));
    }
    http.address_policy().permits(&url)?;
    Ok(url)
}
