//! The catalogue as an MCP server: what a client of `toolhost serve` sees.

mod call;
mod changes;
mod client_registry;
mod exchange;
mod handler;
pub mod lean;
mod offerings;
mod questions;
mod running_request;
mod tasks;
mod tool_list;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use tokio_util::sync::CancellationToken;

use crate::host::{ClientScope, ToolHost};
use crate::serve::background::protocol;
use crate::serve::background::service::BackgroundService;
use crate::serve::shared_room::MessageRoom;
use changes::WatchedResources;
pub use client_registry::ClientRegistry;
pub(in crate::serve) use exchange::SessionEnded;
pub use handler::ServedClient;
pub(in crate::serve) use handler::{ListenerClosing, served_session};
use running_request::ParkedRequests;
use tasks::ServedTasks;
use tool_list::ServedTools;

/// How long calls may go on after the server was told to end.
pub(in crate::serve) const DRAIN: Duration = Duration::from_secs(5);

/// How the catalogue is offered.
#[derive(Debug, Clone, Default)]
pub struct ServeSettings {
    /// Offer a tool under its own name where no other tool has it, in place of
    /// `{component}-{tool}`.
    pub uses_bare_names: bool,
    /// Run calls that need approval without asking (`--yes`): the client asks its person itself.
    pub assume_yes: bool,
    /// Serve three tools that find, describe and call the others (`--lean`), beside those whose full
    /// names match one of these patterns; `None` serves all.
    pub lean: Option<Vec<String>>,
    /// What it is for front ends, when it is a background host that offers it; `None` for a server of
    /// its own.
    #[doc(hidden)] // for the program's own commands
    pub background: Option<Arc<BackgroundService>>,
}

/// One catalogue, offered to any number of clients at once.
pub struct CatalogueServer {
    host: Arc<ToolHost>,
    settings: ServeSettings,
    clients: Arc<ClientRegistry>,
    tools: Mutex<Arc<ServedTools>>,
    parked: ParkedRequests,
    tasks: ServedTasks,
    watched: WatchedResources,
    pub(in crate::serve) messages: MessageRoom,
    /// Whether it is offered to one client, apart from all others.
    is_for_one_client: bool,
    /// The user that all calls are made for; `None` lets requests say.
    user: Option<String>,
    stop: CancellationToken,
}

impl CatalogueServer {
    /// Offers the catalogue of `host`, whose questions, approvals and events go to `clients`, until
    /// `stop` fires.
    pub fn new(
        host: Arc<ToolHost>,
        clients: Arc<ClientRegistry>,
        settings: ServeSettings,
        stop: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            host,
            settings,
            clients,
            tools: Mutex::default(),
            parked: ParkedRequests::default(),
            tasks: ServedTasks::default(),
            watched: WatchedResources::default(),
            messages: MessageRoom::new(),
            is_for_one_client: false,
            user: None,
            stop,
        })
    }

    /// The same catalogue as one client may use it, apart from all others: its list of tools, its
    /// parked calls, its tasks and its subscriptions are its own.
    pub fn for_client(&self, scope: ClientScope) -> Arc<Self> {
        Arc::new(Self {
            is_for_one_client: true,
            user: scope.user.clone(),
            host: self.host.for_client(scope),
            settings: self.settings.clone(),
            clients: Arc::clone(&self.clients),
            tools: Mutex::default(),
            parked: ParkedRequests::default(),
            tasks: ServedTasks::default(),
            watched: WatchedResources::default(),
            messages: self.messages.of_one_token(),
            stop: self.stop.child_token(),
        })
    }

    pub(in crate::serve) fn end_session(&self, session: &str) {
        self.tasks.end_session(session);
        self.host.end_session(session);
    }

    /// Whether it is a background host, whose clients are mostly front ends of this program.
    pub(in crate::serve) fn is_background(&self) -> bool {
        self.settings.background.is_some()
    }

    /// Ends all connections of this server and the calls of its clients.
    pub fn disconnect(&self) {
        self.stop.cancel();
    }

    /// Watches the servers behind the catalogue until the server ends, so that what changes there is
    /// told to clients. A server that cannot be watched costs only its own changes.
    pub async fn watch_servers(&self) {
        changes::watch_servers(&self.host, &self.stop).await;
    }
}

/// The error of requests that the end of the server cut off; a client that left reads none.
fn ended() -> ErrorData {
    let message = "the server ended during the request";
    ErrorData::new(ErrorCode(protocol::ENDED), message, None)
}

fn mixed_up() -> ErrorData {
    ErrorData::internal_error("the result belongs to another kind of request", None)
}

/// Who a connected client is, as far as the transport knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServedIdentity {
    /// The session that its calls are recorded under and that session tools are made for.
    pub session: String,
    /// Whether it is the only client of this process, so that every line a server logs is for this
    /// client.
    pub is_alone: bool,
}
