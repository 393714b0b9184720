//! The HTTP client under the wire.
//!
//! Owns: how connections are made (name lookup, TLS, pool, no redirects of its own, no proxy for
//! this machine) and a request body that tells when it began to travel. Never does: know MCP.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use url::Url;

use super::target::{HttpTarget, is_loopback};
use crate::model::{Fault, Phase};

/// Idle connections are dropped before the 5 s after which common servers close theirs, so that
/// a call does not meet a connection that is just being closed.
const IDLE: Duration = Duration::from_secs(4);
/// Lines of response headers.
const HEADER_LINES: usize = 100;

/// A client for one target; `headers` go with every request.
pub(super) fn build(target: &HttpTarget, headers: HeaderMap) -> Result<reqwest::Client, Fault> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Failing means that somebody else was faster, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
    }
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("toolhost/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(target.limits.connect)
        .pool_idle_timeout(IDLE)
        .http1_only()
        .http1_max_headers(HEADER_LINES)
        .tcp_nodelay(true)
        .dns_resolver(Arc::new(SystemResolver));
    if is_loopback(&target.url) {
        builder = builder.no_proxy();
    }
    if target.url.scheme() == "http" {
        // No TLS is spoken (a redirect to https is another origin): load no certificates.
        builder = builder.tls_certs_only([]);
    } else if target.insecure {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    builder.build().map_err(|error| {
        let causes = super::trouble::causes(&error);
        Fault::unreachable("the HTTP client cannot be set up")
            .phase(Phase::Start)
            .details(causes)
            .hint("are the system's certificate authorities installed?")
    })
}

/// A host name has no address, or none could be asked for.
#[derive(Debug)]
pub(super) struct NoSuchHost {
    /// What the system said.
    pub reason: String,
}

impl fmt::Display for NoSuchHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for NoSuchHost {}

/// The system's name lookup, with an error that can be recognised.
struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await;
            let found = found.map_err(|error| NoSuchHost { reason: error.to_string() })?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

/// A request body of known length that calls back when it is first asked for, that is, when a
/// connection stands and the request's head has been written.
pub(super) struct Departing<F> {
    bytes: Option<Bytes>,
    departed: Option<F>,
}

impl<F: FnOnce() + Send + Sync + Unpin + 'static> Departing<F> {
    /// `bytes` as a body.
    pub(super) fn body(bytes: Bytes, departed: F) -> reqwest::Body {
        reqwest::Body::wrap(Self { bytes: Some(bytes), departed: Some(departed) })
    }
}

impl<F: FnOnce() + Unpin> Body for Departing<F> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(departed) = self.departed.take() {
            departed();
        }
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// Where a server without a path in its URL may be found as well.
pub(super) fn guess(url: &Url) -> Option<Url> {
    let bare = matches!(url.path(), "" | "/") && url.query().is_none();
    bare.then(|| {
        let mut guess = url.clone();
        guess.set_path("/mcp");
        guess
    })
}

#[cfg(test)]
mod tests {
    use super::guess;

    #[test]
    fn only_a_url_without_a_path_is_guessed_at() {
        let guess = |url: &str| guess(&url.parse().unwrap()).map(|url| url.to_string());
        assert_eq!(guess("http://localhost:8001"), Some("http://localhost:8001/mcp".to_owned()));
        assert_eq!(guess("http://localhost:8001/"), Some("http://localhost:8001/mcp".to_owned()));
        assert_eq!(guess("http://localhost:8001/api"), None);
        assert_eq!(guess("http://localhost:8001/?key=1"), None);
    }
}
