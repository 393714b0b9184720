//! The events that one stream of a session carries, and those that may be requested again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::SessionError;
use crate::serve::shared_room::{SharedRoom, TakenRoom};
use crate::util::json;

/// How many events wait for a client that is slow to read.
const QUEUE: usize = 16;
/// How many of the last events a client may ask for again.
const KEPT: usize = 16;
const RETRY: Duration = Duration::from_secs(3);

#[derive(Default)]
pub(super) struct EventStream {
    /// The number that its events carry; the stream that belongs to no request has none.
    pub(super) number: Option<u64>,
    request: Option<RequestId>,
    client: Option<mpsc::Sender<ServerSseMessage>>,
    kept: VecDeque<KeptEvent>,
    next: u64,
    /// The first event that no client was there for.
    unread: u64,
    answered: Option<Instant>,
}

struct KeptEvent {
    index: u64,
    event: ServerSseMessage,
    bytes: Option<TakenRoom>,
}

impl EventStream {
    pub(super) fn of_request(
        number: u64,
        request: Option<RequestId>,
    ) -> (Self, mpsc::Receiver<ServerSseMessage>) {
        let mut stream = Self { number: Some(number), request, ..Self::default() };
        let reader = stream.open();
        let id = stream.event_id(0);
        stream.next = 1;
        let begin = ServerSseMessage::priming(id, RETRY);
        // The queue is empty.
        let _queued = stream.client.as_ref().map(|client| client.try_send(begin));
        (stream, reader)
    }

    fn open(&mut self) -> mpsc::Receiver<ServerSseMessage> {
        let (client, reader) = mpsc::channel(QUEUE);
        self.client = Some(client);
        reader
    }

    fn event_id(&self, index: u64) -> String {
        match self.number {
            Some(number) => format!("{index}/{number}"),
            None => index.to_string(),
        }
    }

    pub(super) fn is_read(&self) -> bool {
        self.client.as_ref().is_some_and(|client| !client.is_closed())
    }

    /// Adds an event: what is to be sent, and where. Where its client does not read, events are kept as
    /// far as `answers` has room.
    pub(super) fn push(
        &mut self,
        message: ServerJsonRpcMessage,
        answers: &SharedRoom,
    ) -> (ServerSseMessage, Option<mpsc::Sender<ServerSseMessage>>) {
        let event = self.keep(self.next, message);
        self.next += 1;
        if self.is_read() {
            self.unread = self.next;
        } else {
            self.kept.retain_mut(|event| {
                if let (None, Some(message)) = (&event.bytes, &event.event.message) {
                    let size = usize::try_from(json::size(message)).unwrap_or(usize::MAX);
                    event.bytes = answers.try_take(size);
                }
                event.bytes.is_some()
            });
        }
        (event, self.client.clone())
    }

    fn keep(&mut self, index: u64, message: ServerJsonRpcMessage) -> ServerSseMessage {
        let mut event = ServerSseMessage::default();
        event.event_id = Some(self.event_id(index));
        event.message = Some(Arc::new(message));
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(KeptEvent { index, event: event.clone(), bytes: None });
        event
    }

    /// Ends it with the event that was added last, the answer. Whether it may be forgotten: its client
    /// reads it.
    pub(super) fn finish(&mut self) -> bool {
        self.answered = Some(Instant::now());
        let is_read = self.is_read();
        self.client = None;
        let last = self.next.saturating_sub(1);
        if !is_read && self.kept.back().is_none_or(|event| event.index < last) {
            let message = "the response was dropped: the connection ended before it was read, and too \
                         much is waiting for other clients";
            let error = ErrorData::internal_error(message, None);
            self.keep(last, ServerJsonRpcMessage::error(error, self.request.clone()));
        }
        is_read
    }

    pub(super) fn waits_for(&self, request: &RequestId) -> bool {
        self.answered.is_none() && self.request.as_ref() == Some(request)
    }

    /// Since when the answer is there for a client that did not come back for it.
    pub(super) fn answered(&self) -> Option<Instant> {
        self.answered
    }

    /// Reads on after the event with this index; `None` begins with what is kept and no client read.
    pub(super) fn resume(
        &mut self,
        last: Option<u64>,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, SessionError> {
        if last.is_some_and(|last| last >= self.next.max(1)) {
            return Err(SessionError::UnknownEvent);
        }
        let reader = self.open();
        if let Some(client) = &self.client {
            let first = last.map_or(self.unread, |last| last + 1);
            for event in self.kept.iter().filter(|event| event.index >= first) {
                // No more are kept than the queue takes.
                let _queued = client.try_send(event.event.clone());
            }
        }
        self.unread = self.next;
        if self.answered.is_some() {
            self.client = None;
        }
        Ok(reader)
    }
}
