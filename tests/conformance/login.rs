//! Credentials for the scenarios that want some: a browser without a person, and what a scenario
//! gives to its client.

use std::sync::Arc;

use crate::mcp::auth::{OAuth, OAuthGrant, OAuthSettings};
use crate::model::{AuthorizationRequest, Browser, Error};
use async_trait::async_trait;
use serde::Deserialize;
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
}

/// The credentials for the server at `url`.
pub fn credentials(url: Url, scenario: &str, given: Given) -> OAuth {
    let mut settings = OAuthSettings::new(super::PEER, url);
    // Each of the suite's servers has a port of its own on this machine.
    settings.allows_any_local_port = true;
    settings.browser = Some(Arc::new(Headless));
    settings.grant = given.grant(scenario);
    OAuth::new(settings)
}

impl Given {
    fn grant(self, scenario: &str) -> OAuthGrant {
        let client_secret = self.client_secret.map(Into::into);
        // A secret alone does not say whether a person or a program has it.
        let is_program = scenario == "auth/client-credentials-basic";
        match (self.client_id, client_secret) {
            (Some(client_id), Some(client_secret)) if is_program => {
                OAuthGrant::Program { client_id, client_secret, token_url: None }
            }
            (client_id, client_secret) => OAuthGrant::Login {
                client_id,
                client_secret,
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
