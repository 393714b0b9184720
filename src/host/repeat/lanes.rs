//! Carries calls for kinds of tools that have no way of their own for many: one attempt of the
//! provider for each call, so many at once.
//!
//! Owns: the attempts in flight and their limit. Never does: check arguments, ask, retry or record;
//! what is measured is the tool, with as little around it as is honest.

use std::collections::HashMap;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::host::{content, limits};
use crate::model::{Fault, ToolCall, ToolContext, ToolResult};
use crate::provider::ToolProvider;
use crate::provider::repeat::{End, Load, Next, Order, Payload, Repeater, Shot, Verdict};
use crate::util::pacer::Pacer;
use crate::util::units::show_duration;

/// How much of what a tool said is kept, in characters.
const WORDS: usize = 300;

/// Attempts of a provider, side by side.
pub(super) struct Lanes {
    provider: Arc<dyn ToolProvider>,
    order: Order,
    /// What calls that have ended left for later ones.
    idle: Vec<Lane>,
    /// Answers that were read.
    read: u64,
}

/// What a call needs beside its arguments, used again and again.
struct Lane {
    context: ToolContext,
    call: ToolCall,
    /// Whose object the call has.
    payload: Option<Arc<Payload>>,
}

/// A call that has ended.
struct Ended {
    ticket: u64,
    sent: Instant,
    /// When a limit fired; else it ended when that is noticed.
    at: Option<Instant>,
    result: Result<ToolResult, Fault>,
    lane: Lane,
}

impl Lanes {
    pub(super) fn new(provider: Arc<dyn ToolProvider>, order: Order) -> Self {
        Self { provider, order, idle: Vec::new(), read: 0 }
    }

    /// A lane for these arguments, which ends with `run`.
    fn lane(&mut self, arguments: &Arc<Payload>, run: &CancellationToken) -> Lane {
        let mut lane = self.idle.pop().unwrap_or_else(|| {
            let call =
                ToolCall { name: self.order.tool.clone(), arguments: arguments.object.clone() };
            let context = ToolContext { cancel: run.child_token(), ..self.order.context.clone() };
            Lane { context, call, payload: Some(Arc::clone(arguments)) }
        });
        if lane.context.cancel.is_cancelled() {
            lane.context.cancel = run.child_token();
        }
        if !lane.payload.as_ref().is_some_and(|before| Arc::ptr_eq(before, arguments)) {
            lane.call.arguments.clone_from(&arguments.object);
            lane.payload = Some(Arc::clone(arguments));
        }
        lane
    }

    fn start(
        &mut self,
        shot: &Shot,
        sent: Instant,
        run: &CancellationToken,
    ) -> BoxFuture<'static, Ended> {
        let lane = self.lane(&shot.arguments, run);
        let provider = Arc::clone(&self.provider);
        let (ticket, limit) = (shot.ticket, self.order.limit);
        Box::pin(async move {
            let (result, at) = {
                let call = provider.call(&lane.context, &lane.call);
                let mut work = pin!(AssertUnwindSafe(call).catch_unwind());
                match tokio::time::timeout(limit, &mut work).await {
                    Ok(Ok(result)) => (result, None),
                    Ok(Err(_panic)) => {
                        (Err(Fault::internal("the code behind the tool panicked")), None)
                    }
                    Err(_elapsed) => {
                        lane.context.cancel.cancel();
                        // The lane is not free before the tool has let go.
                        let _last = tokio::time::timeout(limits::GRACE, work).await;
                        let words = format!("no answer within {}", show_duration(limit));
                        (Err(Fault::timeout(words)), Some(sent + limit))
                    }
                }
            };
            Ended { ticket, sent, at, result, lane }
        })
    }

    fn judged(&mut self, result: Result<ToolResult, Fault>) -> (Verdict, u64) {
        let result = match result {
            Ok(result) => result,
            Err(fault) => return (Verdict::Failed(Box::new(fault)), 0),
        };
        let bytes = content::size(&result);
        if !result.success {
            let words = result.fault.as_ref().map_or("the tool said no", Fault::message);
            // The cut shows, also to whoever looks for secrets beside it.
            let words = match words.char_indices().nth(WORDS) {
                Some((at, _)) => format!("{}…", words.get(..at).unwrap_or_default()).into(),
                None => words.into(),
            };
            return (Verdict::No(words), bytes);
        }
        let number = self.read;
        self.read += 1;
        let inspection = self.order.inspection.as_ref();
        let wrong = inspection
            .filter(|inspection| number.is_multiple_of(inspection.every.max(1)))
            .and_then(|inspection| inspection.inspector.inspect(&result));
        (wrong.map_or(Verdict::Ok, |fault| Verdict::Failed(Box::new(fault))), bytes)
    }
}

#[async_trait]
impl Repeater for Lanes {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Fault> {
        let (news, mut pacer) = (load.news(), Pacer::new());
        let cancel = self.order.context.cancel.clone();
        let run = cancel.child_token();
        // Whatever is still running when this returns is told, also by those who work for it.
        let _tells = run.clone().drop_guard();
        let mut flying: FuturesUnordered<BoxFuture<'static, Ended>> = FuturesUnordered::new();
        let mut open: HashMap<u64, Instant> = HashMap::new();
        loop {
            // Tools that answer at once would leave no time for anybody else on this thread.
            tokio::task::coop::consume_budget().await;
            let until = loop {
                match load.next(load.now()) {
                    Next::Shot(shot) => {
                        let sent = load.now();
                        open.insert(shot.ticket, sent);
                        flying.push(self.start(&shot, sent, &run));
                    }
                    Next::At(moment) => break Some((moment, false)),
                    Next::Wait => break None,
                    Next::Drain(_) if flying.is_empty() => return Ok(()),
                    Next::Drain(moment) => break Some((moment, true)),
                }
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    give_up(load, open);
                    return Ok(());
                }
                Some(ended) = flying.next() => {
                    let Ended { ticket, sent, at, result, lane } = ended;
                    let at = at.unwrap_or_else(|| load.now());
                    open.remove(&ticket);
                    self.idle.push(lane);
                    let (verdict, bytes_in) = self.judged(result);
                    load.ended(End { ticket, sent, at, bytes_out: 0, bytes_in, verdict });
                }
                () = news.notified() => {}
                () = wait(&mut pacer, until.map(|(moment, _)| moment)) => {
                    if until.is_some_and(|(moment, last)| last && load.now() >= moment) {
                        give_up(load, open);
                        return Ok(());
                    }
                }
            }
        }
    }
}

fn give_up(load: &mut dyn Load, open: HashMap<u64, Instant>) {
    let at = load.now();
    for (ticket, sent) in open {
        load.ended(End::unanswered(ticket, sent, at));
    }
}

async fn wait(pacer: &mut Pacer, moment: Option<Instant>) {
    match moment {
        Some(moment) => pacer.until(moment).await,
        None => pending().await,
    }
}
