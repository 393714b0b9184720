//! What a status other than success means.
//!
//! Owns: turning status, headers and the beginning of a body into a fault, and deciding which
//! redirects are followed. Never does: input or output.

use std::borrow::Cow;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::{Value, json};
use url::Url;

use super::target::show;
use crate::model::Fault;

/// Characters of a peer's own words that are kept.
const WORDS: usize = 300;
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
                .hint("check the path of the url; the old HTTP+SSE transport is not spoken"),
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

/// Where a redirect leads, when it is one that is followed: 307 and 308 within the origin.
///
/// # Errors
/// Every other redirect, naming where it wants to go.
pub(super) fn redirect(
    status: StatusCode,
    headers: &HeaderMap,
    url: &Url,
) -> Result<Option<Url>, Fault> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let place = show(url);
    let Some(location) = headers.get(LOCATION) else {
        let fault = Fault::protocol(format!("{place} answered {status} without saying where to"));
        return Err(with_status(fault, status));
    };
    let location = lossy(location.as_bytes());
    let next = url.join(&location).ok();
    match next {
        Some(next) if matches!(status.as_u16(), 307 | 308) && next.origin() == url.origin() => {
            Ok(Some(next))
        }
        _ => {
            let target = next.map_or_else(|| cut(&location), |next| cut(&show(&next)));
            let fault =
                Fault::denied(format!("{place} redirects to {target}, which is not followed"))
                    .hint("if that is where the server is, write it into the entry's url");
            Err(with_status(fault, status))
        }
    }
}

fn with_status(fault: Fault, status: StatusCode) -> Fault {
    fault.data(json!({ "http_status": status.as_u16() }))
}

/// The peer's own words in a body: a JSON error's message, a page's title, or the first line.
pub(super) fn words(body: &[u8]) -> Option<String> {
    let text = lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let line = json_words(text)
        .or_else(|| title(text))
        .or_else(|| text.lines().next().map(str::to_owned))?;
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| cut(&line))
}

fn json_words(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    ["/error/message", "/message", "/error_description", "/error", "/detail"]
        .into_iter()
        .find_map(|path| value.pointer(path)?.as_str().map(str::to_owned))
}

fn title(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower.get(start..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    text.get(start..end).map(str::to_owned).filter(|title| !title.trim().is_empty())
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn cut(text: &str) -> String {
    let mut out: String = text.chars().take(WORDS).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
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
    fn the_peers_words_are_a_line() {
        assert_eq!(words(b"\n\n  try later \nmore"), Some("try later".into()));
        assert_eq!(words(b"<html><head><Title>Oh\n no</title>"), Some("Oh no".into()));
        assert_eq!(words(b"<html><p>x"), Some("<html><p>x".into()));
        assert_eq!(words(br#"{"error":{"message":"no session"}}"#), Some("no session".into()));
        assert_eq!(words(br#"{"error":"invalid_token"}"#), Some("invalid_token".into()));
        assert_eq!(words(b" \n "), None);
        assert_eq!(words(&[b'x'; 5000]).unwrap().chars().count(), WORDS + 1);
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

    fn follow(status: u16, location: &str) -> Result<Option<String>, FaultKind> {
        let map = [(LOCATION, HeaderValue::from_str(location).unwrap())].into_iter().collect();
        let url = "http://127.0.0.1:8001/mcp".parse().unwrap();
        redirect(StatusCode::from_u16(status).unwrap(), &map, &url)
            .map(|next| next.map(|url| url.to_string()))
            .map_err(|fault| fault.kind())
    }

    #[test]
    fn only_method_keeping_redirects_within_the_origin_are_followed() {
        assert_eq!(follow(307, "/mcp/"), Ok(Some("http://127.0.0.1:8001/mcp/".into())));
        assert_eq!(
            follow(308, "http://127.0.0.1:8001/x"),
            Ok(Some("http://127.0.0.1:8001/x".into()))
        );
        for (status, location) in [
            (307, "http://127.0.0.1:8002/mcp"),
            (307, "https://127.0.0.1:8001/mcp"),
            (307, "file:///etc/passwd"),
            (307, "//evil.example/mcp"),
            (307, "http://[broken"),
            (303, "/mcp/"),
            (301, "/mcp/"),
            (302, "/mcp/"),
        ] {
            assert_eq!(follow(status, location), Err(FaultKind::Denied), "{status} {location}");
        }
        assert_eq!(follow(200, "/x"), Ok(None));
    }

    #[test]
    fn a_redirect_to_nowhere_breaks_the_protocol() {
        let url = "http://127.0.0.1/".parse().unwrap();
        let fault = redirect(StatusCode::PERMANENT_REDIRECT, &HeaderMap::new(), &url).unwrap_err();
        assert_eq!(fault.kind(), FaultKind::Protocol);
    }
}
