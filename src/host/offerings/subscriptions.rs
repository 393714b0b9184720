//! Subscriptions that a program leaves to the host: what changes arrives as events.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ServerChange;
use crate::host::ToolHost;
use crate::host::request::LookupScope;
use crate::model::{Error, HostEvent, SubscriptionEvent};

/// How many changes may wait; nobody but the log of failures reads them.
const CHANGE_QUEUE: usize = 16;

#[derive(Default)]
pub(in crate::host) struct OpenSubscriptions(Mutex<HashMap<String, OpenSubscription>>);

struct OpenSubscription {
    cancel: DropGuard,
    task: JoinHandle<()>,
}

impl OpenSubscriptions {
    fn replace(&self, uri: &str, next: Option<OpenSubscription>) -> Option<OpenSubscription> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match next {
            Some(next) => open.insert(uri.to_owned(), next),
            None => open.remove(uri),
        }
    }

    pub(in crate::host) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl ToolHost {
    /// Asks the server of a resource to report its changes, and returns once it agreed. Each change
    /// is an event, [`HostEvent::ResourceUpdated`], which may name a part of the resource. The
    /// subscription outlives a lost connection, and ends with [`ToolHost::unsubscribe`] or
    /// [`ToolHost::close`]; should the server stop reporting for good, a [`HostEvent::Warning`] says
    /// so. Subscribing to the same address again replaces the subscription.
    ///
    /// # Errors
    /// An address that no server or several have, an unknown profile, and a server that does not
    /// report changes of this resource.
    pub async fn subscribe(&self, uri: &str, scope: &LookupScope) -> Result<(), Error> {
        let Some(host) = self.weak_self.upgrade() else {
            return Err(Error::internal("the host is being closed"));
        };
        let (updates, mut changes) = mpsc::channel(CHANGE_QUEUE);
        let stop = CancellationToken::new();
        let cancel = stop.clone().drop_guard();
        let (uris, scope) = ([uri.to_owned()], scope.clone());
        let watching =
            tokio::spawn(async move { host.watch_resources(&uris, &scope, &updates, &stop).await });
        match changes.recv().await.map(|first| first.change) {
            Some(SubscriptionEvent::Subscribed { refused }) if refused.is_empty() => {}
            Some(SubscriptionEvent::Failed(error) | SubscriptionEvent::Interrupted(error)) => {
                return Err(error);
            }
            Some(_) => {
                return Err(Error::tool(format!("the server does not report changes of '{uri}'")));
            }
            None => {
                let ended = watching.await.unwrap_or(Ok(()));
                let closed = || Error::unreachable("the subscription ended before it began");
                return Err(ended.err().unwrap_or_else(closed));
            }
        }
        let (events, address) = (self.sessions.events.clone(), uri.to_owned());
        let task = tokio::spawn(async move {
            while let Some(ServerChange { server, change }) = changes.recv().await {
                // Changes themselves are events of the connection.
                if let SubscriptionEvent::Failed(error) = change {
                    let message = error.message();
                    let text =
                        format!("{server} no longer reports changes of '{address}': {message}");
                    events.emit(HostEvent::Warning { text });
                }
            }
        });
        self.subscriptions.replace(uri, Some(OpenSubscription { cancel, task }));
        Ok(())
    }

    /// Ends a subscription, and returns once its server was told. Returns whether there was one.
    pub async fn unsubscribe(&self, uri: &str) -> bool {
        let Some(OpenSubscription { cancel, task }) = self.subscriptions.replace(uri, None) else {
            return false;
        };
        drop(cancel);
        let _ended = task.await;
        true
    }
}
