//! The subscription of a client of the newer era.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    GetMeta as _, Implementation, Notification, RequestId, ResourceUpdatedNotificationParam,
    ServerJsonRpcMessage, ServerNotification, ServerResult, SubscriptionFilter,
    SubscriptionsListenResult,
};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;

use super::changes::{ResourceWatch, list_changed};
use super::client_registry::CatalogueChange;
use crate::model::ListKind;

pub struct ServedSubscription {
    pub(super) id: RequestId,
    pub(super) accepted: SubscriptionFilter,
    pub(super) watches: Vec<ResourceWatch>,
    pub(super) changes: broadcast::Receiver<CatalogueChange>,
    pub(super) stop: CancellationToken,
}

/// Takes an acknowledged subscription from its request to the transport that carries it on.
#[derive(Clone)]
pub struct SubscriptionHandoff(Arc<Mutex<Option<oneshot::Sender<ServedSubscription>>>>);

impl SubscriptionHandoff {
    pub fn new() -> (Self, oneshot::Receiver<ServedSubscription>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(sender)))), receiver)
    }

    /// Hands a subscription over; gives it back when it is not taken.
    pub(super) fn give(&self, subscription: ServedSubscription) -> Result<(), ServedSubscription> {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match sender {
            Some(sender) => sender.send(subscription),
            None => Err(subscription),
        }
    }
}

impl ServedSubscription {
    /// The next notification for the client; `None` when the server ended the subscription.
    pub async fn next(&mut self) -> Option<Vec<ServerNotification>> {
        loop {
            let change = tokio::select! {
                () = self.stop.cancelled() => return None,
                change = self.changes.recv() => change,
            };
            let notification = match change {
                Ok(CatalogueChange::List(list)) if self.has_list(list) => vec![list_changed(list)],
                Ok(CatalogueChange::Resource(uri))
                    if self.watches.iter().any(|w| w.is_of(&uri)) =>
                {
                    let updated = ResourceUpdatedNotificationParam::new(uri);
                    vec![ServerNotification::ResourceUpdatedNotification(Notification::new(
                        updated,
                    ))]
                }
                Ok(_) => continue,
                // Too much was missed to say what changed.
                Err(RecvError::Lagged(_)) => {
                    let lists = ListKind::ALL.into_iter().filter(|list| self.has_list(*list));
                    lists.map(list_changed).collect()
                }
                Err(RecvError::Closed) => return None,
            };
            return Some(notification);
        }
    }

    fn has_list(&self, list: ListKind) -> bool {
        let flag = match list {
            ListKind::Tools => self.accepted.tools_list_changed,
            ListKind::Prompts => self.accepted.prompts_list_changed,
            ListKind::Resources => self.accepted.resources_list_changed,
        };
        flag == Some(true)
    }

    pub fn message(&self, mut notification: ServerNotification) -> ServerJsonRpcMessage {
        notification.get_meta_mut().set_subscription_id(self.id.clone());
        ServerJsonRpcMessage::notification(notification)
    }

    pub fn result(&self, server: Implementation) -> ServerJsonRpcMessage {
        let mut result = SubscriptionsListenResult::complete(self.id.clone());
        result.meta.set_server_info(server);
        let result = ServerResult::SubscriptionsListenResult(result);
        ServerJsonRpcMessage::response(result, self.id.clone())
    }
}
