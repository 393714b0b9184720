//! The provider of all entries of kind `http`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use reqwest::Method;
use reqwest::header::HeaderMap;

use super::entry::{self, HttpEntry, IDEMPOTENT};
use super::send::{CONNECT_TIMEOUT, HttpFailure, retry_after, send};
use super::{request, response};
use crate::config::spec::ToolSpec;
use crate::model::{
    Error, ErrorKind, ErrorPhase, RetryAdvice, ToolCall, ToolContext, ToolDefinition, ToolResult,
};
use crate::net::client::{ClientSettings, HttpClient};
use crate::provider::{BuiltProviders, Preview, ProviderDeps};
use crate::providers::local::{self, LocalTool};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::tls::TlsPem;
use crate::util::units::show_duration;

/// Clients by origin and settings; each keeps its connections.
#[derive(Default)]
struct HttpClients {
    insecure: bool,
    clients: Mutex<BTreeMap<(String, bool), HttpClient>>,
}

struct HttpTool {
    entry: HttpEntry,
    clients: Arc<HttpClients>,
}

pub(in crate::providers) fn build(specs: &[&ToolSpec], context: &ProviderDeps) -> BuiltProviders {
    let clients = Arc::new(HttpClients { insecure: context.insecure, ..HttpClients::default() });
    local::build(specs, |spec, diagnostics| {
        let mut definition = spec.definition.clone();
        let variables = (context.environment.as_ref(), &context.expanded);
        let entry = entry::read(spec, &mut definition, variables, diagnostics)?;
        complete(&mut definition, &entry);
        Some((definition, HttpTool { entry, clients: Arc::clone(&clients) }))
    })
}

/// Fills what the entry left out. The method is the author's word about effects, where the entry
/// says nothing else.
fn complete(definition: &mut ToolDefinition, entry: &HttpEntry) {
    let (method, place) = (&entry.method, entry.url.shown());
    definition.description.get_or_insert_with(|| format!("{method} {place}"));
    let annotations = &mut definition.annotations;
    if [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) {
        annotations.read_only.get_or_insert(true);
    }
    if *method == Method::DELETE {
        annotations.destructive.get_or_insert(true);
    }
    if IDEMPOTENT.contains(method) || annotations.read_only == Some(true) {
        annotations.idempotent.get_or_insert(true);
    }
    annotations.open_world.get_or_insert(true);
    definition.touches.push(format!("sends {method} requests to {place}"));
    let handed = entry.exposed_secrets.iter();
    definition.touches.extend(handed.map(|(secret, place)| format!("sends {secret} in {place}")));
}

impl HttpClients {
    /// The client for the origin of an entry, made when it is first needed.
    fn client(&self, entry: &HttpEntry) -> Result<HttpClient, Error> {
        let origin = entry.url.origin();
        let key = (origin.origin().ascii_serialization(), entry.link_local);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let settings = ClientSettings {
            connect_timeout: CONNECT_TIMEOUT,
            insecure: self.insecure,
            allows_link_local: entry.link_local,
            requires_public: false,
            tls: TlsPem::default(),
        };
        let client = HttpClient::new(origin, None, &settings, HeaderMap::new())?;
        // Origins come from entries, which bounds the map.
        clients.insert(key, client.clone());
        Ok(client)
    }
}

#[async_trait]
impl LocalTool for HttpTool {
    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let entry = &self.entry;
        let request = request::prepare(entry, &call.arguments, Some(context))?;
        let client = self.clients.client(entry)?;
        let answer = send(&client, &request, entry.max_response, &context.cancel).await;
        let answer = answer.map_err(|error| with_retry_verdict(entry, error))?;
        let mut result = response::read(entry.response_rules(), &answer)?;
        if let Some(error) = result.error.take() {
            let asks = retry_after(&answer.headers, SystemClock.unix());
            let failure = HttpFailure::Status(answer.status.as_u16());
            let again = if answer.status.is_success() {
                RetryAdvice::Never
            } else {
                entry.retry.verdict(failure, entry.is_repeatable, asks)
            };
            let error = match asks {
                Some(wait) => error.with_detail(format!("it asks to wait {}", show_duration(wait))),
                None => error,
            };
            result.error = Some(error.with_retry_advice(again));
        }
        Ok(result)
    }

    fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let request = request::prepare(&self.entry, &call.arguments, None)?;
        let summary = format!("sends {} {}", request.method, request.url);
        Ok(Preview { summary, request: request.shown() })
    }
}

/// A failure without an answer, with what the entry says about repeating it.
fn with_retry_verdict(entry: &HttpEntry, error: Error) -> Error {
    let failure = match (error.kind(), error.phase()) {
        (ErrorKind::Unreachable | ErrorKind::Timeout, Some(ErrorPhase::Start)) => {
            HttpFailure::Connect
        }
        (ErrorKind::Unreachable, _) => HttpFailure::ConnectionLost,
        (ErrorKind::Timeout, Some(ErrorPhase::Call)) => HttpFailure::Timeout,
        _ => return error,
    };
    error.with_retry_advice(entry.retry.verdict(failure, entry.is_repeatable, None))
}
