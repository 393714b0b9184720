//! An MCP server as a provider of tools and offerings.
//!
//! Owns: one server's connection, its newest listing and its status. Connects when first needed,
//! and again, within a budget, when the connection was lost. Never does: speak the protocol (the
//! `mcp` room does) or decide whether a call may happen (the host does).

mod auth;
mod backoff;
pub(crate) mod call;
pub mod client_sessions;
mod code_watch;
mod connection_slot;
mod definition_drift;
mod endpoint;
mod entry_filter;
mod offerings;
pub mod roots;
mod status;
mod throttle;

pub use endpoint::{describe, identity, open_wire, start};

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::time::Instant;

use crate::config::environment::Environment;
use crate::config::expanded::ExpandedValues;
use crate::config::spec::{Endpoint, ServerSpec};
use crate::mcp::auth::{SecretListener, Vault};
use crate::mcp::connection::Connection;
use crate::mcp::era_cache::EraCache;
use crate::mcp::listing;
use crate::mcp::tracer::Tracer;
use crate::model::{
    CredentialUse, Error, EventSink, HostEvent, QuestionHandler, ServerState, ToolCall,
    ToolContext, ToolDefinition, ToolListing, ToolResult, TrafficSink,
};
use crate::provider::{
    LoginSupport, ManagedServer, OfferingSupport, Preview, ToolListVersion, ToolProvider,
    verify_trust,
};
use auth::ServerAuth;
use client_sessions::SessionServers;
use code_watch::CodeWatch;
use connection_slot::ConnectionSlot;
use offerings::OfferingCounts;
use status::Health;
use throttle::ListThrottle;

/// Default time without a message after which a request ends.
const IDLE: Duration = Duration::from_mins(1);

/// Shared by all servers: ports to the outside and options of the run.
#[derive(Clone)]
pub struct McpSetup {
    /// Variables and directories, for child processes and proxies.
    pub environment: Arc<dyn Environment>,
    /// Where the values of variables are recorded that an entry names.
    pub expanded: ExpandedValues,
    /// Which era each server spoke last time.
    pub eras: Arc<EraCache>,
    /// Where changes of state, progress and logs are shown.
    pub events: EventSink,
    /// Who answers what servers ask.
    pub inbox: Arc<dyn QuestionHandler>,
    /// Where what crosses the wires is shown; secrets are taken out behind it.
    pub traffic: TrafficSink,
    /// Where the tokens of logins are kept between runs.
    pub logins: Arc<dyn Vault>,
    /// Is notified of tokens as they are obtained.
    pub learn: SecretListener,
    /// Accept any TLS certificate (`--insecure`).
    pub insecure: bool,
    /// Which log lines calls ask for (see [`log_level`](crate::mcp::connection::RequestOptions::log_level)).
    pub log_level: Option<&'static str>,
}

pub struct McpProvider {
    spec: ServerSpec,
    setup: McpSetup,
    /// One for all connections, so that what crosses them is numbered in one row.
    tracer: Tracer,
    access: ServerAuth,
    slot: tokio::sync::Mutex<ConnectionSlot>,
    /// Held while listing, so that callers at the same time ask only once.
    listing: tokio::sync::Mutex<ListThrottle>,
    cached: Arc<Mutex<CachedServerState>>,
    has_worked: Arc<AtomicBool>,
    watch: Option<CodeWatch>,
    /// Shared by running calls, which a restart for changed code waits for.
    calls: tokio::sync::RwLock<()>,
}

/// What is known about the server without contacting it.
#[derive(Default)]
struct CachedServerState {
    state: Option<ServerState>,
    connection: Option<Arc<Connection>>,
    listed: Option<VersionedListing>,
    ping: Option<Duration>,
    /// By what the newest connection was made.
    transport: Option<&'static str>,
    counts: OfferingCounts,
    /// Chosen while running, instead of the one of the setup.
    log_level: Option<&'static str>,
    previous_listing: Option<VersionedListing>,
    health: Health,
    /// How many connections were lost, refused or closed.
    losses: u64,
}

/// The definitions that calls are made by: what a connection listed last, and when it was true.
#[derive(Clone)]
struct VersionedListing {
    /// The connection's count of list changes when it was listed.
    version: u64,
    listing: Arc<ToolListing>,
}

/// The provider of a server, as its entry configures it; starts nothing.
pub fn provider(spec: ServerSpec, setup: McpSetup) -> Arc<dyn ToolProvider> {
    if spec.is_shared {
        McpProvider::new(spec, setup)
    } else {
        Arc::new(SessionServers::new(spec, setup))
    }
}

impl McpProvider {
    /// A provider for one server; starts nothing.
    pub fn new(spec: ServerSpec, setup: McpSetup) -> Arc<Self> {
        let tracer = Tracer::new(&spec.name, setup.traffic.clone());
        let access = ServerAuth::of(&spec, &setup, &tracer);
        let server = Arc::new(Self {
            watch: CodeWatch::of(&spec),
            calls: tokio::sync::RwLock::default(),
            tracer,
            spec,
            setup,
            access,
            slot: tokio::sync::Mutex::default(),
            listing: tokio::sync::Mutex::default(),
            cached: Arc::default(),
            has_worked: Arc::default(),
        });
        code_watch::follow(&server);
        server
    }

    fn cached(&self) -> std::sync::MutexGuard<'_, CachedServerState> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_state(&self, state: ServerState) {
        let mut cached = self.cached();
        cached.state = Some(state.clone());
        if let ServerState::Failed(error) = &state {
            cached.health.record_failure(error);
        }
        cached.losses += u64::from(matches!(state, ServerState::Failed(_) | ServerState::Closed));
        drop(cached);
        self.setup
            .events
            .emit(HostEvent::ServerStateChanged { server: self.spec.name.clone(), state });
    }

    async fn connection(&self) -> Result<Arc<Connection>, Error> {
        let mut slot = self.slot.lock().await;
        match slot.live_connection() {
            Some(connection) => Ok(connection),
            // Boxed, as all that is rare on the way of a call: its future stays small.
            None => Box::pin(self.open_connection(&mut slot)).await,
        }
    }

    async fn open_connection(&self, slot: &mut ConnectionSlot) -> Result<Arc<Connection>, Error> {
        let worked = self.has_worked.swap(false, Ordering::Relaxed);
        let is_process = matches!(self.spec.endpoint, Endpoint::Stdio { .. });
        let admitted =
            verify_trust(&self.spec.seal).and_then(|()| slot.reserve_start(is_process, worked));
        match admitted {
            // Even a wait that is over costs a tick of the timer, a millisecond of each first call.
            Ok(not_before) if not_before <= Instant::now() => {}
            Ok(not_before) => tokio::time::sleep_until(not_before).await,
            Err(error) => {
                let error = error.with_server(&self.spec.name);
                self.set_state(ServerState::Failed(error.clone()));
                return Err(error);
            }
        }
        self.set_state(ServerState::Starting);
        if let Some(watch) = &self.watch
            && watch.begin().await
        {
            self.log("warning", "not all files are watched: use narrower patterns".to_owned());
        }
        match endpoint::connect(&self.spec, &self.setup, &self.tracer, &self.access).await {
            Ok((connection, transport)) => {
                let connection = Arc::new(connection);
                slot.opened(Arc::clone(&connection));
                if let Err(error) = self.send_log_level(&connection).await {
                    let reason = error.message();
                    connection.add_warning(&format!("it did not accept the log level: {reason}"));
                }
                let mut cached = self.cached();
                cached.connection = Some(Arc::clone(&connection));
                cached.previous_listing = cached.listed.take().or(cached.previous_listing.take());
                cached.health.record_start();
                cached.transport = Some(transport);
                drop(cached);
                self.set_state(ServerState::Ready);
                let events = &self.setup.events;
                status::watch_for_disconnect(&self.spec.name, &connection, &self.cached, events);
                Ok(connection)
            }
            Err(error) => {
                slot.failed(error.clone());
                self.set_state(ServerState::Failed(error.clone()));
                Err(error)
            }
        }
    }

    fn idle(&self) -> Duration {
        self.spec.timeout.unwrap_or(IDLE)
    }

    /// The newest list, requested again when the server reports a change. A server that does so
    /// endlessly is not asked endlessly.
    async fn listing(&self, connection: &Connection) -> Result<VersionedListing, Error> {
        Box::pin(self.fetch_listing(connection)).await
    }

    async fn fetch_listing(&self, connection: &Connection) -> Result<VersionedListing, Error> {
        let mut throttle = self.listing.lock().await;
        let cached = self.cached().listed.clone();
        if let Some(listed) = cached.filter(|l| l.version == connection.tool_list_version()) {
            return Ok(listed);
        }
        throttle.wait().await;
        let version = connection.tool_list_version();
        let mut listing = listing::tools(connection, self.idle()).await?;
        listing.withheld = Self::withhold(&mut listing.tools, |tool| {
            Some((tool.name.tool().to_owned(), self.tool_refusal(tool.name.tool())?))
        });
        let credentials: Arc<[CredentialUse]> = self.spec.credentials.as_slice().into();
        for tool in &mut listing.tools {
            let tool = Arc::make_mut(tool);
            tool.timeout = self.spec.timeout;
            tool.max_total = self.spec.max_total;
            tool.retries = self.spec.retries;
            tool.requires_approval = self.spec.requires_approval;
            tool.entry = Some(Arc::clone(&self.spec.origin));
            tool.context_env = Arc::clone(&self.spec.context_env);
            tool.credentials = Arc::clone(&credentials);
            self.apply_declaration(tool);
        }
        let listed = VersionedListing { version, listing: Arc::new(listing) };
        let mut cached = self.cached();
        // What an earlier connection reported says nothing about this one.
        if cached.connection.as_deref().is_some_and(|newest| std::ptr::eq(newest, connection)) {
            cached.listed = Some(listed.clone());
        }
        drop(cached);
        Ok(listed)
    }

    /// What the file says about a tool and a server cannot say: category, speed, safety.
    fn apply_declaration(&self, tool: &mut ToolDefinition) {
        let declared = self.spec.provides_tools.iter().find(|d| d.name.tool() == tool.name.tool());
        if let Some(declared) = declared {
            tool.category.clone_from(&declared.category);
            tool.speed = declared.speed;
            tool.has_declared_speed = declared.has_declared_speed;
            tool.safety = declared.safety;
            tool.requires_approval |= declared.requires_approval;
            tool.is_repeatable = declared.is_repeatable;
            tool.version.clone_from(&declared.version);
            tool.timeout = declared.timeout.or(tool.timeout);
        }
    }

    fn endpoint_text(&self) -> String {
        endpoint::describe(&self.spec.endpoint)
    }
}

#[async_trait]
impl ToolProvider for McpProvider {
    fn component(&self) -> Option<&str> {
        Some(&self.spec.name)
    }

    fn declared(&self) -> Vec<Arc<ToolDefinition>> {
        let declared = self.spec.provides_tools.iter();
        let listed = declared.filter(|tool| self.tool_refusal(tool.name.tool()).is_none());
        listed.cloned().map(Arc::new).collect()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn list_version(&self) -> ToolListVersion {
        let cached = self.cached();
        let live = cached.connection.as_ref().filter(|c| c.close_reason().is_none());
        ToolListVersion {
            connection: cached.losses,
            change: live.map_or(0, |connection| connection.tool_list_version()),
        }
    }

    async fn list(&self) -> Result<ToolListing, Error> {
        let connection = self.connection().await?;
        let listed = self.listing(&connection).await?;
        Ok(ToolListing::clone(&listed.listing))
    }

    async fn call(&self, context: &ToolContext, call: &ToolCall) -> Result<ToolResult, Error> {
        let cancelled =
            || Error::interrupted("the call was abandoned").with_server(&self.spec.name);
        let connect = async { (self.calls.read().await, self.connection().await) };
        let (_running, connection) = tokio::select! {
            biased;
            connected = connect => connected,
            () = context.cancel.cancelled() => return Err(cancelled()),
        };
        let connection = connection?;
        self.call_tool(&connection, context, call).await
    }

    async fn preview(&self, call: &ToolCall) -> Result<Preview, Error> {
        let listed = self.cached().listed.clone();
        let tools = listed.as_ref().map(|listed| &listed.listing.tools);
        if let Some(tool) = tools.and_then(|all| all.iter().find(|tool| tool.name == call.name)) {
            self.check_roots(Some(tool), call)?;
        }
        let params = json!({ "name": call.name.tool(), "arguments": call.arguments });
        Ok(Preview {
            summary: format!(
                "tools/call to the server '{}': {}",
                self.spec.name,
                self.endpoint_text()
            ),
            request: json!({ "jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params }),
        })
    }

    async fn close(&self) {
        // Held until the end, so that a call meanwhile connects when this one is really closed.
        let mut slot = self.slot.lock().await;
        if let Some(connection) = slot.take() {
            // First, so that its end is not taken for a crash.
            self.cached().state = Some(ServerState::Closed);
            connection.close().await;
            self.set_state(ServerState::Closed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LoadRequest;
    use crate::config::environment::FixedEnvironment;
    use crate::mcp::auth::MemoryVault;
    use crate::model::NoQuestionHandler;

    /// A server without tools that takes a while to end.
    const SLOW_TO_END: &str = r#"
while read -r line; do
    id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case $line in
        *'"initialize"'*) result='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
        *tools/list*) result='"result":{"tools":[]}' ;;
        *) result='"error":{"code":-32601,"message":"no such method"}' ;;
    esac
    [ -z "$id" ] || printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$result"
done
sleep 0.5
"#;

    #[tokio::test]
    async fn a_connection_made_while_the_last_one_closes_is_not_shown_as_closed() {
        let dir = tempfile::tempdir().unwrap();
        let environment = FixedEnvironment {
            cwd: dir.path().to_path_buf(),
            root: Some(dir.path().to_path_buf()),
            ..FixedEnvironment::default()
        };
        let entry = json!({ "mcp_servers": { "slow": {
            "command": "/bin/sh", "args": ["-c", SLOW_TO_END],
        } } });
        let request = LoadRequest {
            inline_servers: vec![("test".into(), entry.to_string())],
            ..LoadRequest::default()
        };
        let configuration = crate::config::load(&request, &[], &environment);
        let setup = McpSetup {
            environment: Arc::new(environment),
            expanded: configuration.expanded.clone(),
            eras: Arc::new(EraCache::new(None)),
            events: EventSink::discard(),
            inbox: Arc::new(NoQuestionHandler),
            traffic: TrafficSink::disabled(),
            logins: Arc::new(MemoryVault::default()),
            learn: Arc::new(|_, _| {}),
            insecure: false,
            log_level: None,
        };
        let server = McpProvider::new(configuration.servers[0].clone(), setup);
        let first = server.check().await;
        assert!(matches!(first.state, ServerState::Ready), "{:?}", first.state);
        let closing = tokio::spawn({
            let server = Arc::clone(&server);
            async move { server.close().await }
        });
        while matches!(server.status().state, ServerState::Ready) {
            tokio::task::yield_now().await;
        }
        server.list().await.unwrap();
        closing.await.unwrap();
        assert!(matches!(server.status().state, ServerState::Ready), "{:?}", server.status().state);
        server.close().await;
        assert!(matches!(server.status().state, ServerState::Closed));
    }
}
