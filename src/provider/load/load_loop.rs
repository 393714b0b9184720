//! The loop between a [`Load`] and its executor: the same for pipes, connections and concurrent
//! attempts.

use std::future::pending;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;

use super::{Load, LoadDecision};
use crate::model::Error;
use crate::util::pacer::Pacer;

#[derive(Debug, Clone, Copy)]
pub enum LoadWait {
    NextRequest(Instant),
    Indefinitely,
    /// The calls in flight, which may end until this moment; no further call follows.
    DrainDeadline(Instant),
}

impl LoadWait {
    fn drain_deadline(self) -> Option<Instant> {
        match self {
            Self::DrainDeadline(moment) => Some(moment),
            Self::NextRequest(_) | Self::Indefinitely => None,
        }
    }
}

/// A transport for the calls of a run, driven by [`drive`].
pub trait LoadTransport: Send {
    /// What happened to a call, or to the way that calls take.
    type Event: Send;

    fn send_due(&mut self, load: &mut dyn Load) -> LoadWait;

    /// Whether nothing is in flight and nothing waits to be sent.
    fn is_idle(&self) -> bool;

    /// The moment at which the first call in flight runs out of time. `None` when there is no such
    /// call, or when the transport watches its limits itself.
    fn next_deadline(&self) -> Option<Instant>;

    /// Waits until something happened to a call. Cancel-safe.
    fn wait(&mut self) -> impl Future<Output = Self::Event> + Send;

    /// Tells the load what became of calls, after each wait. Without an event a deadline may be over,
    /// or the load may have something to send.
    fn on_wake(&mut self, event: Option<Self::Event>, load: &mut dyn Load) -> Result<(), Error>;

    /// Ends everything in flight as unanswered, for a peer that is told `reason`.
    fn abandon(&mut self, load: &mut dyn Load, reason: &str);
}

pub fn split_decision(decision: LoadDecision) -> Result<super::BenchRequest, LoadWait> {
    match decision {
        LoadDecision::Send(request) => Ok(request),
        LoadDecision::WaitUntil(moment) => Err(LoadWait::NextRequest(moment)),
        LoadDecision::WaitForWakeup => Err(LoadWait::Indefinitely),
        LoadDecision::Drain(moment) => Err(LoadWait::DrainDeadline(moment)),
    }
}

/// Carries the calls of `load` over `transport` until the load is done, `cancel` fires, or the
/// deadline of the load for calls in flight has passed.
pub async fn drive<T: LoadTransport>(
    transport: &mut T,
    load: &mut dyn Load,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let wakeup = load.wakeup();
    let mut notified = pin!(wakeup.notified());
    let mut cancelled = pin!(cancel.cancelled());
    let mut timer = DeadlineTimer { sleep: pin!(sleep(Duration::ZERO)), deadline: None };
    let mut pacer = Pacer::new();
    loop {
        let wait = transport.send_due(load);
        let end = wait.drain_deadline();
        if end.is_some() && transport.is_idle() {
            return Ok(());
        }
        timer.set(transport.next_deadline().into_iter().chain(end).min(), load);
        let event = tokio::select! {
            biased;
            () = &mut cancelled => {
                transport.abandon(load, "the run was abandoned");
                return Ok(());
            }
            event = transport.wait() => Some(event),
            () = &mut notified => {
                notified.set(wakeup.notified());
                None
            }
            () = timer.sleep.as_mut(), if timer.deadline.is_some() => {
                timer.deadline = None;
                None
            }
            () = paced(&mut pacer, wait) => None,
        };
        transport.on_wake(event, load)?;
        if end.is_some_and(|moment| load.now() >= moment) {
            transport.abandon(load, "the run is over");
            return Ok(());
        }
    }
}

async fn paced(pacer: &mut Pacer, wait: LoadWait) {
    match wait {
        LoadWait::NextRequest(moment) => pacer.until(moment).await,
        LoadWait::Indefinitely | LoadWait::DrainDeadline(_) => pending().await,
    }
}

/// One timer for deadlines that are mostly put off before they come: a later one costs nothing until
/// the earlier one has fired.
struct DeadlineTimer<'a> {
    sleep: Pin<&'a mut Sleep>,
    /// When the timer fires; `None` once it has.
    deadline: Option<Instant>,
}

impl DeadlineTimer<'_> {
    /// Makes the timer fire at this moment or before it.
    fn set(&mut self, moment: Option<Instant>, load: &dyn Load) {
        let Some(moment) = moment else { return };
        if self.deadline.is_none_or(|deadline| moment < deadline) {
            let left = moment.saturating_duration_since(load.now());
            self.sleep.as_mut().reset(tokio::time::Instant::now() + left);
            self.deadline = Some(moment);
        }
    }
}
