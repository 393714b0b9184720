//! Asking one origin, by the cheapest way that leads there.

use std::path::PathBuf;

use reqwest::Method;
use reqwest::header::HeaderMap;
use url::Url;

use super::address::is_loopback;
use super::client::{self, ClientSettings};
use super::dial::Dialer;
use super::errors;
use super::plain::PlainClient;
use super::posted_body::PostedBody;
use super::response::OriginResponse;
use crate::model::Error;

pub struct OriginClient {
    transport: OriginTransport,
    socket: Option<PathBuf>,
    settings: ClientSettings,
}

enum OriginTransport {
    Shared(reqwest::Client),
    Plain(Box<PlainClient>),
}

pub struct OriginRequest<'a> {
    pub method: Method,
    pub url: Url,
    /// Headers in addition to those of every request; for the same name, these win.
    pub headers: &'a HeaderMap,
    pub body: Option<PostedBody>,
}

impl OriginClient {
    /// A client for the origin of `url`, or for what listens at `socket` in its place; `headers` go
    /// with every request.
    pub fn new(
        url: &Url,
        socket: Option<PathBuf>,
        settings: ClientSettings,
        headers: HeaderMap,
    ) -> Result<Self, Error> {
        let names_user = !url.username().is_empty() || url.password().is_some();
        let is_here = socket.is_some() || (is_loopback(url) && !settings.requires_public);
        let transport = if url.scheme() == "http" && is_here && !names_user {
            let limit = settings.connect_timeout;
            let dialer = Dialer::new(url.clone(), socket.clone(), limit, settings.insecure)?;
            OriginTransport::Plain(Box::new(PlainClient::new(dialer, url, headers)))
        } else {
            OriginTransport::Shared(match &socket {
                Some(socket) => client::over_socket(socket, url, &settings, headers)?,
                None => client::build(url, &settings, headers)?,
            })
        };
        Ok(Self { transport, socket, settings })
    }

    pub async fn send(&self, request: OriginRequest<'_>) -> Result<OriginResponse, Error> {
        let OriginRequest { method, url, headers, body } = request;
        match &self.transport {
            OriginTransport::Plain(client) => {
                let response = client.send(method, &url, headers, body.unwrap_or_default()).await?;
                Ok(OriginResponse::from_plain(response, url))
            }
            OriginTransport::Shared(client) => {
                let mut request = client.request(method, url.clone()).headers(headers.clone());
                if let Some(body) = body {
                    request = request.body(reqwest::Body::wrap(body));
                }
                let limit = self.settings.connect_timeout;
                let response = request.send().await.map_err(|cause| match &self.socket {
                    Some(socket) => errors::no_response_over(&cause, socket, &url, limit),
                    None => errors::no_response(&cause, &url, limit),
                })?;
                Ok(OriginResponse::from_client(response, url))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_plain_http_on_this_machine_is_asked_over_connections_of_our_own() {
        let is_plain = |url: &str, socket: Option<&str>, requires_public| {
            let settings = ClientSettings {
                connect_timeout: Duration::from_secs(5),
                insecure: true,
                allows_link_local: true,
                requires_public,
            };
            let url = url.parse().unwrap();
            let client =
                OriginClient::new(&url, socket.map(Into::into), settings, HeaderMap::new());
            matches!(client.unwrap().transport, OriginTransport::Plain(_))
        };
        for here in ["http://127.0.0.1:1/mcp", "http://localhost/", "http://[::1]/"] {
            assert!(is_plain(here, None, false), "{here}");
            assert!(!is_plain(here, None, true), "{here}");
        }
        for elsewhere in ["http://10.0.0.1/", "http://a.example/", "https://127.0.0.1/"] {
            assert!(!is_plain(elsewhere, None, false), "{elsewhere}");
        }
        // The shared client makes a header of them.
        assert!(!is_plain("http://me:secret@127.0.0.1/", None, false));
        assert!(is_plain("http://a.example/", Some("/run/mcp.sock"), false));
        assert!(!is_plain("https://a.example/", Some("/run/mcp.sock"), false));
    }
}
