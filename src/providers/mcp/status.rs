//! A server's status, and pinging it.
//!
//! A server's health so far: starts, uptime, newest error.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::time::Instant;

use super::{CachedServerState, McpProvider, endpoint};
use crate::mcp::connection::{Connection, RequestOptions};
use crate::model::{
    Era, Error, ErrorKind, ErrorPhase, EventSink, HostEvent, PastError, ServerState, ServerStatus,
};
use crate::provider::{ConnectionSummary, ManagedServer, ToolProvider as _};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::process::{cpu_time, resident_memory};

const PING: Duration = Duration::from_secs(10);

#[async_trait]
impl ManagedServer for McpProvider {
    fn routing_weight(&self) -> Option<f64> {
        self.spec.routing_weight
    }

    fn status(&self) -> ServerStatus {
        let cached = self.cached();
        let connection = cached.connection.as_deref();
        let agreement = connection.map(|c| &c.agreement);
        let vitals = connection.map(|c| c.process_info()).unwrap_or_default();
        let state = match (&cached.state, connection.and_then(|c| c.close_reason())) {
            (Some(ServerState::Ready), Some(error)) => ServerState::Failed(error),
            (Some(state), _) => state.clone(),
            (None, _) => ServerState::Idle,
        };
        let alive = matches!(state, ServerState::Ready);
        let listing = cached.listed.as_ref().map(|listed| &listed.listing);
        let missing = listing.into_iter().flat_map(|listing| &listing.diagnostics);
        let missing = missing.filter(|problem| problem.is_error());
        let mut warnings = connection.map(|c| c.protocol_warnings()).unwrap_or_default();
        warnings.extend(missing.map(|problem| problem.message.clone()));
        let (confinement, sandbox) = endpoint::confinement(&self.spec, &self.setup);
        ServerStatus {
            name: self.spec.name.clone(),
            description: self.spec.description.clone(),
            state,
            transport: cached.transport.unwrap_or(endpoint::transport(&self.spec.endpoint)).into(),
            endpoint: self.endpoint_text(),
            confinement,
            sandbox,
            permissions: self.spec.permissions.clone(),
            credentials: self.spec.credentials.clone(),
            era: agreement.map(|a| a.era),
            protocol: agreement.map(|a| a.version.clone()),
            supported_versions: agreement.map(|a| a.supported_versions.clone()).unwrap_or_default(),
            server_info: agreement.and_then(|a| a.server_info.clone()),
            capabilities: agreement.map(|a| a.capabilities.clone()),
            instructions: agreement.and_then(|a| a.instructions.clone()),
            pid: vitals.pid.filter(|_| alive),
            memory: vitals.pid.filter(|_| alive).and_then(resident_memory),
            cpu_time: vitals.pid.filter(|_| alive).and_then(cpu_time),
            connect: connection.map(|c| c.connect_time),
            ping: cached.ping,
            tools: listing.map(|listing| listing.tools.len()),
            is_tool_list_partial: listing.is_some_and(|listing| listing.is_partial),
            resources: cached.counts.resources,
            prompts: cached.counts.prompts,
            starts: cached.health.starts,
            uptime: cached.health.uptime().filter(|_| alive),
            last_error: cached.health.last.clone(),
            weight: None,
            connections: None,
            warnings,
            stderr_tail: vitals.stderr_tail,
        }
    }

    fn connection_summary(&self) -> ConnectionSummary {
        let cached = self.cached();
        let Some(connection) = cached.connection.as_deref() else {
            return ConnectionSummary::default();
        };
        ConnectionSummary {
            is_ready: matches!(cached.state, Some(ServerState::Ready))
                && connection.close_reason().is_none(),
            connect: Some(connection.connect_time),
            protocol: Some(connection.agreement.version.clone()),
            instructions: connection.agreement.instructions.clone(),
        }
    }

    async fn check(&self) -> ServerStatus {
        if let Ok(connection) = self.connection().await {
            let options = RequestOptions::with_timeouts(PING, PING, ErrorPhase::Handshake);
            let method = match connection.agreement.era {
                Era::Legacy => "ping",
                Era::Modern => "server/discover",
            };
            let started = Instant::now();
            match connection.request(method, json!({}), &options).await {
                Ok(_) => self.cached().ping = Some(started.elapsed()),
                // A well-formed no is a sign of life too.
                Err(error) if error.kind() == ErrorKind::Tool => {
                    self.cached().ping = Some(started.elapsed());
                }
                Err(error) => {
                    self.cached().health.record_failure(&error);
                    return ServerStatus { state: ServerState::Failed(error), ..self.status() };
                }
            }
            if let Err(error) = self.list().await {
                self.cached().health.record_failure(&error);
                let reason = error.message();
                connection.add_warning(&format!("its tools cannot be listed: {reason}"));
            }
            self.count_offerings(&connection).await;
        }
        self.status()
    }

    async fn restart(&self) -> ServerStatus {
        self.close().await;
        self.slot.lock().await.reset_backoff();
        self.check().await
    }
}

#[derive(Default)]
pub(super) struct Health {
    pub(super) starts: u32,
    since: Option<Instant>,
    pub(super) last: Option<PastError>,
}

impl Health {
    /// Counts a connection that was opened and starts its uptime.
    pub(super) fn record_start(&mut self) {
        self.starts = self.starts.saturating_add(1);
        self.since = Some(Instant::now());
    }

    /// Records a failure of the server; errors that concern only one call are ignored.
    pub(super) fn record_failure(&mut self, error: &Error) {
        let servers = matches!(
            error.kind(),
            ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Protocol | ErrorKind::Auth
        );
        if servers {
            self.last = Some(PastError { at: SystemClock.unix(), error: error.clone() });
        }
    }

    pub(super) fn uptime(&self) -> Option<Duration> {
        self.since.map(|since| since.elapsed())
    }
}

/// Records the end of a connection when it happens, and notifies viewers. The version of the tool
/// list changes with it.
pub(super) fn watch_for_disconnect(
    server: &str,
    connection: &Arc<Connection>,
    cached: &Arc<Mutex<CachedServerState>>,
    events: &EventSink,
) {
    let gone = connection.closed_token.clone();
    let (connection, cached) = (Arc::downgrade(connection), Arc::downgrade(cached));
    let (server, events) = (server.to_owned(), events.clone());
    tokio::spawn(async move {
        gone.cancelled().await;
        let (Some(connection), Some(cached)) = (connection.upgrade(), cached.upgrade()) else {
            return;
        };
        let Some(error) = connection.close_reason() else { return };
        let error = error.with_server(&server);
        let state = ServerState::Failed(error.clone());
        {
            let mut cached = cached.lock().unwrap_or_else(PoisonError::into_inner);
            let newest = cached.connection.as_ref().is_some_and(|c| Arc::ptr_eq(c, &connection));
            // A connection that we closed ourselves ended as it should.
            if !newest || !matches!(cached.state, Some(ServerState::Ready)) {
                return;
            }
            cached.state = Some(state.clone());
            cached.losses += 1;
            cached.health.record_failure(&error);
        }
        events.emit(HostEvent::ServerStateChanged { server, state });
    });
}
