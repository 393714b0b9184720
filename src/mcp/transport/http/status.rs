//! Interpreting HTTP status codes other than success.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use url::Url;

use crate::model::{Error, ErrorCause};
use crate::net::address::display_url;
use crate::net::response::{lossy, server_message, truncate};

/// The error for a 404 to a request that carried a session id (legacy era): the layer above may
/// connect anew. `None` for everything else.
pub(super) fn session_lost(status: StatusCode, in_session: bool) -> Option<Error> {
    (in_session && status == StatusCode::NOT_FOUND).then(|| {
        Error::unreachable("the server no longer knows the session")
            .with_http_status(status.as_u16())
            .with_cause(ErrorCause::SessionLost)
            .with_hint("it was restarted, or the session timed out")
    })
}

pub(super) struct HttpRefusal<'a> {
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    pub url: &'a Url,
    pub authorized: bool,
}

impl HttpRefusal<'_> {
    pub(super) fn error(&self) -> Error {
        let (status, place) = (self.status, display_url(self.url));
        let error = match status.as_u16() {
            401 => self.unauthorized(),
            403 => Error::auth(format!("{place} forbids this: {status}"))
                .with_details(self.challenges())
                .with_hint("the credentials may lack a scope or a role"),
            404 | 410 => Error::unreachable(format!("nothing at {place}: {status}"))
                .with_hint("check the path of the url; many servers answer at /mcp"),
            405 => Error::unreachable(format!("{place} does not accept POST: {status}"))
                .with_hint("check the path of the url; an old server may need type: sse"),
            407 => Error::auth(format!("the proxy before {place} requires credentials: {status}"))
                .with_hint("set them in the proxy's address: HTTP_PROXY=http://NAME:PASSWORD@HOST"),
            429 => Error::unreachable(format!("{place} is rate limited: {status}")),
            408 | 425 | 500..=599 => Error::unreachable(format!("{place} answered {status}")),
            _ => Error::protocol(format!("{place} answered {status}")),
        };
        let error = match self.header(&RETRY_AFTER) {
            Some(when) => error.with_detail(format!("retry-after: {when}")),
            None => error,
        };
        error.with_details(server_message(self.body)).with_http_status(status.as_u16())
    }

    fn unauthorized(&self) -> Error {
        let (place, status) = (display_url(self.url), self.status);
        let error = if self.authorized {
            Error::auth(format!("{place} refused the credentials: {status}"))
                .with_hint("the token may be invalid or expired")
        } else {
            Error::auth(format!("{place} requires credentials: {status}"))
                .with_hint("add to the entry: auth: { type: bearer, token_env_var: NAME }")
        };
        error.with_details(self.challenges())
    }

    /// The server's challenges; addresses in them are shown and never fetched.
    fn challenges(&self) -> Vec<String> {
        let values = self.headers.get_all(WWW_AUTHENTICATE).iter().take(5);
        values
            .map(|value| format!("www-authenticate: {}", truncate(&lossy(value.as_bytes()))))
            .collect()
    }

    fn header(&self, name: &HeaderName) -> Option<String> {
        self.headers.get(name).map(|value| truncate(&lossy(value.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::model::ErrorKind;

    fn refusal(status: u16, headers: &[(HeaderName, &str)], body: &str) -> Error {
        let map = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect();
        HttpRefusal {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &map,
            body: body.as_bytes(),
            url: &"http://127.0.0.1:1/mcp?key=abc".parse().unwrap(),
            authorized: false,
        }
        .error()
    }

    #[test]
    fn every_status_has_its_kind() {
        for (status, kind) in [
            (400, ErrorKind::Protocol),
            (401, ErrorKind::Auth),
            (403, ErrorKind::Auth),
            (404, ErrorKind::Unreachable),
            (405, ErrorKind::Unreachable),
            (407, ErrorKind::Auth),
            (418, ErrorKind::Protocol),
            (429, ErrorKind::Unreachable),
            (500, ErrorKind::Unreachable),
            (503, ErrorKind::Unreachable),
            (304, ErrorKind::Protocol),
        ] {
            let error = refusal(status, &[], "");
            assert_eq!(error.kind(), kind, "{status}");
            assert!(error.message().contains(&status.to_string()), "{}", error.message());
            assert!(!error.message().contains("abc"), "a query may hold a key");
            assert_eq!(error.data().unwrap()["http_status"], status);
        }
    }

    #[test]
    fn a_challenge_and_a_wait_are_shown() {
        let error = refusal(
            401,
            &[(WWW_AUTHENTICATE, "Bearer resource_metadata=\"http://169.254.169.254/\"")],
            "",
        );
        assert_eq!(error.details().len(), 1);
        assert!(error.details()[0].contains("169.254"));
        assert!(error.hint().unwrap().contains("token_env_var"));
        let error = refusal(429, &[(RETRY_AFTER, "86400")], "slow down");
        assert_eq!(error.details(), ["retry-after: 86400", "slow down"]);
    }
}
