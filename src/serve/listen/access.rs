//! Who may send a request over the network, and what a browser has to be told for pages of other origins.

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};

use super::mcp_service::HttpAnswer;

pub struct AccessRules {
    allowed_hosts: Vec<String>,
    /// Origins of web pages that may ask, such as `https://app.example.com`.
    allowed_origins: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The `Host` header names neither this machine nor an allowed name.
    #[error("this server does not accept the name in the Host header")]
    Host,
    /// The request comes from a web page that may not ask.
    #[error("this origin may not use the server")]
    Origin,
    #[error("a token must not be in the URL; send it as 'Authorization: Bearer TOKEN'")]
    TokenInQuery,
    #[error("send the server's token as 'Authorization: Bearer TOKEN'")]
    Token,
    /// The token is bound to a profile that this server does not have.
    #[error("this server does not have the profile that the token is bound to")]
    Profile,
    /// The token is valid and allows nothing that is served here.
    #[error("the token has none of the scopes that this server requires")]
    Scope,
    /// The keys of the authorization server are not known.
    #[error("the authorization server does not respond; try again later")]
    Issuer,
    #[error("too many clients use this server; try again later")]
    TooManyClients,
}

impl AccessError {
    pub fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin | Self::Profile | Self::Scope => StatusCode::FORBIDDEN,
            Self::TokenInQuery => StatusCode::BAD_REQUEST,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Issuer | Self::TooManyClients => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl AccessRules {
    pub fn new(hosts: Vec<String>, origins: Vec<String>) -> Self {
        Self { allowed_hosts: hosts, allowed_origins: origins }
    }

    /// Checks the head of a request; its bearer token, whose it may be.
    pub fn check<'a>(&self, head: &'a Parts) -> Result<&'a str, AccessError> {
        self.check_place(head)?;
        if head.uri.query().is_some_and(has_token) {
            return Err(AccessError::TokenInQuery);
        }
        let sent = text(&head.headers, header::AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        sent.filter(|token| !token.is_empty()).ok_or(AccessError::Token)
    }

    /// Checks which name the server is asked under, and by which page.
    pub(super) fn check_place(&self, head: &Parts) -> Result<(), AccessError> {
        let authority = head.uri.authority().map(http::uri::Authority::as_str);
        let host = authority.or_else(|| text(&head.headers, header::HOST));
        if !host.is_some_and(|host| self.is_known_host(host)) {
            return Err(AccessError::Host);
        }
        if head.headers.contains_key(header::ORIGIN) && self.page(&head.headers).is_none() {
            return Err(AccessError::Origin);
        }
        Ok(())
    }

    /// The origin of the page that asks, if it may.
    pub(super) fn page(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = text(headers, header::ORIGIN).filter(|origin| self.is_allowed(origin))?;
        HeaderValue::from_str(origin).ok()
    }

    fn is_known_host(&self, host: &str) -> bool {
        let is_same = |host_name: &String| {
            host.eq_ignore_ascii_case(host_name)
                || without_port(host).eq_ignore_ascii_case(host_name)
        };
        is_own_name(host) || self.allowed_hosts.iter().any(is_same)
    }

    /// Pages of this machine may ask, as long as they have the token.
    fn is_allowed(&self, origin: &str) -> bool {
        let host = origin.split_once("://").map(|(_, host)| host);
        host.is_some_and(is_own_name)
            || self.allowed_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }
}

/// Whether this is one of the names of this machine for itself, with a port or without.
fn is_own_name(host: &str) -> bool {
    let name = without_port(host);
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn has_token(query: &str) -> bool {
    url::form_urlencoded::parse(query.as_bytes())
        .any(|(key, _)| matches!(&*key, "token" | "access_token" | "bearer"))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    // Intermediaries may read two values differently: that counts as no value.
    values.next().is_none().then_some(first)
}

/// The headers that clients send; those that repeat arguments come with them.
const REQUEST_HEADERS: &str = "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, \
     mcp-protocol-version, mcp-session-id";
/// The beginning of the names of headers that repeat arguments (SEP-2243).
const ARGUMENT_HEADER: &str = "mcp-param-";
const ANSWER_HEADERS: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate");
/// For how many seconds a browser need not ask again.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Whether a browser asks what a page may do.
pub(super) fn is_preflight(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

pub(super) fn preflight(headers: &HeaderMap) -> HttpAnswer {
    let names = headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = names.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut allowed = REQUEST_HEADERS.to_owned();
    for name in names.filter_map(|name| name.trim().parse::<HeaderName>().ok()) {
        if name.as_str().starts_with(ARGUMENT_HEADER) {
            allowed.push_str(", ");
            allowed.push_str(name.as_str());
        }
    }
    let mut answer = Response::new(Empty::new().boxed());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    if let Ok(allowed) = HeaderValue::try_from(allowed) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    answer
}

pub(super) fn allow(page: HeaderValue, answer: &mut HttpAnswer) {
    let headers = answer.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, page);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, ANSWER_HEADERS);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> AccessRules {
        AccessRules::new(vec!["tools.example.com".into()], vec!["https://app.example".into()])
    }

    fn check(uri: &str, headers: &[(&str, &str)]) -> Result<(), AccessError> {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let head = request.body(()).unwrap().into_parts().0;
        rules().check(&head).map(|token| assert_eq!(token, "sesame"))
    }

    const TOKEN: (&str, &str) = ("authorization", "Bearer sesame");

    #[test]
    fn a_request_for_this_machine_with_the_token_passes() {
        for host in ["localhost", "localhost:80", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST"] {
            assert_eq!(check("/mcp", &[("host", host), TOKEN]), Ok(()), "{host}");
        }
        let allowed = [("host", "tools.example.com:443"), ("origin", "https://app.example"), TOKEN];
        assert_eq!(check("/mcp", &allowed), Ok(()));
        let page = [("host", "localhost:1"), ("origin", "http://localhost:3000"), TOKEN];
        assert_eq!(check("/mcp", &page), Ok(()));
        let scheme = [("host", "localhost"), ("authorization", "bearer  sesame ")];
        assert_eq!(check("/mcp", &scheme), Ok(()));
    }

    #[test]
    fn another_name_of_the_server_is_refused_before_anything_else() {
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b"]
        {
            assert_eq!(check("/mcp", &[("host", host), TOKEN]), Err(AccessError::Host), "{host}");
        }
        assert_eq!(check("/mcp", &[TOKEN]), Err(AccessError::Host));
        let two = [("host", "localhost"), ("host", "evil.example"), TOKEN];
        assert_eq!(check("/mcp", &two), Err(AccessError::Host));
    }

    #[test]
    fn pages_of_others_are_refused_whatever_they_send() {
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost.evil.example",
            "",
            "https://app.example:1",
        ] {
            let sent = [("host", "localhost"), ("origin", origin), TOKEN];
            assert_eq!(check("/mcp", &sent), Err(AccessError::Origin), "{origin}");
        }
    }

    #[test]
    fn a_token_is_taken_from_its_header_alone() {
        let host = ("host", "localhost");
        assert_eq!(check("/mcp", &[host]), Err(AccessError::Token));
        for value in ["Bearer", "Bearer ", "Basic sesame", "sesame"] {
            let sent = [host, ("authorization", value)];
            assert_eq!(check("/mcp", &sent), Err(AccessError::Token), "{value}");
        }
        let twice = [host, TOKEN, ("authorization", "Bearer other")];
        assert_eq!(check("/mcp", &twice), Err(AccessError::Token));
        for query in ["token=sesame", "a=1&access_token=sesame", "%74oken=sesame"] {
            let uri = format!("/mcp?{query}");
            assert_eq!(check(&uri, &[host, TOKEN]), Err(AccessError::TokenInQuery), "{query}");
        }
        assert_eq!(check("/mcp?tokens=sesame", &[host, TOKEN]), Ok(()));
    }

    #[test]
    fn a_browser_asks_with_its_page_and_a_method() {
        let (page, method) = ("origin", "access-control-request-method");
        for (names, expected) in
            [(&[][..], false), (&[page], false), (&[method], false), (&[page, method], true)]
        {
            let value = HeaderValue::from_static("x");
            let headers = names.iter().map(|name| (HeaderName::from_static(name), value.clone()));
            assert_eq!(is_preflight(&headers.collect()), expected, "{names:?}");
        }
    }
}
