//! Refreshing tokens.

use std::sync::Arc;

use rmcp::transport::auth::{
    AuthError, InMemoryCredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde_json::json;

use super::OAuthSettings;
use super::discovery::discover;
use super::error::from_auth_error;
use super::http::AuthHttp;
use super::token::TokenEndpointResponse;
use super::vault::{OAuthLogin, OAuthToken};
use crate::model::Error;
use crate::net::excerpt::truncate;

pub(super) enum RenewalOutcome {
    Renewed(OAuthToken),
    /// A person has to log in again, and why.
    LoginRequired(String),
}

/// Renews the token of a login. The authorization server is looked for again: credentials of one
/// issuer are never shown to another.
pub(super) async fn renew(
    settings: &OAuthSettings,
    http: &Arc<AuthHttp>,
    login: &OAuthLogin,
    challenge: Option<&str>,
) -> Result<RenewalOutcome, Error> {
    let Some((token, refresh)) =
        login.token.as_ref().and_then(|token| Some((token, token.refresh.as_deref()?)))
    else {
        return Ok(RenewalOutcome::LoginRequired(
            "the token expired and cannot be renewed".to_owned(),
        ));
    };
    let authorization = discover(settings, http, challenge).await?;
    if authorization.issuer != login.issuer {
        let issuer = truncate(&authorization.issuer);
        return Ok(RenewalOutcome::LoginRequired(format!(
            "the server now has another issuer, {issuer}"
        )));
    }
    let now = settings.clock.unix().as_secs();
    let mut manager = authorization.manager;
    let mut client = OAuthClientConfig::new(login.client.id.clone(), redirect(settings, login));
    if let Some(secret) = &login.client.secret {
        client = client.with_client_secret(secret.clone());
    }
    manager.configure_client(client).map_err(|error| from_auth_error(error, http))?;
    let old = json!({
        "access_token": token.access,
        "token_type": "bearer",
        "refresh_token": refresh,
    });
    let old = serde_json::from_value(old)
        .map_err(|_| Error::internal("a stored token cannot be read"))?;
    let id = login.client.id.clone();
    let credentials = StoredCredentials::new(id, Some(old), token.asked.clone(), None);
    let store = InMemoryCredentialStore::new();
    rmcp::transport::auth::CredentialStore::save(&store, credentials)
        .await
        .map_err(|error| from_auth_error(error, http))?;
    manager.set_credential_store(store);
    match manager.refresh_token().await {
        Ok(answer) => {
            let answer = serde_json::to_value(answer)
                .and_then(serde_json::from_value::<TokenEndpointResponse>);
            let granted = answer.map_err(|_| Error::protocol("the new token cannot be read"))?;
            granted.token(token.asked.clone(), now).map(RenewalOutcome::Renewed)
        }
        Err(AuthError::AuthorizationRequired) => {
            Ok(RenewalOutcome::LoginRequired("the server no longer knows the login".to_owned()))
        }
        Err(AuthError::TokenRefreshRejected(why)) => Ok(RenewalOutcome::LoginRequired(format!(
            "the authorization server ended the login: {}",
            truncate(&why)
        ))),
        Err(error) => Err(from_auth_error(error, http)),
    }
}

/// Where logins of this client end; renewals do not use it, but the SDK wants one.
fn redirect(settings: &OAuthSettings, login: &OAuthLogin) -> String {
    if login.client.redirect.is_empty() {
        settings.url.to_string()
    } else {
        login.client.redirect.clone()
    }
}
