//! Lanes: many calls of one tool over dedicated connections, one call at a time on each.
//!
//! Owns: [`LanePool`], a fixed number of connections to one server with requests serialised in
//! advance; which of them are idle, and when a call has timed out. Anything but responses goes to
//! the session of the wire. Never does: decide what is sent when, count calls, or follow a redirect.
//!
//! Unlike the general-purpose client under the ordinary wire, this is an HTTP/1.1 exchange for one
//! known request: a call allocates nothing, spawns no task, and takes three system calls (write,
//! wait, read). Anything but the ordinary response is read and reported by the same code as for
//! the wire.

mod chunked;
mod context;
mod lane;
mod ready;
mod renewal;
mod request_head;
mod response_head;
mod response_reader;
mod warnings;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::Value;

use self::context::LaneContext;
use self::lane::{HttpLane, LaneCall, LaneEvent};
use self::ready::ReadyLanes;
use self::renewal::LaneRenewal;
use self::request_head::RequestHead;
pub use self::request_head::param_header_lines;
use super::answer_match::{AnswerMatch, match_answer};
use super::exchanges::locked;
use super::post::{empty_body_error, unexpected_answer};
use super::{HttpShared, HttpWire};
use crate::mcp::call_template;
use crate::mcp::repeat::answer;
use crate::mcp::wire::{
    CallCompletion, CallLanes, FrameKind, LaneAnswer, LaneOpener, LanePoolEvent, OutgoingFrame,
};
use crate::model::{Era, Error, ErrorCause};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::units::show_duration;

/// Connections that are made at the same time before a run.
const MAX_CONCURRENT_CONNECTS: usize = 16;
/// How long the end of an event stream is waited for after the answer in it.
const LINGER_TIMEOUT: Duration = Duration::from_millis(250);

/// Connections to one server for the calls of one tool.
pub struct LanePool {
    context: Arc<LaneContext>,
    tool: String,
    request: call_template::ToolCallTemplate,
    head: RequestHead,
    generation: u32,
    renewal: LaneRenewal,
    lanes: Vec<HttpLane>,
    ready: ReadyLanes,
    idle: Vec<usize>,
    /// Lanes that became idle and whose connections are not watched yet.
    unwatched: Vec<usize>,
    /// No call's time is over before this.
    next_deadline: Option<Instant>,
    limit: Duration,
    next_id: i64,
    usable: usize,
    is_legacy: bool,
    last_error: Option<Error>,
}

#[async_trait]
impl LaneOpener for HttpWire {
    async fn open_lanes(
        &self,
        tool: &str,
        request: call_template::ToolCallTemplate,
        count: usize,
        limit: Duration,
    ) -> Result<Option<Box<dyn CallLanes>>, Error> {
        let lanes = self.lane_pool(tool, request, count, limit).await?;
        Ok(lanes.map(|lanes| Box::new(lanes) as Box<dyn CallLanes>))
    }
}

impl HttpWire {
    /// See [`LaneOpener::open_lanes`].
    async fn lane_pool(
        &self,
        tool: &str,
        request: call_template::ToolCallTemplate,
        count: usize,
        limit: Duration,
    ) -> Result<Option<LanePool>, Error> {
        let shared = &self.shared;
        let url = locked(&shared.url).clone();
        let named = !url.username().is_empty() || url.password().is_some();
        if shared.head_tracer.tracer.is_on() || named {
            return Ok(None);
        }
        let head = RequestHead::new(shared, tool).await;
        let Some(head) = head.map_err(|error| shared.redactor.redact_error(error))? else {
            return Ok(None);
        };
        let context = Arc::new(LaneContext::new(Arc::clone(shared), head.in_session)?);
        let dials = (0..count.max(1)).map(|_| context.dialer.dial());
        let streams: Vec<_> =
            stream::iter(dials).buffer_unordered(MAX_CONCURRENT_CONNECTS).try_collect().await?;
        let now = SystemClock.now();
        let lanes: Vec<HttpLane> =
            streams.into_iter().map(|stream| HttpLane::new(stream, now)).collect();
        let count = lanes.len();
        let mut lanes = LanePool {
            is_legacy: locked(&shared.session).era() == Some(Era::Legacy),
            context,
            tool: tool.to_owned(),
            request,
            head,
            generation: 0,
            renewal: LaneRenewal::default(),
            lanes,
            ready: ReadyLanes::new(count),
            idle: Vec::with_capacity(count),
            unwatched: Vec::with_capacity(count),
            next_deadline: None,
            limit,
            next_id: call_template::FIRST_ID,
            usable: count,
            last_error: None,
        };
        (0..count).rev().for_each(|lane| lanes.mark_free(lane));
        Ok(Some(lanes))
    }
}

impl CallLanes for LanePool {
    fn has_idle(&self) -> bool {
        !self.idle.is_empty() && !self.renewal.is_running()
    }

    fn send(&mut self, ticket: u64, arguments: &str, own: &[u8], now: Instant) -> bool {
        if self.renewal.is_running() {
            return false;
        }
        while let Some(index) = self.idle.pop() {
            let (Some(lane), Some(waker)) = (self.lanes.get_mut(index), self.ready.waker(index))
            else {
                continue;
            };
            lane.is_queued = false;
            let mut cx = Context::from_waker(waker);
            if !lane.check_idle(&mut cx, &self.context) {
                // Another connection is being made.
                self.ready.enqueue(index);
                continue;
            }
            let id = self.next_id;
            self.next_id += 1;
            lane.body.clear();
            self.request.write(id, arguments, &mut lane.body);
            lane.param_headers.clear();
            lane.param_headers.extend_from_slice(own);
            lane.is_busy = true;
            let until = now + self.limit;
            let generation = self.generation;
            lane.call = LaneCall {
                ticket,
                id,
                sent: now,
                bytes_in: 0,
                generation,
                is_resent: false,
                deadline: until,
            };
            lane.send(&self.head, &mut cx);
            self.next_deadline.get_or_insert(until);
            return true;
        }
        false
    }

    fn answer(&self, came: LaneAnswer) -> &[u8] {
        self.lanes.get(came.lane).map(HttpLane::answer).unwrap_or_default()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<LanePoolEvent> {
        if let Poll::Ready(renewed) = self.renewal.poll(cx) {
            self.handle_renewal(renewed);
            return Poll::Ready(LanePoolEvent::Free);
        }
        self.watch_idle();
        while let Some(index) = self.ready.next(cx.waker()) {
            let (Some(lane), Some(waker)) = (self.lanes.get_mut(index), self.ready.waker(index))
            else {
                continue;
            };
            let event = lane.poll(&mut Context::from_waker(waker), &self.context);
            if let Poll::Ready(event) = event
                && let Some(happened) = self.handle_event(index, event)
            {
                return Poll::Ready(happened);
            }
        }
        if self.usable == 0
            && let Some(error) = self.last_error.take()
        {
            return Poll::Ready(LanePoolEvent::Closed(error));
        }
        // A refused call waits for a renewal that may have just started.
        if let Poll::Ready(renewed) = self.renewal.poll(cx) {
            self.handle_renewal(renewed);
            return Poll::Ready(LanePoolEvent::Free);
        }
        Poll::Pending
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.next_deadline
    }

    fn expire(&mut self, now: Instant) -> Option<CallCompletion> {
        if self.next_deadline.is_none_or(|soonest| now < soonest) {
            return None;
        }
        for index in 0..self.lanes.len() {
            let Some(lane) = self.lanes.get_mut(index) else { continue };
            if now < lane.call.deadline {
                continue;
            }
            if lane.is_busy {
                return self.time_out(index);
            }
            if lane.is_draining() {
                lane.give_up(&self.context);
                self.ready.enqueue(index);
            }
        }
        let waiting = self.lanes.iter().filter(|lane| lane.is_busy || lane.is_draining());
        self.next_deadline = waiting.map(|lane| lane.call.deadline).min();
        None
    }

    fn abandon(&mut self) -> Vec<(u64, Instant)> {
        let call = |lane: &mut HttpLane| {
            std::mem::take(&mut lane.is_busy).then_some((lane.call.ticket, lane.call.sent))
        };
        self.lanes.iter_mut().filter_map(call).collect()
    }

    fn is_busy(&self) -> bool {
        self.lanes.iter().any(|lane| lane.is_busy)
    }

    fn protocol_warnings(&self) -> Vec<String> {
        self.context.warnings().lines()
    }
}

impl LanePool {
    fn handle_event(&mut self, index: usize, event: LaneEvent) -> Option<LanePoolEvent> {
        match event {
            LaneEvent::Free => {
                let lane = self.lanes.get_mut(index)?;
                if lane.is_busy {
                    // A call waits on it that was refused before.
                    self.resend(index);
                    return None;
                }
                self.mark_free(index);
                Some(LanePoolEvent::Free)
            }
            LaneEvent::Answered { free } => {
                self.renewal.mark_accepted();
                let came = self.classify_answer(index);
                let ended = self.complete(index, came)?;
                if free {
                    self.mark_free(index);
                } else {
                    self.mark_unsettled(index);
                }
                Some(LanePoolEvent::Completed(ended))
            }
            LaneEvent::Failed { error, free } => {
                if error.cause() == ErrorCause::SessionLost && self.is_current(index) {
                    self.renewal.renew_session(&self.context, &self.tool);
                }
                let ended = self.complete(index, Err(error))?;
                if free {
                    self.mark_free(index);
                } else {
                    self.ready.enqueue(index);
                }
                Some(LanePoolEvent::Completed(ended))
            }
            LaneEvent::Refused { status, fields, error } => {
                self.handle_refusal(index, (status, &fields), error).map(LanePoolEvent::Completed)
            }
            LaneEvent::RefusalFinal => self.settle_refusal(index).map(LanePoolEvent::Completed),
            LaneEvent::Closed(error) => {
                self.usable = self.usable.saturating_sub(1);
                self.last_error = Some(error.clone());
                // A call on it was refused, and is never sent again.
                let busy = self.lanes.get(index).is_some_and(|lane| lane.is_busy);
                let ended = if busy { self.complete(index, Err(error)) } else { None };
                ended.map(LanePoolEvent::Completed)
            }
        }
    }

    #[cfg(test)]
    fn waiting_for(&self, index: usize) -> String {
        self.lanes.get(index).map(HttpLane::waiting_for).unwrap_or_default()
    }

    fn is_current(&self, index: usize) -> bool {
        self.lanes.get(index).is_some_and(|lane| lane.call.generation == self.generation)
    }

    /// A call was refused: it waits for other credentials, once.
    fn handle_refusal(
        &mut self,
        index: usize,
        refusal: (u16, &reqwest::header::HeaderMap),
        error: Error,
    ) -> Option<CallCompletion> {
        let current = self.is_current(index);
        let lane = self.lanes.get_mut(index)?;
        if lane.call.is_resent {
            lane.refusal = Some(error);
        } else {
            if !current {
                lane.prepare_resend(&self.context);
                self.resend(index);
                return None;
            }
            lane.refusal = Some(error);
            let shown = self.head.authorization.clone();
            if self.renewal.renew_login(&self.context, &self.tool, shown, refusal) {
                return None;
            }
        }
        self.settle_refusal(index)
    }

    fn settle_refusal(&mut self, index: usize) -> Option<CallCompletion> {
        let lane = self.lanes.get_mut(index)?;
        let error = lane.refusal.take().unwrap_or_else(|| Error::auth("the call was refused"));
        let free = lane.accept_refusal(&self.context);
        let ended = self.complete(index, Err(error));
        if free {
            self.mark_free(index);
        } else {
            self.ready.enqueue(index);
        }
        ended
    }

    /// Something was renewed, or not: what was refused is sent again, or ends.
    fn handle_renewal(&mut self, renewed: renewal::LaneRenewalResult) {
        let error = match renewed {
            Ok(Some(head)) => {
                self.head = head;
                self.generation += 1;
                None
            }
            Ok(None) => None,
            Err(error) => Some(self.context.redact(error)),
        };
        for index in 0..self.lanes.len() {
            let current = self.is_current(index);
            let Some(lane) = self.lanes.get_mut(index).filter(|lane| lane.is_refused()) else {
                continue;
            };
            if current {
                // Nothing changed: the refusal is final, and is reported when the lane's turn comes.
                if let Some(error) = &error {
                    lane.refusal = Some(error.clone());
                }
                lane.is_refusal_final = true;
                self.ready.enqueue(index);
            } else {
                lane.prepare_resend(&self.context);
                self.resend(index);
            }
        }
    }

    /// Sends a refused call again: now, or as soon as its lane has a connection.
    fn resend(&mut self, index: usize) {
        let (Some(lane), Some(waker)) = (self.lanes.get_mut(index), self.ready.waker(index)) else {
            return;
        };
        lane.refusal = None;
        let mut cx = Context::from_waker(waker);
        if lane.is_idle() && lane.check_idle(&mut cx, &self.context) {
            lane.call.is_resent = true;
            lane.call.generation = self.generation;
            lane.send(&self.head, &mut cx);
        }
        self.ready.enqueue(index);
    }

    /// Sorts the answer on a lane: plain, to be parsed, or no answer to its call.
    fn classify_answer(&self, index: usize) -> Result<LaneAnswer, Error> {
        let Some(lane) = self.lanes.get(index) else {
            return Err(Error::internal("a response arrived on no lane"));
        };
        let (bytes, id) = (lane.answer(), lane.call.id);
        if answer::plain_answer_id(bytes) == Some(id) {
            return Ok(LaneAnswer { is_plain: true, lane: index });
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(empty_body_error());
        }
        let id = Value::from(id);
        match match_answer(bytes, &id) {
            AnswerMatch::Answer => Ok(LaneAnswer { is_plain: false, lane: index }),
            other => {
                self.context.forward_to_session(Bytes::copy_from_slice(bytes));
                Err(unexpected_answer(&other, &id))
            }
        }
    }

    fn complete(
        &mut self,
        index: usize,
        came: Result<LaneAnswer, Error>,
    ) -> Option<CallCompletion> {
        let lane = self.lanes.get_mut(index)?;
        lane.is_busy = false;
        let LaneCall { ticket, sent, bytes_in, .. } = lane.call;
        Some(CallCompletion {
            ticket,
            sent,
            bytes_out: lane.out.len() as u64,
            bytes_in,
            answer: came,
        })
    }

    fn time_out(&mut self, index: usize) -> Option<CallCompletion> {
        let waiting = self.lanes.get(index).map(HttpLane::waiting_for).unwrap_or_default();
        let limit = show_duration(self.limit);
        let late = Error::timeout(format!("no response within {limit}, waiting for {waiting}"));
        let error = self.lanes.get_mut(index).and_then(|lane| lane.give_up(&self.context));
        if self.is_legacy && error.is_none() {
            self.send_cancellation(index, late.message());
        }
        self.ready.enqueue(index);
        self.complete(index, Err(error.map_or(late, |error| self.context.redact(error))))
    }

    /// Notifies a server of the legacy era, where a closed connection does not cancel.
    fn send_cancellation(&self, index: usize, reason: &str) {
        let Some(id) = self.lanes.get(index).map(|lane| lane.call.id) else { return };
        let mut bytes = Vec::new();
        call_template::write_cancellation(id, reason, &mut bytes);
        let method = "notifications/cancelled".to_owned();
        let kind = FrameKind::Notification { method, cancels: Some(Value::from(id)) };
        let frame = OutgoingFrame { bytes: bytes.into(), kind, call: None };
        let shared: Arc<HttpShared> = Arc::clone(&self.context.shared);
        // Not awaited: it has its own limit, and there is at most one for each call.
        tokio::spawn(async move { shared.send_control(frame).await.ok() });
    }

    fn mark_free(&mut self, index: usize) {
        let Some(lane) = self.lanes.get_mut(index) else { return };
        if !std::mem::replace(&mut lane.is_queued, true) {
            self.idle.push(index);
        }
        self.unwatched.push(index);
    }

    fn mark_unsettled(&mut self, index: usize) {
        if let Some(lane) = self.lanes.get_mut(index).filter(|lane| lane.is_draining()) {
            let until = SystemClock.now() + LINGER_TIMEOUT;
            lane.call.deadline = until;
            self.next_deadline =
                Some(self.next_deadline.map_or(until, |soonest| soonest.min(until)));
        }
        self.ready.enqueue(index);
    }

    /// Watches the connections on which nothing was sent since they became idle, so that one that
    /// ends is reopened before it is needed.
    fn watch_idle(&mut self) {
        while let Some(index) = self.unwatched.pop() {
            let (Some(lane), Some(waker)) = (self.lanes.get_mut(index), self.ready.waker(index))
            else {
                continue;
            };
            if lane.is_unwatched()
                && !lane.check_idle(&mut Context::from_waker(waker), &self.context)
            {
                self.ready.enqueue(index);
            }
        }
    }
}
