//! Many calls of a server over HTTP, each on a connection that waits for it.
//!
//! Owns: the loop between a [`Load`] and the lanes, and where the ordinary way has to be gone
//! instead. Never does: pace or count (the load does), or speak HTTP (the `mcp` room does).
//!
//! What a time means here: a call was sent right before its request was written, and answered when
//! the last byte of its answer was read and the id in it was known. Judging the answer comes after
//! that. Making a connection again is in no call's time.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Fence;
use super::judge::Judge;
use crate::config::environment::Environment;
use crate::config::spec::Endpoint;
use crate::mcp::calling;
use crate::mcp::connection::Connection;
use crate::mcp::headers;
use crate::mcp::repeat::answer;
use crate::mcp::repeat::request::Request;
use crate::mcp::transport::http::lanes::{Ended, Happened, Lanes};
use crate::model::{Era, Fault, FaultKind, Signal};
use crate::net::address::is_loopback;
use crate::provider::repeat::{End, Load, Next, Order, Payload, Repeater, Shot, Verdict};
use crate::providers::mcp::McpProvider;
use crate::providers::mcp::call::Current;
use crate::util::pacer::Pacer;

/// Variables that name a proxy, which our own connections would go around.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Carries calls over connections of their own.
pub(super) struct OverHttp {
    lanes: Lanes,
    connection: Arc<Connection>,
    cancel: CancellationToken,
    fence: Option<Fence>,
    own: OwnHeaders,
    judge: Judge,
    /// A call that was handed out and found no connection yet.
    held: Option<Shot>,
}

impl McpProvider {
    /// A repeater for a server over Streamable HTTP. None where its calls have to go the ordinary
    /// way: over the transport before it, through a proxy, as tasks, or watched.
    pub(super) async fn over_http(&self, order: &Order) -> Result<Option<OverHttp>, Fault> {
        let Endpoint::Http { url, socket, .. } = &self.spec.endpoint else { return Ok(None) };
        let direct = socket.is_some() || is_loopback(url);
        if !self.spec.roots.is_empty() || (!direct && is_proxied(self.setup.environment.as_ref())) {
            return Ok(None);
        }
        let tool = order.tool.tool();
        let ready = async {
            let connection = self.connection().await?;
            let Current { definition, warnings } = self.current(&connection, tool).await?;
            if calling::wants_task(&connection, definition.as_deref()) {
                return Ok(None);
            }
            let request = Request::new(tool, &connection.request_meta(self.log_level()));
            let Some(wire) = connection.http() else { return Ok(None) };
            let lanes = wire.lanes(tool, request, order.lanes, order.limit).await;
            let Some(lanes) = lanes.map_err(|fault| fault.server(&self.spec.name))? else {
                return Ok(None);
            };
            for warning in warnings {
                connection.doubt(warning);
            }
            let modern = connection.agreement.era == Era::Modern;
            let schema = definition.map(|definition| Arc::clone(&definition.input_schema));
            let fence = Fence::new(schema.clone(), &self.spec.roots, &self.spec.name);
            Ok(Some(OverHttp {
                lanes,
                fence,
                cancel: order.context.cancel.clone(),
                own: OwnHeaders::new(schema.filter(|_| modern)),
                judge: Judge::new(&self.spec.name, order.inspection.clone()),
                held: None,
                connection: Arc::clone(&connection),
            }))
        };
        tokio::select! {
            ready = ready => ready,
            () = order.context.cancel.cancelled() => {
                let interrupted = FaultKind::Interrupted(Signal::Interrupt);
                Err(Fault::new(interrupted, "the run was given up").server(&self.spec.name))
            }
        }
    }
}

fn is_proxied(environment: &dyn Environment) -> bool {
    PROXIES.iter().any(|name| environment.var(name).is_some_and(|value| !value.is_empty()))
}

/// The headers that arguments travel in, made again when the arguments are others.
struct OwnHeaders {
    schema: Option<Arc<Value>>,
    of: Option<Arc<Payload>>,
    lines: Vec<u8>,
}

impl OwnHeaders {
    fn new(schema: Option<Arc<Value>>) -> Self {
        let annotated = schema.filter(|schema| headers::are_wanted(schema));
        Self { schema: annotated, of: None, lines: Vec::new() }
    }

    fn of(&mut self, arguments: &Arc<Payload>) -> Result<&[u8], Fault> {
        let Some(schema) = &self.schema else { return Ok(&[]) };
        if !self.of.as_ref().is_some_and(|known| Arc::ptr_eq(known, arguments)) {
            self.lines = Lanes::own_headers(&headers::of_call(schema, &arguments.object))?;
            self.of = Some(Arc::clone(arguments));
        }
        Ok(&self.lines)
    }
}

/// What is waited for, beside what happens on the lanes.
#[derive(Debug, Clone, Copy)]
enum Until {
    /// The moment of the next call.
    At(Instant),
    /// Nothing else.
    Open,
    /// The end of the patience with what is in flight.
    Over(Instant),
}

/// What ended a wait.
enum Woken {
    Lanes(Happened),
    News,
    /// The next call is due.
    Due,
    /// A limit may be over.
    Alarm,
    Cancelled,
}

#[async_trait]
impl Repeater for OverHttp {
    async fn run(&mut self, load: &mut dyn Load) -> Result<(), Fault> {
        let news = load.news();
        let cancel = self.cancel.clone();
        let mut pacer = Pacer::new();
        let mut told = pin!(news.notified());
        let mut cancelled = pin!(cancel.cancelled());
        let mut alarm = pin!(sleep_until(load.now().into()));
        let mut armed = None;
        loop {
            let until = self.fill(load);
            if matches!(until, Until::Over(_)) && self.held.is_none() && !self.lanes.is_busy() {
                return Ok(());
            }
            let over = if let Until::Over(moment) = until { Some(moment) } else { None };
            arm(&mut armed, self.lanes.soonest().into_iter().chain(over).min(), alarm.as_mut());
            let lanes = &mut self.lanes;
            let paced = async {
                match until {
                    Until::At(moment) => pacer.until(moment).await,
                    Until::Open | Until::Over(_) => std::future::pending().await,
                }
            };
            let mut paced = pin!(paced);
            let woken = poll_fn(|cx| {
                if cancelled.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Woken::Cancelled);
                }
                if let Poll::Ready(happened) = lanes.poll(cx) {
                    return Poll::Ready(Woken::Lanes(happened));
                }
                if told.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Woken::News);
                }
                if armed.is_some() && alarm.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Woken::Alarm);
                }
                paced.as_mut().poll(cx).map(|()| Woken::Due)
            });
            match woken.await {
                Woken::Lanes(Happened::Ended(ended)) => self.tell(ended, load),
                Woken::Lanes(Happened::Free) | Woken::Due => {}
                Woken::Lanes(Happened::Over(fault)) => {
                    let fault = self.judge.named(fault);
                    self.fail_held(&fault, load);
                    return Err(fault);
                }
                Woken::News => told.set(news.notified()),
                Woken::Cancelled => {
                    self.abandon(load);
                    return Ok(());
                }
                Woken::Alarm => {
                    let at = load.now();
                    armed = None;
                    while let Some(ended) = self.lanes.expire(at) {
                        self.tell(ended, load);
                    }
                    if over.is_some_and(|moment| at >= moment) {
                        self.abandon(load);
                        return Ok(());
                    }
                }
            }
        }
    }

    fn doubts(&self) -> Vec<String> {
        let name = self.connection.name();
        let doubts = self.lanes.doubts().into_iter().chain(self.connection.doubts());
        doubts.map(|doubt| format!("{name}: {doubt}")).collect()
    }
}

impl OverHttp {
    /// Sends what is due, as far as there are connections for it.
    fn fill(&mut self, load: &mut dyn Load) -> Until {
        loop {
            if let Some(shot) = self.held.take() {
                if !self.lanes.has_idle() {
                    self.held = Some(shot);
                    // The end of the run is heard of all the same, when it is for a person to say.
                    return Until::Open;
                }
                self.send(shot, load);
                if self.held.is_some() {
                    return Until::Open;
                }
            }
            match load.next(load.now()) {
                Next::Shot(shot) => self.held = Some(shot),
                Next::At(moment) => return Until::At(moment),
                Next::Wait => return Until::Open,
                Next::Drain(moment) => return Until::Over(moment),
            }
        }
    }

    fn send(&mut self, shot: Shot, load: &mut dyn Load) {
        let sent = load.now();
        let fence = self.fence.as_mut();
        let within = fence.map_or(Ok(()), |fence| fence.check(&shot.arguments));
        let own = match within.and_then(|()| self.own.of(&shot.arguments)) {
            Ok(own) => own,
            Err(fault) => {
                let fault = self.judge.named(fault);
                return end_unsent(shot.ticket, Verdict::Failed(Box::new(fault)), load);
            }
        };
        if !self.lanes.send(shot.ticket, &shot.arguments.json, own, sent) {
            self.held = Some(shot);
        }
    }

    /// Tells how a call ended.
    fn tell(&mut self, ended: Ended, load: &mut dyn Load) {
        let at = load.now();
        let Ended { ticket, sent, bytes_out, bytes_in, came } = ended;
        let verdict = match came {
            Ok(came) => {
                let bytes = self.lanes.answer(came);
                self.judge.judge(came.plain, || answer::outcome(bytes))
            }
            Err(fault) => Verdict::Failed(Box::new(self.judge.named(fault))),
        };
        load.ended(End { ticket, sent, at, bytes_out, bytes_in, verdict });
    }

    fn fail_held(&mut self, fault: &Fault, load: &mut dyn Load) {
        if let Some(shot) = self.held.take() {
            end_unsent(shot.ticket, Verdict::Failed(Box::new(fault.clone())), load);
        }
    }

    /// Ends all that is under way without an answer.
    fn abandon(&mut self, load: &mut dyn Load) {
        let at = load.now();
        for (ticket, sent) in self.lanes.abandon() {
            load.ended(End::unanswered(ticket, sent, at));
        }
        if let Some(shot) = self.held.take() {
            end_unsent(shot.ticket, Verdict::Unanswered, load);
        }
    }
}

/// Ends a call of which nothing was sent.
fn end_unsent(ticket: u64, verdict: Verdict, load: &mut dyn Load) {
    let at = load.now();
    load.ended(End { verdict, ..End::unanswered(ticket, at, at) });
}

/// Lets the alarm ring at this moment at the latest. It mostly is put off before it rings, so it is
/// only set again after it has.
fn arm(armed: &mut Option<Instant>, moment: Option<Instant>, alarm: Pin<&mut Sleep>) {
    let Some(moment) = moment else { return };
    if armed.is_none_or(|armed| moment < armed) {
        alarm.reset(moment.into());
        *armed = Some(moment);
    }
}
