//! Request and response heads for the trace and error messages of the server, with secrets removed.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use reqwest::Method;
use reqwest::header::{COOKIE, HeaderMap, HeaderName, HeaderValue, LOCATION, SET_COOKIE};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::config::secrets::names_secret;
use crate::mcp::tracer::Tracer;
use crate::mcp::wire::Arrival;
use crate::model::traffic::Direction;
use crate::model::{CallId, Error};
use crate::net::response::OriginResponse;
use crate::util::clock::{Clock as _, SystemClock};

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

    /// Reports the head of a request, and that of the response that `sending` brings.
    pub(in crate::mcp) async fn trace_exchange(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        call: Option<&CallId>,
        sending: impl Future<Output = Result<OriginResponse, Error>>,
    ) -> Result<OriginResponse, Error> {
        if self.tracer.is_on() {
            let line = format!("{method} {}", address(url));
            let mut all = visible_headers(headers);
            all.extend(self.entry_headers.iter().cloned());
            self.tracer.head(Direction::Sent, line, all, None, call);
        }
        let begun = SystemClock.now();
        let response = sending.await.inspect_err(|error| {
            let text = format!("no response: {}", error.message());
            self.trace_non_message(text.as_bytes(), call);
        })?;
        if self.tracer.is_on() {
            let took = SystemClock.now().duration_since(begun);
            let (line, headers) = (response.status.to_string(), visible_headers(&response.headers));
            self.tracer.head(Direction::Received, line, headers, Some(took), call);
        }
        Ok(response)
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

/// Shorter values are too common to be replaced (`1`, `blue`, `yes`).
const MIN_SECRET_LEN: usize = 6;

#[derive(Default)]
pub(super) struct Redactor(RwLock<Vec<(String, SecretString)>>);

impl Redactor {
    /// Remembers the value of a header; of `Bearer xyz`, `xyz` on its own too.
    pub(super) fn add_secret(&self, header: &str, value: &SecretString) {
        let whole = value.expose_secret();
        let last = whole.rsplit(' ').next().unwrap_or(whole);
        for text in [whole, last] {
            let matches = |(_, secret): &(String, SecretString)| secret.expose_secret() == text;
            if text.len() < MIN_SECRET_LEN || self.secrets().iter().any(matches) {
                continue;
            }
            let mut secrets = self.0.write().unwrap_or_else(PoisonError::into_inner);
            secrets.push((header.to_owned(), SecretString::from(text.to_owned())));
        }
    }

    fn secrets(&self) -> RwLockReadGuard<'_, Vec<(String, SecretString)>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn redact(&self, text: &str) -> String {
        self.secrets().iter().fold(text.to_owned(), |text, (header, secret)| {
            let secret = secret.expose_secret();
            let mark = format!("‹secret:{header}›");
            let text = text.replace(secret, &mark);
            // The form it has inside JSON, and percent-encoded as in a query.
            let json = serde_json::Value::from(secret).to_string();
            let percent: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            text.replace(json.trim_matches('"'), &mark).replace(&percent, &mark)
        })
    }

    pub(super) fn redact_error(&self, error: Error) -> Error {
        if self.secrets().is_empty() {
            return error;
        }
        error.map_text(&|text| self.redact(text))
    }

    /// The arrival without the secrets, as far as its text is ours.
    pub(super) fn redact_arrival(&self, arrival: Arrival) -> Arrival {
        match arrival {
            Arrival::Warning(warning) => Arrival::Warning(self.redact(&warning)),
            Arrival::Failed { id, error } => {
                Arrival::Failed { id, error: self.redact_error(error) }
            }
            other => other,
        }
    }
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

    #[test]
    fn a_secret_is_replaced_in_every_text_of_a_error() {
        let redactor = Redactor::default();
        redactor.add_secret("authorization", &SecretString::from("Bearer hunter2hunter2"));
        let error = redactor.redact_error(
            Error::auth("401: hunter2hunter2")
                .with_hint("not hunter2hunter2")
                .with_detail("a hunter2hunter2"),
        );
        let text = format!("{error:?}");
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(error.message(), "401: ‹secret:authorization›");
    }

    #[test]
    fn a_warning_is_passed_on_without_the_secret() {
        let redactor = Redactor::default();
        redactor.add_secret("x-key", &SecretString::from("hunter2hunter2"));
        let arrival = redactor.redact_arrival(Arrival::Warning("a hunter2hunter2".to_owned()));
        let Arrival::Warning(text) = arrival else { panic!("another arrival") };
        assert_eq!(text, "a ‹secret:x-key›");
    }

    #[test]
    fn encoded_forms_are_replaced_too() {
        let redactor = Redactor::default();
        redactor.add_secret("x-key", &SecretString::from("a\"b/c d+e"));
        assert_eq!(redactor.redact(r#"{"k":"a\"b/c d+e"}"#), r#"{"k":"‹secret:x-key›"}"#);
        assert_eq!(redactor.redact("?k=a%22b%2Fc+d%2Be"), "?k=‹secret:x-key›");
    }

    #[test]
    fn short_values_are_left_alone() {
        let redactor = Redactor::default();
        redactor.add_secret("x-team", &SecretString::from("blue"));
        assert_eq!(redactor.redact("a blue moon"), "a blue moon");
    }
}
