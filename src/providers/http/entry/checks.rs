//! Scalar keys of an entry, and checks between keys.

use reqwest::Method;

use super::{DEFAULT_RESPONSE_BYTES, EntryParser, MAX_RESPONSE_BYTES, METHODS};
use crate::config::node::ConfigNode;
use crate::config::plain_http;
use crate::model::{Diagnostic, ToolDefinition};
use crate::net::address::{is_link_local, literal_ip};
use crate::providers::hinted_error::HintedError as _;
use crate::providers::http::body::{BodyTemplate, BodyType};
use crate::providers::http::pointer;
use crate::providers::http::retry::RetryPolicy;
use crate::providers::http::url_template::UrlTemplate;
use crate::util::units;

impl EntryParser<'_> {
    pub(super) fn method(&mut self, has_body: bool) -> Option<Method> {
        let Some(node) = self.get("method") else {
            return Some(if has_body { Method::POST } else { Method::GET });
        };
        let word = self.ok_or_report(node.as_text())?;
        let upper = word.to_ascii_uppercase();
        if let Some(method) = METHODS.iter().find(|method| **method == upper) {
            return Method::from_bytes(method.as_bytes()).ok();
        }
        let diagnostic = Diagnostic::error(format!(
            "'{word}' is not a method; it is one of {}",
            METHODS.join(", ")
        ));
        let diagnostic = diagnostic.with_suggestion(&upper, METHODS);
        self.diagnostics.push(diagnostic.with_location(node.location()));
        None
    }

    pub(super) fn body_type(&mut self, body: Option<&BodyTemplate>) -> BodyType {
        let Some(node) = self.get("body_type") else {
            return if matches!(body, Some(BodyTemplate::Text(template)) if !template.is_call_value())
            {
                BodyType::Text
            } else {
                BodyType::Json
            };
        };
        let word = node.as_text().unwrap_or_default();
        let parsed = BodyType::parse(word);
        if parsed.is_none() {
            let message =
                format!("'{word}' is not a type of a body; it is one of json, form, text");
            self.diagnostics.push(Diagnostic::error(message).with_location(node.location()));
        }
        parsed.unwrap_or(BodyType::Json)
    }

    pub(super) fn check_body(
        &mut self,
        method: &Method,
        body: Option<&BodyTemplate>,
        more: bool,
        kind: BodyType,
    ) {
        let spot = |parser: &Self, key: &str| {
            parser.get(key).map_or_else(|| parser.spec.location.clone(), ConfigNode::location)
        };
        let object = body.is_none_or(|body| matches!(body, BodyTemplate::Object(_)));
        if more && !object {
            self.diagnostics.push(
                Diagnostic::error("arguments cannot be added to a body that is not an object")
                    .with_hint("put {name} into the body for each, or place them with 'params'")
                    .with_location(spot(self, "body")),
            );
        }
        match kind {
            BodyType::Form if !object => self.diagnostics.push(
                Diagnostic::error("the body of a form is an object")
                    .with_location(spot(self, "body")),
            ),
            BodyType::Text if !matches!(body, Some(BodyTemplate::Text(_))) => {
                self.diagnostics.push(
                    Diagnostic::error("'body_type: text' needs 'body' to be text")
                        .with_hint("write body: \"{name}\"")
                        .with_location(spot(self, "body_type")),
                );
            }
            _ => {}
        }
        if [Method::GET, Method::HEAD].contains(method) && (body.is_some() || more) {
            let message = format!("many servers ignore the body of a {method}");
            self.diagnostics.push(
                Diagnostic::warning(message)
                    .with_hint("leave 'method' out for POST, or place arguments in the query")
                    .with_location(spot(self, "method")),
            );
        }
    }

    pub(super) fn check_retry(
        &mut self,
        retry: &RetryPolicy,
        repeatable: bool,
        definition: &mut ToolDefinition,
    ) {
        let own = self.get("retries");
        match (retry.max, own) {
            (Some(max), Some(node)) if max != definition.retries => self.diagnostics.push(
                Diagnostic::error(format!(
                    "'retries' is {}, but 'retry' is {max}",
                    definition.retries
                ))
                .with_hint("one of them is enough")
                .with_location(node.location()),
            ),
            (Some(max), _) => {
                definition.retries = max;
                definition.has_own_retries |= max > 0;
            }
            (None, _) => {}
        }
        definition.backoff = retry.backoff;
        let node = own.or_else(|| self.get("retry"));
        if let Some(node) = node
            && !repeatable
            && !retry.is_explicit()
            && definition.retries > 0
        {
            self.diagnostics.push(
                Diagnostic::warning(
                    "only failures to connect are retried: repeating this method may act twice",
                )
                .with_hint("set retry: { on: […] }, or annotations: { idempotentHint: true }")
                .with_location(node.location()),
            );
        }
        definition.is_repeatable |= retry.is_explicit();
    }

    /// Credentials go over TLS or to this machine, unless the user's own entry says otherwise.
    pub(super) fn check_transport(&mut self, target: &UrlTemplate, authorized: bool) {
        let origin = self.spec.definition.entry.as_deref();
        let insecure = self.ok_or_report(plain_http::insecure(&self.spec.entry, origin));
        let place = self
            .get("endpoint_url")
            .map_or_else(|| self.spec.location.clone(), ConfigNode::location);
        let refused =
            plain_http::unencrypted(target.origin(), authorized, insecure.unwrap_or_default());
        self.diagnostics.extend(refused.map(|diagnostic| diagnostic.with_location(place)));
    }

    pub(super) fn response_path(&mut self) -> Option<String> {
        let node = self.get("response_path")?;
        let text = self.ok_or_report(node.as_text())?;
        self.ok_or_report(pointer::check(text).map_err(|error| error.diagnostic(node)))
    }

    pub(super) fn max_response(&mut self) -> usize {
        let defaults = self.spec.defaults.as_ref();
        let default = || defaults.and_then(|defaults| defaults.get("max_response_bytes"));
        let Some(node) = self.get("max_response_bytes").or_else(default) else {
            return usize::try_from(DEFAULT_RESPONSE_BYTES).unwrap_or(usize::MAX);
        };
        let size = node.as_scalar_text().ok().and_then(|text| units::size(&text));
        let size = size.filter(|size| (1..=MAX_RESPONSE_BYTES).contains(size));
        if size.is_none() {
            self.diagnostics.push(node.expected("a size from 1 to 16MiB, such as 256KiB"));
        }
        usize::try_from(size.unwrap_or(DEFAULT_RESPONSE_BYTES)).unwrap_or(usize::MAX)
    }

    pub(super) fn link_local(&mut self, target: Option<&UrlTemplate>) -> bool {
        let allowed = match self.get("allow_link_local") {
            Some(node) => self.ok_or_report(node.as_bool()).unwrap_or_default(),
            None => false,
        };
        if let Some(address) = target.and_then(|target| literal_ip(target.origin()))
            && is_link_local(address)
            && !allowed
        {
            let place = self
                .get("endpoint_url")
                .map_or_else(|| self.spec.location.clone(), ConfigNode::location);
            self.diagnostics.push(
                Diagnostic::error(format!("{address} is a link-local address"))
                    .with_hint(
                        "clouds hand out credentials there; 'allow_link_local: true' permits it",
                    )
                    .with_location(place),
            );
        }
        allowed
    }
}
