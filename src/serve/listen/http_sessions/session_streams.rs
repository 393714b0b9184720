//! The streams of one session: which message goes where.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorData, GetExtensions, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::OriginatingRequestId;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::SessionError;
use super::event_stream::EventStream;
use crate::serve::listen::backlog::MAX_UNANSWERED;
use crate::serve::shared_room::SharedRoom;

/// How long the answer of a request is kept for a client whose stream broke off.
const ANSWER_KEPT: Duration = Duration::from_mins(1);
pub(super) const MAX_KEPT_ANSWERS: usize = 64;
/// How many streams a client may keep open besides the one that carries events.
const MAX_SPARES: usize = 8;

/// An event, and where it is to be sent; `None` when no client reads it now.
pub(super) type RoutedEvent = (ServerSseMessage, Option<mpsc::Sender<ServerSseMessage>>);

#[derive(Default)]
pub(super) struct SessionStreams {
    common: EventStream,
    /// Further streams of that kind, which stay silent: a client that opens several would otherwise
    /// open the one again and again that ended for the other.
    spares: Vec<mpsc::Sender<ServerSseMessage>>,
    requests: HashMap<u64, EventStream>,
    /// The streams of requests without an answer yet.
    waiting: HashMap<RequestId, u64>,
    next: u64,
}

impl SessionStreams {
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the client reads the stream that belongs to no request.
    pub(super) fn is_listened_to(&self) -> bool {
        self.common.is_read()
    }

    /// Opens the stream of a request that is to be handed over. One more than may wait is answered with
    /// an error there, and is not to be handed over.
    pub(super) fn begin_request(
        &mut self,
        id: Option<RequestId>,
        answers: &SharedRoom,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, mpsc::Receiver<ServerSseMessage>> {
        let number = self.next;
        self.next += 1;
        let (mut stream, reader) = EventStream::of_request(number);
        if let Some(id) = &id
            && self.waiting.len() >= MAX_UNANSWERED
        {
            let message =
                format!("{MAX_UNANSWERED} requests of this session are waiting for responses");
            let error = ErrorData::internal_error(message, None);
            let answer = ServerJsonRpcMessage::error(error, Some(id.clone()));
            if let (event, Some(client)) = stream.push(Arc::new(answer), answers) {
                // The queue has room for it.
                let _queued = client.try_send(event);
            }
            return Err(reader);
        }
        self.requests.insert(number, stream);
        if let Some(id) = id {
            // The stream of an unanswered request with the same id ends.
            let before = self.waiting.insert(id, number);
            before.and_then(|before| self.requests.remove(&before));
        }
        Ok(reader)
    }

    /// Ends the stream of a request that its client gave up: nothing follows on it.
    pub(super) fn give_up(&mut self, id: &RequestId) {
        let number = self.waiting.remove(id);
        number.and_then(|number| self.requests.remove(&number));
    }

    /// Forgets the answers that their clients did not come back for.
    pub(super) fn forget_abandoned(&mut self) {
        let is_abandoned = |since: Instant| since.elapsed() >= ANSWER_KEPT;
        self.requests.retain(|_, stream| !stream.answered().is_some_and(is_abandoned));
    }

    pub(super) fn listen(&mut self) -> mpsc::Receiver<ServerSseMessage> {
        match self.read_common(None) {
            Ok(reader) => reader,
            // Not with an event that is named.
            Err(_unknown) => mpsc::channel(1).1,
        }
    }

    /// Goes on with a stream after an event.
    pub(super) fn resume(
        &mut self,
        event: &str,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, SessionError> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| SessionError::UnknownEvent);
        if let Some((index, stream)) = event.split_once('/') {
            let stream = self.requests.get_mut(&number(stream)?);
            return stream.ok_or(SessionError::UnknownEvent)?.resume(Some(number(index)?));
        }
        let last = number(event)?;
        self.read_common(Some(last))
    }

    fn read_common(
        &mut self,
        last: Option<u64>,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, SessionError> {
        self.spares.retain(|spare| !spare.is_closed());
        if !self.common.is_read() {
            return self.common.resume(last);
        }
        if self.spares.len() >= MAX_SPARES {
            self.spares.remove(0);
        }
        let (spare, reader) = mpsc::channel(1);
        self.spares.push(spare);
        Ok(reader)
    }

    /// Puts a message of the service on the stream that it belongs to; `None` when nothing of it is to be
    /// waited for: the answer to a request that its client gave up, and what belongs to no request.
    pub(super) fn route(
        &mut self,
        message: ServerJsonRpcMessage,
        answers: &SharedRoom,
    ) -> Option<RoutedEvent> {
        let (of_request, is_answer) = match &message {
            JsonRpcMessage::Response(response) => (Some(response.id.clone()), true),
            JsonRpcMessage::Error(error) => (error.id.clone(), true),
            JsonRpcMessage::Request(request) => (origin(&request.request), false),
            JsonRpcMessage::Notification(sent) => (origin(&sent.notification), false),
        };
        let number = of_request.as_ref().and_then(|id| self.waiting.get(id).copied());
        if is_answer && let Some(id) = &of_request {
            self.waiting.remove(id);
        }
        match number.and_then(|number| Some((number, self.requests.get_mut(&number)?))) {
            Some((number, stream)) => {
                let pushed = stream.push(Arc::new(message), answers);
                if is_answer && stream.finish(of_request.as_ref()) {
                    self.requests.remove(&number);
                } else if is_answer {
                    self.forget_oldest_answer();
                }
                Some(pushed)
            }
            None if is_answer => None,
            None => {
                if let (event, Some(client)) = self.common.push(Arc::new(message), answers) {
                    // A client that does not read misses it.
                    let _slow_client = client.try_send(event);
                }
                None
            }
        }
    }

    fn forget_oldest_answer(&mut self) {
        let answered = |(number, stream): (&u64, &EventStream)| Some((stream.answered()?, *number));
        if self.requests.values().filter_map(EventStream::answered).count() > MAX_KEPT_ANSWERS
            && let Some((_, oldest)) = self.requests.iter().filter_map(answered).min()
        {
            self.requests.remove(&oldest);
        }
    }
}

fn origin(message: &impl GetExtensions) -> Option<RequestId> {
    message.extensions().get::<OriginatingRequestId>().map(|origin| origin.0.clone())
}
