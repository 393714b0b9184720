//! Sending changes behind the catalogue to clients.
#![expect(deprecated, reason = "log lines are part of the older era, and deprecated in the newer")]

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, Weak};

use rmcp::model::{
    LoggingMessageNotificationParam, Notification, NotificationNoParam,
    ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter,
};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::host::ToolHost;
use crate::host::offerings::ServerChange;
use crate::host::request::LookupScope;
use crate::model::event::{LOG_LEVELS, ListOwner};
use crate::model::{self, HostEvent, ListKind};
use crate::util::lock::lock;

/// How many changes of servers wait before servers are read more slowly.
const WATCH_QUEUE: usize = 64;
/// The minimum log level for clients of the older era that set none.
pub(super) const DEFAULT_LEVEL: &str = "info";

/// The resources that clients want to hear of, each watched once.
#[derive(Default)]
pub(super) struct WatchedResources(Mutex<HashMap<String, Weak<ResourceWatch>>>);

/// What the clients that are interested in a resource share; dropped, it ends.
pub(super) struct ResourceWatch {
    uri: String,
    _cancelled_when_dropped: DropGuard,
}

impl WatchedResources {
    pub(super) fn watch(&self, host: &Arc<ToolHost>, uri: &str) -> Arc<ResourceWatch> {
        let mut watched = lock(&self.0);
        watched.retain(|_, watch| watch.strong_count() > 0);
        if let Some(watch) = watched.get(uri).and_then(Weak::upgrade) {
            return watch;
        }
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
        let (uri, guard) = (uri.to_owned(), cancel.drop_guard());
        let watch = Arc::new(ResourceWatch { uri, _cancelled_when_dropped: guard });
        watched.insert(watch.uri.clone(), Arc::downgrade(&watch));
        watch
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

/// Whether a client of the newer era that subscribed to this wants to hear of a change.
pub(super) fn is_subscribed(
    accepted: &SubscriptionFilter,
    watches: &[Arc<ResourceWatch>],
    change: &HostEvent,
) -> bool {
    match change {
        HostEvent::ListChanged { list, .. } => {
            let is_accepted = match list {
                ListKind::Tools => accepted.tools_list_changed,
                ListKind::Prompts => accepted.prompts_list_changed,
                ListKind::Resources => accepted.resources_list_changed,
            };
            is_accepted == Some(true)
        }
        HostEvent::ResourceUpdated { uri, .. } => watches.iter().any(|watch| watch.uri == *uri),
        _ => false,
    }
}

/// Hands what a client wants to hear to `send`, until that fails.
pub(super) async fn forward<E, F: Future<Output = Result<(), E>>>(
    mut changes: broadcast::Receiver<HostEvent>,
    is_wanted: impl Fn(&HostEvent) -> bool,
    send: impl Fn(ServerNotification) -> F,
) {
    loop {
        let news = match changes.recv().await {
            Ok(change) => vec![change],
            // Too much was missed to say what changed: all lists must be requested again.
            Err(RecvError::Lagged(_)) => {
                let changed = |list| HostEvent::ListChanged { owner: ListOwner::Program, list };
                ListKind::ALL.map(changed).to_vec()
            }
            Err(RecvError::Closed) => return,
        };
        for change in news.into_iter().filter(|change| is_wanted(change)) {
            if let Some(notification) = notification(change)
                && send(notification).await.is_err()
            {
                return;
            }
        }
    }
}

/// What a client is sent of an event; `None` for a line whose level is not one of the protocol.
pub(super) fn notification(event: HostEvent) -> Option<ServerNotification> {
    Some(match event {
        HostEvent::ListChanged { list: ListKind::Tools, .. } => {
            ServerNotification::ToolListChangedNotification(NotificationNoParam::default())
        }
        HostEvent::ListChanged { list: ListKind::Prompts, .. } => {
            ServerNotification::PromptListChangedNotification(NotificationNoParam::default())
        }
        HostEvent::ListChanged { list: ListKind::Resources, .. } => {
            ServerNotification::ResourceListChangedNotification(NotificationNoParam::default())
        }
        HostEvent::ResourceUpdated { uri, .. } => ServerNotification::ResourceUpdatedNotification(
            Notification::new(ResourceUpdatedNotificationParam::new(uri)),
        ),
        HostEvent::Log { origin, level, text, .. } => {
            let level = serde_json::from_value(Value::String(level.0)).ok()?;
            let line = LoggingMessageNotificationParam::new(level, Value::String(text));
            let line = Notification::new(line.with_logger(origin));
            ServerNotification::LoggingMessageNotification(line)
        }
        _ => return None,
    })
}

pub(super) fn known_level(level: rmcp::model::LoggingLevel) -> Option<&'static str> {
    let word = serde_json::to_value(level).ok()?;
    LOG_LEVELS.into_iter().find(|name| word.as_str() == Some(name))
}

/// Which notifications a client of the older era wants.
#[derive(Default)]
pub(super) struct ClientState {
    /// Whether it gets every line a server logs, in addition to those of its own requests.
    pub(super) takes_logs: bool,
    pub(super) level: Mutex<Option<&'static str>>,
    pub(super) watched: Mutex<HashMap<String, Arc<ResourceWatch>>>,
    pub(super) is_ready: AtomicBool,
}

impl ClientState {
    pub(super) fn includes(&self, change: &HostEvent) -> bool {
        match change {
            HostEvent::ListChanged { .. } => true,
            HostEvent::ResourceUpdated { uri, .. } => lock(&self.watched).contains_key(uri),
            HostEvent::Log { level, .. } => {
                self.takes_logs && !level.is_below(lock(&self.level).unwrap_or(DEFAULT_LEVEL))
            }
            _ => false,
        }
    }
}
