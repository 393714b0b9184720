//! Which redirects are followed.
//!
//! Owns: the rule, and the fault for all others, which names where they lead. Never does: send.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION};
use serde_json::json;
use url::Url;

use super::address::show;
use super::words::{cut, lossy};
use crate::model::Fault;

/// How many redirects of one request are followed.
pub const MOST: usize = 5;

/// What is asked for the second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// A request that only looks (GET, HEAD): every status that redirects means the same.
    Look,
    /// Any other: only 307 and 308 keep its method and body.
    Act,
}

/// Where a redirect leads, when it is one that is followed: within the origin, and without changing
/// what is asked.
///
/// # Errors
/// Every other redirect, naming where it wants to go. The fault's evidence is
/// `{"http_status": N}`.
pub fn redirect(
    status: StatusCode,
    headers: &HeaderMap,
    url: &Url,
    asking: Asking,
) -> Result<Option<Url>, Fault> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let with_status = |fault: Fault| fault.data(json!({ "http_status": status.as_u16() }));
    let place = show(url);
    let Some(location) = headers.get(LOCATION) else {
        let fault = Fault::protocol(format!("{place} answered {status} without saying where to"));
        return Err(with_status(fault));
    };
    let location = lossy(location.as_bytes());
    let next = url.join(&location).ok();
    let keeps = asking == Asking::Look || matches!(status.as_u16(), 307 | 308);
    match next {
        Some(next) if keeps && stays(&next, url) => Ok(Some(next)),
        _ => {
            let target = next.map_or_else(|| cut(&location), |next| cut(&show(&next)));
            let fault =
                Fault::denied(format!("{place} redirects to {target}, which is not followed"))
                    .hint("if that is where the server is, write it into the entry's url");
            Err(with_status(fault))
        }
    }
}

/// Whether a URL is of the same origin and names no user of its own.
fn stays(next: &Url, url: &Url) -> bool {
    next.origin() == url.origin() && next.username().is_empty() && next.password().is_none()
}

/// The fault of one redirect too many.
pub fn circle(url: &Url) -> Fault {
    Fault::protocol(format!("{} redirects in a circle", show(url)))
        .detail(format!("limit: {MOST} redirects"))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::model::FaultKind;

    fn follow(status: u16, location: &str) -> Result<Option<String>, FaultKind> {
        follow_when(Asking::Act, status, location)
    }

    fn follow_when(
        asking: Asking,
        status: u16,
        location: &str,
    ) -> Result<Option<String>, FaultKind> {
        let map = [(LOCATION, HeaderValue::from_str(location).unwrap())].into_iter().collect();
        let url = "http://127.0.0.1:8001/mcp".parse().unwrap();
        redirect(StatusCode::from_u16(status).unwrap(), &map, &url, asking)
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
            (307, "http://me:you@127.0.0.1:8001/mcp"),
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
    fn a_look_follows_every_redirect_within_the_origin() {
        for status in [301, 302, 303, 307, 308] {
            let next = follow_when(Asking::Look, status, "/new");
            assert_eq!(next, Ok(Some("http://127.0.0.1:8001/new".into())), "{status}");
            let next = follow_when(Asking::Look, status, "http://127.0.0.1:8002/");
            assert_eq!(next, Err(FaultKind::Denied), "{status}");
        }
    }

    #[test]
    fn what_is_encrypted_stays_so() {
        let map = [(LOCATION, HeaderValue::from_static("http://api.example/x"))];
        let map = map.into_iter().collect();
        for asking in [Asking::Look, Asking::Act] {
            let url = "https://api.example/x".parse().unwrap();
            let fault = redirect(StatusCode::TEMPORARY_REDIRECT, &map, &url, asking).unwrap_err();
            assert_eq!(fault.kind(), FaultKind::Denied);
        }
    }

    #[test]
    fn a_redirect_to_nowhere_breaks_the_protocol() {
        let url = "http://127.0.0.1/".parse().unwrap();
        let fault = redirect(StatusCode::PERMANENT_REDIRECT, &HeaderMap::new(), &url, Asking::Act)
            .unwrap_err();
        assert_eq!(fault.kind(), FaultKind::Protocol);
    }
}
