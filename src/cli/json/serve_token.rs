//! The JSON of `serve token`.

use crate::util::shape::shape;
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

shape! {
    /// A token, without its secret.
    pub IssuedTokenJson<'a> of (token, now): (&'a IssuedToken, Duration), with {
        let time = |at: u64| {
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            Timestamp::from_second(at).unwrap_or(Timestamp::MAX).to_string()
        };
    } {
        /// The name used to revoke it.
        id: &'a str = &token.id,
        /// The client it was issued to.
        client: &'a str = &token.client,
        /// The profile the client is bound to; null when there is none.
        profile: Option<&'a str> = token.profile.as_deref(),
        /// Patterns of the tools the client may use; empty allows all.
        tools: &'a [String] = &token.tools,
        /// When it was issued (RFC 3339).
        issued_at: String = time(token.issued),
        /// When it expires (RFC 3339).
        expires_at: String = time(token.expires),
        /// Whether it has expired.
        expired: bool = token.is_expired(now),
    }
}

impl<'a> TokenListJson<'a> {
    /// The JSON of these tokens; `now` is the time since the Unix epoch.
    pub fn new(tokens: &'a [IssuedToken], now: Duration) -> Self {
        Self { tokens: tokens.iter().map(|token| (token, now).into()).collect() }
    }
}

impl<'a> NewTokenJson<'a> {
    pub fn new(token: &'a str, issued: &'a IssuedToken) -> Self {
        let now = Duration::from_secs(issued.issued);
        Self { token, issued: (issued, now).into() }
    }
}
