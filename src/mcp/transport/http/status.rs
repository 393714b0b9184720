//! What a status other than success means.
//!
//! Owns: turning status, headers and the beginning of a body into a fault. Never does: input or
//! output.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::json;
use url::Url;

use crate::model::Fault;
use crate::net::address::show;
use crate::net::words::{cut, lossy, words};

/// The message by which a lost session is recognised.
const FORGOTTEN: &str = "the server forgot the session";

/// Whether a request failed because the server no longer knows the session (legacy era): the
/// layer above may connect anew.
pub fn is_session_lost(fault: &Fault) -> bool {
    fault.message() == FORGOTTEN
}

/// The fault for a 404 to a request that carried a session id.
pub(super) fn session_lost(status: StatusCode) -> Fault {
    with_status(Fault::unreachable(FORGOTTEN), status)
        .hint("it was restarted, or the session timed out")
}

/// What was refused, and the evidence.
pub(super) struct Refusal<'a> {
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    /// The beginning of the body.
    pub body: &'a [u8],
    pub url: &'a Url,
    /// Whether the request carried credentials.
    pub authorized: bool,
}

impl Refusal<'_> {
    /// The fault this response means.
    pub(super) fn fault(&self) -> Fault {
        let (status, place) = (self.status, show(self.url));
        let fault = match status.as_u16() {
            401 => self.unauthorized(),
            403 => Fault::auth(format!("{place} forbids this: {status}"))
                .details(self.challenges())
                .hint("the credentials may lack a scope or a role"),
            404 | 410 => Fault::unreachable(format!("nothing at {place}: {status}"))
                .hint("check the path of the url; many servers answer at /mcp"),
            405 => Fault::unreachable(format!("{place} takes no POST: {status}"))
                .hint("check the path of the url; an old server may need type: sse"),
            429 => Fault::unreachable(format!("{place} is asked too often: {status}")),
            408 | 425 | 500..=599 => Fault::unreachable(format!("{place} answered {status}")),
            _ => Fault::protocol(format!("{place} answered {status}")),
        };
        let fault = match self.header(&RETRY_AFTER) {
            Some(when) => fault.detail(format!("retry-after: {when}")),
            None => fault,
        };
        with_status(fault.details(words(self.body)), status)
    }

    fn unauthorized(&self) -> Fault {
        let (place, status) = (show(self.url), self.status);
        let fault = if self.authorized {
            Fault::auth(format!("{place} refused the credentials: {status}"))
                .hint("the token may be wrong or expired")
        } else {
            Fault::auth(format!("{place} wants credentials: {status}"))
                .hint("give the entry auth: { type: bearer, token_env_var: NAME }")
        };
        fault.details(self.challenges())
    }

    /// The server's challenges; addresses in them are shown and never fetched.
    fn challenges(&self) -> Vec<String> {
        let values = self.headers.get_all(WWW_AUTHENTICATE).iter().take(5);
        values.map(|value| format!("www-authenticate: {}", cut(&lossy(value.as_bytes())))).collect()
    }

    fn header(&self, name: &HeaderName) -> Option<String> {
        self.headers.get(name).map(|value| cut(&lossy(value.as_bytes())))
    }
}

fn with_status(fault: Fault, status: StatusCode) -> Fault {
    fault.data(json!({ "http_status": status.as_u16() }))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::model::FaultKind;

    fn refusal(status: u16, headers: &[(HeaderName, &str)], body: &str) -> Fault {
        let map = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
            .collect();
        Refusal {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &map,
            body: body.as_bytes(),
            url: &"http://127.0.0.1:1/mcp?key=abc".parse().unwrap(),
            authorized: false,
        }
        .fault()
    }

    #[test]
    fn every_status_has_its_kind() {
        for (status, kind) in [
            (400, FaultKind::Protocol),
            (401, FaultKind::Auth),
            (403, FaultKind::Auth),
            (404, FaultKind::Unreachable),
            (405, FaultKind::Unreachable),
            (418, FaultKind::Protocol),
            (429, FaultKind::Unreachable),
            (500, FaultKind::Unreachable),
            (503, FaultKind::Unreachable),
            (304, FaultKind::Protocol),
        ] {
            let fault = refusal(status, &[], "");
            assert_eq!(fault.kind(), kind, "{status}");
            assert!(fault.message().contains(&status.to_string()), "{}", fault.message());
            assert!(!fault.message().contains("abc"), "a query may hold a key");
            assert_eq!(fault.evidence().unwrap()["http_status"], status);
        }
    }

    #[test]
    fn a_challenge_and_a_wait_are_shown() {
        let fault = refusal(
            401,
            &[(WWW_AUTHENTICATE, "Bearer resource_metadata=\"http://169.254.169.254/\"")],
            "",
        );
        assert_eq!(fault.detail_lines().len(), 1);
        assert!(fault.detail_lines()[0].contains("169.254"));
        assert!(fault.hint_text().unwrap().contains("token_env_var"));
        let fault = refusal(429, &[(RETRY_AFTER, "86400")], "slow down");
        assert_eq!(fault.detail_lines(), ["retry-after: 86400", "slow down"]);
    }
}
