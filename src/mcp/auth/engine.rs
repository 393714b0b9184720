//! The credentials of one server: obtaining, caching and renewing tokens.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::auth::WWWAuthenticateParams;
use secrecy::SecretString;
use tokio::sync::Mutex;

use super::discovery::{ScopeRequest, union};
use super::error::{login_required, scopes_required};
use super::http::AuthHttp;
use super::login::{ClientIdentity, login};
use super::token::{RenewalOutcome, obtain_token, renew};
use super::vault::{OAuthLogin, OAuthToken, insert_login, server_key};
use super::{OAuthGrant, OAuthSettings};
use crate::mcp::credentials::{Challenge, ChallengeOutcome, Credentials, bearer_header};
use crate::model::{Browser, Error, LoginReport};

/// A token is renewed this long before it expires, so that it does not expire on its way.
const RENEW_BEFORE_EXPIRY: Duration = Duration::from_secs(30);

/// The logins of one server: tokens, their renewal and their keeping.
pub struct OAuth {
    settings: OAuthSettings,
    http: Arc<AuthHttp>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_loaded: bool,
    /// Why it could not be.
    load_error: Option<Error>,
    login: Option<OAuthLogin>,
    is_new: bool,
    times_shown: u64,
    login_end_reason: Option<String>,
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl OAuth {
    /// Credentials by these settings. Nothing is asked or read yet.
    pub fn new(settings: OAuthSettings) -> Self {
        let http =
            AuthHttp::new(settings.address_policy(), settings.insecure, settings.tracer.clone());
        Self { settings, http, state: Mutex::default() }
    }

    /// Logs in again, whether or not there is a login: a person through `browser`, a program by
    /// itself. `scopes` are requested in addition to those of the entry.
    pub async fn login(
        &self,
        browser: &dyn Browser,
        scopes: &[String],
    ) -> Result<LoginReport, Error> {
        let mut state = self.state.lock().await;
        let mut scopes =
            ScopeRequest { only: self.settings.scopes.clone(), additional: scopes.to_vec() };
        if !scopes.additional.is_empty() {
            // More is asked for: what was granted before stays granted.
            let before = self.stored_login().await?.and_then(|login| login.token);
            scopes.additional =
                union(&before.map(|token| token.asked).unwrap_or_default(), &scopes.additional);
        }
        self.obtain_token(&mut state, Some(browser), None, scopes).await?;
        let report = state.login.as_ref().and_then(OAuthLogin::report);
        report.ok_or_else(|| Error::internal("a login without a token"))
    }

    /// Forgets the tokens and registrations of this server; says how many logins there were.
    pub async fn logout(&self) -> Result<usize, Error> {
        let key = server_key(&self.settings.url);
        let mut count = 0;
        let mut state = self.state.lock().await;
        self.settings
            .vault
            .edit(&mut |logins| {
                count = logins.extract_if(.., |login| login.server == key).count();
            })
            .await?;
        *state = State { is_loaded: true, ..State::default() };
        Ok(count)
    }

    /// Reads the vault, the first time only.
    async fn load(&self, state: &mut State) -> Result<(), Error> {
        if state.is_loaded {
            return Ok(());
        }
        // Every request asks for the credentials, and this is large and happens once.
        match Box::pin(self.stored_login()).await {
            Ok(login) => self.set_login(state, login, false),
            Err(error) if self.settings.is_required => return Err(error),
            Err(error) => state.load_error = Some(error),
        }
        state.is_loaded = true;
        Ok(())
    }

    /// The login that is kept for this server, if the entry still means it.
    async fn stored_login(&self) -> Result<Option<OAuthLogin>, Error> {
        let OAuthGrant::Login { client_id, .. } = &self.settings.grant else { return Ok(None) };
        let key = server_key(&self.settings.url);
        let fits = |login: &OAuthLogin| {
            let issuer = self.settings.issuer.as_ref().is_none_or(|issuer| {
                issuer.as_str().trim_end_matches('/') == login.issuer.trim_end_matches('/')
            });
            let client = client_id.as_ref().is_none_or(|id| *id == login.client.id);
            login.server == key && login.token.is_some() && issuer && client
        };
        Ok(self.settings.vault.load().await?.into_iter().find(fits))
    }

    fn set_login(&self, state: &mut State, login: Option<OAuthLogin>, new: bool) {
        if let Some(login) = &login {
            let learn = |name: &str, value: Option<&String>| {
                if let Some(value) = value {
                    (self.settings.on_secret)(name, value);
                }
            };
            learn("client_secret", login.client.secret.as_ref());
            if let Some(token) = &login.token {
                learn("access_token", Some(&token.access));
                learn("refresh_token", token.refresh.as_ref());
            }
        }
        (state.login, state.is_new, state.times_shown) = (login, new, 0);
    }

    fn is_stale(&self, token: &OAuthToken) -> bool {
        let now = self.settings.clock.unix().saturating_add(RENEW_BEFORE_EXPIRY).as_secs();
        token.expires_at.is_some_and(|at| at <= now)
    }

    /// Renews the token that is held, unless another task or process just did. Leaves none
    /// behind when a person has to log in again.
    async fn renew(&self, state: &mut State, challenge: Option<&str>) -> Result<(), Error> {
        let Some(held) = state.login.clone() else { return Ok(()) };
        let turn = self.settings.vault.lock_renewal(&held.server).await?;
        let stored = self.stored_login().await?;
        if let Some(stored) = stored.filter(|stored| stored.token != held.token) {
            // Another task or process renewed the token first.
            self.set_login(state, Some(stored), false);
            return Ok(());
        }
        let renewed = match renew(&self.settings, &self.http, &held, challenge).await? {
            RenewalOutcome::Renewed(token) => {
                tracing::info!(server = held.server, "token renewed");
                OAuthLogin { token: Some(token), ..held }
            }
            RenewalOutcome::LoginRequired(why) => {
                tracing::warn!(server = held.server, "token not renewed, login required");
                state.login_end_reason = Some(why);
                OAuthLogin { token: None, ..held }
            }
        };
        self.store_login(&renewed).await?;
        drop(turn);
        self.set_login(state, Some(renewed).filter(|login| login.token.is_some()), true);
        Ok(())
    }

    async fn store_login(&self, login: &OAuthLogin) -> Result<(), Error> {
        self.settings.vault.edit(&mut |logins| insert_login(logins, login)).await
    }

    async fn obtain_token(
        &self,
        state: &mut State,
        browser: Option<&dyn Browser>,
        challenge: Option<&str>,
        scopes: ScopeRequest,
    ) -> Result<(), Error> {
        let new = match &self.settings.grant {
            OAuthGrant::Program { client_id, client_secret, token_url } => {
                let how = (client_id.as_str(), client_secret, token_url.as_ref());
                obtain_token(&self.settings, &self.http, how, challenge, scopes).await?
            }
            OAuthGrant::Login { client_id, client_secret, client_metadata } => {
                let Some(browser) = browser else {
                    return Err(Error::internal("a login that nobody can make"));
                };
                let identity = ClientIdentity {
                    id: client_id.as_deref(),
                    secret: client_secret.as_ref(),
                    metadata_url: client_metadata.as_ref(),
                };
                let new = login(&self.settings, &self.http, identity, challenge, scopes, browser);
                let new = new.await?;
                self.store_login(&new).await?;
                new
            }
        };
        state.login_end_reason = None;
        state.is_loaded = true;
        self.set_login(state, Some(new), true);
        Ok(())
    }

    /// Whether a new token can be obtained without a person.
    fn can_obtain_unattended(&self) -> bool {
        matches!(self.settings.grant, OAuthGrant::Program { .. }) || self.settings.browser.is_some()
    }

    async fn handle_unauthorized(
        &self,
        state: &mut State,
        challenge: &Challenge,
        text: Option<&str>,
    ) -> Result<ChallengeOutcome, Error> {
        let renewable =
            |login: &OAuthLogin| login.token.as_ref().is_some_and(|t| t.refresh.is_some());
        if challenge.authorization.is_some()
            && state.login.is_some()
            && state.is_new
            && state.times_shown <= 1
        {
            // It was new, and is not good enough: another one would not be.
            return Ok(ChallengeOutcome::Refused);
        }
        if challenge.authorization.is_some() && state.login.as_ref().is_some_and(renewable) {
            self.renew(state, text).await?;
            if state.login.is_some() {
                return Ok(ChallengeOutcome::Retry);
            }
        }
        if !self.can_obtain_unattended() {
            let trouble = state.load_error.clone();
            let over = state.login_end_reason.as_deref();
            return Err(trouble.unwrap_or_else(|| login_required(&self.settings, challenge, over)));
        }
        let scope = challenge_params(self, text).and_then(|params| params.scope);
        // The challenge decides, or the metadata does, unless something was written down.
        let only = self.settings.scopes.clone();
        let scopes = ScopeRequest { only, additional: scope_list(scope.as_deref()) };
        self.obtain_token(state, self.settings.browser.as_deref(), text, scopes).await?;
        Ok(ChallengeOutcome::Retry)
    }

    async fn handle_insufficient_scope(
        &self,
        state: &mut State,
        challenge: &Challenge,
        text: Option<&str>,
        required: Option<&str>,
    ) -> Result<ChallengeOutcome, Error> {
        let token = state.login.as_ref().and_then(|login| login.token.as_ref());
        let before = token.map(|token| union(&token.asked, &token.scopes)).unwrap_or_default();
        let scopes = union(&union(&before, &self.settings.scopes), &scope_list(required));
        if scopes.len() == before.len() {
            // Everything was asked for already.
            return Ok(ChallengeOutcome::Refused);
        }
        if !self.can_obtain_unattended() {
            return Err(scopes_required(&self.settings, challenge, &scope_list(required)));
        }
        let scopes = ScopeRequest { only: scopes, additional: Vec::new() };
        self.obtain_token(state, self.settings.browser.as_deref(), text, scopes).await?;
        Ok(ChallengeOutcome::Retry)
    }
}

#[async_trait]
impl Credentials for OAuth {
    async fn authorization(&self) -> Result<Option<SecretString>, Error> {
        let mut state = self.state.lock().await;
        self.load(&mut state).await?;
        let stale =
            state.login.as_ref().and_then(|l| l.token.as_ref()).is_some_and(|t| self.is_stale(t));
        if stale {
            match &self.settings.grant {
                OAuthGrant::Program { .. } => state.login = None,
                OAuthGrant::Login { .. } => Box::pin(self.renew(&mut state, None)).await?,
            }
        }
        let token = state.login.as_ref().and_then(|login| login.token.as_ref());
        let authorization = token.map(|token| bearer_header(&token.access));
        state.times_shown += 1;
        Ok(authorization)
    }

    async fn handle_challenge(&self, challenge: Challenge) -> Result<ChallengeOutcome, Error> {
        let mut state = self.state.lock().await;
        let held = state.login.as_ref().and_then(|login| login.token.as_ref());
        if held.is_some_and(|token| !challenge.used_token(&token.access)) {
            // It was renewed while this request was on its way.
            return Ok(ChallengeOutcome::Retry);
        }
        let text = bearer_challenge(&challenge.www_authenticate);
        let params = challenge_params(self, text);
        match (challenge.status, &params) {
            (401, _) => self.handle_unauthorized(&mut state, &challenge, text).await,
            (403, Some(params)) if params.is_insufficient_scope() => {
                let required = params.scope.as_deref();
                self.handle_insufficient_scope(&mut state, &challenge, text, required).await
            }
            _ => Ok(ChallengeOutcome::Refused),
        }
    }

    fn always_sends_secret(&self) -> bool {
        self.settings.is_required
    }
}

fn bearer_challenge(values: &[String]) -> Option<&str> {
    let is_bearer = |value: &&String| {
        value.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"))
    };
    values.iter().find(is_bearer).or(values.first()).map(String::as_str)
}

fn challenge_params(oauth: &OAuth, text: Option<&str>) -> Option<WWWAuthenticateParams> {
    text.map(|text| WWWAuthenticateParams::parse(text, &oauth.settings.url))
}

fn scope_list(text: Option<&str>) -> Vec<String> {
    const MOST: usize = 100;
    text.unwrap_or_default().split_whitespace().take(MOST).map(str::to_owned).collect()
}
