//! Scalar keys of an entry, and checks between keys.

use reqwest::Method;

use super::{DEFAULT_RESPONSE_BYTES, EntryParser, MAX_RESPONSE_BYTES, METHODS};
use crate::config::node::ConfigNode;
use crate::config::plain_http;
use crate::model::{Diagnostic, SourceLocation, ToolDefinition};
use crate::net::address::{is_link_local, literal_ip};
use crate::providers::http::body::{BodyTemplate, BodyType};
use crate::providers::http::pointer;
use crate::providers::http::send::RetryPolicy;
use crate::providers::http::url_template::UrlTemplate;

impl EntryParser<'_> {
    pub(super) fn method(&mut self, has_body: bool) -> Option<Method> {
        let Some(word) = &self.keys.method else {
            return Some(if has_body { Method::POST } else { Method::GET });
        };
        let upper = word.to_ascii_uppercase();
        if let Some(method) = METHODS.iter().find(|method| **method == upper) {
            return Method::from_bytes(method.as_bytes()).ok();
        }
        let message =
            format!("'{}' is not a method; it is one of {}", word.value, METHODS.join(", "));
        self.diagnostics.push(word.error(message).with_suggestion(&upper, METHODS));
        None
    }

    pub(super) fn body_type(&self, body: Option<&BodyTemplate>) -> BodyType {
        match (&self.keys.body_type, body) {
            (Some(named), _) => named.value,
            (None, Some(BodyTemplate::Text(template))) if !template.is_call_value() => {
                BodyType::Text
            }
            (None, _) => BodyType::Json,
        }
    }

    pub(super) fn check_body(
        &mut self,
        method: &Method,
        body: Option<&BodyTemplate>,
        more: bool,
        kind: BodyType,
    ) {
        let entry = &self.spec.location;
        let at_body = self.keys.body.as_ref().map_or_else(|| entry.clone(), ConfigNode::location);
        let at_type = self.keys.body_type.as_ref().map_or(entry, |key| &key.location).clone();
        let at_method = self.keys.method.as_ref().map_or(entry, |key| &key.location).clone();
        let object = body.is_none_or(|body| matches!(body, BodyTemplate::Map(_)));
        if more && !object {
            self.diagnostics.push(
                Diagnostic::error("arguments cannot be added to a body that is not an object")
                    .with_hint("put {name} into the body for each, or place them with 'params'")
                    .with_location(at_body.clone()),
            );
        }
        match kind {
            BodyType::Form | BodyType::Multipart if !object => self
                .diagnostics
                .push(Diagnostic::error("the body of a form is an object").with_location(at_body)),
            BodyType::Text if !matches!(body, Some(BodyTemplate::Text(_))) => {
                self.diagnostics.push(
                    Diagnostic::error("'body_type: text' needs 'body' to be text")
                        .with_hint("write body: \"{name}\"")
                        .with_location(at_type),
                );
            }
            _ => {}
        }
        if [Method::GET, Method::HEAD].contains(method) && (body.is_some() || more) {
            let message = format!("many servers ignore the body of a {method}");
            self.diagnostics.push(
                Diagnostic::warning(message)
                    .with_hint("leave 'method' out for POST, or place arguments in the query")
                    .with_location(at_method),
            );
        }
    }

    pub(super) fn check_retry(
        &mut self,
        retry: &RetryPolicy,
        repeatable: bool,
        definition: &mut ToolDefinition,
    ) {
        let own = self.spec.entry.get("retries").filter(|node| !node.is_null());
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
        let written = self.request.retry.as_ref().map(|retry| retry.location.clone());
        if let Some(place) = own.map(ConfigNode::location).or(written)
            && !repeatable
            && !retry.is_explicit()
            && definition.retries > 0
        {
            self.diagnostics.push(
                Diagnostic::warning(
                    "only failures to connect are retried: repeating this method may act twice",
                )
                .with_hint("set retry: { on: […] }, or annotations: { idempotentHint: true }")
                .with_location(place),
            );
        }
        definition.is_repeatable |= retry.is_explicit();
    }

    /// Credentials go over TLS or to this machine, unless the user's own entry says otherwise.
    pub(super) fn check_transport(&mut self, target: &UrlTemplate, authorized: bool) {
        let origin = self.spec.definition.entry.as_deref();
        let insecure = plain_http::insecure(self.request.insecure.as_ref(), origin);
        let insecure = self.diagnostics.ok(insecure).unwrap_or_default();
        let refused = plain_http::unencrypted(target.origin(), authorized, insecure);
        self.diagnostics
            .extend(refused.map(|diagnostic| diagnostic.with_location(self.at_endpoint())));
    }

    fn at_endpoint(&self) -> SourceLocation {
        self.keys.endpoint_url.as_ref().map_or(&self.spec.location, |url| &url.location).clone()
    }

    pub(super) fn response_path(&mut self) -> Option<String> {
        let path = self.keys.response_path.take()?;
        let checked = pointer::check(&path);
        self.diagnostics.ok(checked.map_err(|error| error.with_location(path.location.clone())))
    }

    pub(super) fn max_response(&self) -> usize {
        let size = self.request.max_response_bytes.map(|size| size.0);
        let default = || Some(self.spec.defaults().max_response_bytes?.0.min(MAX_RESPONSE_BYTES));
        let size = size.or_else(default).unwrap_or(DEFAULT_RESPONSE_BYTES);
        usize::try_from(size).unwrap_or(usize::MAX)
    }

    pub(super) fn link_local(&mut self, target: Option<&UrlTemplate>) -> bool {
        let allowed = self.request.allow_link_local.unwrap_or_default();
        if let Some(address) = target.and_then(|target| literal_ip(target.origin()))
            && is_link_local(address)
            && !allowed
        {
            self.diagnostics.push(
                Diagnostic::error(format!("{address} is a link-local address"))
                    .with_hint(
                        "clouds hand out credentials there; 'allow_link_local: true' permits it",
                    )
                    .with_location(self.at_endpoint()),
            );
        }
        allowed
    }
}
