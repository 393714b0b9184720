//! Access tokens that are signed JWTs (RFC 7519, RFC 9068).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::signature::{JsonWebKey, TokenAlgorithm};
use crate::host::request::check_user;

/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 << 10;
/// How far the clocks of the issuer and of this machine may be apart.
const LEEWAY: Duration = Duration::from_mins(1);
/// The types of a token; one without a type is taken too.
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// A token that was read, and not checked yet.
pub struct UncheckedToken<'a> {
    pub(super) key_id: Option<String>,
    algorithm: TokenAlgorithm,
    signed: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct TokenClaims {
    pub(super) subject: String,
    pub(super) client: String,
    pub(super) scopes: Vec<String>,
    pub(super) expires: Duration,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: TokenAlgorithm,
    kid: Option<String>,
    typ: Option<String>,
    /// Extensions that have to be understood; none is.
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct RawClaims {
    iss: String,
    aud: OneOrMore,
    exp: f64,
    nbf: Option<f64>,
    sub: Option<String>,
    client_id: Option<String>,
    // Other spellings of the same, by OpenID Connect, Okta and Entra.
    azp: Option<String>,
    cid: Option<String>,
    appid: Option<String>,
    scope: Option<OneOrMore>,
    scp: Option<OneOrMore>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    fn words(self) -> Vec<String> {
        match self {
            Self::One(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
            Self::More(all) => all,
        }
    }

    fn has(&self, audiences: &[String]) -> bool {
        match self {
            Self::One(text) => audiences.contains(text),
            Self::More(all) => all.iter().any(|text| audiences.contains(text)),
        }
    }
}

impl<'a> UncheckedToken<'a> {
    /// Reads a token; `None` when it is none, or signed in a way that is not taken.
    pub fn read(token: &'a str) -> Option<Self> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.').filter(|(_, rest)| !rest.contains('.'))?;
        let header: TokenHeader = parse(header)?;
        let has_type = |kind: &String| TYPES.contains(&kind.to_ascii_lowercase().as_str());
        if header.crit.is_some() || !header.typ.as_ref().is_none_or(has_type) {
            return None;
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(Self { key_id: header.kid, algorithm: header.alg, signed, claims, signature })
    }

    pub fn is_key_known(&self, keys: &[JsonWebKey]) -> bool {
        self.key_id.is_none() || keys.iter().any(|key| key.kid == self.key_id)
    }

    /// The claims, when one of `keys` signed them, `issuer` made them for one of `audiences`, and
    /// they hold at `now`, since the Unix epoch.
    pub fn check(
        &self,
        keys: &[JsonWebKey],
        issuer: &str,
        audiences: &[String],
        now: Duration,
    ) -> Option<TokenClaims> {
        let named = keys.iter().filter(|key| self.key_id.is_none() || key.kid == self.key_id);
        let mut named = named.take(super::MAX_KEYS);
        if !named.any(|key| key.verifies(self.algorithm, self.signed.as_bytes(), &self.signature)) {
            return None;
        }
        let claims: RawClaims = parse(self.claims)?;
        let expires = Duration::try_from_secs_f64(claims.exp).ok()?;
        let begins = Duration::try_from_secs_f64(claims.nbf.unwrap_or_default()).ok();
        let is_valid = claims.iss == issuer
            && claims.aud.has(audiences)
            && now < expires.saturating_add(LEEWAY)
            && begins? <= now.saturating_add(LEEWAY);
        // RFC 9068 requires both, and without them nothing tells one client from another.
        let client = claims.client_id.or(claims.azp).or(claims.cid).or(claims.appid);
        let subject = claims.sub.filter(|subject| check_user(subject).is_ok())?;
        let client = client.filter(|client| !client.is_empty())?;
        is_valid.then(|| TokenClaims {
            subject,
            client,
            scopes: claims.scope.or(claims.scp).map(OneOrMore::words).unwrap_or_default(),
            expires: expires.saturating_add(LEEWAY),
        })
    }
}

fn parse<T: DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
