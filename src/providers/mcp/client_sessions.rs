//! A server to which each client session has its own connection (`shared: false`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{McpProvider, McpSetup};
use crate::config::spec::ServerSpec;
use crate::model::{
    Browser, Completion, CompletionQuery, Error, EventSink, HostEvent, JsonObject, LoginReport,
    OfferingListing, Prompt, PromptMessages, Resource, ResourceContents, ResourceTemplate,
    ServerState, ServerStatus, SubscriptionEvent, SubscriptionFilter, ToolCall, ToolContext,
    ToolDefinition, ToolListing, ToolResult,
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
    connections: Mutex<Vec<SessionConnection>>,
    /// The connections of sessions that ended, while they are closed.
    closing: TaskTracker,
}

#[derive(Clone)]
struct SessionConnection {
    /// Whose it is; `None` until the first session needs one.
    session: Option<String>,
    server: Arc<McpProvider>,
    ended: CancellationToken,
}

impl SessionConnection {
    fn is_open(&self) -> bool {
        self.server.connection_summary().is_ready
    }
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
        let servers =
            Self { spec, setup, connections: Mutex::default(), closing: TaskTracker::new() };
        servers.connections().push(servers.unowned());
        servers
    }

    fn unowned(&self) -> SessionConnection {
        let server = McpProvider::new(self.spec.clone(), self.setup.clone());
        SessionConnection { session: None, server, ended: CancellationToken::new() }
    }

    fn connections(&self) -> MutexGuard<'_, Vec<SessionConnection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server as a session has it.
    ///
    /// # Errors
    /// An error of kind unreachable when too many sessions have one.
    fn of(&self, session: &str) -> Result<Arc<McpProvider>, Error> {
        let mut connections = self.connections();
        let is_own =
            |connection: &&mut SessionConnection| connection.session.as_deref() == Some(session);
        if let Some(own) = connections.iter_mut().find(is_own) {
            return Ok(Arc::clone(&own.server));
        }
        if let Some(free) = connections.iter_mut().find(|connection| connection.session.is_none()) {
            free.session = Some(session.to_owned());
            return Ok(Arc::clone(&free.server));
        }
        if connections.len() >= MAX_SESSIONS {
            let message = format!("{MAX_SESSIONS} client sessions have their own connection");
            return Err(Error::unreachable(message).with_server(&self.spec.name).with_hint(
                "end one of those clients; without 'shared: false' all clients share one connection",
            ));
        }
        let new = SessionConnection { session: Some(session.to_owned()), ..self.unowned() };
        let server = Arc::clone(&new.server);
        connections.push(new);
        Ok(server)
    }

    /// A connection for what belongs to no session: one that is open, if there is one.
    fn any(&self) -> SessionConnection {
        let connections = self.connections();
        let open =
            connections.iter().find(|connection| connection.is_open()).or(connections.first());
        open.cloned().unwrap_or_else(|| self.unowned())
    }

    fn take_all(&self) -> Vec<SessionConnection> {
        let unowned = self.unowned();
        std::mem::replace(&mut *self.connections(), vec![unowned])
    }

    fn with_count(&self, status: ServerStatus) -> ServerStatus {
        let open = self.connections().iter().filter(|connection| connection.is_open()).count();
        ServerStatus { connections: Some(open), ..status }
    }
}

#[async_trait]
impl ToolProvider for SessionServers {
    fn component(&self) -> Option<&str> {
        Some(&self.spec.name)
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        self.any().server.declared()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn list_version(&self) -> ToolListVersion {
        self.any().server.list_version()
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        self.any().server.list().await
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        self.of(&context.session_id)?.call(context, call).await
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        self.any().server.preview(call).await
    }

    async fn close(&self) {
        let closing = self.take_all();
        futures_util::future::join_all(closing.iter().map(|one| one.server.close())).await;
        self.closing.close();
        self.closing.wait().await;
        self.closing.reopen();
    }

    fn end_session(&self, session: &str) {
        let mut connections = self.connections();
        let is_own = |one: &SessionConnection| one.session.as_deref() == Some(session);
        let Some(at) = connections.iter().position(is_own) else { return };
        let ended = connections.remove(at);
        if connections.is_empty() {
            connections.push(self.unowned());
        }
        drop(connections);
        ended.ended.cancel();
        // Outside a runtime nothing can be open.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            self.closing.spawn_on(async move { ended.server.close().await }, &runtime);
        }
    }

    fn as_server(&self) -> Option<&dyn ManagedServer> {
        Some(self)
    }

    fn as_login(&self) -> Option<&dyn LoginSupport> {
        Some(self)
    }

    fn as_offerings(&self) -> Option<&dyn OfferingSupport> {
        Some(self)
    }
}

#[async_trait]
impl ManagedServer for SessionServers {
    fn status(&self) -> ServerStatus {
        self.with_count(self.any().server.status())
    }

    async fn check(&self) -> ServerStatus {
        let status = self.any().server.check().await;
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
        self.any().server.connection_summary()
    }
}

#[async_trait]
impl LoginSupport for SessionServers {
    async fn login(&self, browser: &dyn Browser, scopes: &[String]) -> Result<LoginReport, Error> {
        self.any().server.login(browser, scopes).await
    }

    async fn logout(&self) -> Result<usize, Error> {
        self.any().server.logout().await
    }
}

#[async_trait]
impl OfferingSupport for SessionServers {
    async fn prompts(&self) -> Result<OfferingListing<Prompt>, Error> {
        self.any().server.prompts().await
    }

    async fn resources(&self) -> Result<OfferingListing<Resource>, Error> {
        self.any().server.resources().await
    }

    async fn templates(&self) -> Result<OfferingListing<ResourceTemplate>, Error> {
        self.any().server.templates().await
    }

    fn context_env(&self) -> &[String] {
        &self.spec.context_env
    }

    async fn read(&self, context: &ToolContext, uri: &str) -> Result<ResourceContents, Error> {
        self.of(&context.session_id)?.read(context, uri).await
    }

    async fn prompt(
        &self,
        context: &ToolContext,
        name: &str,
        arguments: &JsonObject,
    ) -> Result<PromptMessages, Error> {
        self.of(&context.session_id)?.prompt(context, name, arguments).await
    }

    async fn complete(
        &self,
        context: &ToolContext,
        query: &CompletionQuery,
    ) -> Result<Completion, Error> {
        self.of(&context.session_id)?.complete(context, query).await
    }

    async fn watch(
        &self,
        filter: &SubscriptionFilter,
        changes: &mpsc::Sender<SubscriptionEvent>,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let watched = self.any();
        // Otherwise the watch would connect again on behalf of a session that is gone.
        let ended = || Error::unreachable("the client session whose connection was watched ended");
        watched
            .ended
            .run_until_cancelled(watched.server.watch(filter, changes, cancel))
            .await
            .unwrap_or_else(|| Err(ended().with_server(&self.spec.name)))
    }

    async fn set_log_level(&self, level: &'static str) -> Result<(), Error> {
        self.any().server.set_log_level(level).await
    }
}
