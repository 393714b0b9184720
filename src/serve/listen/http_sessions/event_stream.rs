//! The events that one stream of a session carries, and those that may be asked for again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::SessionError;

/// How many events wait for a client that is slow to read.
const QUEUE: usize = 16;
/// How many of the last events a client may ask for again.
const KEPT: usize = 16;
/// When a client whose stream broke off is to come back.
const RETRY: Duration = Duration::from_secs(3);

/// A stream that the client reads now, or may come back to.
#[derive(Default)]
pub(super) struct EventStream {
    /// The number that its events carry; the stream that belongs to no request has none.
    number: Option<u64>,
    client: Option<mpsc::Sender<ServerSseMessage>>,
    kept: VecDeque<(u64, ServerSseMessage)>,
    next: u64,
    /// Since when the answer is among the events.
    answered: Option<Instant>,
}

impl EventStream {
    /// The stream of a request, and what its client reads of it.
    pub(super) fn of_request(number: u64) -> (Self, mpsc::Receiver<ServerSseMessage>) {
        let mut stream = Self { number: Some(number), ..Self::default() };
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

    /// Whether a client reads it.
    pub(super) fn is_read(&self) -> bool {
        self.client.as_ref().is_some_and(|client| !client.is_closed())
    }

    /// Adds an event: what is to be sent, and where.
    pub(super) fn push(
        &mut self,
        message: Arc<ServerJsonRpcMessage>,
    ) -> (ServerSseMessage, Option<mpsc::Sender<ServerSseMessage>>) {
        let mut event = ServerSseMessage::default();
        event.event_id = Some(self.event_id(self.next));
        event.message = Some(message);
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((self.next, event.clone()));
        self.next += 1;
        (event, self.client.clone())
    }

    /// Ends it with the event that was added last. Whether it may be forgotten: its client reads it.
    pub(super) fn finish(&mut self) -> bool {
        self.answered = Some(Instant::now());
        let is_read = self.is_read();
        self.client = None;
        is_read
    }

    /// Whether its client did not come back for the answer.
    pub(super) fn is_abandoned(&self, patience: Duration) -> bool {
        self.answered.is_some_and(|since| since.elapsed() >= patience)
    }

    /// Reads on after the event with this index; `None` begins with what is kept.
    ///
    /// # Errors
    /// An index that is not known.
    pub(super) fn resume(
        &mut self,
        last: Option<u64>,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, SessionError> {
        if last.is_some_and(|last| last >= self.next.max(1)) {
            return Err(SessionError::UnknownEvent);
        }
        let reader = self.open();
        if let Some(client) = &self.client {
            let missed =
                self.kept.iter().filter(|(index, _)| last.is_none_or(|last| *index > last));
            for (_, event) in missed {
                // No more are kept than the queue takes.
                let _queued = client.try_send(event.clone());
            }
        }
        if self.answered.is_some() {
            self.client = None;
        }
        Ok(reader)
    }
}
