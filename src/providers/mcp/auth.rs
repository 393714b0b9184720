//! Credentials of a server in `mcp.yaml`.

use std::sync::Arc;

use async_trait::async_trait;

use super::{McpProvider, McpSetup};
use crate::config::spec::{AuthSpec, Endpoint, ServerSpec};
use crate::mcp::auth::{OAuth, OAuthSettings};
use crate::mcp::credentials::{self, Credentials};
use crate::mcp::tracer::Tracer;
use crate::model::{Browser, Error, LoginReport};
use crate::net::address::{display_url, is_loopback};
use crate::provider::{LoginSupport, verify_trust};

pub(super) struct ServerAuth {
    pub credentials: Arc<dyn Credentials>,
    /// The same credentials, if a user can log in with them.
    pub login: Option<Arc<OAuth>>,
}

impl ServerAuth {
    pub(super) fn of(spec: &ServerSpec, setup: &McpSetup, tracer: &Tracer) -> Self {
        let Endpoint::Http { url, auth, insecure, .. } = &spec.endpoint else {
            return Self { credentials: credentials::none(), login: None };
        };
        let mut settings = OAuthSettings::new(&spec.name, url.clone());
        settings.is_ad_hoc = spec.origin.command_end.is_some();
        settings.vault = Arc::clone(&setup.logins);
        settings.on_secret = Arc::clone(&setup.learn);
        settings.insecure = setup.insecure;
        settings.is_user_configured = spec.origin.project().is_none();
        settings.tracer = tracer.clone();
        match &**auth {
            AuthSpec::None => return Self { credentials: credentials::none(), login: None },
            AuthSpec::Bearer { token, .. } => {
                return Self { credentials: credentials::bearer(token.clone()), login: None };
            }
            // A login of the past must not send a token over a network in the clear.
            AuthSpec::Unset if url.scheme() == "http" && !is_loopback(url) && !insecure => {
                return Self { credentials: credentials::none(), login: None };
            }
            AuthSpec::Unset => settings.is_required = false,
            AuthSpec::OAuth(oauth) => {
                settings.grant = oauth.grant.clone();
                settings.scopes.clone_from(&oauth.scopes);
                settings.issuer.clone_from(&oauth.issuer);
                settings.redirect_port = oauth.redirect_port;
            }
        }
        let login = Arc::new(OAuth::new(settings));
        Self { credentials: Arc::clone(&login) as Arc<dyn Credentials>, login: Some(login) }
    }
}

#[async_trait]
impl LoginSupport for McpProvider {
    async fn login(&self, browser: &dyn Browser, scopes: &[String]) -> Result<LoginReport, Error> {
        let named = |error: Error| error.with_server(&self.spec.name);
        verify_trust(&self.spec.seal).map_err(named)?;
        let logging_in = async {
            let login = self.login_of()?;
            if let Endpoint::Http { url, insecure: false, .. } = &self.spec.endpoint
                && url.scheme() == "http"
                && !is_loopback(url)
            {
                let place = display_url(url);
                return Err(Error::denied(format!("a token would travel unencrypted to {place}"))
                    .with_hint(
                        "use https, or 'insecure: true' in your own configuration directory",
                    ));
            }
            login.login(browser, scopes).await
        };
        logging_in.await.map_err(named)
    }

    async fn logout(&self) -> Result<usize, Error> {
        let named = |error: Error| error.with_server(&self.spec.name);
        match self.login_of() {
            Ok(login) => login.logout().await.map_err(named),
            Err(error) => Err(named(error)),
        }
    }
}

impl McpProvider {
    fn login_of(&self) -> Result<&OAuth, Error> {
        self.access.login.as_deref().ok_or_else(|| match &self.spec.endpoint {
            Endpoint::Stdio { .. } => Error::usage("this server is a program: it has no login")
                .with_hint("give it credentials with 'env'"),
            Endpoint::Http { auth, .. } if matches!(**auth, AuthSpec::Unset) => {
                Error::denied("a token would travel unencrypted").with_hint("use https")
            }
            Endpoint::Http { .. } => {
                Error::usage("the entry configures another authentication method")
                    .with_hint("write auth: { type: oauth }, or leave 'auth' out")
            }
        })
    }
}
