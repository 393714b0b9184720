//! The authorization server whose tokens are accepted.
//!
//! Owns: finding its keys (RFC 8414, OpenID Connect Discovery), caching them, and when to fetch them
//! again: when they are old, and when a token names an unknown key. Never does: check a token.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

use super::signature::{JsonWebKey, JsonWebKeys};
use crate::model::Error;
use crate::net::address::{display_url, is_loopback};
use crate::net::fetch;
use crate::util::clock::{Clock, SystemClock};

/// After this time the keys are asked for again.
const KEYS_FRESH: Duration = Duration::from_mins(15);
/// The keys of a server that does not answer any more are used no longer than this.
const KEYS_KEPT: Duration = Duration::from_hours(6);
/// Minimum time between two requests for the keys, whichever tokens arrive.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// An issuer of tokens, and its known keys.
pub(super) struct TokenIssuer {
    /// As its tokens have to name it.
    pub(super) name: String,
    url: Url,
    cache: Mutex<KeyCache>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct KeyCache {
    keys: Arc<Vec<JsonWebKey>>,
    fetched: Option<Instant>,
    asked: Option<Instant>,
}

#[derive(Deserialize)]
struct IssuerMetadata {
    issuer: String,
    jwks_uri: Url,
}

impl TokenIssuer {
    /// The issuer with this URL. Nothing is asked before the first token comes.
    ///
    /// # Errors
    /// A usage error for a URL that is neither `https` nor on this machine.
    pub(super) fn new(name: &str) -> Result<Self, Error> {
        let refuse = |why: &str| Error::usage(format!("'{name}' is not an issuer: {why}"));
        let url: Url = name.parse().map_err(|error| refuse(&format!("{error}")))?;
        if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
            return Err(refuse("it must use https, unless it is on this machine"));
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return Err(refuse("it has a query, a fragment or a user"));
        }
        let (cache, clock) = (Mutex::default(), Arc::new(SystemClock));
        Ok(Self { name: name.to_owned(), url, cache, clock })
    }

    /// The keys. They are asked for again when they are old or `is_enough` says that one is missing,
    /// but not in quick succession.
    ///
    /// # Errors
    /// When there are none: what asking ran into.
    pub(super) async fn keys(
        &self,
        is_enough: impl Fn(&[JsonWebKey]) -> bool,
    ) -> Result<Arc<Vec<JsonWebKey>>, Error> {
        // Held while they are asked for, so that requests at one time ask once.
        let mut cache = self.cache.lock().await;
        let now = self.clock.now();
        let is_within = |at: Option<Instant>, time: Duration| {
            at.is_some_and(|at| now.saturating_duration_since(at) < time)
        };
        let is_fresh = is_within(cache.fetched, KEYS_FRESH) && is_enough(&cache.keys);
        if !is_fresh && !is_within(cache.asked, ASK_AGAIN) {
            cache.asked = Some(now);
            match self.fetch().await {
                Ok(keys) => (cache.keys, cache.fetched) = (Arc::new(keys), Some(now)),
                Err(error) => {
                    tracing::warn!(issuer = self.name, error = error.message(), "no keys");
                }
            }
        }
        if is_within(cache.fetched, KEYS_KEPT) {
            return Ok(Arc::clone(&cache.keys));
        }
        Err(Error::unreachable(format!("the keys of {} are not known", display_url(&self.url))))
    }

    async fn fetch(&self) -> Result<Vec<JsonWebKey>, Error> {
        let mut failure = None;
        for place in self.metadata_places() {
            let metadata: IssuerMetadata = match fetch::json(&place, false).await {
                Ok(metadata) => metadata,
                Err(error) => {
                    failure.get_or_insert(error);
                    continue;
                }
            };
            if metadata.issuer != self.name {
                let words = format!("{} names a different issuer: {}", place, metadata.issuer);
                return Err(Error::auth(words));
            }
            // The issuer was written by the one who runs the server; what it names was not.
            let is_own = metadata.jwks_uri.origin() == self.url.origin();
            if !is_own && metadata.jwks_uri.scheme() != "https" {
                return Err(Error::denied("its keys are at another address, without https"));
            }
            let keys: JsonWebKeys = fetch::json(&metadata.jwks_uri, !is_own).await?;
            return Ok(keys.keys.into_iter().take(super::MAX_KEYS).collect());
        }
        Err(failure.unwrap_or_else(|| Error::auth("the issuer has no metadata")))
    }

    /// Where the metadata may be: RFC 8414 puts the well-known name before the path, OpenID Connect
    /// behind it.
    fn metadata_places(&self) -> Vec<Url> {
        let path = self.url.path().trim_end_matches('/');
        let places = [
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("{path}/.well-known/openid-configuration"),
        ];
        let at = |path: &String| {
            let mut url = self.url.clone();
            url.set_path(path);
            url
        };
        places.iter().map(at).collect()
    }
}
