//! Removing sent secrets from error messages of the server.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use secrecy::{ExposeSecret as _, SecretString};

use crate::mcp::wire::Arrival;
use crate::model::Error;

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
