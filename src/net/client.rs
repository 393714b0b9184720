//! The shared HTTP client.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Certificate, ClientBuilder, Identity, Method};
use secrecy::ExposeSecret as _;
use url::Url;

use super::address::{self, is_link_local, is_loopback, is_public};
use super::errors::{self, NoSuchHost, Place, RefusedAddress};
use super::posted_body::PostedBody;
use super::response::OriginResponse;
use crate::model::{Error, ErrorPhase};
use crate::util::tls::TlsPem;

/// Idle connections are dropped before the 5 s after which common servers close theirs, so that
/// a call does not meet a connection that is just being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
const USER_AGENT: &str = concat!("toolhost/", env!("CARGO_PKG_VERSION"));
const HEADER_LINES: usize = 100;

#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// Bounds name lookup, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Certificates are not checked. Never from a file.
    pub insecure: bool,
    /// Whether a name may lead to a link-local address (see [`is_link_local`]).
    pub allows_link_local: bool,
    /// Whether a name may only lead to public addresses (see [`is_public`]): the rule for addresses
    /// that a server named.
    pub requires_public: bool,
    pub tls: TlsPem,
}

#[derive(Debug, Clone)]
pub struct HttpClient {
    client: reqwest::Client,
    socket: Option<PathBuf>,
    connect_timeout: Duration,
}

impl HttpClient {
    /// A client for the origin of `url`, or for what listens at `socket` in its place; `headers` go
    /// with every request.
    pub fn new(
        url: &Url,
        socket: Option<PathBuf>,
        settings: &ClientSettings,
        headers: HeaderMap,
    ) -> Result<Self, Error> {
        let mut builder = builder(url, settings, headers);
        if let Some(socket) = &socket {
            builder = builder.unix_socket(socket.as_path());
        }
        let client = with_certificates(builder, &settings.tls).and_then(ClientBuilder::build);
        let client = client.map_err(|error| {
            let causes = errors::causes(&error);
            Error::unreachable("the HTTP client cannot be set up")
                .with_phase(ErrorPhase::Start)
                .with_details(causes)
                .with_hint("are the system's certificate authorities installed?")
        })?;
        Ok(Self { client, socket, connect_timeout: settings.connect_timeout })
    }

    /// Sends a request to a URL of the origin, and waits for the head of its response. Of a header that
    /// every request has, the one in `headers` counts.
    pub async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: &HeaderMap,
        body: Option<PostedBody>,
    ) -> Result<OriginResponse, Error> {
        let mut request = self.client.request(method, url.clone()).headers(headers.clone());
        if let Some(body) = body {
            request = request.body(reqwest::Body::wrap(body));
        }
        let response = request.send().await.map_err(|cause| {
            let place = Place { url, socket: self.socket.as_deref() };
            errors::no_response(&cause, &place, self.connect_timeout)
        })?;
        Ok(OriginResponse::new(response, url.clone()))
    }
}

fn builder(url: &Url, settings: &ClientSettings, headers: HeaderMap) -> ClientBuilder {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // This fails when another thread installed it first, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
    }
    let mut builder = reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .default_headers(headers)
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .http1_only()
        .http1_max_headers(HEADER_LINES)
        .tcp_nodelay(true)
        .dns_resolver(Arc::new(SystemResolver {
            allows_link_local: settings.allows_link_local,
            requires_public: settings.requires_public,
        }));
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // No TLS is spoken (a redirect to https is another origin): load no certificates.
        builder = builder.tls_certs_only([]);
    } else if settings.insecure {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    builder
}

fn with_certificates(
    mut builder: ClientBuilder,
    tls: &TlsPem,
) -> Result<ClientBuilder, reqwest::Error> {
    if let Some(identity) = &tls.identity {
        builder = builder.identity(Identity::from_pem(identity.expose_secret().as_bytes())?);
    }
    if let Some(authorities) = &tls.authorities {
        builder = builder.tls_certs_only(Certificate::from_pem_bundle(authorities.as_bytes())?);
    }
    Ok(builder)
}

/// The system's name lookup, with errors that can be recognised. What it lets through is what is
/// connected to, so a name cannot change its mind in between.
struct SystemResolver {
    allows_link_local: bool,
    requires_public: bool,
}

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (link_local, public) = (self.allows_link_local, self.requires_public);
        Box::pin(async move {
            let addresses = address::addresses(name.as_str(), 0).await;
            let addresses = addresses.map_err(|error| NoSuchHost { reason: error.to_string() })?;
            let allowed = allowed(addresses.into_iter(), link_local, public)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Those of the addresses of a name that may be asked.
fn allowed(
    addresses: impl Iterator<Item = SocketAddr>,
    link_local: bool,
    public: bool,
) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
    let (refused, allowed): (Vec<_>, Vec<_>) = addresses.partition(|address| {
        let ip = address.ip();
        (!link_local && is_link_local(ip)) || (public && !is_public(ip))
    });
    match refused.first() {
        Some(address) if allowed.is_empty() => Err(RefusedAddress(address.ip()).into()),
        _ => Ok(allowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::test_server::{TestResponse, TestServer};

    const SETTINGS: ClientSettings = ClientSettings {
        tls: TlsPem { identity: None, authorities: None },
        connect_timeout: Duration::from_secs(5),
        insecure: false,
        allows_link_local: false,
        requires_public: false,
    };

    #[test]
    fn what_a_name_leads_to_is_judged_and_not_the_name() {
        let judged = |ips: &[&str], link_local, public| {
            let addresses = ips.iter().map(|ip| SocketAddr::new(ip.parse().unwrap(), 80));
            allowed(addresses, link_local, public).map(|left| left.len()).map_err(|e| e.to_string())
        };
        let metadata = "169.254.169.254";
        assert_eq!(
            judged(&[metadata], false, false).unwrap_err(),
            format!("{metadata} is a link-local address")
        );
        assert_eq!(judged(&[metadata, "fd00:ec2::254", "10.0.0.1"], false, false), Ok(1));
        assert_eq!(judged(&[metadata], true, false), Ok(1));
        assert_eq!(
            judged(&["10.0.0.1"], false, true).unwrap_err(),
            "10.0.0.1 is a private address"
        );
        assert_eq!(judged(&["127.0.0.1", "8.8.8.8", "::1"], false, true), Ok(1));
        assert_eq!(
            judged(&[metadata, "127.0.0.1"], true, true).unwrap_err(),
            format!("{metadata} is a link-local address")
        );
        assert_eq!(judged(&["10.0.0.1", "127.0.0.1"], false, false), Ok(2));
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_not_asked_as_a_public_one() {
        let peer = TestServer::start(|_, _| TestResponse::accepted()).await;
        let mut url = peer.url("/");
        url.set_host(Some("localhost")).unwrap();
        let send_with = async |settings: ClientSettings| {
            let client = HttpClient::new(&url, None, &settings, HeaderMap::new())?;
            client.send(Method::GET, &url, &HeaderMap::new(), None).await
        };
        let refused = send_with(ClientSettings { requires_public: true, ..SETTINGS }).await;
        let refused = refused.err().unwrap();
        assert!(refused.message().contains("is the private address"), "{refused}");
        assert!(peer.requests().is_empty());
        assert!(send_with(SETTINGS).await.is_ok());
        assert_eq!(peer.requests().len(), 1);
    }
}
