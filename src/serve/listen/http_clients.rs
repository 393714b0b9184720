//! The clients over HTTP that have their own scope.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::authentication::{AuthenticatedClient, Authenticator};
use super::mcp_service::McpService;
use crate::serve::catalogue_server::CatalogueServer;
use crate::serve::shared_room::SharedRoom;
use crate::util::lock::lock;

const MAX_CLIENTS: usize = 4_096;

type KnownClient = (Arc<McpService>, Arc<AtomicU64>);

/// The clients that sent a request and whose token is still valid.
pub(super) struct HttpClients {
    /// What answers each, and the latest expiry of its tokens in seconds since the Unix epoch.
    known: Arc<Mutex<HashMap<String, KnownClient>>>,
    answers: SharedRoom,
}

impl HttpClients {
    /// No clients yet; each has its share of the room of `answers`.
    pub(super) fn new(answers: SharedRoom) -> Self {
        Self { known: Arc::default(), answers }
    }

    /// What answers the requests of a client; `None` when there are too many. It ends with the
    /// client's token, and when `end` fires.
    pub(super) fn service(
        &self,
        identity: AuthenticatedClient,
        server: &CatalogueServer,
        authenticator: &Arc<Authenticator>,
        end: &CancellationToken,
    ) -> Option<Arc<McpService>> {
        let mut clients = lock(&self.known);
        if let Some((service, expires)) = clients.get(&identity.key) {
            expires.fetch_max(identity.expires.as_secs(), Ordering::Relaxed);
            return Some(Arc::clone(service));
        }
        if clients.len() >= MAX_CLIENTS {
            return None;
        }
        let (server, end) = (server.for_client(identity.scope.clone()), end.child_token());
        let (session, answers) = (format!("http:{}", identity.key), self.answers.of_one_token());
        let service = Arc::new(McpService::new(&server, session, answers, end.clone()));
        let expires = Arc::new(AtomicU64::new(identity.expires.as_secs()));
        clients.insert(identity.key.clone(), (Arc::clone(&service), Arc::clone(&expires)));
        drop(clients);
        let (all, authenticator) = (Arc::clone(&self.known), Arc::clone(authenticator));
        tokio::spawn(async move {
            let latest = || Duration::from_secs(expires.load(Ordering::Relaxed));
            tokio::select! {
                () = authenticator.until_invalid(&identity, latest) => {}
                () = end.cancelled() => {}
            }
            lock(&all).remove(&identity.key);
            server.disconnect();
            end.cancel();
        });
        Some(service)
    }
}
