//! Whether a connection may be opened (again): a small budget of starts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::mcp::connection::Connection;
use crate::model::Fault;

/// At most this many starts…
const STARTS: usize = 3;
/// …in this time.
const WINDOW: Duration = Duration::from_mins(1);
/// A failure is repeated, not retried, for this long.
const MEMORY: Duration = Duration::from_secs(5);

/// The place of one server's connection.
#[derive(Default)]
pub struct Slot {
    connection: Option<Arc<Connection>>,
    failure: Option<(Instant, Fault)>,
    starts: VecDeque<Instant>,
}

impl Slot {
    /// The connection, if there is one that still works.
    pub fn alive(&self) -> Option<Arc<Connection>> {
        self.connection.clone().filter(|c| c.closed().is_none())
    }

    /// Takes part of the budget.
    ///
    /// # Errors
    /// The newest failure while it is fresh; or that the server died too often.
    pub fn may_start(&mut self) -> Result<(), Fault> {
        let now = Instant::now();
        if let Some((when, fault)) = &self.failure
            && now.duration_since(*when) < MEMORY
        {
            return Err(fault.clone());
        }
        while self.starts.front().is_some_and(|start| now.duration_since(*start) > WINDOW) {
            self.starts.pop_front();
        }
        if self.starts.len() >= STARTS {
            let last = self.connection.as_ref().and_then(|c| c.closed());
            let fault = Fault::unreachable(format!("it died {STARTS} times within a minute"));
            return Err(match last {
                Some(last) => fault.detail(last.message()).details(last.detail_lines().to_vec()),
                None => fault,
            });
        }
        self.starts.push_back(now);
        Ok(())
    }

    /// A connection was opened.
    pub fn opened(&mut self, connection: Arc<Connection>) {
        self.failure = None;
        self.connection = Some(connection);
    }

    /// It could not be opened.
    pub fn failed(&mut self, fault: Fault) {
        self.connection = None;
        self.failure = Some((Instant::now(), fault));
    }

    /// Empties the slot.
    pub fn take(&mut self) -> Option<Arc<Connection>> {
        self.connection.take()
    }
}
