//! The authorization server whose tokens are accepted.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Deserialize;
use tokio::sync::watch;
use url::Url;

use super::{JsonWebKey, JsonWebKeys};
use crate::model::Error;
use crate::net::address::is_loopback;
use crate::net::response;
use crate::util::clock::{Clock, SystemClock};
use crate::util::lock::lock;

const KEYS_FRESH: Duration = Duration::from_mins(15);
/// The keys of a server that does not answer any more are used no longer than this.
const KEYS_KEPT: Duration = Duration::from_hours(6);
/// Minimum time between two requests for the keys, whichever tokens arrive.
const ASK_AGAIN: Duration = Duration::from_secs(10);

pub(super) struct TokenIssuer {
    pub(super) name: String,
    url: Url,
    cache: Mutex<KeyCache>,
    /// Hears when asking for the keys came to an end.
    refreshed: watch::Sender<()>,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct KeyCache {
    keys: Arc<Vec<JsonWebKey>>,
    fetched: Option<Instant>,
    asked: Option<Instant>,
    is_fetching: bool,
}

impl KeyCache {
    fn usable(&self, now: Instant) -> Option<&Arc<Vec<JsonWebKey>>> {
        is_within(self.fetched, KEYS_KEPT, now).then_some(&self.keys)
    }
}

fn is_within(at: Option<Instant>, time: Duration, now: Instant) -> bool {
    at.is_some_and(|at| now.saturating_duration_since(at) < time)
}

#[derive(Deserialize)]
struct IssuerMetadata {
    issuer: String,
    jwks_uri: Url,
}

impl TokenIssuer {
    /// The issuer with this URL. Nothing is asked before the first token comes.
    pub(super) fn new(name: &str) -> Result<Self, Error> {
        let refuse = |why: &str| Error::usage(format!("'{name}' is not an issuer: {why}"));
        let url: Url = name.parse().map_err(|error| refuse(&format!("{error}")))?;
        if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
            return Err(refuse("it must use https, unless it is on this machine"));
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return Err(refuse("it has a query, a fragment or a user"));
        }
        let (cache, refreshed) = (Mutex::default(), watch::Sender::new(()));
        Ok(Self { name: name.to_owned(), url, cache, refreshed, clock: Arc::new(SystemClock) })
    }

    /// The keys; `None` when there are none, of which the log says why. They are asked for again when
    /// they are old or `is_enough` says that one is missing, but not in quick succession. Only who has
    /// no use for those that are here waits for that.
    pub(super) async fn keys(
        self: &Arc<Self>,
        is_enough: impl Fn(&[JsonWebKey]) -> bool,
    ) -> Option<Arc<Vec<JsonWebKey>>> {
        let mut refreshed = self.refreshed.subscribe();
        let is_usable = {
            let mut cache = lock(&self.cache);
            let now = self.clock.now();
            let is_usable = cache.usable(now).is_some_and(|keys| is_enough(keys));
            let is_fresh = is_usable && is_within(cache.fetched, KEYS_FRESH, now);
            if !is_fresh && !cache.is_fetching && !is_within(cache.asked, ASK_AGAIN, now) {
                cache.is_fetching = true;
                let issuer = Arc::clone(self);
                tokio::spawn(async move { issuer.refresh().await });
            }
            is_usable || !cache.is_fetching
        };
        if !is_usable {
            // The sender lives as long as this.
            let _fetched = refreshed.changed().await;
        }
        lock(&self.cache).usable(self.clock.now()).cloned()
    }

    async fn refresh(&self) {
        let fetched = self.fetch().await;
        let now = self.clock.now();
        let mut cache = lock(&self.cache);
        // Counted from the end: an issuer that takes long is not asked all the time.
        (cache.asked, cache.is_fetching) = (Some(now), false);
        match fetched {
            Ok(keys) => (cache.keys, cache.fetched) = (Arc::new(keys), Some(now)),
            Err(error) => {
                tracing::warn!(issuer = self.name, error = error.message(), "no keys");
            }
        }
        drop(cache);
        self.refreshed.send_replace(());
    }

    async fn fetch(&self) -> Result<Vec<JsonWebKey>, Error> {
        let mut failure = None;
        for place in self.metadata_places() {
            let metadata: IssuerMetadata = match response::json(&place, false).await {
                Ok(metadata) => metadata,
                Err(error) => {
                    failure.get_or_insert(error);
                    continue;
                }
            };
            if metadata.issuer != self.name {
                let message = format!("{} names a different issuer: {}", place, metadata.issuer);
                return Err(Error::auth(message));
            }
            // The issuer was written by the one who runs the server; what it names was not.
            let is_own = metadata.jwks_uri.origin() == self.url.origin();
            if !is_own && metadata.jwks_uri.scheme() != "https" {
                return Err(Error::denied("its keys are at another address, without https"));
            }
            let keys: JsonWebKeys = response::json(&metadata.jwks_uri, !is_own).await?;
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    struct SteppedClock(Instant, Mutex<Duration>);

    impl Clock for SteppedClock {
        fn now(&self) -> Instant {
            self.0 + *self.1.lock().unwrap()
        }

        fn unix(&self) -> Duration {
            *self.1.lock().unwrap()
        }
    }

    async fn issuer() -> (Arc<TokenIssuer>, TcpListener, Arc<SteppedClock>) {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let clock = Arc::new(SteppedClock(SystemClock.now(), Mutex::default()));
        let url = format!("http://{}", server.local_addr().unwrap());
        let issuer =
            TokenIssuer { clock: Arc::clone(&clock) as _, ..TokenIssuer::new(&url).unwrap() };
        (Arc::new(issuer), server, clock)
    }

    async fn request(server: &TcpListener) -> TcpStream {
        let mut stream = server.accept().await.unwrap().0;
        assert_ne!(stream.read(&mut [0; 2_048]).await.unwrap(), 0);
        stream
    }

    async fn answer(mut stream: TcpStream, body: &str) {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
        let text = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(text.as_bytes()).await.unwrap();
    }

    async fn answer_with_keys(issuer: &TokenIssuer, server: &TcpListener, key: &str) {
        let url = &issuer.name;
        let metadata = format!(r#"{{"issuer":"{url}","jwks_uri":"{url}/keys"}}"#);
        answer(request(server).await, &metadata).await;
        let keys = format!(r#"{{"keys":[{{"kty":"OKP","kid":"{key}"}}]}}"#);
        answer(request(server).await, &keys).await;
    }

    fn has(key: &'static str) -> impl Fn(&[JsonWebKey]) -> bool + Copy {
        move |keys| keys.iter().any(|jwk| jwk.kid.as_deref() == Some(key))
    }

    #[tokio::test]
    async fn a_silent_issuer_keeps_nobody_waiting_whose_key_is_known() {
        let (issuer, server, clock) = issuer().await;
        let first = issuer.keys(has("one"));
        let (first, ()) = tokio::join!(first, answer_with_keys(&issuer, &server, "one"));
        assert!(first.is_some());
        *clock.1.lock().unwrap() = ASK_AGAIN + Duration::from_secs(1);
        // A token that names a key of which nobody knows.
        let asking = Arc::clone(&issuer);
        let unknown = tokio::spawn(async move { asking.keys(has("forged")).await });
        let silent = request(&server).await;
        for _ in 0..3 {
            let keys = issuer.keys(has("one")).now_or_never();
            assert!(keys.is_some_and(|keys| keys.is_some()), "it waits for the issuer");
        }
        // Old keys are used while they are asked for again.
        *clock.1.lock().unwrap() = KEYS_FRESH * 2;
        assert!(issuer.keys(has("one")).now_or_never().is_some_and(|keys| keys.is_some()));
        assert!(!unknown.is_finished());
        drop(silent);
        answer_with_keys(&issuer, &server, "two").await;
        assert!(has("two")(&unknown.await.unwrap().unwrap()));
        // The next time is counted from that end.
        assert!(issuer.keys(has("forged")).now_or_never().is_some());
    }
}
