//! Work for the resources view.

use std::path::Path;

use serde_json::Value;
use tokio::sync::mpsc;

use crate::catalogue::ServerListing;
use crate::host::ToolHost;
use crate::host::request::{ItemRequest, LookupScope};
use crate::model::{CompletionQuery, Diagnostic, SubscriptionFilter};
use crate::tui::prelude::*;
use crate::tui::tasks;
use crate::tui::views::offerings::tree::{Offering, ServerOfferings};
use crate::tui::views::offerings::{OfferingRequest, OfferingResponse};
use crate::util::output_paths::output_paths;
use crate::util::timestamp::file_name_timestamp;
use crate::util::{base64, private_file};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchedResource {
    pub server: String,
    pub uri: String,
}

impl WatchedResource {
    /// Where it is watched: once at most.
    pub fn slot(&self) -> String {
        format!("watch {} {}", self.server, self.uri)
    }
}

/// Where the one thing is that is being read or filled in.
pub const REQUEST: &str = "offering";

/// How many resource changes may wait to be reported; more are only counted on arrival.
const CHANGE_QUEUE: usize = 16;

pub fn list_all() -> Task {
    let work = async |context: TaskContext| {
        context.deps.host.servers().into_iter().map(|server| server.name).collect()
    };
    Task::new("list all offerings", work, |state, servers: Vec<String>| {
        for server in &servers {
            state.context.emit(list(server.clone()));
        }
        state.offerings.tree.start_listing(servers);
    })
}

pub fn list(server: String) -> Task {
    let work = {
        let server = server.clone();
        async move |context: TaskContext| listed(&context.deps.host, server).await
    };
    Task::new(("list offerings", server.clone()), work, move |state, offerings| {
        state.offerings.listed(server, offerings, &mut state.context);
    })
}

/// Reads a resource or fills in a prompt; what is opened later takes its place.
pub fn open(ticket: u64, server: String, request: OfferingRequest) -> Task {
    let name = ("open", ticket, server.clone(), request.clone());
    let work = async move |context: TaskContext| {
        let only = ItemRequest::to_servers(&[server], &context.cancel);
        let host = &context.deps.host;
        let response = match request {
            OfferingRequest::Read(uri) => host
                .read(&uri, &only)
                .await
                .map(|resource| OfferingResponse::Contents(Arc::new(resource.contents))),
            OfferingRequest::Get(name, arguments) => {
                let prompt = host.prompt(&name, &arguments, &only).await;
                prompt.map(|prompt| OfferingResponse::Messages(prompt.description, prompt.messages))
            }
        };
        response.unwrap_or_else(OfferingResponse::Failed)
    };
    Task::new(name, work, move |state, response| state.offerings.set_response(ticket, response))
        .in_slot(REQUEST)
}

pub fn complete(server: String, query: CompletionQuery) -> Task {
    let work = {
        let (server, query) = (server.clone(), query.clone());
        async move |context: TaskContext| {
            let scope = LookupScope::of_servers(&[server]);
            let request = ItemRequest { scope, ..ItemRequest::default() };
            context.deps.host.complete(query, &request).await
        }
    };
    Task::new(("complete", server, query.clone()), work, move |state, completion| {
        if let Some(asking) = &mut state.offerings.asking {
            asking.completed(query, completion, &mut state.context);
        }
    })
}

/// Watches a resource until its slot is stopped.
pub fn watch(resource: WatchedResource) -> Task {
    let slot = resource.slot();
    let work = {
        let resource = resource.clone();
        async move |context: TaskContext| {
            let (sender, mut changes) = mpsc::channel(CHANGE_QUEUE);
            let uris = vec![resource.uri.clone()];
            let filter = SubscriptionFilter { lists: Vec::new(), uris };
            let follow = async {
                let servers = vec![(resource.server.clone(), filter)];
                let host = &context.deps.host;
                let outcome = host.watch_servers(servers, &sender, &context.cancel).await;
                drop(sender);
                outcome.err()
            };
            let report = async {
                while let Some(seen) = changes.recv().await {
                    let resource = resource.clone();
                    let change = move |state: &mut AppState| {
                        state.offerings.changed(resource, seen.change, &mut state.context);
                    };
                    context.report(change).await;
                }
            };
            tokio::join!(follow, report).0
        }
    };
    Task::new(("watch", resource.clone()), work, move |state, error| {
        state.offerings.unwatched(&resource, error, &mut state.context);
    })
    .in_slot(slot)
}

pub fn save(parts: Arc<Vec<Value>>) -> Task {
    Task::message(("save resource", Arc::clone(&parts)), async move |context: TaskContext| {
        let name = format!("resource-{}", file_name_timestamp(context.deps.clock.unix()));
        let path = context.deps.cwd.join(name);
        let work = tokio::task::spawn_blocking(move || write_parts(&path, &parts));
        work.await.unwrap_or_else(|error| Err(format!("nothing written: {error}")))
    })
}

async fn listed(host: &ToolHost, server: String) -> ServerOfferings {
    let only = LookupScope::of_servers(std::slice::from_ref(&server));
    let (resources, templates, prompts) =
        tokio::join!(host.resources(&only), host.templates(&only), host.prompts(&only));
    // The host's own profile is always known.
    let (resources, templates, prompts) =
        (resources.unwrap_or_default(), templates.unwrap_or_default(), prompts.unwrap_or_default());
    let mut offerings = ServerOfferings::default();
    for servers in [&resources.servers, &templates.servers, &prompts.servers] {
        note(&mut offerings.errors, servers);
    }
    let problems: [Vec<Diagnostic>; 3] =
        [resources.diagnostics, templates.diagnostics, prompts.diagnostics];
    offerings.problems = problems.into_iter().flatten().map(|problem| problem.message).collect();
    offerings.items.extend(resources.items.into_iter().map(Offering::from));
    offerings.items.extend(templates.items.into_iter().map(Offering::from));
    offerings.items.extend(prompts.items.into_iter().map(Offering::from));
    offerings
}

/// A server that is down says so to each question; once is enough.
fn note(errors: &mut Vec<Error>, servers: &[ServerListing]) {
    for error in servers.iter().filter_map(|server| server.error.clone()) {
        if !errors.iter().any(|other| other.message() == error.message()) {
            errors.push(error);
        }
    }
}

fn write_parts(path: &Path, parts: &[Value]) -> Result<String, String> {
    let media_type = |part: &Value| match part.get("blob") {
        Some(_) => part.get("mimeType").and_then(Value::as_str).unwrap_or_default().to_owned(),
        None => "text/plain".to_owned(),
    };
    let types: Vec<String> = parts.iter().map(media_type).collect();
    let types: Vec<&str> = types.iter().map(String::as_str).collect();
    let mut written: Vec<String> = Vec::new();
    for (target, part) in output_paths(path, &types).into_iter().zip(parts) {
        if let Err(error) = write_part(&target, part) {
            return tasks::file_message(&target, Err(error));
        }
        written.push(target.display().to_string());
    }
    Ok(format!("wrote {}", written.join(", ")))
}

/// Why a part was not written.
#[derive(Debug, thiserror::Error)]
enum SavePartError {
    #[error("not valid base64")]
    Base64,
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

fn write_part(target: &Path, part: &Value) -> Result<(), SavePartError> {
    let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
    let bytes = match part.get("blob") {
        Some(_) => base64::decode(text("blob")).ok_or(SavePartError::Base64)?,
        None => text("text").as_bytes().to_vec(),
    };
    let mut file = private_file::create_new(target)?;
    std::io::Write::write_all(&mut file, &bytes)?;
    Ok(())
}
