//! The JSON of `auth list` and `auth login`.

use crate::util::shape::shape;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::LoginReport;

/// The logins.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoginsJson<'a> {
    /// One for each address.
    pub logins: Vec<LoginJson<'a>>,
}

shape! {
    /// A login at a server's address.
    pub LoginJson<'a> of (names, login): (&'a [String], &'a LoginReport), with {
        let time = |at: u64| Timestamp::from_second(i64::try_from(at).ok()?).ok();
    } {
        /// The servers that use it.
        servers: &'a [String] = names,
        /// The address, without its query.
        url: &'a str = &login.url,
        /// The issuer of the token.
        issuer: &'a str = &login.issuer,
        /// The client ID at the issuer.
        client_id: &'a str = &login.client_id,
        /// The scopes that were granted.
        scopes: &'a [String] = &login.scopes,
        /// When the token expires (RFC 3339); null when that is unknown.
        expires_at: Option<String> = login.expires_at.and_then(time).map(|at| at.to_string()),
        /// Whether it is renewed without user interaction.
        renewable: bool = login.renewable,
    }
}
