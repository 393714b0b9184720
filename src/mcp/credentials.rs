//! The port through which an HTTP transport obtains credentials.

use std::sync::Arc;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::model::Error;

/// A server's refusal of a request: 401 or 403.
#[derive(Debug, Clone)]
pub struct Challenge {
    pub status: u16,
    /// The values of `WWW-Authenticate`, at most five, as the server wrote them.
    pub www_authenticate: Vec<String>,
    pub url: Url,
    /// The `Authorization` that had been sent, if any.
    pub authorization: Option<SecretString>,
}

impl Challenge {
    pub fn used_token(&self, token: &str) -> bool {
        let shown = self.authorization.as_ref().map(SecretString::expose_secret);
        shown.and_then(|shown| shown.split_once(' ')).is_some_and(|(_, shown)| shown == token)
    }
}

/// What the caller does after a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChallengeOutcome {
    /// Nothing can be done: the refusal is the outcome.
    Refused,
    /// Something changed: the same request is worth sending again.
    Retry,
}

/// How a wire proves who it is. Asked before every request to the server's own origin and never
/// for another.
#[async_trait]
pub trait Credentials: Send + Sync + std::fmt::Debug {
    /// The whole value of `Authorization` of the next request, such as `Bearer xyz`; `None` sends
    /// it without.
    async fn authorization(&self) -> Result<Option<SecretString>, Error>;

    /// Hears a refusal. The wire asks at most three times for one request.
    async fn handle_challenge(&self, challenge: Challenge) -> Result<ChallengeOutcome, Error>;

    /// Whether a secret is sent from the first request on, so that a target reached in the clear
    /// is refused before anything is sent.
    fn always_sends_secret(&self) -> bool {
        true
    }
}

/// The token of the configuration, or none. A server that refuses it is not asked twice.
#[derive(Debug, Clone)]
struct FixedCredentials(Option<SecretString>);

#[async_trait]
impl Credentials for FixedCredentials {
    async fn authorization(&self) -> Result<Option<SecretString>, Error> {
        Ok(self.0.as_ref().map(|token| bearer_header(token.expose_secret())))
    }

    async fn handle_challenge(&self, _: Challenge) -> Result<ChallengeOutcome, Error> {
        Ok(ChallengeOutcome::Refused)
    }

    fn always_sends_secret(&self) -> bool {
        self.0.is_some()
    }
}

/// The value of `Authorization` with this token.
pub fn bearer_header(token: &str) -> SecretString {
    SecretString::from(format!("Bearer {token}"))
}

pub fn none() -> Arc<dyn Credentials> {
    Arc::new(FixedCredentials(None))
}

pub fn bearer(token: SecretString) -> Arc<dyn Credentials> {
    Arc::new(FixedCredentials(Some(token)))
}
