//! Sending changes behind the catalogue to clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{
    Notification, NotificationNoParam, ResourceUpdatedNotificationParam, ServerNotification,
    SubscriptionFilter,
};
use rmcp::service::Peer;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client_registry::CatalogueChange;
use super::log_line::ServedLogLine;
use crate::host::ToolHost;
use crate::host::offerings::ServerChange;
use crate::host::request::LookupScope;
use crate::model::{self, ListKind};

/// How many changes of servers wait before servers are read more slowly.
const WATCH_QUEUE: usize = 64;

pub(super) struct ChangeFeed {
    changes: broadcast::Sender<CatalogueChange>,
    watched: Arc<Mutex<HashMap<String, WatchedUri>>>,
}

struct WatchedUri {
    clients: usize,
    _cancelled_when_dropped: DropGuard,
}

/// A client's interest in a resource; dropped, it ends.
pub(super) struct ResourceWatch {
    uri: String,
    watched: Arc<Mutex<HashMap<String, WatchedUri>>>,
}

impl ChangeFeed {
    pub(super) fn new(changes: broadcast::Sender<CatalogueChange>) -> Self {
        Self { changes, watched: Arc::default() }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<CatalogueChange> {
        self.changes.subscribe()
    }

    pub(super) fn watch(&self, host: &Arc<ToolHost>, uri: &str) -> ResourceWatch {
        let mut watched = lock(&self.watched);
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
        ResourceWatch { uri: uri.to_owned(), watched: Arc::clone(&self.watched) }
    }
}

impl Drop for ResourceWatch {
    fn drop(&mut self) {
        let mut watched = lock(&self.watched);
        if let Some(entry) = watched.get_mut(&self.uri) {
            entry.clients -= 1;
            if entry.clients == 0 {
                watched.remove(&self.uri);
            }
        }
    }
}

fn lock(
    watched: &Mutex<HashMap<String, WatchedUri>>,
) -> MutexGuard<'_, HashMap<String, WatchedUri>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
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

/// What a client wants to hear of.
pub(super) trait Interests: Send + Sync {
    fn has_list(&self, list: ListKind) -> bool;
    fn has_resource(&self, uri: &str) -> bool;
    fn has_line(&self, line: &ServedLogLine) -> bool;
}

pub(super) struct Subscription {
    pub(super) accepted: SubscriptionFilter,
    pub(super) watches: Vec<ResourceWatch>,
}

impl Interests for Subscription {
    fn has_list(&self, list: ListKind) -> bool {
        let flag = match list {
            ListKind::Tools => self.accepted.tools_list_changed,
            ListKind::Prompts => self.accepted.prompts_list_changed,
            ListKind::Resources => self.accepted.resources_list_changed,
        };
        flag == Some(true)
    }

    fn has_resource(&self, uri: &str) -> bool {
        self.watches.iter().any(|watch| watch.uri == uri)
    }

    fn has_line(&self, _line: &ServedLogLine) -> bool {
        false
    }
}

pub struct ClientChanges(broadcast::Receiver<CatalogueChange>);

/// One of them; without one too much was missed to say what changed.
pub struct ClientChange(Option<CatalogueChange>);

impl ClientChanges {
    pub(super) fn new(changes: broadcast::Receiver<CatalogueChange>) -> Self {
        Self(changes)
    }

    /// The next change; `None` when there is no more.
    pub async fn next(&mut self) -> Option<ClientChange> {
        match self.0.recv().await {
            Ok(change) => Some(ClientChange(Some(change))),
            Err(RecvError::Lagged(_)) => Some(ClientChange(None)),
            Err(RecvError::Closed) => None,
        }
    }
}

impl ClientChange {
    pub(super) fn notifications(&self, client: &dyn Interests) -> Vec<ServerNotification> {
        let lists = match &self.0 {
            Some(CatalogueChange::List(list)) => vec![*list],
            // Every list must be requested again.
            None => ListKind::ALL.to_vec(),
            Some(CatalogueChange::Resource(uri)) if client.has_resource(uri) => {
                let updated = ResourceUpdatedNotificationParam::new(uri.as_str());
                let updated = Notification::new(updated);
                return vec![ServerNotification::ResourceUpdatedNotification(updated)];
            }
            Some(CatalogueChange::Log(line)) if client.has_line(line) => {
                let line = line.clone().notification().map(Notification::new);
                return line
                    .map(ServerNotification::LoggingMessageNotification)
                    .into_iter()
                    .collect();
            }
            Some(_) => Vec::new(),
        };
        lists.into_iter().filter(|list| client.has_list(*list)).map(list_changed).collect()
    }
}

fn list_changed(list: ListKind) -> ServerNotification {
    match list {
        ListKind::Tools => {
            ServerNotification::ToolListChangedNotification(NotificationNoParam::default())
        }
        ListKind::Prompts => {
            ServerNotification::PromptListChangedNotification(NotificationNoParam::default())
        }
        ListKind::Resources => {
            ServerNotification::ResourceListChangedNotification(NotificationNoParam::default())
        }
    }
}

/// Notifies a client of the older era of changes, until it disconnects.
pub(super) async fn tell_legacy_client(
    peer: Peer<RoleServer>,
    mut changes: ClientChanges,
    interests: Arc<dyn Interests>,
    disconnected: CancellationToken,
) {
    loop {
        let change = tokio::select! {
            () = disconnected.cancelled() => return,
            change = changes.next() => change,
        };
        let Some(change) = change else { return };
        for notification in change.notifications(&*interests) {
            if peer.send_notification(notification).await.is_err() {
                return;
            }
        }
    }
}
