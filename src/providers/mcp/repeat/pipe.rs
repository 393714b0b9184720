//! Many calls over the pipes of a server that is a child process.
//!
//! Owns: the loop between a [`Load`] and the wire, and the limit on each call. Never does: pace or
//! count (the load does), judge an answer (`judge`), or know what a request looks like (the `mcp`
//! room does).
//!
//! What a time means here: a call was sent when the batch it is part of was handed to the pipe, and
//! answered when the piece of the pipe that holds the end of its answer was read. Reading and
//! judging the answer comes after that. A call that waits in our buffer because the server does not
//! read counts as sent.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;

use super::super::Known;
use super::Fence;
use super::judge::Judge;
use crate::mcp::repeat::answer;
use crate::mcp::repeat::flights::Flight;
use crate::mcp::repeat::run::{Answer, Lane, Run};
use crate::model::Fault;
use crate::provider::repeat::{End, Load, Next, Order, Repeater, Shot, Verdict};
use crate::util::pacer::Pacer;
use crate::util::units::show_duration;

/// Carries calls over the pipes of a server.
pub(super) struct Pipe {
    lane: Lane,
    lanes: usize,
    limit: Duration,
    cancel: CancellationToken,
    fence: Option<Fence>,
    judge: Judge,
    worked: Arc<AtomicBool>,
    known: Arc<Mutex<Known>>,
}

/// What a load wants, when no further call is due.
#[derive(Clone, Copy)]
enum Pause {
    /// Until this moment.
    At(Instant),
    /// Until something happens.
    Open,
    /// For ever; what is in flight may end until this moment.
    Over(Instant),
}

impl Pipe {
    pub(super) fn new(
        lane: Lane,
        order: &Order,
        fence: Option<Fence>,
        worked: Arc<AtomicBool>,
        known: Arc<Mutex<Known>>,
    ) -> Self {
        let server = lane.connection().name().to_owned();
        Self {
            lane,
            lanes: order.lanes,
            limit: order.limit,
            cancel: order.context.cancel.clone(),
            fence,
            judge: Judge::new(&server, order.inspection.clone()),
            worked,
            known,
        }
    }
}

#[async_trait]
impl Repeater for Pipe {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Fault> {
        let Self { lane, lanes, limit, cancel, fence, judge, worked, known } = self;
        let limit = *limit;
        let failed = |fault: Fault| {
            known.lock().unwrap_or_else(PoisonError::into_inner).health.failed(&fault);
            fault
        };
        let begun = lane.begin(*lanes, load.now()).await;
        let mut run = begun.map_err(|fault| failed(judge.named(fault)))?;
        let news = load.news();
        let mut told = pin!(news.notified());
        let mut cancelled = pin!(cancel.cancelled());
        let mut alarm = Alarm { sleep: pin!(sleep(Duration::ZERO)), set: None };
        let mut pacer = Pacer::new();
        loop {
            let pause = fill(&mut run, load, fence.as_mut());
            run.flush(load.now());
            if matches!(pause, Pause::Over(_)) && run.in_flight() == 0 {
                return Ok(());
            }
            let late = run.oldest().and_then(|flight| flight.sent.checked_add(limit));
            let over = if let Pause::Over(moment) = pause { Some(moment) } else { None };
            alarm.set(late.into_iter().chain(over).min(), load);
            tokio::select! {
                biased;
                () = &mut cancelled => {
                    abandon(&mut run, load, "the run was given up");
                    return Ok(());
                }
                () = run.wait() => {}
                () = &mut told => told.set(news.notified()),
                () = paced(&mut pacer, pause) => {}
                () = alarm.sleep.as_mut(), if alarm.set.is_some() => alarm.set = None,
            }
            let at = load.now();
            run.land(at, |landing| {
                let (flight, bytes_in) = (landing.flight, as_u64(landing.bytes));
                let verdict = match landing.answer {
                    Answer::Plain(line) => judge.judge(true, || answer::outcome(line)),
                    Answer::Read(outcome) => judge.judge(false, || outcome),
                };
                if matches!(verdict, Verdict::Ok) && !worked.load(Ordering::Relaxed) {
                    worked.store(true, Ordering::Relaxed);
                }
                load.ended(End { bytes_in, ..ended(flight, at, verdict) });
            });
            while run.oldest().is_some_and(|flight| at.duration_since(flight.sent) >= limit) {
                let text = format!("no answer within {}", show_duration(limit));
                let Some(flight) = run.give_up(&text) else { break };
                let fault = judge.named(Fault::timeout(text));
                load.ended(ended(flight, at, Verdict::Failed(Box::new(fault))));
            }
            if let Some(fault) = run.closed() {
                let fault = judge.named(fault);
                while let Some(flight) = run.forget() {
                    let verdict = Verdict::Failed(Box::new(fault.clone()));
                    load.ended(ended(flight, at, verdict));
                }
                return Err(failed(fault));
            }
            if over.is_some_and(|moment| at >= moment) {
                abandon(&mut run, load, "the run is over");
                return Ok(());
            }
        }
    }

    fn doubts(&self) -> Vec<String> {
        let server = self.judge.server();
        let doubts = self.lane.connection().doubts().into_iter();
        doubts.map(|doubt| format!("{server}: {doubt}")).collect()
    }
}

/// Takes from the load what is due now, as far as there is room for it.
fn fill(run: &mut Run<'_>, load: &mut dyn Load, mut fence: Option<&mut Fence>) -> Pause {
    let now = load.now();
    while run.has_room() {
        match load.next(now) {
            Next::Shot(Shot { ticket, arguments }) => {
                let checked = fence.as_mut().map_or(Ok(()), |fence| fence.check(&arguments));
                match checked {
                    Ok(()) => run.send(ticket, &arguments.json),
                    Err(fault) => {
                        let (at, verdict) = (load.now(), Verdict::Failed(Box::new(fault)));
                        load.ended(End { verdict, ..End::unanswered(ticket, at, at) });
                    }
                }
            }
            Next::At(moment) => return Pause::At(moment),
            Next::Wait => return Pause::Open,
            Next::Drain(moment) => return Pause::Over(moment),
        }
    }
    Pause::Open
}

/// Ends whatever is in flight without an answer, and tells the server as far as it listens.
fn abandon(run: &mut Run<'_>, load: &mut dyn Load, why: &str) {
    let at = load.now();
    while let Some(flight) = run.give_up(why) {
        load.ended(ended(flight, at, Verdict::Unanswered));
    }
    run.flush(at);
}

fn ended(flight: Flight, at: Instant, verdict: Verdict) -> End {
    let Flight { ticket, sent, bytes, .. } = flight;
    End { ticket, sent, at, bytes_out: as_u64(bytes), bytes_in: 0, verdict }
}

fn as_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

async fn paced(pacer: &mut Pacer, pause: Pause) {
    match pause {
        Pause::At(moment) => pacer.until(moment).await,
        Pause::Open | Pause::Over(_) => std::future::pending().await,
    }
}

/// One timer for moments that mostly are put off before they come.
struct Alarm<'a> {
    sleep: std::pin::Pin<&'a mut Sleep>,
    /// When it goes off.
    set: Option<Instant>,
}

impl Alarm<'_> {
    /// Goes off at this moment or before it.
    fn set(&mut self, moment: Option<Instant>, load: &dyn Load) {
        let Some(moment) = moment else { return };
        if self.set.is_none_or(|set| moment < set) {
            let left = moment.saturating_duration_since(load.now());
            self.sleep.as_mut().reset(tokio::time::Instant::now() + left);
            self.set = Some(moment);
        }
    }
}
