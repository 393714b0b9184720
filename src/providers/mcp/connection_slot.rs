//! The connection to a server: a small budget of restarts, with growing pauses.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::mcp::connection::Connection;
use crate::model::Error;

const STARTS: usize = 3;
/// The time in which [`STARTS`] are counted.
const WINDOW: Duration = Duration::from_mins(1);
/// The least time between the first start and the second; doubled for the third.
const PAUSE: Duration = Duration::from_millis(500);
/// A failure is repeated, not retried, for this long.
const MEMORY: Duration = Duration::from_secs(5);

#[derive(Default)]
pub struct ConnectionSlot {
    connection: Option<Arc<Connection>>,
    failure: Option<(Instant, Error)>,
    starts: VecDeque<Instant>,
}

impl ConnectionSlot {
    /// The connection, if there is one that still works.
    pub fn live_connection(&self) -> Option<Arc<Connection>> {
        self.connection.clone().filter(|c| c.close_reason().is_none())
    }

    /// Takes part of the budget; the start may be made at the time that is returned. `worked` says
    /// that the connection before did something useful. What is not a process of ours is only
    /// connected to, which costs nothing and has no budget.
    pub fn reserve_start(&mut self, is_process: bool, worked: bool) -> Result<Instant, Error> {
        let now = Instant::now();
        if let Some((when, error)) = &self.failure
            && now.duration_since(*when) < MEMORY
        {
            return Err(error.clone());
        }
        if !is_process {
            return Ok(now);
        }
        if worked {
            self.starts.clear();
        }
        while self.starts.front().is_some_and(|start| now.duration_since(*start) > WINDOW) {
            self.starts.pop_front();
        }
        if self.starts.len() >= STARTS {
            let last = self.connection.as_ref().and_then(|c| c.close_reason());
            let last = last.or_else(|| self.failure.as_ref().map(|(_, error)| error.clone()));
            let error = Error::unreachable(format!("it died {STARTS} times within a minute"));
            return Err(match last {
                Some(last) => {
                    error.with_detail(last.message()).with_details(last.details().to_vec())
                }
                None => error,
            });
        }
        let doublings = self.starts.len().saturating_sub(1).min(STARTS);
        let when = match self.starts.back() {
            Some(last) => now.max(*last + PAUSE * (1 << doublings)),
            None => now,
        };
        self.starts.push_back(when);
        Ok(when)
    }

    pub fn opened(&mut self, connection: Arc<Connection>) {
        self.failure = None;
        self.connection = Some(connection);
    }

    pub fn failed(&mut self, error: Error) {
        self.connection = None;
        self.failure = Some((Instant::now(), error));
    }

    /// Forgets what delays a start: a user wants it now.
    pub fn reset_backoff(&mut self) {
        self.failure = None;
        self.starts.clear();
    }

    pub fn take(&mut self) -> Option<Arc<Connection>> {
        self.connection.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn restarts_come_with_growing_pauses_and_end_after_three_in_a_minute() {
        let (mut slot, start) = (ConnectionSlot::default(), Instant::now());
        let waits: Vec<Duration> =
            (0..STARTS).map(|_| slot.reserve_start(true, false).unwrap() - start).collect();
        assert_eq!(waits, [Duration::ZERO, PAUSE, 3 * PAUSE]);
        let error = slot.reserve_start(true, false).unwrap_err();
        assert_eq!(error.message(), "it died 3 times within a minute");
        tokio::time::advance(2 * WINDOW).await;
        assert_eq!(slot.reserve_start(true, false).unwrap(), Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_did_its_work_is_started_again_at_once() {
        let mut slot = ConnectionSlot::default();
        for _ in 0..10 {
            assert_eq!(slot.reserve_start(true, true).unwrap(), Instant::now());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_person_who_wants_it_now_waits_for_nothing() {
        let mut slot = ConnectionSlot::default();
        for _ in 0..STARTS {
            assert!(slot.reserve_start(true, false).is_ok());
        }
        slot.failed(Error::unreachable("exited with 1"));
        assert!(slot.reserve_start(true, false).is_err());
        slot.reset_backoff();
        assert_eq!(slot.reserve_start(true, false).unwrap(), Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn connecting_has_no_budget_but_a_failure_is_repeated_while_it_is_fresh() {
        let mut slot = ConnectionSlot::default();
        for _ in 0..10 {
            assert!(slot.reserve_start(false, false).is_ok());
        }
        slot.failed(Error::unreachable("connection refused"));
        assert!(slot.reserve_start(false, false).is_err());
        tokio::time::advance(MEMORY).await;
        assert!(slot.reserve_start(false, false).is_ok());
    }
}
