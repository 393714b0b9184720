//! The redirect policy.

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Method, StatusCode};
use url::Url;

use super::address::display_url;
use super::response::{lossy, truncate};
use crate::model::Error;

pub const MAX_REDIRECTS: usize = 5;

/// Where a redirect leads, when it is one that is followed: within the origin, and without changing
/// what is asked. For a method that only looks every status that redirects means the same; of any
/// other only 307 and 308 keep method and body.
pub fn redirect(
    status: StatusCode,
    headers: &HeaderMap,
    url: &Url,
    method: &Method,
) -> Result<Option<Url>, Error> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let with_status = |error: Error| error.with_http_status(status.as_u16());
    let place = display_url(url);
    let Some(location) = headers.get(LOCATION) else {
        let error = Error::protocol(format!("{place} answered {status} without a Location header"));
        return Err(with_status(error));
    };
    let location = lossy(location.as_bytes());
    let next = url.join(&location).ok();
    let keeps = method.is_safe() || matches!(status.as_u16(), 307 | 308);
    match next {
        Some(next) if keeps && is_same_origin(&next, url) => Ok(Some(next)),
        _ => {
            let target =
                next.map_or_else(|| truncate(&location), |next| truncate(&display_url(&next)));
            let error =
                Error::denied(format!("{place} redirects to {target}, which is not followed"))
                    .with_hint("if that is where the server is, use it as the entry's url");
            Err(with_status(error))
        }
    }
}

fn is_same_origin(next: &Url, url: &Url) -> bool {
    next.origin() == url.origin() && next.username().is_empty() && next.password().is_none()
}

pub fn too_many_redirects(url: &Url) -> Error {
    Error::protocol(format!("{} redirects in a circle", display_url(url)))
        .with_detail(format!("limit: {MAX_REDIRECTS} redirects"))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;
    use crate::model::ErrorKind;

    fn follow(status: u16, location: &str) -> Result<Option<String>, ErrorKind> {
        follow_when(&Method::POST, status, location)
    }

    fn follow_when(
        method: &Method,
        status: u16,
        location: &str,
    ) -> Result<Option<String>, ErrorKind> {
        let map = [(LOCATION, HeaderValue::from_str(location).unwrap())].into_iter().collect();
        let url = "http://127.0.0.1:8001/mcp".parse().unwrap();
        redirect(StatusCode::from_u16(status).unwrap(), &map, &url, method)
            .map(|next| next.map(|url| url.to_string()))
            .map_err(|error| error.kind())
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
            assert_eq!(follow(status, location), Err(ErrorKind::Denied), "{status} {location}");
        }
        assert_eq!(follow(200, "/x"), Ok(None));
    }

    #[test]
    fn a_look_follows_every_redirect_within_the_origin() {
        for status in [301, 302, 303, 307, 308] {
            let next = follow_when(&Method::GET, status, "/new");
            assert_eq!(next, Ok(Some("http://127.0.0.1:8001/new".into())), "{status}");
            let next = follow_when(&Method::GET, status, "http://127.0.0.1:8002/");
            assert_eq!(next, Err(ErrorKind::Denied), "{status}");
        }
    }

    #[test]
    fn what_is_encrypted_stays_so() {
        let map = [(LOCATION, HeaderValue::from_static("http://api.example/x"))];
        let map = map.into_iter().collect();
        for method in [Method::GET, Method::POST] {
            let url = "https://api.example/x".parse().unwrap();
            let error = redirect(StatusCode::TEMPORARY_REDIRECT, &map, &url, &method).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied);
        }
    }

    #[test]
    fn a_redirect_to_nowhere_breaks_the_protocol() {
        let url = "http://127.0.0.1/".parse().unwrap();
        let error =
            redirect(StatusCode::PERMANENT_REDIRECT, &HeaderMap::new(), &url, &Method::POST)
                .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Protocol);
    }
}
