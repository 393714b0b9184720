//! Work for the resources view.

use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::catalogue::ServerListing;
use crate::host::ToolHost;
use crate::host::request::{ItemRequest, LookupScope};
use crate::model::{CompletionQuery, Diagnostic, SubscriptionFilter, ToolResult};
use crate::tui::prelude::*;
use crate::tui::views::offerings::tree::{Offering, OfferingId, ServerOfferings};
use crate::tui::views::offerings::{OfferingRequest, OfferingResponse};
use crate::tui::views::tools::tasks::{block_payloads, write_payloads};
use crate::util::timestamp::file_name_timestamp;

/// Where a resource is watched: once at most.
pub fn watch_slot(resource: &OfferingId) -> String {
    format!("watch {} {}", resource.server, resource.name)
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
pub fn watch(resource: OfferingId) -> Task {
    let slot = watch_slot(&resource);
    let work = {
        let resource = resource.clone();
        async move |context: TaskContext| {
            let (sender, mut changes) = mpsc::channel(CHANGE_QUEUE);
            let uris = vec![resource.name.clone()];
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
        let stem = format!("resource-{}", file_name_timestamp(context.deps.clock.unix()));
        let payloads = move || {
            let block = |part: &Value| json!({ "type": "resource", "resource": part });
            let content = parts.iter().map(block).collect();
            block_payloads(&ToolResult { content, ..ToolResult::default() })
        };
        write_payloads(&stem, payloads, &context.deps.cwd).await
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
