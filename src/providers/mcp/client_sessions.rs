//! A server to which each client session has its own connection (`shared: false`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio_util::task::TaskTracker;

use super::{McpProvider, McpSetup};
use crate::config::spec::ServerSpec;
use crate::model::{
    Error, EventSink, HostEvent, ServerState, ServerStatus, ToolCall, ToolContext, ToolDefinition,
    ToolListing, ToolResult,
};
use crate::provider::{
    ConnectionSummary, LoginSupport, ManagedServer, OfferingSupport, Preview, ToolListVersion,
    ToolProvider,
};

/// Maximum number of sessions with a connection to one server at once.
pub const MAX_SESSIONS: usize = 16;

pub struct SessionServers {
    spec: ServerSpec,
    setup: McpSetup,
    /// For what belongs to no session, and for the first one that needs a connection.
    first: Arc<McpProvider>,
    sessions: Mutex<Vec<(String, Arc<McpProvider>)>>,
    /// The connections of sessions that ended, while they are closed.
    closing: TaskTracker,
}

impl SessionServers {
    /// The sessions of one server; starts nothing.
    pub fn new(spec: ServerSpec, mut setup: McpSetup) -> Self {
        // That one of several connections was closed does not mean that the server is.
        let events = setup.events.clone();
        setup.events = EventSink::new(move |event| {
            let closed =
                matches!(event, HostEvent::ServerStateChanged { state: ServerState::Closed, .. });
            if !closed {
                events.emit(event);
            }
        });
        let first = McpProvider::new(spec.clone(), setup.clone());
        Self { spec, setup, first, sessions: Mutex::default(), closing: TaskTracker::new() }
    }

    fn sessions(&self) -> MutexGuard<'_, Vec<(String, Arc<McpProvider>)>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server as a session has it.
    ///
    /// # Errors
    /// An error of kind unreachable when too many sessions have one.
    fn of(&self, session: &str) -> Result<Arc<McpProvider>, Error> {
        let mut sessions = self.sessions();
        if let Some((_, own)) = sessions.iter().find(|(name, _)| name == session) {
            return Ok(Arc::clone(own));
        }
        if sessions.len() >= MAX_SESSIONS {
            let message = format!("{MAX_SESSIONS} client sessions have their own connection");
            return Err(Error::unreachable(message).with_server(&self.spec.name).with_hint(
                "end one of those clients; without 'shared: false' all clients share one connection",
            ));
        }
        let server = if sessions.iter().any(|(_, server)| Arc::ptr_eq(server, &self.first)) {
            McpProvider::new(self.spec.clone(), self.setup.clone())
        } else {
            Arc::clone(&self.first)
        };
        sessions.push((session.to_owned(), Arc::clone(&server)));
        Ok(server)
    }

    /// All connections there may be, the first one once.
    fn servers(&self) -> Vec<Arc<McpProvider>> {
        let mut servers = vec![Arc::clone(&self.first)];
        let sessions = self.sessions();
        let others = sessions.iter().map(|(_, server)| server);
        servers.extend(others.filter(|server| !Arc::ptr_eq(server, &self.first)).cloned());
        servers
    }

    /// A connection that is open, if there is one.
    fn any(&self) -> Arc<McpProvider> {
        let open = self.servers().into_iter().find(|server| server.connection_summary().is_ready);
        open.unwrap_or_else(|| Arc::clone(&self.first))
    }

    fn with_count(&self, status: ServerStatus) -> ServerStatus {
        let servers = self.servers();
        let open = servers.iter().filter(|server| server.connection_summary().is_ready).count();
        ServerStatus { connections: Some(open), ..status }
    }
}

#[async_trait]
impl ToolProvider for SessionServers {
    fn component(&self) -> Option<&str> {
        Some(&self.spec.name)
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.first.declared()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn list_version(&self) -> ToolListVersion {
        self.any().list_version()
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        self.any().list().await
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        self.of(&context.session_id)?.call(context, call).await
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        self.any().preview(call).await
    }

    async fn close(&self) {
        let servers = self.servers();
        self.sessions().clear();
        futures_util::future::join_all(servers.iter().map(|server| server.close())).await;
        self.closing.close();
        self.closing.wait().await;
        self.closing.reopen();
    }

    fn end_session(&self, session: &str) {
        let ended = self.sessions().extract_if(.., |(name, _)| name == session).next();
        // Outside a runtime nothing can be open.
        if let (Some((_, server)), Ok(runtime)) = (ended, tokio::runtime::Handle::try_current()) {
            self.closing.spawn_on(async move { server.close().await }, &runtime);
        }
    }

    fn as_server(&self) -> Option<&dyn ManagedServer> {
        Some(self)
    }

    fn as_login(&self) -> Option<&dyn LoginSupport> {
        self.first.as_login()
    }

    fn as_offerings(&self) -> Option<&dyn OfferingSupport> {
        self.first.as_offerings()
    }

    fn offerings_of_session(
        &self,
        session: &str,
    ) -> Result<Option<Arc<dyn OfferingSupport>>, Error> {
        Ok(Some(self.of(session)?))
    }
}

#[async_trait]
impl ManagedServer for SessionServers {
    fn status(&self) -> ServerStatus {
        self.with_count(self.any().status())
    }

    async fn check(&self) -> ServerStatus {
        let status = self.any().check().await;
        self.with_count(status)
    }

    fn routing_weight(&self) -> Option<f64> {
        self.spec.routing_weight
    }

    async fn restart(&self) -> ServerStatus {
        self.close().await;
        self.check().await
    }

    fn connection_summary(&self) -> ConnectionSummary {
        self.any().connection_summary()
    }
}
