//! Event streams: the one that answers a request, and the server's own.
//!
//! Owns: reading events into arrivals, noticing that the answer came, and (legacy era) continuing
//! a stream that was cut with `Last-Event-ID`, slowly and few times. Never does: repeat a request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::answer::{Glance, glance};
use super::post::not_the_answer;
use super::queue::Bulk;
use super::running::{Exchange, Stage, locked};
use super::sse::{Event, Item, Parser};
use super::status::Refusal;
use super::{Shared, headers};
use crate::mcp::wire::Arrival;
use crate::model::{Era, Fault};
use crate::net::response::{Body, content_type, too_large};
use crate::net::trouble::Cut;
use crate::util::clock::{Clock as _, SystemClock};

/// How long a stream is read on after its answer came, so that its connection can be used again.
const LINGER: Duration = Duration::from_millis(250);
/// The longest wait between two connections, whatever the server asks for.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// The longest id that is sent back, in bytes. A longer one is not remembered.
const LONGEST_ID: usize = 4096;

/// Where a stream stands, across connections.
#[derive(Debug, Default)]
struct Trail {
    last_id: Option<String>,
    retry: Option<Duration>,
}

/// How reading one connection ended.
pub(super) enum End {
    /// The answer came.
    Answered,
    /// The stream ended, regularly or by a lost connection.
    Over(String),
    /// The server broke the rules.
    Broken(Fault),
}

/// How opening a stream by GET failed.
enum Unopened {
    /// The server does not offer it.
    Refused(Fault),
    /// It may work later.
    Failed(Fault),
}

/// One connection that carries events.
pub(super) struct Stream {
    body: Body,
    parser: Parser,
    /// What was read and not taken yet.
    pub(super) items: VecDeque<Item>,
    bulk: Bulk,
}

impl Shared {
    /// Reads the stream that answers the request `id` until its ending.
    pub(super) async fn follow(
        &self,
        body: Body,
        id: &Value,
        resumable: bool,
        exchange: &Exchange,
    ) -> Result<(), Fault> {
        let (mut stream, mut trail) = (self.stream(body), Trail::default());
        let (mut tries, mut stray) = (0, None);
        loop {
            let begun = SystemClock.now();
            let end = self.read_events(&mut stream, &mut trail, Some((id, exchange)), &mut stray);
            let reason = match end.await {
                Ok(End::Answered) => {
                    self.linger(stream, trail).await;
                    return Ok(());
                }
                Ok(End::Over(reason)) => reason,
                Ok(End::Broken(fault)) | Err(fault) => return Err(fault),
            };
            let legacy = locked(&self.session).era() != Some(Era::Modern);
            let resumes = resumable && legacy && trail.last_id.is_some();
            match &stray {
                Some(stray @ Glance::Other(_)) => return Err(not_the_answer(stray, id)),
                Some(stray) if !resumes => return Err(not_the_answer(stray, id)),
                None if !resumes => {
                    return Err(Fault::unreachable(format!("{reason} before the answer came")));
                }
                _ => {}
            }
            if SystemClock.now().duration_since(begun) >= self.limits.steady {
                tries = 0;
            }
            stream = self.resume(&trail, &mut tries, exchange).await?;
        }
    }

    /// Connects again to continue a stream.
    async fn resume(
        &self,
        trail: &Trail,
        tries: &mut u32,
        exchange: &Exchange,
    ) -> Result<Stream, Fault> {
        let mut last = None;
        while *tries < self.limits.reconnects {
            *tries += 1;
            exchange.reach(Stage::Continuing { attempt: *tries });
            sleep(self.wait(trail, *tries)).await;
            match self.open(trail).await {
                Ok(stream) => return Ok(stream),
                Err(Unopened::Failed(fault)) => last = Some(fault),
                Err(Unopened::Refused(fault)) => {
                    return Err(Fault::unreachable(
                        "the event stream ended before the answer came",
                    )
                    .detail(format!("continuing it was refused: {fault}")));
                }
            }
        }
        Err(last.unwrap_or_else(|| {
            let times = *tries + 1;
            Fault::protocol(format!("the event stream ended {times} times without the answer"))
                .detail(format!("limit: {} further connections", self.limits.reconnects))
        }))
    }

    /// Reads the server's own event stream (legacy era), as long as it is offered.
    pub(super) async fn listen(self: Arc<Self>) {
        let stop = self.closed.clone();
        stop.run_until_cancelled(async {
            let (mut trail, mut tries, mut offered) = (Trail::default(), 0, false);
            loop {
                let begun = SystemClock.now();
                match self.open(&trail).await {
                    // Most servers have none, which is their right.
                    Err(Unopened::Refused(_)) => return,
                    Err(Unopened::Failed(_)) => {}
                    Ok(mut stream) => {
                        offered = true;
                        let end = self.read_events(&mut stream, &mut trail, None, &mut None).await;
                        if let Ok(End::Broken(fault)) | Err(fault) = end {
                            let noise =
                                format!("the server's event stream is no longer read: {fault}");
                            return self.push(Arrival::Noise(noise)).await;
                        }
                    }
                }
                if SystemClock.now().duration_since(begun) >= self.limits.steady {
                    tries = 0;
                }
                if tries == self.limits.reconnects {
                    if !offered {
                        return;
                    }
                    let noise = format!(
                        "the server ended its event stream {} times: what it says on its own no \
                         longer arrives",
                        tries + 1
                    );
                    return self.push(Arrival::Noise(noise)).await;
                }
                tries += 1;
                sleep(self.wait(&trail, tries)).await;
            }
        })
        .await;
    }

    pub(super) fn stream(&self, body: Body) -> Stream {
        Stream {
            body,
            parser: Parser::new(self.limits.message).with_comments(self.heads.tracer.is_on()),
            items: VecDeque::new(),
            bulk: self.outbox.bulk(),
        }
    }

    /// Reads on for a moment after the answer: the regular end of the stream lets its connection
    /// be used again, and what else stands in it is not lost.
    async fn linger(&self, mut stream: Stream, mut trail: Trail) {
        let mut stray = None;
        let rest = self.read_events(&mut stream, &mut trail, None, &mut stray);
        timeout(LINGER, rest).await.ok();
    }

    /// Pushes the messages of one connection until it ends or the answer to `id` came. An answer
    /// to something else, or what is no JSON, is remembered in `stray`.
    async fn read_events(
        &self,
        stream: &mut Stream,
        trail: &mut Trail,
        request: Option<(&Value, &Exchange)>,
        stray: &mut Option<Glance>,
    ) -> Result<End, Fault> {
        loop {
            while let Some(item) = stream.items.pop_front() {
                self.trace(&item, request.map(|(id, _)| id));
                let event = match item {
                    Item::Comment(_) => continue,
                    Item::Retry(wait) => {
                        trail.retry = Some(wait);
                        continue;
                    }
                    Item::Event(event) => event,
                };
                let Some(message) = trail.take(event) else { continue };
                let seen = request.map(|(id, _)| glance(&message, id));
                self.heads.tracer.received(&message, request.map(|(id, _)| id));
                let stream_of = request.map(|(id, _)| id.clone());
                self.push(Arrival::Message { bytes: message, stream_of }).await;
                match seen {
                    Some(Glance::Answer) => return Ok(End::Answered),
                    Some(other @ Glance::Other(_)) => *stray = Some(other),
                    Some(other @ Glance::Unreadable(_)) => *stray = stray.take().or(Some(other)),
                    _ => {}
                }
            }
            match self.read_on(stream).await {
                Ok(bytes) => request.iter().for_each(|(_, exchange)| exchange.read(bytes)),
                Err(end) => return Ok(end),
            }
        }
    }

    /// Reads the next bytes of a connection into its items; how many.
    pub(super) async fn read_on(&self, stream: &mut Stream) -> Result<usize, End> {
        stream.bulk.holding(stream.parser.held()).await;
        let chunk = match stream.body.next().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Err(End::Over("the event stream ended".to_owned())),
            Err(Cut::Short) => return Err(End::Over("the event stream was cut".to_owned())),
            Err(Cut::Lost(reason)) => {
                return Err(End::Over(format!("the event stream was cut ({reason})")));
            }
            Err(Cut::Broken(reason)) => {
                let what = format!("the event stream's HTTP body is broken: {reason}");
                return Err(End::Broken(Fault::protocol(what)));
            }
        };
        let mut items = Vec::new();
        let fed = stream.parser.feed(&chunk, &mut items);
        stream.items.extend(items);
        match fed {
            Ok(()) => Ok(chunk.len()),
            Err(_) => Err(End::Broken(too_large(self.limits.message))),
        }
    }

    /// Reports what the event stream of a request, or the server's own, carries beside messages.
    pub(super) fn trace(&self, item: &Item, request: Option<&Value>) {
        if !self.heads.tracer.is_on() {
            return;
        }
        let text = match item {
            Item::Comment(text) => format!(":{text}"),
            Item::Retry(wait) => format!("retry: {}", wait.as_millis()),
            Item::Event(event) => {
                let Event { id, kind, data } = event;
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
            let call = request.and_then(|id| self.heads.tracer.call_of(id));
            self.heads.tracer.noise(&text, call.as_ref());
        }
    }

    /// Opens an event stream by GET.
    async fn open(&self, trail: &Trail) -> Result<Stream, Unopened> {
        let mut headers = headers::get(&locked(&self.session));
        let last = trail.last_id.as_ref().and_then(|id| HeaderValue::try_from(id.as_str()).ok());
        headers.extend(last.map(|id| (headers::LAST_EVENT_ID, id)));
        let url = locked(&self.url).clone();
        let request = self.exchange(Method::GET, &url, headers, None, None);
        let response = match timeout(self.limits.control, request).await {
            Ok(Ok(response)) => response,
            Ok(Err(fault)) => return Err(Unopened::Failed(fault)),
            Err(_) => {
                return Err(Unopened::Failed(Fault::timeout(
                    "no response to the event stream's GET",
                )));
            }
        };
        let status = response.status();
        if status == 200 && content_type(response.headers()) == "text/event-stream" {
            return Ok(self.stream(Body::new(response)));
        }
        let (headers, authorized) = (response.headers(), self.gate.authorized());
        let fault = Refusal { status, headers, body: &[], url: &url, authorized }.fault();
        let later = status.is_server_error() || status.as_u16() == 429;
        Err(if later { Unopened::Failed(fault) } else { Unopened::Refused(fault) })
    }

    /// How long to wait before connection number `attempt` (from 1).
    fn wait(&self, trail: &Trail, attempt: u32) -> Duration {
        let jitter = uuid::Uuid::new_v4().as_bytes()[0];
        wait(self.limits.reconnect_wait, trail.retry, attempt, jitter)
    }
}

/// What the server asks for, but at least `floor`; doubled with each attempt, and up to a quarter
/// longer by chance, so that many clients do not come back together.
fn wait(floor: Duration, asked: Option<Duration>, attempt: u32, jitter: u8) -> Duration {
    let first = asked.unwrap_or(floor).clamp(floor, LONGEST_WAIT.max(floor));
    let doubled =
        first.saturating_mul(1 << (attempt.clamp(1, 16) - 1)).min(LONGEST_WAIT.max(floor));
    doubled + doubled / 4 * u32::from(jitter) / 255
}

impl Trail {
    /// Notes an event's id; the event's message, unless it carries none.
    fn take(&mut self, event: Event) -> Option<Bytes> {
        if let Some(id) = &event.id {
            let usable = Some(id.clone()).filter(|id| !id.is_empty() && id.len() <= LONGEST_ID);
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
        let waits: Vec<_> = (1..=5).map(|n| wait(SECOND, zero, n, 0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16]);
        assert_eq!(wait(SECOND, Some(3 * SECOND), 1, 0), 3 * SECOND);
        assert_eq!(wait(SECOND, None, 1, 0), SECOND);
    }

    #[test]
    fn the_wait_has_a_ceiling_and_some_chance() {
        assert_eq!(wait(SECOND, Some(Duration::MAX), 5, 0), LONGEST_WAIT);
        assert_eq!(wait(4 * SECOND, None, 1, 255), 5 * SECOND);
    }

    #[test]
    fn only_messages_with_data_are_taken_but_every_id_is_noted() {
        let event = |id: Option<&str>, kind: Option<&str>, data: &'static str| Event {
            id: id.map(str::to_owned),
            kind: kind.map(str::to_owned),
            data: Bytes::from_static(data.as_bytes()),
        };
        let mut trail = Trail::default();
        assert_eq!(trail.take(event(Some("1"), None, "")), None);
        assert_eq!(trail.last_id.as_deref(), Some("1"));
        assert_eq!(trail.take(event(Some("2"), Some("ping"), "{}")), None);
        assert_eq!(trail.last_id.as_deref(), Some("2"));
        assert!(trail.take(event(None, Some("message"), "{}")).is_some());
        assert_eq!(trail.last_id.as_deref(), Some("2"));
        for forgotten in ["", &"x".repeat(LONGEST_ID + 1)] {
            trail.last_id = Some("2".to_owned());
            assert_eq!(trail.take(event(Some(forgotten), None, "")), None);
            assert_eq!(trail.last_id, None);
        }
    }
}
