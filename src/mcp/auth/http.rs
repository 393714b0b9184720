//! Requests to authorization servers.
//!
//! A server names its authorization server, and that names its endpoints: none of them is the
//! user's choice. So only `https` at public addresses is contacted, and the origins that the
//! user configured.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use tokio::time::timeout;
use url::Url;

use crate::mcp::tracer::Tracer;
use crate::mcp::transport::http::HeadTracer;
use crate::model::Error;
use crate::net::address::{
    display_url, host_and_port, is_link_local, is_loopback, is_public, literal_ip,
};
use crate::net::client::{ClientSettings, HttpClient};
use crate::net::errors;
use crate::net::posted_body::PostedBody;
use crate::net::redirect::{self, redirect, too_many_redirects};
use crate::net::response::{MAX_HEADER_BYTES, OriginResponse, check_headers, content_type};
use crate::util::tls::TlsPem;
use crate::util::units::show_duration;

/// Bytes of an answer. Metadata and tokens are a few KiB.
const RESPONSE_LIMIT: usize = 1 << 20;
/// One request, from the name lookup to the last byte.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_ORIGINS: usize = 16;

#[derive(Debug, Clone, Default)]
pub struct AddressPolicy {
    /// Addresses the user wrote down: their whole origins may be asked, wherever they lead.
    pub user_urls: Vec<Url>,
    /// A server on this machine may name other ports of this machine. Off by default: a server that
    /// was forwarded here could make toolhost contact any other local service.
    pub allows_any_local_port: bool,
}

impl AddressPolicy {
    /// Whether `url`, that a server named, may be asked or opened.
    pub fn permits(&self, url: &Url) -> Result<(), Error> {
        let refused = |why: &str| {
            Err(Error::denied(format!("{} is not asked: {why}", display_url(url))).with_hint(
                "if that is your authorization server, configure it: auth: { type: oauth, issuer: URL }",
            ))
        };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::denied(format!(
                "a server named a URL that is neither https nor http: {}",
                url.scheme()
            )));
        }
        if self.is_user_origin(url) || self.is_other_local_port(url) {
            return Ok(());
        }
        if url.scheme() != "https" {
            return refused("a server named it, and it is not https");
        }
        match literal_ip(url) {
            Some(ip) if is_link_local(ip) => Err(errors::refused_address(&host_and_port(url), ip)),
            Some(ip) if !is_public(ip) => refused("a server named it, and it is not public"),
            None if is_loopback(url) => refused("a server named it, and it is this machine"),
            _ => Ok(()),
        }
    }

    fn is_user_origin(&self, url: &Url) -> bool {
        self.user_urls.iter().any(|written| written.origin() == url.origin())
    }

    fn is_other_local_port(&self, url: &Url) -> bool {
        self.allows_any_local_port && is_loopback(url) && self.user_urls.iter().any(is_loopback)
    }
}

/// Asks authorization servers on behalf of one server.
pub struct AuthHttp {
    address_policy: AddressPolicy,
    insecure: bool,
    heads: HeadTracer,
    clients: Mutex<HashMap<String, HttpClient>>,
    /// Why the last request came to nothing; the SDK keeps only its text, or not even that.
    last_error: Mutex<Option<Error>>,
}

pub(super) struct AuthResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl AuthHttp {
    /// Contacts any address that `address_policy` permits. `insecure` accepts any certificate;
    /// `tracer` gets each exchange.
    pub(super) fn new(reach: AddressPolicy, insecure: bool, tracer: Tracer) -> Arc<Self> {
        let heads = HeadTracer::new(tracer, &HeaderMap::new());
        let (clients, trouble) = (Mutex::default(), Mutex::default());
        Arc::new(Self { address_policy: reach, insecure, heads, clients, last_error: trouble })
    }

    pub(super) fn address_policy(&self) -> &AddressPolicy {
        &self.address_policy
    }

    pub(super) fn take_last_error(&self) -> Option<Error> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn client(&self, url: &Url) -> Result<HttpClient, Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = url.origin().ascii_serialization();
        if let Some(client) = clients.get(&origin) {
            return Ok(client.clone());
        }
        if clients.len() == MAX_ORIGINS {
            return Err(Error::denied("too many different authorization servers are named"));
        }
        let client = HttpClient::new(url, None, &self.settings(url), HeaderMap::new())?;
        clients.insert(origin, client.clone());
        Ok(client)
    }

    /// How connections to `url` are made: where a server named it, only to public addresses.
    fn settings(&self, url: &Url) -> ClientSettings {
        let own =
            self.address_policy.is_user_origin(url) || self.address_policy.is_other_local_port(url);
        let insecure = self.insecure;
        ClientSettings {
            connect_timeout: CONNECT_TIMEOUT,
            insecure,
            allows_link_local: false,
            requires_public: !own,
            tls: TlsPem::default(),
        }
    }

    pub(super) async fn send(
        &self,
        method: Method,
        mut url: Url,
        mut headers: HeaderMap,
        body: Bytes,
        follow: bool,
    ) -> Result<AuthResponse, Error> {
        let place = host_and_port(&url);
        let exchange = async {
            headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
            for _ in 0..=redirect::MAX_REDIRECTS {
                self.address_policy.permits(&url)?;
                let client = self.client(&url)?;
                let posted = (!body.is_empty()).then(|| PostedBody::new(body.clone(), None));
                let sending = client.send(method.clone(), &url, &headers, posted);
                let response =
                    self.heads.trace_exchange(&method, &url, &headers, None, sending).await?;
                let OriginResponse { status, headers: response_headers, body: mut content, .. } =
                    response;
                check_headers(&response_headers, MAX_HEADER_BYTES)?;
                if follow && let Some(next) = redirect(status, &response_headers, &url, &method)? {
                    url = next;
                    continue;
                }
                let body = match content_type(&response_headers).as_str() {
                    // A server that was only looked at began to talk; nothing of that is asked for.
                    "text/event-stream" => Bytes::new(),
                    _ => content.whole(RESPONSE_LIMIT).await?,
                };
                // What was posted for may be a token, and a refusal says why there is none.
                if method == Method::GET || !status.is_success() {
                    self.heads.trace_non_message(&body, None);
                }
                return Ok(AuthResponse { status, headers: response_headers, body });
            }
            Err(too_many_redirects(&url))
        };
        let exchange = timeout(EXCHANGE_TIMEOUT, exchange).await.unwrap_or_else(|_| {
            let limit = show_duration(EXCHANGE_TIMEOUT);
            Err(Error::timeout(format!("no response from {place} within {limit}")))
        });
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) =
            exchange.as_ref().err().cloned();
        exchange
    }
}

impl OAuthHttpClient for AuthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let follow = request.redirect_policy == OAuthHttpRedirectPolicy::Follow;
            let (parts, body) = request.request.into_parts();
            let url = Url::parse(&parts.uri.to_string())?;
            let answer = self.send(parts.method, url, parts.headers, body.into(), follow);
            let answer = answer.await.map_err(|error| error.message().to_owned())?;
            let mut response = Response::new(answer.body.to_vec());
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            Ok(response)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ErrorKind, TrafficSink};
    use crate::net::test_server::{TestResponse, TestServer};

    fn reach(written: &str, any_local_port: bool) -> AddressPolicy {
        AddressPolicy {
            user_urls: vec![written.parse().unwrap()],
            allows_any_local_port: any_local_port,
        }
    }

    fn permits(reach: &AddressPolicy, url: &str) -> bool {
        reach.permits(&url.parse().unwrap()).is_ok()
    }

    #[test]
    fn what_a_server_names_is_public_and_encrypted() {
        let reach = reach("https://mcp.example.com/mcp", false);
        assert!(permits(&reach, "https://login.example.net/token"));
        assert!(permits(&reach, "https://8.8.8.8/token"));
        for url in [
            "http://login.example.net/token",
            "https://127.0.0.1/token",
            "https://localhost/token",
            "https://10.0.0.1/token",
            "https://[::ffff:10.0.0.1]/token",
            "https://169.254.169.254/latest",
            "http://mcp.example.com/mcp",
            "ftp://login.example.net/",
            "file:///etc/passwd",
            "javascript:alert(1)",
        ] {
            assert!(!permits(&reach, url), "{url}");
        }
    }

    #[test]
    fn what_the_user_wrote_may_be_anywhere() {
        let reach = reach("http://127.0.0.1:8000/mcp", false);
        assert!(permits(&reach, "http://127.0.0.1:8000/token"));
        assert!(!permits(&reach, "http://127.0.0.1:8001/token"));
        assert!(!permits(&reach, "https://127.0.0.1:8000/token"));
    }

    #[test]
    fn neighbouring_ports_need_a_word_and_a_server_that_is_here() {
        assert!(permits(&reach("http://localhost:1/mcp", true), "http://127.0.0.1:2/token"));
        let elsewhere = reach("https://mcp.example.com/", true);
        assert!(!permits(&elsewhere, "http://127.0.0.1:2/token"));
        assert!(!permits(&reach("http://localhost:1/mcp", true), "http://10.0.0.1/token"));
        assert!(!permits(&reach("http://localhost:1/mcp", true), "ftp://127.0.0.1:2/token"));
    }

    #[test]
    fn the_addresses_of_a_name_that_a_server_named_have_to_be_public() {
        let reach = reach("https://mcp.example.com/mcp", false);
        let http = AuthHttp::new(reach, false, Tracer::off());
        let settings = |url: &str| http.settings(&url.parse().unwrap());
        assert!(settings("https://login.example.net/token").requires_public);
        assert!(!settings("https://mcp.example.com/token").requires_public);
        assert!(!settings("https://login.example.net/token").allows_link_local);
    }

    async fn ask(
        peer: &TestServer,
        method: Method,
        path: &str,
        follow: bool,
        tracer: Tracer,
    ) -> Result<AuthResponse, Error> {
        let http = AuthHttp::new(reach(peer.url("/").as_str(), false), false, tracer);
        let outcome = http.send(method, peer.url(path), HeaderMap::new(), Bytes::new(), follow);
        let outcome = outcome.await;
        assert_eq!(outcome.is_err(), http.take_last_error().is_some());
        outcome
    }

    #[tokio::test]
    async fn answers_are_bounded_and_redirects_stay() {
        let peer = TestServer::start(|_, request| match request.path.as_str() {
            "/full" => TestResponse::full("200 OK", &[], "x".repeat(RESPONSE_LIMIT)),
            "/large" => TestResponse::full("200 OK", &[], "x".repeat(RESPONSE_LIMIT + 1)),
            "/there" => TestResponse::full("307 Temporary Redirect", &["Location: /ok"], ""),
            "/found" => TestResponse::full("302 Found", &["Location: /ok"], ""),
            "/away" => TestResponse::full(
                "307 Temporary Redirect",
                &["Location: https://evil.example/"],
                "",
            ),
            "/stream" => TestResponse::events("data: x\n\n"),
            _ => TestResponse::full("200 OK", &[], "fine"),
        })
        .await;
        let post = |path, follow| ask(&peer, Method::POST, path, follow, Tracer::off());
        assert_eq!(post("/full", false).await.unwrap().body.len(), RESPONSE_LIMIT);
        let error = post("/large", false).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert_eq!(post("/there", true).await.unwrap().body, "fine");
        assert_eq!(post("/there", false).await.unwrap().status, 307);
        for path in ["/away", "/found"] {
            let error = post(path, true).await.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Denied, "{path}");
        }
        let found = ask(&peer, Method::GET, "/found", true, Tracer::off()).await;
        assert_eq!(found.unwrap().body, "fine", "what asks for nothing is asked again");
        assert!(post("/stream", false).await.unwrap().body.is_empty());
    }

    #[tokio::test]
    async fn a_trace_has_metadata_and_refusals_and_no_token() {
        let peer = TestServer::start(|_, request| match request.path.as_str() {
            "/refused" => TestResponse::full("400 Bad Request", &[], "hunter2"),
            _ => TestResponse::full("200 OK", &[], "hunter2"),
        })
        .await;
        for (method, path, is_traced) in [
            (Method::GET, "/ok", true),
            (Method::GET, "/refused", true),
            (Method::POST, "/ok", false),
            (Method::POST, "/refused", true),
        ] {
            let traced: Arc<Mutex<Vec<String>>> = Arc::default();
            let sink = {
                let traced = Arc::clone(&traced);
                TrafficSink::new(move |traffic| {
                    traced.lock().unwrap().push(format!("{traffic:?}"));
                })
            };
            ask(&peer, method.clone(), path, false, Tracer::new("s", sink)).await.unwrap();
            let traced = traced.lock().unwrap().join("\n");
            assert!(traced.contains(path), "{traced}");
            assert_eq!(traced.contains("hunter2"), is_traced, "{method} {path}: {traced}");
        }
    }
}
