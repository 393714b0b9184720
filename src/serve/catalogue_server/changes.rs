//! Sending changes behind the catalogue to clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    Notification, NotificationNoParam, ResourceUpdatedNotificationParam, ServerNotification,
    SubscriptionFilter,
};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::log_line;
use crate::host::ToolHost;
use crate::host::offerings::ServerChange;
use crate::host::request::LookupScope;
use crate::model::{self, ListKind, LogLevel};
use crate::util::lock::lock;

/// How many changes of servers wait before servers are read more slowly.
const WATCH_QUEUE: usize = 64;

/// The resources that clients want to hear of, each watched once.
#[derive(Clone, Default)]
pub(super) struct WatchedResources(Arc<Mutex<HashMap<String, WatchedUri>>>);

struct WatchedUri {
    clients: usize,
    _cancelled_when_dropped: DropGuard,
}

/// A client's interest in a resource; dropped, it ends.
pub(super) struct ResourceWatch {
    uri: String,
    all: WatchedResources,
}

impl WatchedResources {
    pub(super) fn watch(&self, host: &Arc<ToolHost>, uri: &str) -> ResourceWatch {
        let mut watched = lock(&self.0);
        if let Some(existing) = watched.get_mut(uri) {
            existing.clients += 1;
        } else {
            let cancel = CancellationToken::new();
            let (host, uris, stop) = (Arc::clone(host), [uri.to_owned()], cancel.clone());
            tokio::spawn(async move {
                let scope = LookupScope::default();
                // A resource that cannot be watched sends no changes; the client can read it instead.
                let (host, uris, scope) = (&host, &uris, &scope);
                watch_anew(host, &stop, |updates, stop| async move {
                    let _unwatched = host.watch_resources(uris, scope, &updates, &stop).await;
                })
                .await;
            });
            let entry = WatchedUri { clients: 1, _cancelled_when_dropped: cancel.drop_guard() };
            watched.insert(uri.to_owned(), entry);
        }
        ResourceWatch { uri: uri.to_owned(), all: self.clone() }
    }
}

impl Drop for ResourceWatch {
    fn drop(&mut self) {
        let mut watched = lock(&self.all.0);
        if let Some(entry) = watched.get_mut(&self.uri) {
            entry.clients -= 1;
            if entry.clients == 0 {
                watched.remove(&self.uri);
            }
        }
    }
}

pub(super) async fn watch_servers(host: &ToolHost, stop: &CancellationToken) {
    let everything =
        || model::SubscriptionFilter { lists: ListKind::ALL.to_vec(), uris: Vec::new() };
    let everything = &everything;
    watch_anew(host, stop, |updates, stop| async move {
        let servers = host.servers().into_iter();
        let filters = servers.map(|server| (server.name, everything())).collect();
        let _all_failed = host.watch_servers(filters, &updates, &stop).await;
    })
    .await;
}

/// Runs a watch until `stop` fires, and restarts it whenever servers are added, removed or replaced.
/// Its own list of changes is not needed: events report them too.
async fn watch_anew<F: Future<Output = ()>>(
    host: &ToolHost,
    stop: &CancellationToken,
    watch: impl Fn(mpsc::Sender<ServerChange>, CancellationToken) -> F,
) {
    let mut server_changes = host.server_changes();
    while !stop.is_cancelled() {
        server_changes.borrow_and_update();
        let ((updates, mut receiver), round) = (mpsc::channel(WATCH_QUEUE), stop.child_token());
        let watching = async {
            let draining = async { while receiver.recv().await.is_some() {} };
            tokio::join!(watch(updates, round.clone()), draining);
        };
        let ending = async {
            tokio::select! {
                () = stop.cancelled() => {}
                // The host lives as long as this.
                _changed = server_changes.changed() => {}
            }
            round.cancel();
        };
        tokio::join!(watching, ending);
    }
}

/// What clients may want to hear of.
#[derive(Debug, Clone)]
pub(super) enum CatalogueChange {
    /// Items of a list were added, removed or changed.
    List(ListKind),
    Resource(String),
    /// A server or a tool logged a line that belongs to no call.
    Log {
        origin: String,
        level: LogLevel,
        text: String,
    },
}

pub(super) struct Subscription {
    pub(super) accepted: SubscriptionFilter,
    pub(super) watches: Vec<ResourceWatch>,
}

impl Subscription {
    pub(super) fn includes(&self, change: &CatalogueChange) -> bool {
        let accepted = &self.accepted;
        match change {
            CatalogueChange::List(ListKind::Tools) => accepted.tools_list_changed == Some(true),
            CatalogueChange::List(ListKind::Prompts) => accepted.prompts_list_changed == Some(true),
            CatalogueChange::List(ListKind::Resources) => {
                accepted.resources_list_changed == Some(true)
            }
            CatalogueChange::Resource(uri) => self.watches.iter().any(|watch| watch.uri == *uri),
            CatalogueChange::Log { .. } => false,
        }
    }
}

/// Hands what a client wants to hear to `send`, until that fails.
pub(super) async fn forward<E, F: Future<Output = Result<(), E>>>(
    mut changes: broadcast::Receiver<CatalogueChange>,
    is_wanted: impl Fn(&CatalogueChange) -> bool,
    send: impl Fn(ServerNotification) -> F,
) {
    loop {
        let news = match changes.recv().await {
            Ok(change) => vec![change],
            // Too much was missed to say what changed: all lists must be requested again.
            Err(RecvError::Lagged(_)) => ListKind::ALL.map(CatalogueChange::List).to_vec(),
            Err(RecvError::Closed) => return,
        };
        for change in news.into_iter().filter(|change| is_wanted(change)) {
            if let Some(notification) = change.notification()
                && send(notification).await.is_err()
            {
                return;
            }
        }
    }
}

impl CatalogueChange {
    /// What a client is sent of it; `None` for a line whose level is not one of the protocol.
    fn notification(self) -> Option<ServerNotification> {
        Some(match self {
            Self::List(ListKind::Tools) => {
                ServerNotification::ToolListChangedNotification(NotificationNoParam::default())
            }
            Self::List(ListKind::Prompts) => {
                ServerNotification::PromptListChangedNotification(NotificationNoParam::default())
            }
            Self::List(ListKind::Resources) => {
                ServerNotification::ResourceListChangedNotification(NotificationNoParam::default())
            }
            Self::Resource(uri) => ServerNotification::ResourceUpdatedNotification(
                Notification::new(ResourceUpdatedNotificationParam::new(uri)),
            ),
            Self::Log { origin, level, text } => log_line::notification(origin, level, text)?,
        })
    }
}
