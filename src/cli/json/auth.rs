//! The JSON of `auth list` and `auth login`.

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

/// A login at a server's address.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoginJson<'a> {
    /// The servers that use it.
    servers: &'a [String],
    /// The address, without its query.
    url: &'a str,
    /// The issuer of the token.
    issuer: &'a str,
    /// The client ID at the issuer.
    client_id: &'a str,
    /// The scopes that were granted.
    scopes: &'a [String],
    /// When the token expires (RFC 3339); null when that is unknown.
    expires_at: Option<String>,
    /// Whether it is renewed without user interaction.
    renewable: bool,
}

impl<'a> LoginJson<'a> {
    pub fn new(servers: &'a [String], login: &'a LoginReport) -> Self {
        let time = |at: u64| Timestamp::from_second(i64::try_from(at).ok()?).ok();
        Self {
            servers,
            url: &login.url,
            issuer: &login.issuer,
            client_id: &login.client_id,
            scopes: &login.scopes,
            expires_at: login.expires_at.and_then(time).map(|at| at.to_string()),
            renewable: login.renewable,
        }
    }
}
