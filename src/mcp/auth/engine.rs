//! The credentials of one server.
//!
//! Owns: [`OAuth`]: which token is shown, and what a refusal means — a renewal, a login, more
//! scopes, or the end. Never does: send anything itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::auth::WWWAuthenticateParams;
use secrecy::SecretString;
use tokio::sync::Mutex;

use super::discovery::{Scopes, union};
use super::dpop::ProofKey;
use super::fault::{login_wanted, more_wanted};
use super::http::AuthHttp;
use super::login::{Identity, login};
use super::program::program;
use super::renewal::{Renewal, renew};
use super::vault::{Login, Token, put, server_key};
use super::{Grant, Settings};
use crate::mcp::credentials::{Asked, Challenge, Credentials, Retry, Shown};
use crate::model::{Browser, Fault, LoginReport};

/// A token is renewed this long before it expires, so that it does not expire on its way.
const EARLY: Duration = Duration::from_secs(30);

/// OAuth for one server.
pub struct OAuth {
    settings: Settings,
    http: Arc<AuthHttp>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The vault was read.
    loaded: bool,
    /// Why it could not be.
    trouble: Option<Fault>,
    /// What is known of this server.
    login: Option<Login>,
    /// The token was got by this process.
    new: bool,
    /// How often it was shown.
    shown: u64,
    /// The key it is bound to.
    key: Option<ProofKey>,
    /// What the server wants to find in the next proof.
    nonce: Option<String>,
    /// Why there is no login any more.
    over: Option<String>,
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl OAuth {
    /// Credentials by these settings. Nothing is asked or read yet.
    pub fn new(settings: Settings) -> Self {
        let http = AuthHttp::new(settings.reach(), settings.insecure, settings.tracer.clone());
        Self { settings, http, state: Mutex::default() }
    }

    /// Logs in anew, whatever there was: a person through `browser`, a program by itself. `scopes`
    /// is asked for beside what the entry says.
    ///
    /// # Errors
    /// When there is no authorization server to trust, or it or the person says no.
    pub async fn login(
        &self,
        browser: &dyn Browser,
        scopes: &[String],
    ) -> Result<LoginReport, Fault> {
        let mut state = self.state.lock().await;
        let mut scopes = Scopes { only: self.settings.scopes.clone(), more: scopes.to_vec() };
        if !scopes.more.is_empty() {
            // More is asked for: what was granted before stays granted.
            let before = self.kept().await?.and_then(|login| login.token);
            scopes.more = union(&before.map(|token| token.asked).unwrap_or_default(), &scopes.more);
        }
        self.begin(&mut state, Some(browser), None, scopes).await?;
        let report = state.login.as_ref().and_then(Login::report);
        report.ok_or_else(|| Fault::internal("a login without a token"))
    }

    /// Forgets the tokens and registrations of this server; says how many logins there were.
    ///
    /// # Errors
    /// When what is kept cannot be changed.
    pub async fn logout(&self) -> Result<usize, Fault> {
        let key = server_key(&self.settings.url);
        let mut gone = 0;
        let mut state = self.state.lock().await;
        self.settings
            .vault
            .change(&mut |logins| {
                gone = logins.extract_if(.., |kept| kept.server == key).count();
            })
            .await?;
        *state = State { loaded: true, ..State::default() };
        Ok(gone)
    }

    /// Reads the vault, once.
    async fn load(&self, state: &mut State) -> Result<(), Fault> {
        if state.loaded {
            return Ok(());
        }
        match self.kept().await {
            Ok(login) => self.hold(state, login, false),
            Err(fault) if self.settings.required => return Err(fault),
            Err(fault) => state.trouble = Some(fault),
        }
        state.loaded = true;
        Ok(())
    }

    /// The login that is kept for this server, if the entry still means it.
    async fn kept(&self) -> Result<Option<Login>, Fault> {
        let Grant::Login { client_id, .. } = &self.settings.grant else { return Ok(None) };
        let key = server_key(&self.settings.url);
        let fits = |kept: &Login| {
            let issuer = self.settings.issuer.as_ref().is_none_or(|issuer| {
                issuer.as_str().trim_end_matches('/') == kept.issuer.trim_end_matches('/')
            });
            let client = client_id.as_ref().is_none_or(|id| *id == kept.client.id);
            kept.server == key && kept.token.is_some() && issuer && client
        };
        Ok(self.settings.vault.load().await?.into_iter().find(fits))
    }

    fn hold(&self, state: &mut State, login: Option<Login>, new: bool) {
        if let Some(login) = &login {
            let learn = |name: &str, value: Option<&String>| {
                if let Some(value) = value {
                    (self.settings.learn)(name, value);
                }
            };
            learn("client_secret", login.client.secret.as_ref());
            if let Some(token) = &login.token {
                learn("access_token", Some(&token.access));
                learn("refresh_token", token.refresh.as_ref());
                learn("dpop_key", token.key.as_ref());
            }
        }
        let token = login.as_ref().and_then(|login| login.token.as_ref());
        state.key = token.and_then(|token| ProofKey::restore(token.key.as_deref()?));
        (state.login, state.new, state.shown) = (login, new, 0);
    }

    fn is_stale(&self, token: &Token) -> bool {
        let now = self.settings.clock.unix().saturating_add(EARLY).as_secs();
        token.expires_at.is_some_and(|at| at <= now)
    }

    /// Renews the token that is held, unless somebody else just did. Leaves none behind when a
    /// person has to log in again.
    async fn renew(&self, state: &mut State, challenge: Option<&str>) -> Result<(), Fault> {
        let Some(held) = state.login.clone() else { return Ok(()) };
        let turn = self.settings.vault.turn(&held.server).await?;
        let kept = self.kept().await?;
        if let Some(kept) = kept.filter(|kept| kept.token != held.token) {
            // Somebody was faster.
            self.hold(state, Some(kept), false);
            return Ok(());
        }
        let renewed = match renew(&self.settings, &self.http, &held, challenge).await? {
            Renewal::Renewed(token) => Login { token: Some(token), ..held },
            Renewal::Over(why) => {
                state.over = Some(why);
                Login { token: None, ..held }
            }
        };
        self.keep(&renewed).await?;
        drop(turn);
        self.hold(state, Some(renewed).filter(|login| login.token.is_some()), true);
        Ok(())
    }

    async fn keep(&self, login: &Login) -> Result<(), Fault> {
        self.settings.vault.change(&mut |logins| put(logins, login)).await
    }

    /// Gets a new token, for a program or with the help of a person.
    async fn begin(
        &self,
        state: &mut State,
        browser: Option<&dyn Browser>,
        challenge: Option<&str>,
        scopes: Scopes,
    ) -> Result<(), Fault> {
        let new = match &self.settings.grant {
            Grant::Program { client_id, proof, token_url } => {
                let how = (client_id.as_str(), proof, token_url.as_ref());
                program(&self.settings, &self.http, how, challenge, scopes).await?
            }
            Grant::Login { client_id, client_secret, client_metadata } => {
                let Some(browser) = browser else {
                    return Err(Fault::internal("a login that nobody can make"));
                };
                let identity = Identity {
                    id: client_id.as_deref(),
                    secret: client_secret.as_ref(),
                    document: client_metadata.as_ref(),
                };
                let new = login(&self.settings, &self.http, identity, challenge, scopes, browser);
                let new = new.await?;
                self.keep(&new).await?;
                new
            }
        };
        state.over = None;
        state.loaded = true;
        self.hold(state, Some(new), true);
        Ok(())
    }

    /// Whether a new token can be had without anybody else.
    fn can_begin(&self) -> bool {
        matches!(self.settings.grant, Grant::Program { .. }) || self.settings.browser.is_some()
    }

    async fn unauthorized(
        &self,
        state: &mut State,
        challenge: &Challenge,
        text: Option<&str>,
    ) -> Result<Retry, Fault> {
        let renewable = |login: &Login| login.token.as_ref().is_some_and(|t| t.refresh.is_some());
        if challenge.shown.is_some() && state.login.is_some() && state.new && state.shown <= 1 {
            // It was new, and is not good enough: another one would not be.
            return Ok(Retry::No);
        }
        if challenge.shown.is_some() && state.login.as_ref().is_some_and(renewable) {
            self.renew(state, text).await?;
            if state.login.is_some() {
                return Ok(Retry::Again);
            }
        }
        if !self.can_begin() {
            let trouble = state.trouble.clone();
            let over = state.over.as_deref();
            return Err(trouble.unwrap_or_else(|| login_wanted(&self.settings, challenge, over)));
        }
        let asked = params(self, text).and_then(|params| params.scope);
        // The challenge decides, or the metadata does, unless something was written down.
        let only = self.settings.scopes.clone();
        let scopes = Scopes { only, more: words(asked.as_deref()) };
        self.begin(state, self.settings.browser.as_deref(), text, scopes).await?;
        Ok(Retry::Again)
    }

    async fn insufficient(
        &self,
        state: &mut State,
        challenge: &Challenge,
        text: Option<&str>,
        wanted: Option<&str>,
    ) -> Result<Retry, Fault> {
        let token = state.login.as_ref().and_then(|login| login.token.as_ref());
        let before = token.map(|token| union(&token.asked, &token.scopes)).unwrap_or_default();
        let scopes = union(&union(&before, &self.settings.scopes), &words(wanted));
        if scopes.len() == before.len() {
            // Everything was asked for already.
            return Ok(Retry::No);
        }
        if !self.can_begin() {
            return Err(more_wanted(&self.settings, challenge, &words(wanted)));
        }
        let scopes = Scopes { only: scopes, more: Vec::new() };
        self.begin(state, self.settings.browser.as_deref(), text, scopes).await?;
        Ok(Retry::Again)
    }
}

#[async_trait]
impl Credentials for OAuth {
    async fn show(&self, asked: Asked<'_>) -> Result<Option<Shown>, Fault> {
        let mut state = self.state.lock().await;
        self.load(&mut state).await?;
        let stale =
            state.login.as_ref().and_then(|l| l.token.as_ref()).is_some_and(|t| self.is_stale(t));
        if stale {
            match &self.settings.grant {
                Grant::Program { .. } => state.login = None,
                Grant::Login { .. } => self.renew(&mut state, None).await?,
            }
        }
        let token = state.login.as_ref().and_then(|login| login.token.as_ref());
        let shown = match (token, &state.key) {
            (None, _) => None,
            (Some(token), None) => Some(Shown::bearer(&SecretString::from(token.access.clone()))),
            (Some(token), Some(key)) => {
                let now = self.settings.clock.unix().as_secs();
                let with = (state.nonce.as_deref(), Some(token.access.as_str()));
                let proof = key.proof(asked.method, asked.url, with, now)?;
                let authorization = SecretString::from(format!("DPoP {}", token.access));
                Some(Shown { authorization, proof: Some(proof) })
            }
        };
        state.shown += 1;
        Ok(shown)
    }

    async fn challenged(&self, challenge: Challenge) -> Result<Retry, Fault> {
        let mut state = self.state.lock().await;
        let held = state.login.as_ref().and_then(|login| login.token.as_ref());
        if held.is_some_and(|token| !challenge.shows(&token.access)) {
            // It was renewed while this request was on its way.
            return Ok(Retry::Again);
        }
        if challenge.status == 401
            && state.key.is_some()
            && challenge.nonce.is_some()
            && challenge.nonce != state.nonce
        {
            state.nonce = challenge.nonce;
            return Ok(Retry::Again);
        }
        let text = bearer(&challenge.www_authenticate);
        let params = params(self, text);
        match (challenge.status, &params) {
            (401, _) => self.unauthorized(&mut state, &challenge, text).await,
            (403, Some(params)) if params.is_insufficient_scope() => {
                let wanted = params.scope.as_deref();
                self.insufficient(&mut state, &challenge, text, wanted).await
            }
            _ => Ok(Retry::No),
        }
    }

    fn always(&self) -> bool {
        self.settings.required
    }
}

/// The challenge that speaks of tokens.
fn bearer(values: &[String]) -> Option<&str> {
    let is_bearer = |value: &&String| {
        value.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"))
    };
    values.iter().find(is_bearer).or(values.first()).map(String::as_str)
}

fn params(oauth: &OAuth, text: Option<&str>) -> Option<WWWAuthenticateParams> {
    text.map(|text| WWWAuthenticateParams::parse(text, &oauth.settings.url))
}

fn words(text: Option<&str>) -> Vec<String> {
    /// More scopes than anybody has.
    const MOST: usize = 100;
    text.unwrap_or_default().split_whitespace().take(MOST).map(str::to_owned).collect()
}
