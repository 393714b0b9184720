//! Event streams: those that answer a request, and the server's standalone one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::answer_match::{AnswerMatch, match_answer};
use super::exchanges::{ExchangeStage, HttpExchange, LargeMessagePermit};
use super::post::unexpected_answer;
use super::sse::{SseEvent, SseItem, SseParser};
use super::{HttpShared, headers};
use crate::mcp::message::Incoming;
use crate::mcp::wire::Arrival;
use crate::model::{Era, Error};
use crate::net::errors::BodyReadError;
use crate::net::response::{OriginResponse, ResponseBody, content_type, too_large};
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::lock::lock;

/// How long a stream is read on after its answer came, so that its connection can be used again.
const LINGER_TIMEOUT: Duration = Duration::from_millis(250);
/// Maximum wait between two connections, even when the server asks for more.
const MAX_RECONNECT_WAIT: Duration = Duration::from_mins(1);

/// The longest id that is sent back, in bytes. A longer one is not remembered.
const MAX_EVENT_ID: usize = 4096;

#[derive(Debug, Default)]
struct ResumePoint {
    last_id: Option<String>,
    retry: Option<Duration>,
}

pub(super) enum SseStreamEnd {
    Answered,
    Disconnected(String),
    Broken(Error),
}

enum SseOpenError {
    /// The server does not offer it.
    NotOffered(Error),
    /// It did not work now, and may work later.
    Failed(Error),
}

pub(super) struct SseStream {
    body: ResponseBody,
    parser: SseParser,
    /// What was read and not taken yet.
    pub(super) items: VecDeque<SseItem>,
    large_message_permit: LargeMessagePermit,
}

impl HttpShared {
    /// Reads the stream that answers the request `id` until its ending.
    pub(super) async fn follow(
        &self,
        body: ResponseBody,
        id: &Value,
        resumable: bool,
        exchange: &HttpExchange,
    ) -> Result<(), Error> {
        let (mut stream, mut trail) = (self.stream(body), ResumePoint::default());
        let (mut tries, mut unmatched_response) = (0, None);
        loop {
            let begun = SystemClock.now();
            let end = self.read_events(
                &mut stream,
                &mut trail,
                Some((id, exchange)),
                &mut unmatched_response,
            );
            let reason = match end.await {
                Ok(SseStreamEnd::Answered) => {
                    self.linger(stream, trail).await;
                    return Ok(());
                }
                Ok(SseStreamEnd::Disconnected(reason)) => reason,
                Ok(SseStreamEnd::Broken(error)) | Err(error) => return Err(error),
            };
            let legacy = lock(&self.session).era() != Some(Era::Modern);
            let resumes = resumable && legacy && trail.last_id.is_some();
            if let Some(other) = &unmatched_response
                && (!resumes || matches!(other, AnswerMatch::OtherAnswer(_)))
            {
                return Err(unexpected_answer(other, id));
            }
            if !resumes {
                let what = format!("{reason} before the response arrived");
                return Err(Error::unreachable(what));
            }
            if SystemClock.now().duration_since(begun) >= self.limits.stable_after {
                tries = 0;
            }
            stream = self.resume(&trail, &mut tries, exchange).await?;
        }
    }

    async fn resume(
        &self,
        trail: &ResumePoint,
        tries: &mut u32,
        exchange: &HttpExchange,
    ) -> Result<SseStream, Error> {
        let mut last = None;
        while *tries < self.limits.reconnects {
            *tries += 1;
            exchange.set_stage(ExchangeStage::Continuing { attempt: *tries });
            sleep(self.reconnect_delay(trail, *tries)).await;
            match self.open(trail).await {
                Ok(stream) => return Ok(stream),
                Err(SseOpenError::Failed(error)) => last = Some(error),
                Err(SseOpenError::NotOffered(error)) => {
                    return Err(Error::unreachable(
                        "the event stream ended before the response arrived",
                    )
                    .with_detail(format!("continuing it was refused: {error}")));
                }
            }
        }
        Err(last.unwrap_or_else(|| {
            let times = *tries + 1;
            Error::protocol(format!("the event stream ended {times} times without the response"))
                .with_detail(format!("limit: {} further connections", self.limits.reconnects))
        }))
    }

    /// Reads the server's own event stream (legacy era), as long as it is offered.
    pub(super) async fn listen(self: Arc<Self>) {
        let stop = self.closed.clone();
        stop.run_until_cancelled(async {
            let (mut trail, mut tries, mut offered) = (ResumePoint::default(), 0, false);
            loop {
                let begun = SystemClock.now();
                match self.open(&trail).await {
                    // Most servers have none, which is their right.
                    Err(SseOpenError::NotOffered(_)) => return,
                    Err(SseOpenError::Failed(_)) => {}
                    Ok(mut stream) => {
                        offered = true;
                        let end = self.read_events(&mut stream, &mut trail, None, &mut None).await;
                        if let Ok(SseStreamEnd::Broken(error)) | Err(error) = end {
                            let warning = format!("the server's event stream is no longer read: {error}");
                            return self.push(Arrival::Warning(warning)).await;
                        }
                    }
                }
                if SystemClock.now().duration_since(begun) >= self.limits.stable_after {
                    tries = 0;
                }
                if tries == self.limits.reconnects {
                    if !offered {
                        return;
                    }
                    let times = tries + 1;
                    let warning = format!(
                        "the server ended its event stream {times} times: its notifications no longer \
                         arrive"
                    );
                    return self.push(Arrival::Warning(warning)).await;
                }
                tries += 1;
                sleep(self.reconnect_delay(&trail, tries)).await;
            }
        })
        .await;
    }

    pub(super) fn stream(&self, body: ResponseBody) -> SseStream {
        SseStream {
            body,
            parser: SseParser::new(self.limits.message)
                .with_comments(self.head_tracer.tracer.is_on()),
            items: VecDeque::new(),
            large_message_permit: self.arrival_sender.large_message_permit(),
        }
    }

    /// Keeps reading for a moment after the response: the regular end of the stream lets its
    /// connection be reused, and what else the stream contains is not lost.
    async fn linger(&self, mut stream: SseStream, mut trail: ResumePoint) {
        let mut unmatched_response = None;
        let rest = self.read_events(&mut stream, &mut trail, None, &mut unmatched_response);
        timeout(LINGER_TIMEOUT, rest).await.ok();
    }

    /// Pushes the messages of one connection until it ends or the response to `id` arrives. A
    /// response to another id, or anything but JSON, is stored in `unmatched_response`.
    async fn read_events(
        &self,
        stream: &mut SseStream,
        trail: &mut ResumePoint,
        request: Option<(&Value, &HttpExchange)>,
        unmatched_response: &mut Option<AnswerMatch>,
    ) -> Result<SseStreamEnd, Error> {
        loop {
            while let Some(item) = stream.items.pop_front() {
                self.trace(&item, request.map(|(id, _)| id));
                let event = match item {
                    SseItem::Comment(_) => continue,
                    SseItem::Retry(wait) => {
                        trail.retry = Some(wait);
                        continue;
                    }
                    SseItem::Event(event) => event,
                };
                let Some(message) = trail.record_event(event) else { continue };
                let incoming = Incoming::read(message);
                let verdict = request.map(|(id, _)| match_answer(&incoming, id));
                self.head_tracer.tracer.received(&incoming, request.map(|(id, _)| id));
                let stream_of = request.map(|(id, _)| id.clone());
                self.push(Arrival::Message { incoming, stream_of }).await;
                match verdict {
                    Some(AnswerMatch::Answer) => return Ok(SseStreamEnd::Answered),
                    Some(other @ AnswerMatch::OtherAnswer(_)) => *unmatched_response = Some(other),
                    Some(other @ AnswerMatch::Unreadable(_)) => {
                        *unmatched_response = unmatched_response.take().or(Some(other));
                    }
                    _ => {}
                }
            }
            match self.read_more(stream).await {
                Ok(bytes) => {
                    if let Some((_, exchange)) = &request {
                        exchange.add_bytes_read(bytes);
                    }
                }
                Err(end) => return Ok(end),
            }
        }
    }

    /// Reads the next bytes of a connection into its items; how many.
    pub(super) async fn read_more(&self, stream: &mut SseStream) -> Result<usize, SseStreamEnd> {
        stream.large_message_permit.reserve(stream.parser.buffered_bytes()).await;
        let chunk = match stream.body.next().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => {
                return Err(SseStreamEnd::Disconnected("the event stream ended".to_owned()));
            }
            Err(BodyReadError::Truncated) => {
                return Err(SseStreamEnd::Disconnected("the event stream was cut".to_owned()));
            }
            Err(BodyReadError::Lost(reason)) => {
                return Err(SseStreamEnd::Disconnected(format!(
                    "the event stream was cut ({reason})"
                )));
            }
            Err(BodyReadError::Broken(reason)) => {
                let what = format!("the event stream's HTTP body is broken: {reason}");
                return Err(SseStreamEnd::Broken(Error::protocol(what)));
            }
        };
        let mut items = Vec::new();
        let fed = stream.parser.feed(&chunk, &mut items);
        stream.items.extend(items);
        match fed {
            Ok(()) => Ok(chunk.len()),
            Err(_) => Err(SseStreamEnd::Broken(too_large(self.limits.message))),
        }
    }

    /// Reports what the event stream of a request, or the server's own, carries besides messages.
    pub(super) fn trace(&self, item: &SseItem, request: Option<&Value>) {
        if !self.head_tracer.tracer.is_on() {
            return;
        }
        let text = match item {
            SseItem::Comment(text) => format!(":{text}"),
            SseItem::Retry(wait) => format!("retry: {}", wait.as_millis()),
            SseItem::Event(event) => {
                let SseEvent { id, kind, data } = event;
                let id = id.as_ref().map(|id| format!("id: {id}"));
                // The data of a message is reported as the message it is.
                let other = !event.is_message() && !data.is_empty();
                let data = other.then(|| format!("data: {}", String::from_utf8_lossy(data)));
                let kind = kind.as_deref().filter(|kind| *kind != "message");
                let kind = kind.map(|kind| format!("event: {kind}"));
                [id, kind, data].into_iter().flatten().collect::<Vec<_>>().join(", ")
            }
        };
        if !text.is_empty() {
            let call = request.and_then(|id| self.head_tracer.tracer.call_of(id));
            self.head_tracer.tracer.non_message(&text, call.as_ref());
        }
    }

    async fn open(&self, trail: &ResumePoint) -> Result<SseStream, SseOpenError> {
        let mut headers = headers::get(&lock(&self.session));
        let last = trail.last_id.as_ref().and_then(|id| HeaderValue::try_from(id.as_str()).ok());
        headers.extend(last.map(|id| (headers::LAST_EVENT_ID, id)));
        let url = lock(&self.url).clone();
        let response = self.send_with_credentials(Method::GET, &url, headers, None, None);
        let response = response.await.map_err(SseOpenError::Failed)?;
        let OriginResponse { status, headers, body, .. } = response;
        if status == 200 && content_type(&headers) == "text/event-stream" {
            return Ok(self.stream(body));
        }
        let error = self.refusal(status, &headers, &[], &url);
        let later = status.is_server_error() || status.as_u16() == 429;
        Err(if later { SseOpenError::Failed(error) } else { SseOpenError::NotOffered(error) })
    }

    /// How long to wait before connection number `attempt` (from 1).
    fn reconnect_delay(&self, trail: &ResumePoint, attempt: u32) -> Duration {
        let jitter = uuid::Uuid::new_v4().as_bytes()[0];
        backoff(self.limits.reconnect_wait, trail.retry, attempt, jitter)
    }
}

/// What the server asks for, but at least `floor`; doubled with each attempt, and up to a quarter
/// longer by chance, so that many clients do not come back together.
fn backoff(floor: Duration, delay: Option<Duration>, attempt: u32, jitter: u8) -> Duration {
    let first = delay.unwrap_or(floor).clamp(floor, MAX_RECONNECT_WAIT.max(floor));
    let doubled =
        first.saturating_mul(1 << (attempt.clamp(1, 16) - 1)).min(MAX_RECONNECT_WAIT.max(floor));
    doubled + doubled / 4 * u32::from(jitter) / 255
}

impl ResumePoint {
    /// Notes an event's id; the event's message, unless it carries none.
    fn record_event(&mut self, event: SseEvent) -> Option<Bytes> {
        if let Some(id) = &event.id {
            let usable = Some(id.clone()).filter(|id| !id.is_empty() && id.len() <= MAX_EVENT_ID);
            self.last_id = usable;
        }
        event.message()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_wait_is_never_shorter_than_the_floor_and_doubles() {
        let zero = Some(Duration::ZERO);
        let waits: Vec<_> = (1..=5).map(|n| backoff(SECOND, zero, n, 0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16]);
        assert_eq!(backoff(SECOND, Some(3 * SECOND), 1, 0), 3 * SECOND);
        assert_eq!(backoff(SECOND, None, 1, 0), SECOND);
    }

    #[test]
    fn the_wait_has_a_ceiling_and_some_chance() {
        assert_eq!(backoff(SECOND, Some(Duration::MAX), 5, 0), MAX_RECONNECT_WAIT);
        assert_eq!(backoff(4 * SECOND, None, 1, 255), 5 * SECOND);
    }

    #[test]
    fn only_messages_with_data_are_taken_but_every_id_is_noted() {
        let event = |id: Option<&str>, kind: Option<&str>, data: &'static str| SseEvent {
            id: id.map(str::to_owned),
            kind: kind.map(str::to_owned),
            data: Bytes::from_static(data.as_bytes()),
        };
        let mut trail = ResumePoint::default();
        assert_eq!(trail.record_event(event(Some("1"), None, "")), None);
        assert_eq!(trail.last_id.as_deref(), Some("1"));
        assert_eq!(trail.record_event(event(Some("2"), Some("ping"), "{}")), None);
        assert_eq!(trail.last_id.as_deref(), Some("2"));
        assert!(trail.record_event(event(None, Some("message"), "{}")).is_some());
        assert_eq!(trail.last_id.as_deref(), Some("2"));
        for forgotten in ["", &"x".repeat(MAX_EVENT_ID + 1)] {
            trail.last_id = Some("2".to_owned());
            assert_eq!(trail.record_event(event(Some(forgotten), None, "")), None);
            assert_eq!(trail.last_id, None);
        }
    }
}
