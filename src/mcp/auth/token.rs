//! One request to a token endpoint, for grants the SDK does not support: client credentials, whose tokens
//! live as long as the process, and refreshing.

use std::sync::Arc;

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use rmcp::transport::auth::{
    AuthError, InMemoryCredentialStore, OAuthClientConfig, StoredCredentials,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::OAuthSettings;
use super::discovery::{AuthorizationServer, ScopeRequest, discover, union};
use super::error::from_auth_error;
use super::http::AuthHttp;
use super::vault::{OAuthClient, OAuthLogin, OAuthToken, server_key};
use crate::model::Error;
use crate::net::address::display_url;
use crate::net::response::{server_message, truncate};
use crate::util::base64;

#[derive(Deserialize)]
pub(super) struct TokenEndpointResponse {
    pub access_token: String,
    #[serde(default)]
    pub token_type: String,
    #[serde(default)]
    expires_in: Option<Value>,
    #[serde(default)]
    pub refresh_token: Option<String>,
    #[serde(default)]
    scope: Option<String>,
}

impl TokenEndpointResponse {
    /// The token as stored; `now` in seconds since the Unix epoch.
    pub(super) fn token(
        self,
        requested_scopes: Vec<String>,
        now: u64,
    ) -> Result<OAuthToken, Error> {
        if !self.token_type.eq_ignore_ascii_case("Bearer") {
            let kind = truncate(&self.token_type);
            return Err(Error::auth(format!("the token is of the type '{kind}', not Bearer")));
        }
        // Some write the number as text.
        let lasts = self.expires_in.and_then(|lasts| {
            lasts.as_u64().or_else(|| lasts.as_str().and_then(|text| text.parse().ok()))
        });
        // Saying nothing means that everything was granted.
        let scopes = match self.scope {
            Some(scopes) => scopes.split_whitespace().map(str::to_owned).collect(),
            None => requested_scopes.clone(),
        };
        Ok(OAuthToken {
            access: self.access_token,
            refresh: self.refresh_token.filter(|token| !token.is_empty()),
            expires_at: lasts.map(|lasts| now.saturating_add(lasts)),
            scopes,
            asked: requested_scopes,
        })
    }
}

/// Asks for a token with a client's secret: in the way that `methods` names, in the header when they
/// do not say.
pub(super) async fn request(
    http: &AuthHttp,
    endpoint: Url,
    (client_id, secret): (&str, &SecretString),
    methods: &[&str],
    form: &[(&str, &str)],
) -> Result<TokenEndpointResponse, Error> {
    let place = display_url(&endpoint);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let mut form = form.to_vec();
    if methods.contains(&"client_secret_post") && !methods.contains(&"client_secret_basic") {
        form.extend([("client_id", client_id), ("client_secret", secret.expose_secret())]);
    } else {
        headers.insert(AUTHORIZATION, basic(client_id, secret)?);
    }
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let answer = http.send(Method::POST, endpoint, headers, body.into(), false).await?;
    if answer.status.is_success() {
        return serde_json::from_slice(&answer.body).map_err(|cause| {
            // Neither quoted nor described: a token may be in it.
            let what = if cause.is_data() { "an answer without a token" } else { "no JSON" };
            Error::protocol(format!("{place} answered {} with {what}", answer.status))
        });
    }
    let json: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let text = |field: &str| json.as_ref().and_then(|json| json.get(field)?.as_str()).map(truncate);
    let status = answer.status;
    let Some(cause) = text("error") else {
        let error = if status.is_server_error() {
            Error::unreachable(format!("{place} answered {status}"))
        } else {
            Error::auth(format!("{place} issued no token: {status}"))
        };
        return Err(error.with_details(server_message(&answer.body)));
    };
    Err(Error::auth(format!("{place} issued no token: {cause}"))
        .with_details(text("error_description")))
}

/// `Basic`, with both parts encoded as in a form (RFC 6749, section 2.3.1).
fn basic(client_id: &str, secret: &SecretString) -> Result<HeaderValue, Error> {
    let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(client_id), encode(secret.expose_secret()));
    let mut value = HeaderValue::try_from(format!("Basic {}", base64::encode(pair.as_bytes())))
        .map_err(|_| Error::internal("base64 is not a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

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
