//! Tokens without a person: client credentials. Such tokens live as long as the process; another is
//! a request away.

use std::sync::Arc;

use secrecy::SecretString;
use url::Url;

use super::OAuthSettings;
use super::discovery::{AuthorizationServer, ScopeRequest, discover, union};
use super::http::AuthHttp;
use super::token::request;
use super::vault::{OAuthClient, OAuthLogin, server_key};
use crate::model::Error;

/// Gets a token for a program. `scopes` is asked for beside what the entry says; when both are
/// empty nothing is asked for by name.
pub(super) async fn obtain_token(
    settings: &OAuthSettings,
    http: &Arc<AuthHttp>,
    (client_id, secret, token_url): (&str, &SecretString, Option<&Url>),
    challenge: Option<&str>,
    scopes: ScopeRequest,
) -> Result<OAuthLogin, Error> {
    let server: Option<AuthorizationServer> = match token_url {
        Some(_) => None,
        None => Some(discover(settings, http, challenge).await?),
    };
    let endpoint = match (&server, token_url) {
        (_, Some(written)) => written.clone(),
        (Some(server), None) => server.token_endpoint()?,
        (None, None) => return Err(Error::internal("a token endpoint that was not looked for")),
    };
    let scopes = match &server {
        Some(server) => server.select_scopes(scopes).await,
        None => union(&scopes.only, &scopes.additional),
    };
    let issuer = match (&server, &settings.issuer) {
        (Some(server), _) => server.issuer.clone(),
        (None, Some(issuer)) => issuer.to_string(),
        (None, None) => endpoint.to_string(),
    };
    let methods = server.as_ref().map(AuthorizationServer::token_auth_methods).unwrap_or_default();
    let scope = scopes.join(" ");
    let mut form = vec![("grant_type", "client_credentials"), ("resource", settings.url.as_str())];
    if !scope.is_empty() {
        form.push(("scope", &scope));
    }
    let granted = request(http, endpoint, (client_id, secret), &methods, &form).await?;
    let client = OAuthClient {
        id: client_id.to_owned(),
        secret: None,
        redirect: String::new(),
        registered: false,
    };
    // Nothing renews it: a new one is as easy.
    let mut token = granted.token(scopes, settings.clock.unix().as_secs())?;
    token.refresh = None;
    Ok(OAuthLogin { server: server_key(&settings.url), issuer, client, token: Some(token) })
}
