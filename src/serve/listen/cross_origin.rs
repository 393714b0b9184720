//! What a browser has to be told for pages of other origins (CORS).

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};

use super::http_answer::HttpAnswer;

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
