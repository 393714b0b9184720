//! The server as a protected resource of an OAuth authorization server: access tokens that are signed JWTs
//! (RFC 7519, RFC 9068), and the keys of an issuer (RFC 7517, RFC 7518).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use strum::AsRefStr;
use url::Url;

use super::access::AccessError;
use super::authentication::AuthenticatedClient;
use crate::host::request::check_user;
use crate::host::{ClientScope, ScopeProfile};
use crate::model::Error;
use crate::util::text::truncate;
use issuer::TokenIssuer;

mod issuer;

#[cfg(test)]
mod tests;

/// The path of the metadata; a resource with its own path has that path appended.
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// Maximum number of keys of an issuer to try.
const MAX_KEYS: usize = 64;
/// Maximum number of characters kept of a client's name.
const MAX_NAME: usize = 200;

#[derive(Debug, Clone)]
pub struct AcceptedScope {
    pub name: String,
    /// The profile that a client with this scope sees; `None` shows everything.
    pub profile: Option<String>,
}

/// A server whose tokens come from an authorization server.
pub struct ProtectedResource {
    issuer: Arc<TokenIssuer>,
    /// Where clients reach this server.
    url: Url,
    audiences: Vec<String>,
    scopes: Vec<AcceptedScope>,
}

impl ProtectedResource {
    /// A resource at `url` that takes tokens of `issuer` for one of `audiences`, and for its own
    /// URL when there are none. With `scopes` a token has to have one of them.
    pub fn new(
        issuer: &str,
        url: Url,
        audiences: Vec<String>,
        scopes: Vec<AcceptedScope>,
    ) -> Result<Self, Error> {
        let named = audiences.iter().filter_map(|text| text.parse::<Url>().ok());
        let url = named.into_iter().find(Url::has_host).unwrap_or(url);
        let audiences = if audiences.is_empty() { vec![url.to_string()] } else { audiences };
        Ok(Self { issuer: Arc::new(TokenIssuer::new(issuer)?), url, audiences, scopes })
    }

    /// Whose an access token is.
    pub(super) async fn authenticate(
        &self,
        token: &str,
        now: Duration,
    ) -> Result<AuthenticatedClient, AccessError> {
        let token = UncheckedToken::read(token).ok_or(AccessError::Token)?;
        let keys = self.issuer.keys(|keys| token.is_key_known(keys)).await;
        let keys = keys.ok_or(AccessError::Issuer)?;
        let claims = token.check(&keys, &self.issuer.name, &self.audiences, now);
        self.identity(claims.ok_or(AccessError::Token)?)
    }

    fn identity(&self, claims: TokenClaims) -> Result<AuthenticatedClient, AccessError> {
        let has = |scope: &&AcceptedScope| claims.scopes.contains(&scope.name);
        let granted: Vec<&AcceptedScope> = self.scopes.iter().filter(has).collect();
        if granted.is_empty() && !self.scopes.is_empty() {
            return Err(AccessError::Scope);
        }
        let profiles = |scope: &&AcceptedScope| {
            scope.profile.iter().cloned().map(ScopeProfile::Named).collect()
        };
        let mut views: Vec<Vec<ScopeProfile>> = granted.iter().map(profiles).collect();
        if views.is_empty() {
            views.push(Vec::new());
        }
        let TokenClaims { subject, client, expires, .. } = claims;
        // The same person with other scopes has separate sessions.
        let mut key = Sha256::new();
        for part in [&subject, &client].into_iter().chain(granted.iter().map(|scope| &scope.name)) {
            key.update(part.len().to_be_bytes());
            key.update(part);
        }
        let key = URL_SAFE_NO_PAD.encode(key.finalize());
        // Two clients may be shown alike; they are told apart by the key.
        let shown = if subject == client { client } else { format!("{subject} ({client})") };
        let client = truncate(&shown, MAX_NAME);
        let scope = ClientScope { client, user: Some(subject), views };
        let key = format!("oauth:{key}");
        Ok(AuthenticatedClient { key, scope, expires, is_issued_here: false })
    }

    pub(super) fn metadata(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(METADATA_PATH)?;
        let bare = |path: &str| path.trim_end_matches('/').to_owned();
        if !rest.is_empty() && bare(rest) != bare(self.url.path()) {
            return None;
        }
        // As RFC 9728 has it.
        let mut metadata = json!({
            "resource": self.url,
            "authorization_servers": [self.issuer.name],
            "bearer_methods_supported": ["header"],
            "resource_name": "toolhost",
        });
        if !self.scopes.is_empty() {
            metadata["scopes_supported"] = json!(self.scope_names());
        }
        Some(metadata.to_string())
    }

    pub(super) fn challenge(&self, error: AccessError, has_token: bool) -> String {
        let mut metadata = self.url.clone();
        metadata.set_query(None);
        metadata.set_path(&format!("{METADATA_PATH}{}", self.url.path().trim_end_matches('/')));
        let mut parts =
            vec!["realm=\"toolhost\"".to_owned(), format!("resource_metadata=\"{metadata}\"")];
        if !self.scopes.is_empty() {
            parts.push(format!("scope=\"{}\"", self.scope_names().join(" ")));
        }
        match error {
            AccessError::Scope => parts.push("error=\"insufficient_scope\"".to_owned()),
            _ if has_token => parts.push("error=\"invalid_token\"".to_owned()),
            _ => {}
        }
        format!("Bearer {}", parts.join(", "))
    }

    fn scope_names(&self) -> Vec<&str> {
        self.scopes.iter().map(|scope| scope.name.as_str()).collect()
    }
}

/// The algorithms a token may be signed with: no `none`, and nothing with a shared secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, AsRefStr)]
pub enum TokenAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

#[derive(Debug, Clone, Deserialize)]
pub struct JsonWebKey {
    kty: String,
    kid: Option<String>,
    /// The one algorithm it is for; absent allows all of its kind.
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct JsonWebKeys {
    keys: Vec<JsonWebKey>,
}

impl JsonWebKey {
    /// Whether this key signed `text` in this way.
    fn verifies(&self, algorithm: TokenAlgorithm, text: &[u8], signature: &[u8]) -> bool {
        self.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && self.alg.as_deref().is_none_or(|own| own == algorithm.as_ref())
            && self.check(algorithm, text, signature).is_some()
    }

    fn check(&self, algorithm: TokenAlgorithm, text: &[u8], signature: &[u8]) -> Option<()> {
        let rsa = |parameters: &'static RsaParameters| {
            let (n, e) = (decode(self.n.as_ref())?, decode(self.e.as_ref())?);
            let key = (self.kty == "RSA").then_some(RsaPublicKeyComponents { n, e })?;
            key.verify(parameters, text, signature).ok()
        };
        let curve = |name: &str, algorithm: &'static signature::EcdsaVerificationAlgorithm| {
            let (x, y) = (decode(self.x.as_ref())?, decode(self.y.as_ref())?);
            let is_fitting = self.kty == "EC" && self.crv.as_deref() == Some(name);
            let point = is_fitting.then(|| [&[4][..], &x, &y].concat())?;
            UnparsedPublicKey::new(algorithm, point).verify(text, signature).ok()
        };
        match algorithm {
            TokenAlgorithm::RS256 => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            TokenAlgorithm::RS384 => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            TokenAlgorithm::RS512 => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            TokenAlgorithm::PS256 => rsa(&signature::RSA_PSS_2048_8192_SHA256),
            TokenAlgorithm::PS384 => rsa(&signature::RSA_PSS_2048_8192_SHA384),
            TokenAlgorithm::PS512 => rsa(&signature::RSA_PSS_2048_8192_SHA512),
            TokenAlgorithm::ES256 => curve("P-256", &ECDSA_P256_SHA256_FIXED),
            TokenAlgorithm::ES384 => curve("P-384", &ECDSA_P384_SHA384_FIXED),
            TokenAlgorithm::EdDSA => {
                let is_fitting = self.kty == "OKP" && self.crv.as_deref() == Some("Ed25519");
                let key = is_fitting.then(|| decode(self.x.as_ref()))??;
                UnparsedPublicKey::new(&ED25519, key).verify(text, signature).ok()
            }
        }
    }
}

fn decode(text: Option<&String>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok()
}

/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 << 10;
/// How far the clocks of the issuer and of this machine may be apart.
const LEEWAY: Duration = Duration::from_mins(1);
/// The types of a token; one without a type is taken too.
const TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];

/// A token that was read, and not checked yet.
pub struct UncheckedToken<'a> {
    key_id: Option<String>,
    algorithm: TokenAlgorithm,
    signed: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct TokenClaims {
    subject: String,
    client: String,
    scopes: Vec<String>,
    expires: Duration,
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
        let mut named = named.take(MAX_KEYS);
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
