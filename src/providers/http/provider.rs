//! The provider of all API entries.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use reqwest::Method;
use reqwest::header::HeaderMap;

use super::again::{Failure, asked_wait};
use super::entry::{self, Entry};
use super::send::{Progress, send};
use super::{answer, request, send as sending};
use crate::config::spec::ToolSpec;
use crate::model::{
    Again, Fault, FaultKind, Phase, Problem, ToolCall, ToolContext, ToolDefinition, ToolResult,
};
use crate::net::client::{self, Settings};
use crate::provider::{Built, KindContext, Preview, ToolProvider};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::units::show_duration;

/// Sends the requests that entries describe.
pub(super) struct HttpProvider {
    tools: Vec<Tool>,
    insecure: bool,
    /// Clients by origin and settings; each keeps its connections.
    clients: Mutex<BTreeMap<(String, bool), reqwest::Client>>,
}

struct Tool {
    definition: Arc<ToolDefinition>,
    entry: Entry,
}

/// Builds the provider from the entries of this kind.
pub(in crate::providers) fn build(specs: &[&ToolSpec], context: &KindContext) -> Built {
    let mut problems: Vec<Problem> = Vec::new();
    let mut tools = Vec::new();
    for spec in specs {
        let name = spec.definition.name.full();
        let mut definition = spec.definition.clone();
        let mut found = Vec::new();
        let surroundings = (context.environment.as_ref(), &context.expanded);
        let entry = entry::read(spec, &mut definition, surroundings, &mut found);
        problems.extend(found.into_iter().map(|problem| problem.entry(name.clone())));
        if let Some(entry) = entry {
            complete(&mut definition, &entry);
            let definition = Arc::new(definition);
            tools.push(Tool { definition, entry });
        }
    }
    let provider = (!tools.is_empty()).then(|| {
        let clients = Mutex::default();
        Arc::new(HttpProvider { tools, insecure: context.insecure, clients })
            as Arc<dyn ToolProvider>
    });
    Built { providers: provider.into_iter().collect(), problems }
}

/// Fills what the entry left out. The method is the author's word about effects, where the entry
/// says nothing else.
fn complete(definition: &mut ToolDefinition, entry: &Entry) {
    let (method, place) = (&entry.method, entry.target.shown());
    definition.description.get_or_insert_with(|| format!("{method} {place}"));
    let annotations = &mut definition.annotations;
    if [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) {
        annotations.read_only.get_or_insert(true);
    }
    if *method == Method::DELETE {
        annotations.destructive.get_or_insert(true);
    }
    if entry.harmless {
        annotations.idempotent.get_or_insert(true);
    }
    annotations.open_world.get_or_insert(true);
    definition.touches.push(format!("sends {method} requests to {place}"));
    let handed = entry.hands_out.iter();
    definition.touches.extend(handed.map(|(secret, place)| format!("sends {secret} in {place}")));
}

impl HttpProvider {
    fn tool(&self, call: &ToolCall) -> Result<&Tool, Fault> {
        self.tools
            .iter()
            .find(|tool| tool.definition.name == call.name)
            .ok_or_else(|| Fault::internal(format!("'{}' is not one of the API tools", call.name)))
    }

    /// The client for the origin of an entry, made when it is first needed.
    fn client(&self, entry: &Entry) -> Result<reqwest::Client, Fault> {
        let origin = entry.target.origin();
        let key = (origin.origin().ascii_serialization(), entry.link_local);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let settings = Settings {
            connect: sending::CONNECT,
            insecure: self.insecure,
            link_local: entry.link_local,
            public: false,
        };
        let client = client::build(origin, &settings, HeaderMap::new())?;
        // Origins come from entries, which bounds the map.
        clients.insert(key, client.clone());
        Ok(client)
    }
}

#[async_trait]
impl ToolProvider for HttpProvider {
    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.iter().map(|tool| Arc::clone(&tool.definition)).collect()
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Fault> {
        let Tool { entry, .. } = self.tool(call)?;
        let request = request::prepare(entry, &call.arguments, Some(context))?;
        let client = self.client(entry)?;
        let progress = Progress::new();
        let answer = tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                let fault = Fault::timeout(progress.words(&request.url)).phase(Phase::Call);
                return Err(fault.again(entry.retry.verdict(Failure::Timeout, entry.harmless, None)));
            }
            answer = send(&client, &request, entry.max_response, &progress) => answer,
        };
        let answer = answer.map_err(|fault| judged(entry, fault))?;
        let mut result = answer::read(entry, &answer)?;
        if let Some(fault) = result.fault.take() {
            let asks = asked_wait(&answer.headers, SystemClock.unix());
            let failure = Failure::Status(answer.status.as_u16());
            let again = if answer.status.is_success() {
                Again::Never
            } else {
                entry.retry.verdict(failure, entry.harmless, asks)
            };
            let fault = match asks {
                Some(wait) => fault.detail(format!("it asks to wait {}", show_duration(wait))),
                None => fault,
            };
            result.fault = Some(fault.again(again));
        }
        Ok(result)
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Fault> {
        let Tool { entry, .. } = self.tool(call)?;
        let request = request::prepare(entry, &call.arguments, None)?;
        let summary = format!("sends {} {}", request.method, request.url);
        Ok(Preview { summary, request: request.shown() })
    }
}

/// A failure without an answer, with what the entry says about repeating it.
fn judged(entry: &Entry, fault: Fault) -> Fault {
    let failure = match (fault.kind(), fault.at_phase()) {
        (FaultKind::Unreachable | FaultKind::Timeout, Some(Phase::Start)) => Failure::Connect,
        (FaultKind::Unreachable, _) => Failure::Lost,
        _ => return fault,
    };
    fault.again(entry.retry.verdict(failure, entry.harmless, None))
}
