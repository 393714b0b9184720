//! Requests that stay open as long as somebody is interested in what comes meanwhile.
//!
//! Owns: [`Held`], a request without limits of time; whoever holds it sets them. Never does: know
//! what is told while it is open.

use std::sync::Arc;

use serde_json::Value;

use super::Connection;
use crate::mcp::message::Raw;
use crate::mcp::news::Ear;
use crate::mcp::outgoing::Outgoing;
use crate::mcp::session::Asked;
use crate::model::Fault;

/// A request that was sent and is not answered yet. Dropped, it is forgotten, and the server is
/// not told: [`Held::abandon`] does that.
pub struct Held<'a> {
    connection: &'a Connection,
    asked: Asked,
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
        let params = &params;
        let outgoing = Outgoing { method, params, headers: &[], log_level: None, call: None };
        let asked = self.session.ask(&outgoing, None).await;
        Ok(Held { connection: self, asked })
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
        self.asked.id.into()
    }

    /// Waits for the answer. To be waited for once, and to the end.
    ///
    /// # Errors
    /// The server's own error (kind tool), a broken answer, or the end of the connection.
    pub async fn answer(&mut self) -> Result<Raw, Fault> {
        let connection = self.connection;
        let outcome = loop {
            if let Some(outcome) = self.asked.outcome() {
                break connection.judged(outcome).await;
            }
            if let Some(fault) = connection.session.closed() {
                break Err(fault);
            }
            // Or an answer to something unknown, which says nothing here.
            self.asked.woken().await;
        };
        outcome.map_err(|fault| fault.server(&connection.name))
    }

    /// Tells the server that nobody waits any more.
    pub async fn abandon(self, reason: &str) {
        if self.asked.is_open() {
            self.connection.give_up(self.asked.id, reason).await;
        }
    }
}
