//! Tokens without a person: the client credentials and assertion grants.
//!
//! Owns: client credentials by secret or key, the token of a workload, and the exchange of an
//! enterprise's login. Such tokens live as long as the process; another is a request away.

use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::discovery::{AuthorizationServer, ScopeRequest, discover, union};
use super::dpop::ProofKey;
use super::http::AuthHttp;
use super::jwt::{SigningKey, client_assertion};
use super::token::{ClientAuthentication, request};
use super::vault::{OAuthClient, OAuthLogin, server_key};
use super::{EnterpriseLogin, OAuthSettings, ProgramCredential};
use crate::model::Error;

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// Who is asked, and what for.
struct TokenRequest<'a> {
    http: &'a AuthHttp,
    endpoint: Url,
    issuer: String,
    resource: String,
    client_id: &'a str,
    methods: Vec<&'a str>,
    scopes: String,
}

/// Gets a token for a program. `scopes` is asked for beside what the entry says; when both are
/// empty nothing is asked for by name.
///
/// # Errors
/// When the authorization server cannot be found or gives none.
pub(super) async fn obtain_token(
    settings: &OAuthSettings,
    http: &Arc<AuthHttp>,
    (client_id, proof, token_url): (&str, &ProgramCredential, Option<&Url>),
    challenge: Option<&str>,
    scopes: ScopeRequest,
) -> Result<OAuthLogin, Error> {
    let now = settings.clock.unix().as_secs();
    let found: Option<AuthorizationServer> = match token_url {
        Some(_) => None,
        None => Some(discover(settings, http, challenge).await?),
    };
    let endpoint = match (&found, token_url) {
        (_, Some(written)) => written.clone(),
        (Some(found), None) => found.token_endpoint()?,
        (None, None) => return Err(Error::internal("a token endpoint that was not looked for")),
    };
    let scopes = match &found {
        Some(found) => found.select_scopes(scopes).await,
        None => union(&scopes.only, &scopes.additional),
    };
    let key = match &found {
        Some(found) => found.require_dpop_key(settings, http)?,
        None if settings.requires_dpop => {
            let key = Arc::new(ProofKey::generate()?);
            http.bind_dpop(endpoint.clone(), &key, &settings.clock);
            Some(key)
        }
        None => None,
    };
    let issuer = match (&found, &settings.issuer) {
        (Some(found), _) => found.issuer.clone(),
        (None, Some(issuer)) => issuer.to_string(),
        (None, None) => endpoint.to_string(),
    };
    let ask = TokenRequest {
        http,
        endpoint,
        issuer: issuer.clone(),
        resource: settings.url.to_string(),
        client_id,
        methods: found.as_ref().map(AuthorizationServer::token_auth_methods).unwrap_or_default(),
        scopes: scopes.join(" "),
    };
    let granted = match proof {
        ProgramCredential::Secret(secret) => {
            let proof = ClientAuthentication::secret(secret, &ask.methods);
            ask.send("client_credentials", &proof, &[]).await?
        }
        ProgramCredential::Key { pem, algorithm } => {
            let key = SigningKey::read(pem, *algorithm)?;
            let assertion = client_assertion(&key, client_id, &ask.issuer, now)?;
            ask.send("client_credentials", &ClientAuthentication::Assertion(assertion), &[]).await?
        }
        ProgramCredential::Workload { assertion } => {
            let form = [("assertion", assertion.expose_secret())];
            ask.send(JWT_BEARER, &ClientAuthentication::Public, &form).await?
        }
        ProgramCredential::Enterprise(enterprise) => {
            let grant = ask.exchange(enterprise).await?;
            let proof = match &enterprise.client_secret {
                Some(secret) => ClientAuthentication::secret(secret, &ask.methods),
                None => ClientAuthentication::Public,
            };
            ask.send(JWT_BEARER, &proof, &[("assertion", grant.expose_secret())]).await?
        }
    };
    let client = OAuthClient {
        id: client_id.to_owned(),
        secret: None,
        redirect: String::new(),
        registered: false,
    };
    // Nothing renews it: a new one is as easy.
    let mut token = granted.token(scopes, key.as_deref(), now)?;
    token.refresh = None;
    Ok(OAuthLogin { server: server_key(&settings.url), issuer, client, token: Some(token) })
}

impl TokenRequest<'_> {
    async fn send(
        &self,
        grant: &str,
        proof: &ClientAuthentication<'_>,
        more: &[(&str, &str)],
    ) -> Result<super::token::TokenEndpointResponse, Error> {
        let mut form = vec![("grant_type", grant), ("resource", self.resource.as_str())];
        if !self.scopes.is_empty() {
            form.push(("scope", self.scopes.as_str()));
        }
        form.extend(more);
        request(self.http, self.endpoint.clone(), self.client_id, proof, &form).await
    }

    /// The identity provider's word for the person, made out to the server's issuer.
    async fn exchange(&self, enterprise: &EnterpriseLogin) -> Result<SecretString, Error> {
        let mut form = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", self.issuer.as_str()),
            ("resource", self.resource.as_str()),
            ("subject_token", enterprise.id_token.expose_secret()),
            ("subject_token_type", ID_TOKEN),
        ];
        if !self.scopes.is_empty() {
            form.push(("scope", self.scopes.as_str()));
        }
        let endpoint = enterprise.token_url.clone();
        let id = enterprise.client_id.as_str();
        let granted =
            request(self.http, endpoint, id, &ClientAuthentication::Public, &form).await?;
        Ok(SecretString::from(granted.access_token))
    }
}
