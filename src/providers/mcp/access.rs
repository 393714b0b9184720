//! How a server of `mcp.yaml` is let in.
//!
//! Owns: the way from `auth` of an entry to the credentials of its wire, and logging in and out.

use std::sync::Arc;

use async_trait::async_trait;

use super::{McpProvider, McpSetup};
use crate::config::spec::{AuthSpec, ClientProof, Endpoint, OAuthAsks, ServerSpec};
use crate::mcp::auth::{Algorithm, Grant, OAuth, Proof, Settings};
use crate::mcp::credentials::{self, Credentials};
use crate::mcp::tracer::Tracer;
use crate::model::{Browser, Fault, LoginReport};
use crate::net::address::{is_loopback, show};
use crate::provider::{Login, permit};

/// The credentials of one server.
pub(super) struct Access {
    /// What its wires show.
    pub credentials: Arc<dyn Credentials>,
    /// The same, when somebody can log in with them.
    pub login: Option<Arc<OAuth>>,
}

impl Access {
    /// The credentials by what the entry says.
    pub(super) fn of(spec: &ServerSpec, setup: &McpSetup, tracer: &Tracer) -> Self {
        let Endpoint::Http { url, auth, insecure, .. } = &spec.endpoint else {
            return Self { credentials: credentials::none(), login: None };
        };
        let mut settings = Settings::new(&spec.name, url.clone());
        settings.vault = Arc::clone(&setup.logins);
        settings.learn = Arc::clone(&setup.learn);
        settings.insecure = setup.insecure;
        settings.named_by_user = spec.origin.project().is_none();
        settings.tracer = tracer.clone();
        let mut take = |asks: &OAuthAsks, grant: Grant| {
            settings.scopes.clone_from(&asks.scopes);
            settings.issuer.clone_from(&asks.issuer);
            settings.dpop = asks.dpop;
            settings.grant = grant;
        };
        match &**auth {
            AuthSpec::None => return Self { credentials: credentials::none(), login: None },
            AuthSpec::Bearer { token, .. } => {
                return Self { credentials: credentials::bearer(token.clone()), login: None };
            }
            // A token must not cross a network in the clear because somebody once logged in.
            AuthSpec::Unset if url.scheme() == "http" && !is_loopback(url) && !insecure => {
                return Self { credentials: credentials::none(), login: None };
            }
            AuthSpec::Unset => settings.required = false,
            AuthSpec::OAuth {
                client_id,
                client_secret,
                client_metadata_url,
                redirect_port,
                asks,
            } => {
                let grant = Grant::Login {
                    client_id: client_id.clone(),
                    client_secret: client_secret.clone(),
                    client_metadata: client_metadata_url.clone(),
                };
                take(asks, grant);
                settings.redirect_port = *redirect_port;
            }
            AuthSpec::ClientCredentials { client_id, proof, token_url, asks } => {
                let (client_id, token_url) = (client_id.clone(), token_url.clone());
                take(asks, Grant::Program { client_id, proof: program(proof), token_url });
            }
        }
        let login = Arc::new(OAuth::new(settings));
        Self { credentials: Arc::clone(&login) as Arc<dyn Credentials>, login: Some(login) }
    }
}

fn program(proof: &ClientProof) -> Proof {
    match proof {
        ClientProof::Secret(secret) => Proof::Secret(secret.clone()),
        ClientProof::Key { pem, algorithm } => {
            let named = |known: &Algorithm| Some(known.name()) == algorithm.as_deref();
            Proof::Key { pem: pem.clone(), algorithm: Algorithm::ALL.into_iter().find(named) }
        }
    }
}

#[async_trait]
impl Login for McpProvider {
    async fn login(&self, browser: &dyn Browser, scopes: &[String]) -> Result<LoginReport, Fault> {
        let named = |fault: Fault| fault.server(&self.spec.name);
        permit(&self.spec.seal).map_err(named)?;
        let logging_in = async {
            let login = self.login_of()?;
            if let Endpoint::Http { url, insecure: false, .. } = &self.spec.endpoint
                && url.scheme() == "http"
                && !is_loopback(url)
            {
                let place = show(url);
                return Err(Fault::denied(format!("a token would travel unencrypted to {place}"))
                    .hint("use https, or 'insecure: true' in your own configuration directory"));
            }
            login.login(browser, scopes).await
        };
        logging_in.await.map_err(named)
    }

    async fn logout(&self) -> Result<usize, Fault> {
        let named = |fault: Fault| fault.server(&self.spec.name);
        match self.login_of() {
            Ok(login) => login.logout().await.map_err(named),
            Err(fault) => Err(named(fault)),
        }
    }
}

impl McpProvider {
    fn login_of(&self) -> Result<&OAuth, Fault> {
        self.access.login.as_deref().ok_or_else(|| match &self.spec.endpoint {
            Endpoint::Stdio { .. } => {
                Fault::usage("this server is a program: nobody logs in to it")
                    .hint("give it credentials with 'env'")
            }
            Endpoint::Http { auth, .. } if matches!(**auth, AuthSpec::Unset) => {
                Fault::denied("a token would travel unencrypted").hint("use https")
            }
            Endpoint::Http { .. } => Fault::usage("the entry says another way to authenticate")
                .hint("write auth: { type: oauth }, or nothing"),
        })
    }
}
