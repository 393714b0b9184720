//! The user's settings of an HTTP server, validated before anything is sent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use url::Url;

use super::credential_gate::sensitive_value;
use super::head_tracer::Redactor;
use crate::config::secrets::names_secret;
use crate::mcp::credentials::Credentials;
use crate::mcp::tracer::Tracer;
use crate::mcp::wire::MESSAGE_LIMIT;
use crate::model::Error;
use crate::net::address::{display_url, is_loopback};
use crate::util::tls::TlsPem;

/// Header names that belong to the protocol or to HTTP itself (`mcp-*` are refused besides).
const RESERVED_HEADERS: [&str; 9] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "transfer-encoding",
    "upgrade",
];

#[derive(Debug, Clone)]
pub struct HttpTarget {
    /// The endpoint, as the user wrote it; `http` or `https`.
    pub url: Url,
    pub socket: Option<PathBuf>,
    pub headers: Vec<(String, SecretString)>,
    /// What goes into `Authorization`, unless the headers have one.
    pub credentials: Arc<dyn Credentials>,
    /// Certificates are not checked. Never from a file.
    pub insecure: bool,
    /// Credentials may travel over plain HTTP to another machine (`insecure: true` of the entry).
    pub allows_unencrypted: bool,
    pub tls: TlsPem,
    /// Bounds on everything the server does.
    pub limits: HttpLimits,
    pub tracer: Tracer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Bytes of one message (a JSON body, an SSE event) after decompression; 16 MiB.
    pub message: usize,
    /// Bytes read of a body that is not a message, for its first line; 64 KiB.
    pub error_body: usize,
    /// Bytes of all response headers together; 64 KiB.
    pub headers: usize,
    /// Name lookup, TCP and TLS together; 5 s.
    pub connect: Duration,
    /// A request's response headers, and then its whole JSON body; 300 s. The layer above has
    /// its own, shorter deadlines; this one ends exchanges that were forgotten. Event streams
    /// have no deadline here.
    pub exchange: Duration,
    /// Posting a notification or a response, opening an event stream, reading an error body; 10 s.
    pub control: Duration,
    /// Ending the session; 1 s.
    pub shutdown: Duration,
    /// Connections made to continue one event stream without getting on; 5.
    pub reconnects: u32,
    /// The shortest wait before such a connection; 1 s, doubled each time.
    pub reconnect_wait: Duration,
    /// A stream that lasted this long got on: the next connection is counted as the first; 5 s.
    pub stable_after: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            message: MESSAGE_LIMIT,
            error_body: 64 * 1024,
            headers: 64 * 1024,
            connect: Duration::from_secs(5),
            exchange: Duration::from_mins(5),
            control: Duration::from_secs(10),
            shutdown: Duration::from_secs(1),
            reconnects: 5,
            reconnect_wait: Duration::from_secs(1),
            stable_after: Duration::from_secs(5),
        }
    }
}

pub(super) struct CheckedTarget {
    pub headers: HeaderMap,
    pub secrets: Redactor,
    /// Something the user should know.
    pub warning: Option<String>,
}

impl HttpTarget {
    /// A target with default limits and nothing but its URL.
    #[cfg(test)]
    pub fn new(url: Url) -> Self {
        Self {
            url,
            socket: None,
            headers: Vec::new(),
            credentials: crate::mcp::credentials::none(),
            insecure: false,
            allows_unencrypted: false,
            tls: TlsPem::default(),
            limits: HttpLimits::default(),
            tracer: Tracer::off(),
        }
    }

    pub(super) fn check(&self) -> Result<CheckedTarget, Error> {
        if !matches!(self.url.scheme(), "http" | "https") || self.url.host().is_none() {
            let scheme = self.url.scheme();
            return Err(Error::config(format!("a server's url is http or https, not {scheme}")));
        }
        let (headers, secrets) = self.headers()?;
        let mut warning = None;
        if self.url.scheme() == "http" && !is_loopback(&self.url) {
            let place = display_url(&self.url);
            let secret = headers.keys().any(|name| names_secret(name.as_str()));
            if (secret || self.credentials.always_sends_secret()) && !self.allows_unencrypted {
                return Err(Error::denied(format!(
                    "credentials would travel unencrypted to {place}"
                ))
                .with_hint("use https, or 'insecure: true' in your own configuration directory"));
            }
            warning =
                Some(format!("{place} is plain http: traffic can be read and changed on the way"));
        }
        if self.insecure && self.url.scheme() == "https" {
            let place = display_url(&self.url);
            warning = Some(format!("the certificate of {place} is not checked"));
        }
        Ok(CheckedTarget { headers, secrets, warning })
    }

    fn headers(&self) -> Result<(HeaderMap, Redactor), Error> {
        let (mut headers, secrets) = (HeaderMap::new(), Redactor::default());
        for (name, value) in &self.headers {
            let (name, value) = header(name, value, &secrets)?;
            headers.append(name, value);
        }
        if headers.contains_key(AUTHORIZATION) && self.credentials.always_sends_secret() {
            return Err(Error::config("authorization is given twice, in headers and in auth"));
        }
        if !self.url.username().is_empty() || self.url.password().is_some() {
            secrets.add_secret("url", &SecretString::from(self.url.password().unwrap_or_default()));
        }
        Ok((headers, secrets))
    }
}

fn header(
    name: &str,
    secret: &SecretString,
    secrets: &Redactor,
) -> Result<(HeaderName, HeaderValue), Error> {
    let shown: String = name.chars().take(80).collect();
    let name = HeaderName::try_from(name)
        .map_err(|_| Error::config(format!("'{shown}' is not a header name")))?;
    if RESERVED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("mcp-") {
        return Err(Error::config(format!("the header '{name}' belongs to the protocol"))
            .with_hint(format!("remove '{name}' from headers")));
    }
    let value = sensitive_value(&name, secret)?;
    secrets.add_secret(name.as_str(), secret);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ErrorKind;

    fn target(url: &str) -> HttpTarget {
        HttpTarget::new(url.parse().unwrap())
    }

    #[test]
    fn the_protocols_own_headers_are_refused() {
        for name in ["Accept", "mcp-session-id", "Mcp-Name", "Host", "Last-Event-ID", "a b", ""] {
            let mut target = target("http://127.0.0.1/");
            target.headers = vec![(name.to_owned(), SecretString::from("x"))];
            let error = target.check().err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Config, "{name}");
        }
    }

    #[test]
    fn a_line_break_in_a_token_is_named_and_the_token_is_not() {
        let mut target = target("http://127.0.0.1/");
        target.headers = vec![("X-Key".to_owned(), SecretString::from("hunter2\n"))];
        let error = target.check().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(!format!("{error:?}{target:?}").contains("hunter2"));
    }

    #[test]
    fn two_authorizations_are_refused() {
        let mut target = target("https://example.com/mcp");
        target.credentials = crate::mcp::credentials::bearer(SecretString::from("one"));
        target.headers = vec![("Authorization".to_owned(), SecretString::from("Bearer two"))];
        assert_eq!(target.check().err().unwrap().kind(), ErrorKind::Config);
    }

    #[test]
    fn credentials_travel_encrypted_or_stay_on_this_machine() {
        let with_token = |url: &str, unencrypted: bool| {
            let mut target = target(url);
            target.credentials = crate::mcp::credentials::bearer(SecretString::from("token"));
            target.allows_unencrypted = unencrypted;
            // Taking any certificate says nothing about having none.
            target.insecure = true;
            target.check().err().map(|error| error.kind())
        };
        assert_eq!(with_token("http://mcp.example.com/", false), Some(ErrorKind::Denied));
        assert_eq!(with_token("http://8.8.8.8/", false), Some(ErrorKind::Denied));
        assert_eq!(with_token("http://10.0.0.1/", false), Some(ErrorKind::Denied));
        for here in ["http://localhost:1/", "http://127.0.0.1/", "http://[::1]/"] {
            assert_eq!(with_token(here, false), None, "{here}");
        }
        let mut key = target("http://mcp.example.com/");
        key.headers = vec![("X-Api-Key".to_owned(), SecretString::from("k"))];
        assert_eq!(key.check().err().map(|error| error.kind()), Some(ErrorKind::Denied));
        assert_eq!(with_token("https://mcp.example.com/", false), None);
        assert_eq!(with_token("http://mcp.example.com/", true), None);
    }

    #[test]
    fn plain_http_to_elsewhere_is_said() {
        assert!(target("http://mcp.example.com/").check().is_ok_and(|c| c.warning.is_some()));
        assert!(target("http://127.0.0.1/").check().is_ok_and(|c| c.warning.is_none()));
    }

    #[test]
    fn other_schemes_are_refused() {
        assert!(target("file:///etc/passwd").check().is_err());
    }
}
