//! Subscriptions to changes of resources and lists.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::lookup::OfferingSearch;
use super::with_cancellation;
use crate::host::ToolHost;
use crate::host::link::{LinkError, Observation, ObservationSink, ObserveRequest};
use crate::host::provider_table::ProviderLease;
use crate::host::request::LookupScope;
use crate::model::{Error, ErrorKind, SubscriptionEvent, SubscriptionFilter};

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
        let mut filters: Vec<(String, SubscriptionFilter)> = Vec::new();
        let owners = async {
            for uri in uris {
                let server = self.resource_owner(uri, search).await?.server;
                let existing = filters.iter_mut().find(|(existing, _)| *existing == server);
                match existing {
                    Some((_, filter)) if filter.uris.contains(uri) => {}
                    Some((_, filter)) => filter.uris.push(uri.clone()),
                    None => {
                        let only =
                            SubscriptionFilter { lists: Vec::new(), uris: vec![uri.clone()] };
                        filters.push((server, only));
                    }
                }
            }
            Ok(())
        };
        with_cancellation(owners, cancel)
            .await
            .map_err(|error| self.pipeline.masker.error(error))?;
        self.watch_servers(filters, updates, cancel).await
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
        if let Some(watched) = self.watch_over_link(&filters, updates, cancel).await {
            return watched;
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
                && is_worth_reporting(error)
            {
                let last_update = ServerChange {
                    server: server.clone(),
                    change: SubscriptionEvent::Failed(error.clone()),
                };
                // A receiver that is gone needs no error.
                let _unheard = updates.send(last_update).await;
            }
            error
        });
        let errors: Vec<Option<Error>> = join_all(all).await;
        let failed: Vec<Error> = errors.iter().flatten().cloned().collect();
        if failed.is_empty() || failed.len() < errors.len() {
            return Ok(());
        }
        failed.into_iter().min_by_key(|error| error.kind().precedence()).map_or(Ok(()), Err)
    }

    /// The same by an attached host; `None` when it has to be done here.
    async fn watch_over_link(
        &self,
        filters: &[(String, SubscriptionFilter)],
        updates: &mpsc::Sender<ServerChange>,
        cancel: &CancellationToken,
    ) -> Option<Result<(), Error>> {
        let link = self.link()?;
        let send = updates.clone();
        let sink: ObservationSink = Arc::new(move |observation| {
            if let Observation::Change(server, change) = observation {
                let _slow_viewer = send.try_send(ServerChange { server, change });
            }
        });
        let request = ObserveRequest::Changes(filters.to_vec());
        match link.observe(&request, &sink, cancel).await {
            Ok(()) => Some(Ok(())),
            Err(LinkError::Unsent) => None,
            Err(LinkError::Lost(error)) => Some(Err(error)),
        }
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

/// Whether a failure is worth reporting along with what the other servers say.
fn is_worth_reporting(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Interrupted(_))
}
