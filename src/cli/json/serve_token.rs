//! The JSON of `serve token`.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::serve::listen::token_store::IssuedToken;

/// The issued tokens; for `revoke` those that were revoked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TokenListJson<'a> {
    tokens: Vec<IssuedTokenJson<'a>>,
}

/// A token that was just issued.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NewTokenJson<'a> {
    /// The secret that the client sends. It is shown only once.
    token: &'a str,
    #[serde(flatten)]
    issued: IssuedTokenJson<'a>,
}

/// A token, without its secret.
#[derive(Debug, Serialize, JsonSchema)]
struct IssuedTokenJson<'a> {
    /// The name used to revoke it.
    id: &'a str,
    /// The client it was issued to.
    client: &'a str,
    /// The profile the client is bound to; null when there is none.
    profile: Option<&'a str>,
    /// Patterns of the tools the client may use; empty allows all.
    tools: &'a [String],
    /// When it was issued (RFC 3339).
    issued_at: String,
    /// When it expires (RFC 3339).
    expires_at: String,
    /// Whether it has expired.
    expired: bool,
}

impl<'a> IssuedTokenJson<'a> {
    fn new(token: &'a IssuedToken, now: Duration) -> Self {
        let time = |at: u64| {
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            Timestamp::from_second(at).unwrap_or(Timestamp::MAX).to_string()
        };
        Self {
            id: &token.id,
            client: &token.client,
            profile: token.profile.as_deref(),
            tools: &token.tools,
            issued_at: time(token.issued),
            expires_at: time(token.expires),
            expired: token.is_expired(now),
        }
    }
}

impl<'a> TokenListJson<'a> {
    /// The JSON of these tokens; `now` is the time since the Unix epoch.
    pub fn new(tokens: &'a [IssuedToken], now: Duration) -> Self {
        Self { tokens: tokens.iter().map(|token| IssuedTokenJson::new(token, now)).collect() }
    }
}

impl<'a> NewTokenJson<'a> {
    pub fn new(token: &'a str, issued: &'a IssuedToken) -> Self {
        let now = Duration::from_secs(issued.issued);
        Self { token, issued: IssuedTokenJson::new(issued, now) }
    }
}
