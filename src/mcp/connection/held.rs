//! Requests that stay open as long as somebody is interested in what comes meanwhile.
//!
//! Owns: [`Held`], a request without limits of time; whoever holds it sets them. Never does: know
//! what is told while it is open.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, CustomRequest};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use serde_json::Value;

use super::{Connection, PendingGuard};
use crate::mcp::message::Raw;
use crate::mcp::news::Ear;
use crate::model::Fault;

/// A request that was sent and is not answered yet. Dropped, it is forgotten, and the server is
/// not told: [`Held::abandon`] does that.
pub struct Held<'a> {
    connection: &'a Connection,
    handle: RequestHandle<RoleClient>,
    _guard: PendingGuard<'a>,
}

impl Connection {
    /// Sends a request that may stay unanswered for ever.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn hold(&self, method: &str, params: Value) -> Result<Held<'_>, Fault> {
        let named = |fault: Fault| fault.server(&self.name);
        if let Some(fault) = self.session.closed() {
            return Err(named(fault));
        }
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)));
        let settings = PeerRequestOptions::no_options();
        let Ok(handle) = self.peer.send_request_with_option(request, settings).await else {
            return Err(named(self.end_of_connection().await));
        };
        let guard = PendingGuard { session: &self.session, id: handle.id.clone(), token: None };
        Ok(Held { connection: self, handle, _guard: guard })
    }

    /// Hears what the server tells about its lists and resources from now on.
    pub fn ear(&self) -> Arc<Ear> {
        self.session.ear()
    }

    /// Waits for the end of the connection; why it ended.
    pub async fn ended(&self) -> Fault {
        self.session.gone.cancelled().await;
        self.end_of_connection().await.server(&self.name)
    }
}

impl Held<'_> {
    /// The id of the request, as JSON.
    pub fn id(&self) -> Value {
        serde_json::to_value(&self.handle.id).unwrap_or_default()
    }

    /// Waits for the answer. To be waited for once, and to the end.
    ///
    /// # Errors
    /// The server's own error (kind tool), a broken answer, or the end of the connection.
    pub async fn answer(&mut self) -> Result<Raw, Fault> {
        let (connection, id) = (self.connection, self.handle.id.clone());
        let session = &connection.session;
        let waker = session.waker(&id);
        let outcome = loop {
            if let Some(outcome) = session.take_outcome(&id) {
                break connection.judged(outcome).await;
            }
            if let Some(fault) = session.closed() {
                break Err(fault);
            }
            tokio::select! {
                _answered = &mut self.handle.rx => {
                    break match session.take_outcome(&id) {
                        Some(outcome) => connection.judged(outcome).await,
                        None => Err(connection.end_of_connection().await),
                    };
                }
                // An answer to something unknown, which says nothing here, or the end of the wire.
                () = waker.notified() => {}
            }
        };
        outcome.map_err(|fault| fault.server(&connection.name))
    }

    /// Tells the server that nobody waits any more.
    pub async fn abandon(self, reason: &str) {
        if self.connection.session.is_open(&self.handle.id) {
            self.connection.give_up(&self.handle.id, reason).await;
        }
    }
}
