//! Credentials for the scenarios that want some: a browser without a person, and what a scenario
//! gives to its client.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use toolhost::mcp::auth::{EnterpriseLogin, OAuth, OAuthGrant, OAuthSettings, ProgramCredential};
use toolhost::model::{AuthorizationRequest, Browser, Error};
use url::Url;

/// The client ID metadata document that the suite knows.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";
/// Where visits end. Nobody listens there: the address is read from the redirect.
const REDIRECT: &str = "http://127.0.0.1:3000/callback";

/// What a scenario gives to its client beforehand.
#[derive(Debug, Default, Deserialize)]
pub struct Given {
    client_id: Option<String>,
    client_secret: Option<String>,
    private_key_pem: Option<String>,
    valid_jwt: Option<String>,
    idp_client_id: Option<String>,
    idp_id_token: Option<String>,
    idp_token_endpoint: Option<Url>,
}

/// The credentials for the server at `url`.
pub fn credentials(url: Url, scenario: &str, given: Given) -> OAuth {
    let mut settings = OAuthSettings::new(crate::PEER, url);
    // Each of the suite's servers has a port of its own on this machine.
    settings.allows_any_local_port = true;
    settings.browser = Some(Arc::new(Headless));
    // Only who runs a client knows that tokens have to be bound to a key.
    settings.requires_dpop = scenario.starts_with("auth/dpop");
    settings.grant = given.grant(scenario);
    OAuth::new(settings)
}

impl Given {
    fn grant(self, scenario: &str) -> OAuthGrant {
        let secret = |secret: Option<String>| secret.map(Into::into);
        // A secret alone does not say whether a person or a program has it.
        let program = scenario == "auth/client-credentials-basic";
        let proof = if let (Some(token_url), Some(client_id), Some(id_token)) =
            (self.idp_token_endpoint, self.idp_client_id, secret(self.idp_id_token))
        {
            let client_secret = secret(self.client_secret.clone());
            Some(ProgramCredential::Enterprise(EnterpriseLogin {
                client_secret,
                token_url,
                client_id,
                id_token,
            }))
        } else if let Some(assertion) = secret(self.valid_jwt) {
            Some(ProgramCredential::Workload { assertion })
        } else if let Some(pem) = secret(self.private_key_pem) {
            Some(ProgramCredential::Key { pem, algorithm: None })
        } else {
            secret(self.client_secret.clone()).filter(|_| program).map(ProgramCredential::Secret)
        };
        match (proof, self.client_id) {
            (Some(proof), Some(client_id)) => {
                OAuthGrant::Program { client_id, proof, token_url: None }
            }
            (_, client_id) => OAuthGrant::Login {
                client_id,
                client_secret: secret(self.client_secret),
                client_metadata: CLIENT_METADATA.parse().ok(),
            },
        }
    }
}

/// Follows every authorization request at once, as a person would who always agrees.
struct Headless;

#[async_trait]
impl Browser for Headless {
    async fn redirect_uri(&self, _port: Option<u16>) -> Result<String, Error> {
        Ok(REDIRECT.to_owned())
    }

    async fn authorize(&self, visit: &AuthorizationRequest) -> Result<String, Error> {
        let failed = |error: reqwest::Error| Error::auth(format!("the visit failed: {error}"));
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let page = client.build().map_err(failed)?.get(&visit.url).send().await.map_err(failed)?;
        let location = page.headers().get("location").and_then(|value| value.to_str().ok());
        location
            .map(str::to_owned)
            .ok_or_else(|| Error::auth(format!("the visit ended nowhere: {}", page.status())))
    }
}
