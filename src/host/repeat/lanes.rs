//! Carries calls for kinds of tools that have no way of their own for many: one attempt of the
//! provider for each call, so many at once.
//!
//! Owns: the attempts in flight and their limit. Never does: check, ask, retry or record; what is
//! measured is the tool, with as little around it as is honest.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use crate::host::output;
use crate::model::{Fault, ToolCall, ToolResult};
use crate::provider::ToolProvider;
use crate::provider::repeat::{End, Load, Next, Order, Repeater, Shot, Verdict};
use crate::util::pacer::Pacer;
use crate::util::units::show_duration;

/// How much of what a tool said is kept, in characters.
const WORDS: usize = 300;

/// Attempts of a provider, side by side.
pub(super) struct Lanes {
    provider: Arc<dyn ToolProvider>,
    order: Order,
}

type Answer = (u64, Instant, Result<ToolResult, Fault>);

impl Lanes {
    pub(super) fn new(provider: Arc<dyn ToolProvider>, order: Order) -> Self {
        Self { provider, order }
    }

    fn start(&self, shot: Shot, sent: Instant) -> BoxFuture<'static, Answer> {
        let provider = Arc::clone(&self.provider);
        let mut context = self.order.context.clone();
        context.cancel = self.order.context.cancel.child_token();
        let call =
            ToolCall { name: self.order.tool.clone(), arguments: shot.arguments.object.clone() };
        let limit = self.order.limit;
        Box::pin(async move {
            let work = provider.call(&context, &call);
            let result = match tokio::time::timeout(limit, work).await {
                Ok(result) => result,
                Err(_elapsed) => {
                    context.cancel.cancel();
                    Err(Fault::timeout(format!("no answer within {}", show_duration(limit))))
                }
            };
            (shot.ticket, sent, result)
        })
    }
}

#[async_trait]
impl Repeater for Lanes {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Fault> {
        let news = load.news();
        let mut pacer = Pacer::new();
        let mut flying: FuturesUnordered<BoxFuture<'static, Answer>> = FuturesUnordered::new();
        let mut open: BTreeMap<u64, Instant> = BTreeMap::new();
        loop {
            let until = loop {
                match load.next() {
                    Next::Shot(shot) => {
                        let sent = load.now();
                        open.insert(shot.ticket, sent);
                        flying.push(self.start(shot, sent));
                    }
                    Next::At(moment) => break Some((moment, false)),
                    Next::Wait => break None,
                    Next::Drain(_) if flying.is_empty() => return Ok(()),
                    Next::Drain(moment) => break Some((moment, true)),
                }
            };
            tokio::select! {
                biased;
                Some((ticket, sent, result)) = flying.next() => {
                    let at = load.now();
                    open.remove(&ticket);
                    let (verdict, bytes_in) = judged(result);
                    load.ended(End { ticket, sent, at, bytes_out: 0, bytes_in, verdict });
                }
                () = news.notified() => {}
                () = wait(&mut pacer, until.map(|(moment, _)| moment)) => {
                    let Some((moment, true)) = until else { continue };
                    let at = load.now();
                    if at >= moment {
                        for (ticket, sent) in open {
                            load.ended(End::unanswered(ticket, sent, at));
                        }
                        // What is still flying is told to stop as it is dropped.
                        return Ok(());
                    }
                }
            }
        }
    }
}

async fn wait(pacer: &mut Pacer, moment: Option<Instant>) {
    match moment {
        Some(moment) => pacer.until(moment).await,
        None => pending().await,
    }
}

fn judged(result: Result<ToolResult, Fault>) -> (Verdict, u64) {
    match result {
        Ok(result) => {
            let bytes = output::size(&result);
            let verdict = if result.success {
                Verdict::Ok
            } else {
                let words = result.fault.as_ref().map_or("the tool said no", Fault::message);
                Verdict::No(words.chars().take(WORDS).collect())
            };
            (verdict, bytes)
        }
        Err(fault) => (Verdict::Failed(Box::new(fault)), 0),
    }
}
