//! A request to an address given in a call, by the rules of all requests.

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::entry::METHODS;
use super::request::{HttpRequest, header_name, header_value, is_authorization};
use super::response::{self, ResponseRules};
use super::send::{CONNECT_TIMEOUT, send};
use crate::model::{Error, ErrorKind, ToolResult};
use crate::net::address::{is_link_local, is_loopback, is_public, literal_ip};
use crate::net::client::{ClientSettings, HttpClient};
use crate::util::tls::TlsPem;

#[derive(Debug)]
pub(in crate::providers) struct FetchRequest {
    /// Where to, as the call writes it.
    pub(in crate::providers) url: String,
    pub(in crate::providers) method: String,
    pub(in crate::providers) headers: Vec<(String, String)>,
    /// The body: text is sent unchanged, anything else as JSON.
    pub(in crate::providers) body: Option<Value>,
    /// Number of bytes of the response to keep, in bytes.
    pub(in crate::providers) max_bytes: usize,
}

/// What does not depend on the call.
#[derive(Debug, Clone, Copy)]
pub(in crate::providers) struct FetchPolicy {
    /// Whether only public addresses may be contacted, because no person sees the call.
    pub(in crate::providers) requires_public: bool,
    /// Whether certificates are not checked in this run.
    pub(in crate::providers) insecure: bool,
}

pub(in crate::providers) async fn fetch(
    fetch_request: &FetchRequest,
    policy: FetchPolicy,
    cancel: &CancellationToken,
) -> Result<ToolResult, Error> {
    let request = prepare(fetch_request, policy)?;
    let settings = ClientSettings {
        connect_timeout: CONNECT_TIMEOUT,
        insecure: policy.insecure,
        allows_link_local: false,
        requires_public: policy.requires_public,
        tls: TlsPem::default(),
    };
    let client = HttpClient::new(&request.url, None, &settings, HeaderMap::new())?;
    let answer = send(&client, &request, fetch_request.max_bytes, cancel).await;
    let answer = answer.map_err(|error| match (error.kind(), error.http_status()) {
        (ErrorKind::Denied, Some(_redirect)) => {
            error.with_hint("call again with that address, if it is the right one")
        }
        _ => error,
    })?;
    let rules = ResponseRules {
        method: &request.method,
        response_path: None,
        max_response: fetch_request.max_bytes,
        limit_name: "max_bytes",
        auth_hint: "pass the credentials in 'headers'; an entry of kind 'http' keeps them out of calls",
    };
    response::read(rules, &answer)
}

fn prepare(request: &FetchRequest, policy: FetchPolicy) -> Result<HttpRequest, Error> {
    let url = address(&request.url, policy)?;
    if !METHODS.contains(&request.method.as_str()) {
        let (word, methods) = (&request.method, METHODS.join(", "));
        return Err(Error::usage(format!("'{word}' is not a method; it is one of {methods}")));
    }
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|error| Error::internal(error.to_string()))?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, super::request::DEFAULT_ACCEPT);
    for (name, text) in &request.headers {
        let (name, value) = header(name, text)?;
        if value.is_sensitive() && url.scheme() != "https" && !is_loopback(&url) {
            return Err(Error::denied(format!("the header '{name}' would travel unencrypted"))
                .with_hint("use https"));
        }
        headers.insert(name, value);
    }
    let body = request.body.as_ref().filter(|body| !body.is_null()).map(|body| match body {
        Value::String(text) => (text.clone(), "text/plain; charset=utf-8"),
        other => (other.to_string(), "application/json"),
    });
    if let Some((_, kind)) = &body
        && !headers.contains_key(CONTENT_TYPE)
    {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    Ok(HttpRequest { method, url, headers, body: body.map(|(text, _)| Bytes::from(text)) })
}

fn address(text: &str, policy: FetchPolicy) -> Result<Url, Error> {
    let mut url = Url::parse(text).map_err(|error| {
        Error::usage(format!("'{text}' is not a URL: {error}"))
            .with_hint("start it with https:// or http://")
    })?;
    if !["http", "https"].contains(&url.scheme()) || !url.has_host() {
        return Err(Error::usage(format!("the scheme '{}' is not supported", url.scheme()))
            .with_hint("use https or http"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::usage("a URL must not carry a user name or a password")
            .with_hint("URLs are shown and logged; put credentials into 'headers'"));
    }
    url.set_fragment(None);
    if let Some(ip) = literal_ip(&url) {
        let refuse =
            |what: &str| Err(Error::denied(format!("{ip} is {what}, so it is not contacted")));
        if is_link_local(ip) {
            return refuse("a link-local address");
        }
        if policy.requires_public && !is_public(ip) {
            return refuse("not a public address").map_err(|error| {
                error.with_hint(
                    "a tool that requires approval may contact it: requires_approval: true",
                )
            });
        }
    }
    Ok(url)
}

fn header(name: &str, text: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let header =
        header_name(name).map_err(|problem| Error::of_diagnostic(ErrorKind::Usage, problem))?;
    let mut value = header_value(&header, text)?;
    value.set_sensitive(is_authorization(&header));
    Ok((header, value))
}

pub(in crate::providers) fn preview(
    fetch_request: &FetchRequest,
    policy: FetchPolicy,
) -> Result<Value, Error> {
    let mut request = prepare(fetch_request, policy)?;
    for value in request.headers.values_mut().filter(|value| value.is_sensitive()) {
        *value = HeaderValue::from_static("***");
    }
    Ok(request.shown())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::net::test_server::{TestResponse, TestServer};

    fn request_for(url: &str) -> FetchRequest {
        FetchRequest {
            url: url.to_owned(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: None,
            max_bytes: 1 << 10,
        }
    }

    const ANY: FetchPolicy = FetchPolicy { requires_public: false, insecure: false };
    const PUBLIC: FetchPolicy = FetchPolicy { requires_public: true, insecure: false };

    async fn ask(request: &FetchRequest, policy: FetchPolicy) -> Result<ToolResult, Error> {
        fetch(request, policy, &CancellationToken::new()).await
    }

    #[tokio::test]
    async fn a_body_is_sent_and_json_comes_back() {
        let peer = TestServer::start(|_, _| TestResponse::json(r#"{"a":1}"#)).await;
        let url = peer.url("/x?y=1#z").to_string();
        let request = FetchRequest {
            method: "POST".to_owned(),
            headers: vec![("X-Team".to_owned(), "blue".to_owned())],
            body: Some(json!({ "b": [2] })),
            ..request_for(&url)
        };
        let result = ask(&request, ANY).await.unwrap();
        assert_eq!((result.success, &result.output), (true, &json!({ "a": 1 })));
        assert_eq!(result.meta.unwrap()["status"], 200);
        let http_request = peer.requests().remove(0);
        assert_eq!(http_request.line(), "POST /x?y=1");
        assert_eq!(http_request.header("content-type"), Some("application/json"));
        assert_eq!(http_request.header("x-team"), Some("blue"));
        assert_eq!(http_request.body, r#"{"b":[2]}"#);
    }

    #[tokio::test]
    async fn addresses_that_may_not_be_asked_are_refused_before_anything_is_sent() {
        for (url, policy, kind) in [
            ("http://169.254.169.254/latest", ANY, ErrorKind::Denied),
            ("http://[fe80::1]/", ANY, ErrorKind::Denied),
            ("http://127.0.0.1:9/", PUBLIC, ErrorKind::Denied),
            ("http://10.0.0.1/", PUBLIC, ErrorKind::Denied),
            ("ftp://example.com/", ANY, ErrorKind::Usage),
            ("file:///etc/passwd", ANY, ErrorKind::Usage),
            ("example.com", ANY, ErrorKind::Usage),
            ("https://me:secret@example.com/", ANY, ErrorKind::Usage),
        ] {
            let error = prepare(&request_for(url), policy).unwrap_err();
            assert_eq!(error.kind(), kind, "{url}: {}", error.message());
        }
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_not_asked_unless_a_person_sees_the_call() {
        let peer = TestServer::start(|_, _| TestResponse::json("1")).await;
        let mut url = peer.url("/");
        url.set_host(Some("localhost")).unwrap();
        let request = request_for(url.as_str());
        assert!(ask(&request, PUBLIC).await.is_err());
        assert!(peer.requests().is_empty());
        assert_eq!(ask(&request, ANY).await.unwrap().output, json!(1));
    }

    #[test]
    fn credentials_travel_encrypted_and_headers_of_http_stay_its_own() {
        let with = |url: &str, name: &str, text: &str| {
            let headers = vec![(name.to_owned(), text.to_owned())];
            prepare(&FetchRequest { headers, ..request_for(url) }, ANY)
                .map_err(|error| error.kind())
        };
        for name in ["Authorization", "X-Api-Key", "PRIVATE-TOKEN", "X-Client-Secret"] {
            let refused = with("http://8.8.8.8/", name, "x").unwrap_err();
            assert_eq!(refused, ErrorKind::Denied, "{name}");
        }
        assert!(with("https://8.8.8.8/", "Authorization", "x").is_ok());
        assert!(with("http://127.0.0.1/", "Cookie", "x").is_ok());
        for (name, text) in [("Host", "x"), ("content-length", "1"), ("a b", "x"), ("X", "a\nb")] {
            assert_eq!(
                with("https://8.8.8.8/", name, text).unwrap_err(),
                ErrorKind::Usage,
                "{name}"
            );
        }
        for name in ["cookie", "private-token"] {
            let headers = vec![(name.to_owned(), "k=s3cret".to_owned())];
            let request = FetchRequest { headers, ..request_for("https://8.8.8.8/") };
            let shown = preview(&request, ANY).unwrap();
            assert_eq!(shown["headers"][name], "***");
        }
    }
}
