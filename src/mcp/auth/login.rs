//! Interactive login: the authorization code flow.

use std::sync::Arc;

use rmcp::transport::auth::{AuthorizationCallback, OAuthClientConfig};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::OAuthSettings;
use super::discovery::{AuthorizationServer, ScopeRequest, authorization_page, discover};
use super::error::from_auth_error;
use super::http::AuthHttp;
use super::token::TokenEndpointResponse;
use super::vault::{OAuthClient, OAuthLogin, server_key};
use crate::model::{AuthorizationRequest, Browser, Error};
use crate::net::response::truncate;

const CLIENT_NAME: &str = "toolhost";

pub(super) struct ClientIdentity<'a> {
    pub id: Option<&'a str>,
    pub secret: Option<&'a SecretString>,
    pub metadata_url: Option<&'a Url>,
}

/// Leads a person through a login. `scopes` is what is wished for.
pub(super) async fn login(
    settings: &OAuthSettings,
    http: &Arc<AuthHttp>,
    identity: ClientIdentity<'_>,
    challenge: Option<&str>,
    scopes: ScopeRequest,
    browser: &dyn Browser,
) -> Result<OAuthLogin, Error> {
    let mut server_metadata = discover(settings, http, challenge).await?;
    let scopes = server_metadata.select_scopes(scopes).await;
    let server = server_key(&settings.url);
    let previous = settings.vault.load().await?;
    let previous = previous.into_iter().find(|login| {
        login.server == server && login.issuer == server_metadata.issuer && login.client.registered
    });
    let port = previous.as_ref().and_then(|login| Url::parse(&login.client.redirect).ok()?.port());
    let redirect = browser.redirect_uri(settings.redirect_port.or(port)).await?;
    let end = Url::parse(&redirect)
        .map_err(|_| Error::internal("the address a login ends at cannot be read"))?;
    if let (Some(port), true) = (settings.redirect_port, end.port() != settings.redirect_port) {
        return Err(Error::auth(format!("the port {port} of 127.0.0.1 is in use")).with_hint(
            "stop the program listening there, or change 'redirect_port' of the entry",
        ));
    }
    let previous = previous.filter(|login| login.client.redirect == redirect);
    let client = client(
        &mut server_metadata,
        http,
        identity,
        previous.map(|login| login.client),
        redirect,
        &scopes,
    )
    .await?;
    let login =
        |token| OAuthLogin { server, issuer: server_metadata.issuer.clone(), client, token };

    let scope_names: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let url = server_metadata.manager.get_authorization_url(&scope_names).await;
    let url = authorization_page(&url.map_err(|error| from_auth_error(error, http))?, http)?;
    let state = query(&url, "state").unwrap_or_default();
    let visit = AuthorizationRequest {
        server: settings.server.clone(),
        issuer: server_metadata.issuer.clone(),
        scopes: scopes.clone(),
        url: url.to_string(),
        state: state.clone(),
    };
    let callback = callback(&server_metadata, &browser.authorize(&visit).await?, &end, &state)?;
    let granted = server_metadata
        .manager
        .exchange_code_for_token_with_issuer(
            &callback.code,
            &callback.csrf_token,
            callback.issuer.as_deref(),
        )
        .await
        .map_err(|error| from_auth_error(error, http))?;
    let granted =
        serde_json::to_value(granted).and_then(serde_json::from_value::<TokenEndpointResponse>);
    let granted = granted.map_err(|_| Error::protocol("the token cannot be read"))?;
    let token = granted.token(scopes, settings.clock.unix().as_secs())?;
    Ok(login(Some(token)))
}

/// The client that asks: the one the user registered, else the document that describes it where
/// that is understood, else the one of last time, else a new one.
async fn client(
    authorization: &mut AuthorizationServer,
    http: &AuthHttp,
    identity: ClientIdentity<'_>,
    previous: Option<OAuthClient>,
    redirect: String,
    scopes: &[String],
) -> Result<OAuthClient, Error> {
    let document = identity
        .metadata_url
        .filter(|_| authorization.has_flag("client_id_metadata_document_supported"));
    let (id, secret) = match (identity.id, document, &previous) {
        (Some(id), _, _) => {
            let secret = identity.secret.map(|secret| secret.expose_secret().to_owned());
            (id.to_owned(), secret)
        }
        (None, Some(document), _) => (document.to_string(), None),
        (None, None, Some(previous)) => (previous.id.clone(), previous.secret.clone()),
        (None, None, None) => {
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let registered =
                authorization.manager.register_client(CLIENT_NAME, &redirect, &scopes).await;
            let registered = registered.map_err(|error| from_auth_error(error, http))?;
            let (id, secret) = (registered.client_id, registered.client_secret);
            return Ok(OAuthClient { id, secret, redirect, registered: true });
        }
    };
    let mut config = OAuthClientConfig::new(id.clone(), redirect.clone());
    if let Some(secret) = &secret {
        config = config.with_client_secret(secret.clone());
    }
    authorization.manager.configure_client(config).map_err(|error| from_auth_error(error, http))?;
    let registered = identity.id.is_none() && document.is_none();
    Ok(OAuthClient { id, secret, redirect, registered })
}

/// Reads where the visit ended, which has to be `end`. Nothing of it is shown unless it comes from the
/// issuer.
fn callback(
    authorization: &AuthorizationServer,
    visited: &str,
    end: &Url,
    state: &str,
) -> Result<AuthorizationCallback, Error> {
    let url = Url::parse(visited.trim()).map_err(|_| {
        Error::auth("what was pasted is not a URL")
            .with_hint("paste the whole URL of the page the login ended at")
    })?;
    // Another page that has the code is one that was lured out of the person or the issuer.
    if url.origin() != end.origin() || url.path() != end.path() {
        return Err(Error::auth("the URL is not the one this login ends at")
            .with_hint(format!("start again, and paste the URL that starts with {end}")));
    }
    if query(&url, "state").as_deref() != Some(state) {
        return Err(Error::auth("the URL belongs to another login")
            .with_hint("start again, and use the newest page only"));
    }
    if let Some(cause) = query(&url, "error") {
        let error = Error::auth("the authorization server refused");
        let issuer = authorization.metadata.issuer.as_deref();
        let from = query(&url, "iss");
        let named = authorization.has_flag("authorization_response_iss_parameter_supported");
        let genuine = match from.as_deref() {
            Some(from) => Some(from) == issuer,
            None => !named,
        };
        if !genuine {
            return Err(error.with_detail("it is a different server"));
        }
        let description = query(&url, "error_description").map(|text| truncate(&text));
        return Err(error.with_detail(truncate(&cause)).with_details(description));
    }
    AuthorizationCallback::from_redirect_url(url.as_str())
        .map_err(|_| Error::auth("the URL has no code"))
}

fn query(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
