//! Commands and events of the resources view.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::catalogue::ServerListing;
use crate::host::ToolHost;
use crate::host::request::{ItemRequest, LookupScope};
use crate::model::{
    Completion, CompletionQuery, Diagnostic, Error, JsonObject, Prompt, PromptMessages, Resource,
    ResourceContents, ResourceTemplate, SubscriptionEvent, SubscriptionFilter,
};
use crate::tui::event::AppEvent;
use crate::tui::tasks::{self, EffectRunner};
use crate::util::output_paths::output_paths;
use crate::util::timestamp::file_name_timestamp;
use crate::util::{base64, private_file};

#[derive(Debug, Clone, PartialEq)]
pub enum OfferingsEffect {
    ListAll,
    List(String),
    ReadResource {
        ticket: OfferingRequestId,
        server: String,
        uri: String,
    },
    GetPrompt {
        ticket: OfferingRequestId,
        server: String,
        name: String,
        /// The values of the arguments; the specification allows only texts.
        arguments: JsonObject,
    },
    CancelRequest,
    /// Ask what an argument may be.
    Complete {
        server: String,
        query: CompletionQuery,
    },
    Watch(WatchedResource),
    Unwatch(WatchedResource),
    /// Write the parts of a resource to files.
    Save(Arc<Vec<Value>>),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfferingRequestId(pub u64);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchedResource {
    pub server: String,
    pub uri: String,
}

#[derive(Debug, Default)]
pub struct ServerOfferings {
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    pub prompts: Vec<Prompt>,
    /// The distinct errors of lists that could not be read.
    pub errors: Vec<Error>,
    /// Warnings about entries that were left out.
    pub problems: Vec<String>,
}

/// What the effects report to the resources view.
#[derive(Debug)]
pub enum OfferingsEvent {
    /// These servers there are; they are being asked.
    Servers(Vec<String>),
    Listed(String, Box<ServerOfferings>),
    ResourceRead(OfferingRequestId, Box<Result<ResourceContents, Error>>),
    PromptReceived(OfferingRequestId, Box<Result<PromptMessages, Error>>),
    Completed(CompletionQuery, Result<Completion, Error>),
    ResourceChanged(WatchedResource, SubscriptionEvent),
    /// The subscription failed, so the resource is not watched.
    Unwatched(WatchedResource, Option<Error>),
}

/// How many resource changes may wait to be reported; more are only counted on arrival.
const CHANGE_QUEUE: usize = 16;

/// The requests in flight, so that a newer one can replace an older one.
#[derive(Default)]
pub struct OfferingTasks {
    /// The one thing that is being read or filled in.
    request: CancellationToken,
    watches: HashMap<WatchedResource, CancellationToken>,
}

impl OfferingTasks {
    /// Gives all of it up: the host it was asked of is replaced.
    pub fn cancel_all(&mut self) {
        std::mem::take(&mut self.request).cancel();
        self.watches.drain().for_each(|(_, cancel)| cancel.cancel());
    }
}

impl EffectRunner {
    pub fn run_offerings_effect(&mut self, effect: OfferingsEffect) {
        let host = Arc::clone(&self.deps.host);
        match effect {
            OfferingsEffect::ListAll => {
                let servers: Vec<String> =
                    host.servers().into_iter().map(|server| server.name).collect();
                let (send, all) = (self.event_tx.clone(), servers.clone());
                tokio::spawn(async move {
                    // Before the first of them answers.
                    let _gone = send.send(AppEvent::Offerings(OfferingsEvent::Servers(all))).await;
                    for server in servers {
                        let (host, send) = (Arc::clone(&host), send.clone());
                        tokio::spawn(async move { send.send(listed(&host, server).await).await });
                    }
                });
            }
            OfferingsEffect::List(server) => self.spawn(async move { listed(&host, server).await }),
            OfferingsEffect::ReadResource { ticket, server, uri } => {
                let cancel = self.next_request();
                self.spawn(async move {
                    let read = host.read(&uri, &ItemRequest::to_servers(&[server], &cancel)).await;
                    AppEvent::Offerings(OfferingsEvent::ResourceRead(ticket, Box::new(read)))
                });
            }
            OfferingsEffect::GetPrompt { ticket, server, name, arguments } => {
                let cancel = self.next_request();
                self.spawn(async move {
                    let got = host
                        .prompt(&name, &arguments, &ItemRequest::to_servers(&[server], &cancel))
                        .await;
                    AppEvent::Offerings(OfferingsEvent::PromptReceived(ticket, Box::new(got)))
                });
            }
            OfferingsEffect::CancelRequest => drop(self.next_request()),
            OfferingsEffect::Complete { server, query } => self.spawn(async move {
                let request = ItemRequest {
                    scope: LookupScope::of_servers(&[server]),
                    ..ItemRequest::default()
                };
                let done = host.complete(query.clone(), &request).await;
                AppEvent::Offerings(OfferingsEvent::Completed(query, done))
            }),
            OfferingsEffect::Watch(watched_resource) => self.watch_resource(watched_resource),
            OfferingsEffect::Unwatch(watched_resource) => {
                if let Some(cancel) = self.offering_tasks.watches.remove(&watched_resource) {
                    cancel.cancel();
                }
            }
            OfferingsEffect::Save(parts) => {
                let name = format!("resource-{}", file_name_timestamp(self.deps.clock.unix()));
                let path = self.deps.cwd.join(name);
                let work = tokio::task::spawn_blocking(move || save(&path, &parts));
                self.spawn(async move {
                    work.await.unwrap_or_else(|error| {
                        AppEvent::failed(format!("nothing written: {error}"))
                    })
                });
            }
        }
    }

    fn next_request(&mut self) -> CancellationToken {
        let next = CancellationToken::new();
        std::mem::replace(&mut self.offering_tasks.request, next.clone()).cancel();
        next
    }

    fn watch_resource(&mut self, watched_resource: WatchedResource) {
        let cancel = CancellationToken::new();
        if let Some(before) =
            self.offering_tasks.watches.insert(watched_resource.clone(), cancel.clone())
        {
            before.cancel();
        }
        let (host, send) = (Arc::clone(&self.deps.host), self.event_tx.clone());
        self.spawn(async move {
            let (sender, mut seen) = mpsc::channel(CHANGE_QUEUE);
            let wanted =
                SubscriptionFilter { lists: Vec::new(), uris: vec![watched_resource.uri.clone()] };
            let following = async {
                let outcome = host
                    .watch_servers(
                        vec![(watched_resource.server.clone(), wanted)],
                        &sender,
                        &cancel,
                    )
                    .await;
                drop(sender);
                outcome
            };
            let telling = async {
                while let Some(seen) = seen.recv().await {
                    let event =
                        OfferingsEvent::ResourceChanged(watched_resource.clone(), seen.change);
                    let _gone = send.send(AppEvent::Offerings(event)).await;
                }
            };
            let (outcome, ()) = tokio::join!(following, telling);
            AppEvent::Offerings(OfferingsEvent::Unwatched(watched_resource.clone(), outcome.err()))
        });
    }
}

async fn listed(host: &ToolHost, server: String) -> AppEvent {
    let only = LookupScope::of_servers(std::slice::from_ref(&server));
    let (resources, templates, prompts) =
        tokio::join!(host.resources(&only), host.templates(&only), host.prompts(&only));
    // The host's own profile is always known.
    let (resources, templates, prompts) =
        (resources.unwrap_or_default(), templates.unwrap_or_default(), prompts.unwrap_or_default());
    let mut lists = ServerOfferings::default();
    for asked in [&resources.servers, &templates.servers, &prompts.servers] {
        note(&mut lists.errors, asked);
    }
    let problems: [Vec<Diagnostic>; 3] =
        [resources.diagnostics, templates.diagnostics, prompts.diagnostics];
    lists.problems = problems.into_iter().flatten().map(|problem| problem.message).collect();
    lists.resources = resources.items;
    lists.templates = templates.items;
    lists.prompts = prompts.items;
    AppEvent::Offerings(OfferingsEvent::Listed(server, Box::new(lists)))
}

/// A server that is down says so to each question; once is enough.
fn note(errors: &mut Vec<Error>, asked: &[ServerListing]) {
    for error in asked.iter().filter_map(|server| server.error.clone()) {
        if !errors.iter().any(|known| known.message() == error.message()) {
            errors.push(error);
        }
    }
}

fn save(path: &Path, parts: &[Value]) -> AppEvent {
    let kind = |part: &Value| match part.get("blob") {
        Some(_) => part.get("mimeType").and_then(Value::as_str).unwrap_or_default().to_owned(),
        None => "text/plain".to_owned(),
    };
    let kinds: Vec<String> = parts.iter().map(kind).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let mut written: Vec<String> = Vec::new();
    for (target, part) in output_paths(path, &kinds).into_iter().zip(parts) {
        if let Err(error) = save_one(&target, part) {
            return tasks::write_result_event(&target, Err(error));
        }
        written.push(target.display().to_string());
    }
    match &written[..] {
        [one] => tasks::write_result_event(&PathBuf::from(one), Ok::<(), SavePartError>(())),
        all => AppEvent::said(format!("wrote {}", all.join(", "))),
    }
}

/// Why a part was not written.
#[derive(Debug, thiserror::Error)]
enum SavePartError {
    #[error("not valid base64")]
    Base64,
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

fn save_one(target: &Path, part: &Value) -> Result<(), SavePartError> {
    let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
    let bytes = match part.get("blob") {
        Some(_) => base64::decode(text("blob")).ok_or(SavePartError::Base64)?,
        None => text("text").as_bytes().to_vec(),
    };
    let mut file = private_file::create_new(target)?;
    std::io::Write::write_all(&mut file, &bytes)?;
    Ok(())
}
