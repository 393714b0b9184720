//! The clients over HTTP that have a scope of their own.
//!
//! Owns: that each of them has its own sessions, which no other client can use, and that these end
//! with its token. Never does: look at a token.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::MAX_MESSAGE;
use super::authentication::Authenticator;
use super::identity::AuthenticatedClient;
use crate::serve::catalogue_server::{CatalogueServer, ServedClient, ServedIdentity};

/// How many of them may be known at once.
const MAX_CLIENTS: usize = 4_096;

/// What answers the requests of one client, or of all that have the owner's token.
pub(super) type McpService = StreamableHttpService<ServedClient, LocalSessionManager>;

/// The clients that sent a request and whose token is still valid.
#[derive(Default)]
pub(super) struct HttpClients(Arc<Mutex<HashMap<String, HttpClient>>>);

struct HttpClient {
    service: McpService,
    /// The latest expiry of its tokens, in seconds since the Unix epoch.
    expires: Arc<AtomicU64>,
}

impl HttpClients {
    /// What answers the requests of a client; `None` when there are too many. It ends with the
    /// client's token, and when `end` fires.
    pub(super) fn service(
        &self,
        identity: AuthenticatedClient,
        server: &CatalogueServer,
        authenticator: &Arc<Authenticator>,
        end: &CancellationToken,
    ) -> Option<McpService> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = clients.get(&identity.key) {
            known.expires.fetch_max(identity.expires.as_secs(), Ordering::Relaxed);
            return Some(known.service.clone());
        }
        if clients.len() >= MAX_CLIENTS {
            return None;
        }
        let (server, end) = (server.for_client(identity.scope.clone()), end.child_token());
        let service = mcp_service(&server, format!("http:{}", identity.key), end.clone());
        let expires = Arc::new(AtomicU64::new(identity.expires.as_secs()));
        let client = HttpClient { service: service.clone(), expires: Arc::clone(&expires) };
        clients.insert(identity.key.clone(), client);
        drop(clients);
        let (all, authenticator) = (Arc::clone(&self.0), Arc::clone(authenticator));
        tokio::spawn(async move {
            let latest = || Duration::from_secs(expires.load(Ordering::Relaxed));
            tokio::select! {
                () = authenticator.until_invalid(&identity, latest) => {}
                () = end.cancelled() => {}
            }
            all.lock().unwrap_or_else(PoisonError::into_inner).remove(&identity.key);
            server.disconnect();
            end.cancel();
        });
        Some(service)
    }
}

/// A service for `server` whose clients that name no session of their own call in `session`. It
/// ends when `end` fires.
pub(super) fn mcp_service(
    server: &Arc<CatalogueServer>,
    session: String,
    end: CancellationToken,
) -> McpService {
    // The rules of the listener are stricter than the SDK's, and come before.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(MAX_MESSAGE)
        .with_cancellation_token(end);
    let server = Arc::clone(server);
    let connect = move || {
        let identity = ServedIdentity { session: session.clone(), is_alone: false };
        Ok(server.connect(identity))
    };
    StreamableHttpService::new(connect, Arc::default(), config)
}
