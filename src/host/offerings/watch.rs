//! Subscriptions to changes of resources and lists.
//!
//! Subscriptions that a program leaves to the host: what changes arrives as events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use indexmap::IndexMap;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::lookup::OfferingSearch;
use super::with_cancellation;
use crate::host::ToolHost;
use crate::host::link::{LinkError, Observation, ObservationSink, ObserveRequest};
use crate::host::registry::ProviderLease;
use crate::host::request::LookupScope;
use crate::model::{Error, ErrorKind, HostEvent, SubscriptionEvent, SubscriptionFilter};

#[derive(Debug)]
pub struct ServerChange {
    pub server: String,
    /// A changed list or resource, or the state of the subscription.
    pub change: SubscriptionEvent,
}

impl ToolHost {
    /// Finds the servers of these resources and forwards their notifications of changes, until
    /// `cancel` fires or the receiver is dropped. A server that fails is reported, and the others
    /// go on.
    ///
    /// # Errors
    /// An address that no server or several have, and an unknown profile. When every server failed, its failure.
    #[doc(hidden)] // for `serve` and the program's own commands
    pub async fn watch_resources(
        &self,
        uris: &[String],
        scope: &LookupScope,
        updates: &mpsc::Sender<ServerChange>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let view = self.view(scope.profile.as_deref())?;
        let search = OfferingSearch::of(scope, &view);
        let mut filters: IndexMap<String, SubscriptionFilter> = IndexMap::new();
        let owners = async {
            for uri in uris {
                let server = self.resource_owner(uri, search).await?.server;
                let filter = filters.entry(server).or_default();
                if !filter.uris.contains(uri) {
                    filter.uris.push(uri.clone());
                }
            }
            Ok(())
        };
        with_cancellation(owners, cancel)
            .await
            .map_err(|error| self.pipeline.masker.error(error))?;
        self.watch_servers(filters.into_iter().collect(), updates, cancel).await
    }

    /// Hands on what servers tell about changes: for each server what is wanted of it.
    ///
    /// # Errors
    /// When every server failed, the decisive failure.
    #[doc(hidden)] // for `serve` and the program's own commands
    pub async fn watch_servers(
        &self,
        filters: Vec<(String, SubscriptionFilter)>,
        updates: &mpsc::Sender<ServerChange>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        if let Some(link) = self.link() {
            let send = updates.clone();
            let sink: ObservationSink = Arc::new(move |observation| {
                if let Observation::Change(server, change) = observation {
                    let _slow_viewer = send.try_send(ServerChange { server, change });
                }
            });
            let request = ObserveRequest::Changes(filters.clone());
            match link.observe(&request, &sink, cancel).await {
                Err(LinkError::Unsent) => {}
                Err(LinkError::Lost(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
        let all = filters.iter().map(|(server, filter)| async move {
            let outcome = match self.offerings_of(server) {
                Ok(provider) => {
                    let watching = self.watch_server(server, &provider, filter, updates, cancel);
                    provider.while_registered(watching).await
                }
                Err(error) => Err(error),
            };
            let error = outcome.err().map(|error| self.pipeline.masker.error(error));
            if let Some(error) = &error
                && !matches!(error.kind(), ErrorKind::Interrupted(_))
            {
                let change = SubscriptionEvent::Failed(error.clone());
                // A receiver that is gone needs no error.
                let _unheard = updates.send(ServerChange { server: server.clone(), change }).await;
            }
            error
        });
        // All of them only when each server failed.
        let errors: Option<Vec<Error>> = join_all(all).await.into_iter().collect();
        let decisive = errors.into_iter().flatten().min_by_key(|error| error.kind().precedence());
        decisive.map_or(Ok(()), Err)
    }

    async fn watch_server(
        &self,
        server: &str,
        provider: &ProviderLease,
        filter: &SubscriptionFilter,
        updates: &mpsc::Sender<ServerChange>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let (sender, mut changes) = mpsc::channel(1);
        let handing_on = async {
            while let Some(change) = changes.recv().await {
                let change = match change {
                    SubscriptionEvent::Interrupted(error) => {
                        SubscriptionEvent::Interrupted(self.pipeline.masker.error(error))
                    }
                    other => other,
                };
                let server = server.to_owned();
                let handed = tokio::select! {
                    biased;
                    () = cancel.cancelled() => return,
                    handed = updates.send(ServerChange { server, change }) => handed,
                };
                if handed.is_err() {
                    return;
                }
            }
        };
        let watching = async move { provider.offerings()?.watch(filter, &sender, cancel).await };
        let (outcome, ()) = tokio::join!(watching, handing_on);
        outcome
    }
}

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
