//! Circuit breakers: servers that keep failing are not called for a while.
//!
//! Owns: for each server the count of failures in a row, and when it may be tried again. A circuit
//! only blocks calls for which the router chooses the server (see `balancer`): a call by full name
//! is always made, and its outcome still counts. Never does: call, wait, or choose.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{CircuitState, Error, ErrorKind};
use crate::util::units::show_duration;

/// Failures in a row that open a circuit.
const FAILURES: u32 = 3;
/// The first time for which it is open; doubled each time its trial fails…
const FIRST: Duration = Duration::from_secs(5);
/// The longest time for which a circuit is open.
const LONGEST: Duration = Duration::from_mins(1);

/// The recent outcomes of a server's calls.
#[derive(Debug, Default)]
struct CircuitBreaker {
    /// Failures since the last success; [`FAILURES`] open the circuit.
    failures: u32,
    /// Since when it is open, and for how long.
    open: Option<(Instant, Duration)>,
    /// When the trial call was started.
    trial: Option<Instant>,
    /// The latest failure, reported to callers while the circuit is open.
    last: Option<Error>,
}

impl CircuitBreaker {
    fn state(&self, now: Instant) -> CircuitState {
        let Some((since, wait)) = self.open else { return CircuitState::Closed };
        match (since + wait).saturating_duration_since(now) {
            Duration::ZERO => CircuitState::HalfOpen,
            left => CircuitState::Open { remaining: left },
        }
    }

    /// Whether a call may be sent to it. A trial that never came to an end is forgotten.
    fn admits(&self, now: Instant) -> bool {
        match self.state(now) {
            CircuitState::Closed => true,
            CircuitState::Open { .. } => false,
            CircuitState::HalfOpen => self.trial.is_none_or(|begun| now >= begun + LONGEST),
        }
    }

    fn begin_trial(&mut self, now: Instant) {
        if self.open.is_some() {
            self.trial = Some(now);
        }
    }

    fn record_failure(&mut self, now: Instant, error: &Error) {
        self.last = Some(error.clone());
        self.failures = self.failures.saturating_add(1);
        match self.open {
            None if self.failures >= FAILURES => self.open = Some((now, FIRST)),
            // While it is open, a call that was started earlier provides no new information.
            Some((since, wait)) if now >= since + wait => {
                self.open = Some((now, (wait * 2).min(LONGEST)));
                self.trial = None;
            }
            None | Some(_) => {}
        }
    }
}

/// What the end of a call says about its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HealthSignal {
    Healthy,
    Failing,
    /// It says something about the call only.
    Neutral,
}

fn health_signal(outcome: Result<(), &Error>) -> HealthSignal {
    match outcome.map_err(Error::kind) {
        // A no is an answer.
        Ok(()) | Err(ErrorKind::Tool) => HealthSignal::Healthy,
        Err(ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Protocol) => {
            HealthSignal::Failing
        }
        Err(_) => HealthSignal::Neutral,
    }
}

/// The circuits of all servers.
#[derive(Debug, Default)]
pub(super) struct Circuits(Mutex<HashMap<String, CircuitBreaker>>);

impl Circuits {
    fn all(&self) -> MutexGuard<'_, HashMap<String, CircuitBreaker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the router may choose this server.
    pub(super) fn admits(&self, server: &str) -> bool {
        self.all().get(server).is_none_or(|breaker| breaker.admits(Instant::now()))
    }

    /// The router sends a call to this server; if it is on trial, no other call follows.
    pub(super) fn begin_trial(&self, server: &str) {
        if let Some(breaker) = self.all().get_mut(server) {
            breaker.begin_trial(Instant::now());
        }
    }

    /// Notes how a request to this server ended.
    pub(super) fn record_outcome(&self, server: &str, outcome: Result<(), &Error>) {
        let mut all = self.all();
        match (health_signal(outcome), outcome) {
            (HealthSignal::Healthy, _) => drop(all.remove(server)),
            // Names are those of servers that are registered, which bounds the map.
            (HealthSignal::Failing, Err(error)) => {
                all.entry(server.to_owned()).or_default().record_failure(Instant::now(), error);
            }
            (HealthSignal::Failing | HealthSignal::Neutral, _) => {
                if let Some(breaker) = all.get_mut(server) {
                    breaker.trial = None;
                }
            }
        }
    }

    /// Forgets a server that was removed.
    pub(super) fn forget(&self, server: &str) {
        self.all().remove(server);
    }

    /// The state of a server's circuit, for display.
    pub(super) fn state(&self, server: &str) -> CircuitState {
        self.all().get(server).map_or(CircuitState::Closed, |breaker| breaker.state(Instant::now()))
    }

    /// Why nothing is sent to it now.
    pub(super) fn unavailable_error(&self, server: &str) -> Error {
        let all = self.all();
        let breaker = all.get(server);
        let error = match breaker.map(|breaker| breaker.state(Instant::now())) {
            Some(CircuitState::Open { remaining: left }) => Error::unreachable(format!(
                "it keeps failing; no calls for another {}",
                show_duration(left)
            )),
            _ => Error::unreachable("it keeps failing, and another call is testing it"),
        };
        let last = breaker.and_then(|breaker| breaker.last.as_ref());
        error.with_server(server).with_details(last.map(|last| format!("last: {}", last.message())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fail(circuits: &Circuits) {
        circuits.record_outcome("s", Err(&Error::unreachable("connection refused")));
    }

    fn answer(circuits: &Circuits) {
        circuits.record_outcome("s", Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn three_failures_in_a_row_open_it_and_one_answer_closes_it() {
        let circuits = Circuits::default();
        fail(&circuits);
        fail(&circuits);
        answer(&circuits);
        fail(&circuits);
        fail(&circuits);
        assert_eq!(circuits.state("s"), CircuitState::Closed);
        fail(&circuits);
        assert_eq!(circuits.state("s"), CircuitState::Open { remaining: FIRST });
        assert!(!circuits.admits("s") && circuits.admits("other"));
        let refusal = circuits.unavailable_error("s");
        assert!(refusal.message().contains("another 5 s"), "{refusal}");
        assert_eq!(refusal.details(), ["last: connection refused"]);
        answer(&circuits);
        assert!(circuits.admits("s"));
    }

    #[tokio::test(start_paused = true)]
    async fn one_trial_decides_and_the_wait_doubles_up_to_a_minute() {
        let circuits = Circuits::default();
        (0..3).for_each(|_| fail(&circuits));
        let mut waits = Vec::new();
        for _ in 0..6 {
            let CircuitState::Open { remaining } = circuits.state("s") else { panic!("not open") };
            waits.push(remaining.as_secs());
            tokio::time::advance(remaining).await;
            assert_eq!(circuits.state("s"), CircuitState::HalfOpen);
            assert!(circuits.admits("s"));
            circuits.begin_trial("s");
            assert!(!circuits.admits("s"), "a second trial");
            fail(&circuits);
        }
        assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
        tokio::time::advance(LONGEST).await;
        circuits.begin_trial("s");
        answer(&circuits);
        assert_eq!(circuits.state("s"), CircuitState::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trial_that_says_nothing_makes_room_for_another() {
        let circuits = Circuits::default();
        (0..3).for_each(|_| fail(&circuits));
        tokio::time::advance(FIRST).await;
        circuits.begin_trial("s");
        circuits.record_outcome("s", Err(&Error::denied("a person refused")));
        assert!(circuits.admits("s"));
        circuits.begin_trial("s");
        tokio::time::advance(LONGEST).await;
        assert!(circuits.admits("s"), "a trial that was dropped blocks for ever");
    }

    #[test]
    fn only_what_a_server_does_counts() {
        let of = |error: Error| health_signal(Err(&error));
        assert_eq!(of(Error::timeout("t")), HealthSignal::Failing);
        assert_eq!(of(Error::protocol("p")), HealthSignal::Failing);
        assert_eq!(of(Error::tool("no")), HealthSignal::Healthy);
        for error in [Error::denied("d"), Error::auth("a"), Error::usage("u")] {
            assert_eq!(of(error), HealthSignal::Neutral);
        }
    }

    proptest! {
        #[test]
        fn it_is_never_open_without_three_failures_nor_longer_than_a_minute(
            steps in prop::collection::vec((0_u8..3, 0_u64..20), 0..60),
        ) {
            let (start, error) = (Instant::now(), Error::unreachable("x"));
            let (mut breaker, mut now, mut row) = (CircuitBreaker::default(), start, 0);
            for (step, seconds) in steps {
                now += Duration::from_secs(seconds);
                match step {
                    0 => { breaker = CircuitBreaker::default(); row = 0; }
                    1 => { breaker.record_failure(now, &error); row += 1; }
                    _ => if breaker.admits(now) { breaker.begin_trial(now) },
                }
                match breaker.state(now) {
                    CircuitState::Closed => prop_assert!(row < FAILURES),
                    CircuitState::Open { remaining } => prop_assert!(row >= FAILURES && remaining <= LONGEST),
                    CircuitState::HalfOpen => prop_assert!(row >= FAILURES),
                }
            }
        }
    }
}
