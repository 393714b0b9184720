//! Request and response heads for the trace, with secrets removed.

use std::time::Duration;

use reqwest::header::{COOKIE, HeaderMap, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use reqwest::{Method, StatusCode};
use url::Url;

use crate::config::secrets::names_secret;
use crate::mcp::tracer::Tracer;
use crate::model::CallId;
use crate::model::traffic::Direction;

const HIDDEN: &str = "***";

pub(in crate::mcp) struct HeadTracer {
    pub(in crate::mcp) tracer: Tracer,
    /// The headers of the entry, which the client adds to every request; their values are hidden.
    entry_headers: Vec<(String, String)>,
}

impl HeadTracer {
    /// Reports to `tracer`; `own` are the headers that go with every request.
    pub(in crate::mcp) fn new(tracer: Tracer, own: &HeaderMap) -> Self {
        let own = if tracer.is_on() { visible_headers(own) } else { Vec::new() };
        Self { tracer, entry_headers: own }
    }

    pub(in crate::mcp) fn trace_request(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        call: Option<&CallId>,
    ) {
        if self.tracer.is_on() {
            let line = format!("{method} {}", address(url));
            let mut all = visible_headers(headers);
            all.extend(self.entry_headers.iter().cloned());
            self.tracer.head(Direction::Sent, line, all, None, call);
        }
    }

    /// The head of a response is here, `took` after the request was sent.
    pub(in crate::mcp) fn trace_response(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        took: Duration,
        call: Option<&CallId>,
    ) {
        if self.tracer.is_on() {
            let headers = visible_headers(headers);
            self.tracer.head(Direction::Received, status.to_string(), headers, Some(took), call);
        }
    }

    pub(in crate::mcp) fn trace_non_message(&self, body: &[u8], call: Option<&CallId>) {
        if self.tracer.is_on() && !body.is_empty() {
            self.tracer.non_message(&String::from_utf8_lossy(body), call);
        }
    }
}

fn visible_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let value = |name: &HeaderName, value: &HeaderValue| {
        let hidden = value.is_sensitive()
            || *name == COOKIE
            || *name == SET_COOKIE
            || names_secret(name.as_str());
        let text = String::from_utf8_lossy(value.as_bytes());
        match hidden {
            true => HIDDEN.to_owned(),
            false if *name == LOCATION => without_query(&text),
            false => text.into_owned(),
        }
    };
    headers.iter().map(|(name, text)| (name.to_string(), value(name, text))).collect()
}

/// An address without user name, password and the values of its query.
fn address(url: &Url) -> String {
    let mut shown = url.clone();
    // These fail for addresses that cannot have them.
    shown.set_username("").ok();
    shown.set_password(None).ok();
    without_query(shown.as_str())
}

/// An address, which may be a relative one, whose query has no values: keys travel there.
fn without_query(address: &str) -> String {
    let Some((place, query)) = address.split_once('?') else { return address.to_owned() };
    let query = query.split('#').next().unwrap_or_default();
    let name = |pair: &str| pair.split('=').next().unwrap_or_default().to_owned();
    let hidden: Vec<String> =
        query.split('&').map(|pair| format!("{}={HIDDEN}", name(pair))).collect();
    format!("{place}?{}", hidden.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden_wherever_they_stand() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer planted"),
            ("x-api-key", "planted"),
            ("set-cookie", "id=planted"),
            ("mcp-method", "tools/call"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let mut team = HeaderValue::from_static("planted");
        team.set_sensitive(true);
        headers.insert("x-team", team);
        let text = format!("{:?}", visible_headers(&headers));
        assert!(!text.contains("planted") && text.contains("tools/call"), "{text}");
        let url = "https://me:planted@example.com/mcp?key=planted&v=1".parse().unwrap();
        assert_eq!(address(&url), "https://example.com/mcp?key=***&v=***");
    }
}
