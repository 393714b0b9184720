//! Many calls of one tool over connections of their own, one call at a time on each.
//!
//! Owns: [`Lanes`], a fixed number of connections to one server with requests that are written in
//! advance; which of them are idle, and when a call took too long. What comes beside answers goes to
//! the session of the wire. Never does: say what is sent when, count calls, or follow a redirect.
//!
//! In place of the client under the ordinary wire, which serves any request to anywhere, this is an
//! exchange of HTTP/1.1 that knows what it asks: nothing is allocated for a call, no task is made
//! for it, and the system is asked three times (write, wait, read). Whatever is not the ordinary
//! answer is read and worded by the same code as for the wire.

mod chunked;
mod doubts;
mod head;
mod lane;
mod ready;
mod renewal;
mod reply;
mod request;
mod shop;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use self::lane::{Call, Event, Lane};
use self::ready::Ready;
use self::renewal::Renewal;
use self::request::RequestHead;
use self::shop::Shop;
use super::answer::{Glance, glance};
use super::post::{empty, not_the_answer};
use super::running::locked;
use super::status::is_session_lost;
use super::{HttpWire, Shared};
use crate::mcp::repeat::{answer, request as requests};
use crate::mcp::wire::{Frame, FrameKind};
use crate::model::{Era, Fault};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::units::show_duration;

/// Connections that are made at the same time before a run.
const TOGETHER: usize = 16;
/// How long the end of an event stream is waited for after the answer in it.
const LINGER: Duration = Duration::from_millis(250);

/// Connections to one server for the calls of one tool.
pub struct Lanes {
    shop: Arc<Shop>,
    tool: String,
    request: requests::Request,
    head: RequestHead,
    generation: u32,
    renewal: Renewal,
    all: Vec<Lane>,
    ready: Ready,
    idle: Vec<usize>,
    /// Lanes that became idle since somebody looked after their connections.
    unwatched: Vec<usize>,
    /// No call's time is over before this.
    soonest: Option<Instant>,
    limit: Duration,
    next_id: i64,
    /// Lanes that can still be used, or may be again.
    alive: usize,
    legacy: bool,
    /// Why the newest lane was given up.
    over: Option<Fault>,
}

/// How a call ended.
#[derive(Debug)]
pub struct Ended {
    /// The ticket it was sent with.
    pub ticket: u64,
    /// When it was sent.
    pub sent: Instant,
    /// Bytes of its request.
    pub bytes_out: u64,
    /// Bytes of its response.
    pub bytes_in: u64,
    /// What came.
    pub came: Result<Came, Fault>,
}

/// An answer.
#[derive(Debug, Clone, Copy)]
pub struct Came {
    /// It is plainly a result that is no error; otherwise it has to be read.
    pub plain: bool,
    lane: usize,
}

/// Something happened on the lanes.
#[derive(Debug)]
pub enum Happened {
    /// A call ended.
    Ended(Ended),
    /// A lane can be used that could not before.
    Free,
    /// There is no connection left, and none can be made. No call is under way any more.
    Over(Fault),
}

impl HttpWire {
    /// Opens `count` connections for calls of `tool`, each of which is given `limit`. `None` where
    /// the ordinary way has to be gone: somebody looks at what crosses the wire, or the credentials
    /// are made for one request each.
    ///
    /// # Errors
    /// When not all connections can be made.
    pub async fn lanes(
        &self,
        tool: &str,
        request: requests::Request,
        count: usize,
        limit: Duration,
    ) -> Result<Option<Lanes>, Fault> {
        let shared = &self.shared;
        let url = locked(&shared.url).clone();
        let named = !url.username().is_empty() || url.password().is_some();
        if shared.heads.tracer.is_on() || named {
            return Ok(None);
        }
        let head = RequestHead::new(shared, tool).await;
        let Some(head) = head.map_err(|fault| shared.secrets.clean_fault(fault))? else {
            return Ok(None);
        };
        let shop = Arc::new(Shop::new(Arc::clone(shared), head.in_session)?);
        let dials = (0..count.max(1)).map(|_| shop.dialer.dial());
        let streams: Vec<_> = stream::iter(dials).buffer_unordered(TOGETHER).try_collect().await?;
        let now = SystemClock.now();
        let lanes: Vec<Lane> = streams.into_iter().map(|stream| Lane::new(stream, now)).collect();
        let count = lanes.len();
        let mut lanes = Lanes {
            legacy: locked(&shared.session).era() == Some(Era::Legacy),
            shop,
            tool: tool.to_owned(),
            request,
            head,
            generation: 0,
            renewal: Renewal::default(),
            all: lanes,
            ready: Ready::new(count),
            idle: Vec::with_capacity(count),
            unwatched: Vec::with_capacity(count),
            soonest: None,
            limit,
            next_id: requests::FIRST_ID,
            alive: count,
            over: None,
        };
        (0..count).rev().for_each(|lane| lanes.freed(lane));
        Ok(Some(lanes))
    }
}

impl Lanes {
    /// The lines of a call's own headers, to be sent with it.
    ///
    /// # Errors
    /// When one has a name that a tool may not name.
    pub fn own_headers(pairs: &[(String, String)]) -> Result<Vec<u8>, Fault> {
        request::own(pairs)
    }

    /// Whether a call can be sent now.
    pub fn has_idle(&self) -> bool {
        !self.idle.is_empty() && !self.renewal.is_running()
    }

    /// Sends a call; false when no connection stands any more, and the call has to wait.
    pub fn send(&mut self, ticket: u64, arguments: &str, own: &[u8], now: Instant) -> bool {
        if self.renewal.is_running() {
            return false;
        }
        while let Some(index) = self.idle.pop() {
            let (Some(lane), Some(waker)) = (self.all.get_mut(index), self.ready.waker(index))
            else {
                continue;
            };
            lane.queued = false;
            let mut cx = Context::from_waker(waker);
            if !lane.still_stands(&mut cx, &self.shop) {
                // Another connection is being made.
                self.ready.ring(index);
                continue;
            }
            let id = self.next_id;
            self.next_id += 1;
            lane.body.clear();
            self.request.write(id, arguments, &mut lane.body);
            lane.own.clear();
            lane.own.extend_from_slice(own);
            lane.busy = true;
            let until = now + self.limit;
            let generation = self.generation;
            lane.call =
                Call { ticket, id, sent: now, bytes_in: 0, generation, again: false, until };
            lane.depart(&self.head, &mut cx);
            self.soonest.get_or_insert(until);
            return true;
        }
        false
    }

    /// What the answer says. It stays until anything else is done with the lanes.
    pub fn answer(&self, came: Came) -> &[u8] {
        self.all.get(came.lane).map(Lane::answer).unwrap_or_default()
    }

    /// The next thing that happens.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Happened> {
        if let Poll::Ready(renewed) = self.renewal.poll(cx) {
            self.renewed(renewed);
            return Poll::Ready(Happened::Free);
        }
        self.watch_idle();
        while let Some(index) = self.ready.next(cx.waker()) {
            let (Some(lane), Some(waker)) = (self.all.get_mut(index), self.ready.waker(index))
            else {
                continue;
            };
            let event = lane.poll(&mut Context::from_waker(waker), &self.shop);
            if let Poll::Ready(event) = event
                && let Some(happened) = self.took(index, event)
            {
                return Poll::Ready(happened);
            }
        }
        if self.alive == 0
            && let Some(fault) = self.over.take()
        {
            return Poll::Ready(Happened::Over(fault));
        }
        // What was refused waits for a renewal that may have begun just now.
        if let Poll::Ready(renewed) = self.renewal.poll(cx) {
            self.renewed(renewed);
            return Poll::Ready(Happened::Free);
        }
        Poll::Pending
    }

    /// When [`expire`](Self::expire) has something to do, at the soonest.
    pub fn soonest(&self) -> Option<Instant> {
        self.soonest
    }

    /// Ends one call whose time is over; its connection is closed, and another one is made. To be
    /// called until it returns `None`.
    pub fn expire(&mut self, now: Instant) -> Option<Ended> {
        if self.soonest.is_none_or(|soonest| now < soonest) {
            return None;
        }
        for index in 0..self.all.len() {
            let Some(lane) = self.all.get_mut(index) else { continue };
            if now < lane.call.until {
                continue;
            }
            if lane.busy {
                return self.too_late(index);
            }
            if lane.is_trailing() {
                lane.give_up(&self.shop);
                self.ready.ring(index);
            }
        }
        let waiting = self.all.iter().filter(|lane| lane.busy || lane.is_trailing());
        self.soonest = waiting.map(|lane| lane.call.until).min();
        None
    }

    /// The calls that are under way, as their tickets and when they were sent; they are given up.
    pub fn abandon(&mut self) -> Vec<(u64, Instant)> {
        let call = |lane: &mut Lane| {
            std::mem::take(&mut lane.busy).then_some((lane.call.ticket, lane.call.sent))
        };
        self.all.iter_mut().filter_map(call).collect()
    }

    /// Whether a call is under way.
    pub fn is_busy(&self) -> bool {
        self.all.iter().any(|lane| lane.busy)
    }

    /// What was odd, for people.
    pub fn doubts(&self) -> Vec<String> {
        self.shop.doubts().lines()
    }

    /// What an event means for a call, or for who waits for a lane.
    fn took(&mut self, index: usize, event: Event) -> Option<Happened> {
        match event {
            Event::Free => {
                let lane = self.all.get_mut(index)?;
                if lane.busy {
                    // A call waits on it that was refused before.
                    self.resend(index);
                    return None;
                }
                self.freed(index);
                Some(Happened::Free)
            }
            Event::Answered { free } => {
                self.renewal.worked();
                let came = self.judged(index);
                let ended = self.ended(index, came)?;
                if free {
                    self.freed(index);
                } else {
                    self.unsettled(index);
                }
                Some(Happened::Ended(ended))
            }
            Event::Failed { fault, free } => {
                if is_session_lost(&fault) && self.is_current(index) {
                    self.renewal.session(&self.shop, &self.tool);
                }
                let ended = self.ended(index, Err(fault))?;
                if free {
                    self.freed(index);
                } else {
                    self.ready.ring(index);
                }
                Some(Happened::Ended(ended))
            }
            Event::Refused { status, fields, fault } => {
                self.refused(index, (status, &fields), fault).map(Happened::Ended)
            }
            Event::Condemned => self.settle_refusal(index).map(Happened::Ended),
            Event::Gone(fault) => {
                self.alive = self.alive.saturating_sub(1);
                self.over = Some(fault.clone());
                // A call on it was refused, and is never sent again.
                let busy = self.all.get(index).is_some_and(|lane| lane.busy);
                let ended = if busy { self.ended(index, Err(fault)) } else { None };
                ended.map(Happened::Ended)
            }
        }
    }

    #[cfg(test)]
    fn waiting_for(&self, index: usize) -> String {
        self.all.get(index).map(Lane::waiting_for).unwrap_or_default()
    }

    fn is_current(&self, index: usize) -> bool {
        self.all.get(index).is_some_and(|lane| lane.call.generation == self.generation)
    }

    /// A call was refused: it waits for other credentials, once.
    fn refused(
        &mut self,
        index: usize,
        refusal: (u16, &reqwest::header::HeaderMap),
        fault: Fault,
    ) -> Option<Ended> {
        let current = self.is_current(index);
        let lane = self.all.get_mut(index)?;
        if lane.call.again {
            lane.refusal = Some(fault);
        } else {
            if !current {
                lane.readmit(&self.shop);
                self.resend(index);
                return None;
            }
            lane.refusal = Some(fault);
            let shown = self.head.shown.clone();
            if self.renewal.login(&self.shop, &self.tool, shown, refusal) {
                return None;
            }
        }
        self.settle_refusal(index)
    }

    /// Ends a refused call as such.
    fn settle_refusal(&mut self, index: usize) -> Option<Ended> {
        let lane = self.all.get_mut(index)?;
        let fault = lane.refusal.take().unwrap_or_else(|| Fault::auth("the call was refused"));
        let free = lane.accept_refusal(&self.shop);
        let ended = self.ended(index, Err(fault));
        if free {
            self.freed(index);
        } else {
            self.ready.ring(index);
        }
        ended
    }

    /// Something was renewed, or not: what was refused is sent again, or ends.
    fn renewed(&mut self, renewed: renewal::Renewed) {
        let fault = match renewed {
            Ok(Some(head)) => {
                self.head = head;
                self.generation += 1;
                None
            }
            Ok(None) => None,
            Err(fault) => Some(self.shop.clean(fault)),
        };
        for index in 0..self.all.len() {
            let current = self.is_current(index);
            let Some(lane) = self.all.get_mut(index).filter(|lane| lane.is_refused()) else {
                continue;
            };
            if current {
                // Nothing changed: the refusal stands, and is told when the lane's turn comes.
                if let Some(fault) = &fault {
                    lane.refusal = Some(fault.clone());
                }
                lane.condemned = true;
                self.ready.ring(index);
            } else {
                lane.readmit(&self.shop);
                self.resend(index);
            }
        }
    }

    /// Sends a refused call again: now, or as soon as its lane has a connection.
    fn resend(&mut self, index: usize) {
        let (Some(lane), Some(waker)) = (self.all.get_mut(index), self.ready.waker(index)) else {
            return;
        };
        lane.refusal = None;
        let mut cx = Context::from_waker(waker);
        if lane.is_idle() && lane.still_stands(&mut cx, &self.shop) {
            lane.call.again = true;
            lane.call.generation = self.generation;
            lane.depart(&self.head, &mut cx);
        }
        self.ready.ring(index);
    }

    /// What the answer on a lane is, as far as can be told without reading it.
    fn judged(&self, index: usize) -> Result<Came, Fault> {
        let Some(lane) = self.all.get(index) else {
            return Err(Fault::internal("an answer came on no lane"));
        };
        let (bytes, id) = (lane.answer(), lane.call.id);
        if answer::plain(bytes) == Some(id) {
            return Ok(Came { plain: true, lane: index });
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(empty());
        }
        let id = Value::from(id);
        match glance(bytes, &id) {
            Glance::Answer => Ok(Came { plain: false, lane: index }),
            other => {
                self.shop.hand_over(Bytes::copy_from_slice(bytes));
                Err(not_the_answer(&other, &id))
            }
        }
    }

    fn ended(&mut self, index: usize, came: Result<Came, Fault>) -> Option<Ended> {
        let lane = self.all.get_mut(index)?;
        lane.busy = false;
        let Call { ticket, sent, bytes_in, .. } = lane.call;
        Some(Ended { ticket, sent, bytes_out: lane.out.len() as u64, bytes_in, came })
    }

    fn too_late(&mut self, index: usize) -> Option<Ended> {
        let waiting = self.all.get(index).map(Lane::waiting_for).unwrap_or_default();
        let limit = show_duration(self.limit);
        let late = Fault::timeout(format!("no answer within {limit}, waiting for {waiting}"));
        let said = self.all.get_mut(index).and_then(|lane| lane.give_up(&self.shop));
        if self.legacy && said.is_none() {
            self.tell_given_up(index, late.message());
        }
        self.ready.ring(index);
        self.ended(index, Err(said.map_or(late, |said| self.shop.clean(said))))
    }

    /// Tells a server of the legacy era, where a closed connection says nothing.
    fn tell_given_up(&self, index: usize, reason: &str) {
        let Some(id) = self.all.get(index).map(|lane| lane.call.id) else { return };
        let mut bytes = Vec::new();
        requests::write_cancellation(id, reason, &mut bytes);
        let method = "notifications/cancelled".to_owned();
        let kind = FrameKind::Notification { method, cancels: Some(Value::from(id)) };
        let frame = Frame { bytes: bytes.into(), kind, call: None };
        let shared: Arc<Shared> = Arc::clone(&self.shop.shared);
        // Nobody waits for it: it has its own limit, and there is at most one for each call.
        tokio::spawn(async move { shared.control(frame).await.ok() });
    }

    fn freed(&mut self, index: usize) {
        let Some(lane) = self.all.get_mut(index) else { return };
        if !std::mem::replace(&mut lane.queued, true) {
            self.idle.push(index);
        }
        self.unwatched.push(index);
    }

    /// The lane is used again when its stream has ended, or there is another connection.
    fn unsettled(&mut self, index: usize) {
        if let Some(lane) = self.all.get_mut(index).filter(|lane| lane.is_trailing()) {
            let until = SystemClock.now() + LINGER;
            lane.call.until = until;
            self.soonest = Some(self.soonest.map_or(until, |soonest| soonest.min(until)));
        }
        self.ready.ring(index);
    }

    /// Looks after the connections on which nothing was sent since they became idle, so that one
    /// that ends is made again before it is needed.
    fn watch_idle(&mut self) {
        while let Some(index) = self.unwatched.pop() {
            let (Some(lane), Some(waker)) = (self.all.get_mut(index), self.ready.waker(index))
            else {
                continue;
            };
            if lane.is_unwatched()
                && !lane.still_stands(&mut Context::from_waker(waker), &self.shop)
            {
                self.ready.ring(index);
            }
        }
    }
}
