//! A server's health so far: starts, uptime, newest error.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::CachedServerState;
use crate::mcp::connection::Connection;
use crate::model::{Error, ErrorKind, EventSink, HostEvent, PastError, ServerState};
use crate::util::clock::{Clock as _, SystemClock};

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
