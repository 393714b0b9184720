//! One session: its streams, and the service that answers it while there is something to answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, GetExtensions, InitializeRequestParams,
    JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{OriginatingRequestId, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::SessionError;
use super::event_stream::EventStream;
use super::kept_answers::KeptAnswers;
use crate::serve::catalogue_server::ClientState;
use crate::serve::listen::backlog::MAX_UNANSWERED;

/// How many messages of a client wait for the service.
const INCOMING: usize = 8;
/// How long the answer of a request is kept for a client whose stream broke off.
const ANSWER_KEPT: Duration = Duration::from_mins(1);
/// How many such answers are kept of one session.
pub(super) const MAX_KEPT_ANSWERS: usize = 64;
/// How long a client may take to introduce itself.
const HANDSHAKE: Duration = Duration::from_mins(1);
/// How long a session is kept that has no stream and is not used, also while a person is asked.
const SESSION_IDLE: Duration = Duration::from_mins(30);
/// How many streams beside the one that carries events a client may keep open.
const MAX_SPARES: usize = 8;

/// One session of a client.
pub(super) struct ServedSession {
    /// What the client wants to hear. It outlives the service.
    pub(super) client: Arc<ClientState>,
    state: Mutex<SessionContents>,
    answers: Arc<KeptAnswers>,
    /// Held while an event is sent, so that none overtakes another.
    sending: tokio::sync::Mutex<()>,
}

struct SessionContents {
    /// How the client introduced itself, once that was accepted.
    hello: Option<Box<InitializeRequestParams>>,
    service: Option<SessionService>,
    /// How many services were ended of which the SDK has not said so yet.
    closing: usize,
    /// The stream that belongs to no request.
    common: EventStream,
    /// Further streams of that kind, which stay silent: a client that opens several would otherwise
    /// open the one again and again that ended for the other.
    spares: Vec<mpsc::Sender<ServerSseMessage>>,
    requests: HashMap<u64, EventStream>,
    /// The streams of requests without an answer yet.
    waiting: HashMap<RequestId, u64>,
    next_stream: u64,
    last_used: Instant,
}

/// What answers a session.
struct SessionService {
    incoming: mpsc::Sender<Box<ClientJsonRpcMessage>>,
    /// Who waits for the answer to the handshake.
    handshake: Option<oneshot::Sender<ServerJsonRpcMessage>>,
    /// Whether requests may be handed over.
    is_ready: bool,
}

/// The service's end of a session.
pub struct ServedSessionTransport {
    session: Arc<ServedSession>,
    incoming: mpsc::Receiver<Box<ClientJsonRpcMessage>>,
    _counted: RunningService,
}

/// Counts as a service that runs until it is dropped.
struct RunningService(Arc<AtomicUsize>);

impl RunningService {
    fn begin(running: &Arc<AtomicUsize>) -> Self {
        running.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(running))
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServedSession {
    /// A session whose client said nothing yet. What it keeps for its client counts against `answers`.
    pub(super) fn new(answers: Arc<KeptAnswers>) -> Arc<Self> {
        let contents = SessionContents {
            hello: None,
            service: None,
            closing: 0,
            common: EventStream::default(),
            spares: Vec::new(),
            requests: HashMap::new(),
            waiting: HashMap::new(),
            next_stream: 0,
            last_used: Instant::now(),
        };
        let client = Arc::new(ClientState::new(false));
        Arc::new(Self {
            client,
            state: Mutex::new(contents),
            answers,
            sending: tokio::sync::Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, SessionContents> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transport of a service that begins now, which counts as one of those `running`.
    pub(super) fn start_service(
        self: &Arc<Self>,
        running: &Arc<AtomicUsize>,
    ) -> ServedSessionTransport {
        let (incoming, seen) = mpsc::channel(INCOMING);
        let mut state = self.state();
        state.last_used = Instant::now();
        state.service = Some(SessionService { incoming, handshake: None, is_ready: false });
        let counted = RunningService::begin(running);
        ServedSessionTransport { session: Arc::clone(self), incoming: seen, _counted: counted }
    }

    /// Hears that a service ended. Whether a new one can go on from what the session remembers.
    pub(super) fn close_service(&self) -> bool {
        let mut state = self.state();
        if state.closing > 0 {
            // One that was ended here, after which another may have begun.
            state.closing -= 1;
            return true;
        }
        state.service = None;
        state.hello.is_some()
    }

    /// Ends the service, all streams, and the calls that run.
    pub(super) fn end(&self) {
        self.client.end();
        let mut state = self.state();
        state.service = None;
        state.common = EventStream::default();
        state.spares.clear();
        state.requests.clear();
        state.waiting.clear();
    }

    /// Ends the service if nothing was asked of it for so long; whether it did.
    pub(super) fn park_if_idle(&self, patience: Duration) -> bool {
        let mut state = self.state();
        let is_abandoned = |since: Instant| since.elapsed() >= ANSWER_KEPT;
        state.requests.retain(|_, stream| !stream.answered().is_some_and(is_abandoned));
        let is_idle = state.waiting.is_empty() && state.last_used.elapsed() >= patience;
        let is_parked = is_idle && state.hello.is_some() && state.is_ready();
        if is_parked {
            state.service = None;
            state.closing += 1;
            // What stood in for many requests at once is of no use to an idle session.
            state.requests.shrink_to_fit();
            state.waiting.shrink_to_fit();
        }
        is_parked
    }

    /// Whether its client seems to be gone: it has no stream and asked nothing for a long time, or
    /// never introduced itself.
    pub(super) fn is_abandoned(&self) -> bool {
        let state = self.state();
        let patience = if state.hello.is_some() { SESSION_IDLE } else { HANDSHAKE };
        state.waiting.is_empty() && !state.common.is_read() && state.last_used.elapsed() >= patience
    }

    /// Whether its service takes requests; it then does for a while.
    pub(super) fn touch(&self) -> bool {
        let mut state = self.state();
        state.last_used = Instant::now();
        state.is_ready()
    }

    pub(super) fn hello(&self) -> Option<InitializeRequestParams> {
        self.state().hello.as_deref().cloned()
    }

    pub(super) fn remember(&self, hello: InitializeRequestParams) {
        self.state().hello = Some(Box::new(hello));
    }

    /// Hands the handshake over and waits for its answer.
    ///
    /// # Errors
    /// When the service ended.
    pub(super) async fn initialize(
        &self,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        let (handshake, answer) = oneshot::channel();
        if let Some(service) = &mut self.state().service {
            service.handshake = Some(handshake);
        }
        self.hand_over(message).await?;
        let answer = answer.await.map_err(|_| SessionError::Ended)?;
        let mut state = self.state();
        // One that is begun anew is ready when it was told that the client is.
        let is_new = state.hello.is_none();
        if let Some(service) = &mut state.service {
            service.is_ready = is_new;
        }
        Ok(answer)
    }

    /// Hands over a notification or an answer.
    ///
    /// # Errors
    /// When the service ended.
    pub(super) async fn accept(&self, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        let mut begins = false;
        if let JsonRpcMessage::Notification(sent) = &message {
            match &sent.notification {
                ClientNotification::InitializedNotification(_) => begins = true,
                ClientNotification::CancelledNotification(cancelled) => {
                    let mut state = self.state();
                    let id = cancelled.params.request_id.as_ref();
                    let number = id.and_then(|id| state.waiting.remove(id));
                    // Nothing follows on the stream of a request that its client gave up.
                    number.and_then(|number| state.requests.remove(&number));
                }
                _ => {}
            }
        }
        self.hand_over(message).await?;
        if begins && let Some(service) = &mut self.state().service {
            service.is_ready = true;
        }
        Ok(())
    }

    /// Hands a request over; what its client reads of it. One more than there may be is answered
    /// with an error.
    ///
    /// # Errors
    /// When the service ended.
    pub(super) async fn request(
        &self,
        message: ClientJsonRpcMessage,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, SessionError> {
        let reader = {
            let mut state = self.state();
            let number = state.next_stream;
            state.next_stream += 1;
            let (mut stream, reader) = EventStream::of_request(number);
            if let (true, JsonRpcMessage::Request(request)) =
                (state.waiting.len() >= MAX_UNANSWERED, &message)
            {
                let words =
                    format!("{MAX_UNANSWERED} requests of this session are without an answer");
                let error = ErrorData::internal_error(words, None);
                let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                if let (event, Some(client)) = stream.push(Arc::new(answer), &self.answers) {
                    // The queue has room for it.
                    let _queued = client.try_send(event);
                }
                return Ok(reader);
            }
            state.requests.insert(number, stream);
            if let JsonRpcMessage::Request(request) = &message {
                // The stream of an unanswered request with the same id ends.
                let before = state.waiting.insert(request.id.clone(), number);
                before.and_then(|before| state.requests.remove(&before));
            }
            reader
        };
        self.hand_over(message).await?;
        Ok(reader)
    }

    async fn hand_over(&self, mut message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        if matches!(message, JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_)) {
            message.insert_extension(Arc::clone(&self.client));
        }
        let incoming = {
            let mut state = self.state();
            state.last_used = Instant::now();
            state.service.as_ref().map(|service| service.incoming.clone())
        };
        let incoming = incoming.ok_or(SessionError::Ended)?;
        incoming.send(Box::new(message)).await.map_err(|_| SessionError::Ended)
    }

    /// The stream that belongs to no request.
    pub(super) fn listen(&self) -> mpsc::Receiver<ServerSseMessage> {
        let mut state = self.state();
        state.last_used = Instant::now();
        match state.read_common(None) {
            Ok(reader) => reader,
            // Not with an event that is named.
            Err(_unknown) => mpsc::channel(1).1,
        }
    }

    /// Goes on with a stream after an event.
    ///
    /// # Errors
    /// An event that the client was not sent.
    pub(super) fn resume(
        &self,
        event: &str,
    ) -> Result<mpsc::Receiver<ServerSseMessage>, SessionError> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| SessionError::UnknownEvent);
        let mut state = self.state();
        state.last_used = Instant::now();
        if let Some((index, stream)) = event.split_once('/') {
            let stream = state.requests.get_mut(&number(stream)?);
            return stream.ok_or(SessionError::UnknownEvent)?.resume(Some(number(index)?));
        }
        let last = number(event)?;
        state.read_common(Some(last))
    }

    /// Tells the client something that belongs to no request. A client that does not read misses it.
    pub(super) fn notify(&self, message: &Arc<ServerJsonRpcMessage>) {
        let mut state = self.state();
        if state.hello.is_none() {
            return;
        }
        if let (event, Some(client)) = state.common.push(Arc::clone(message), &self.answers) {
            let _slow_client = client.try_send(event);
        }
    }

    /// Sends what the service says to the stream that it belongs to.
    async fn deliver(&self, message: ServerJsonRpcMessage) {
        let _in_order = self.sending.lock().await;
        let (event, client) = {
            let mut state = self.state();
            if let Some(handshake) = state.service.as_mut().and_then(|all| all.handshake.take()) {
                // Who asked may be gone.
                let _gone = handshake.send(message);
                return;
            }
            let (of_request, is_answer) = match &message {
                JsonRpcMessage::Response(response) => (Some(response.id.clone()), true),
                JsonRpcMessage::Error(error) => (error.id.clone(), true),
                JsonRpcMessage::Request(request) => (origin(&request.request), false),
                JsonRpcMessage::Notification(sent) => (origin(&sent.notification), false),
            };
            let number = of_request.as_ref().and_then(|id| state.waiting.get(id).copied());
            if is_answer && let Some(id) = &of_request {
                state.waiting.remove(id);
                state.last_used = Instant::now();
            }
            match number.and_then(|number| Some((number, state.requests.get_mut(&number)?))) {
                Some((number, stream)) => {
                    let pushed = stream.push(Arc::new(message), &self.answers);
                    if is_answer && stream.finish(of_request.as_ref()) {
                        state.requests.remove(&number);
                    } else if is_answer {
                        state.forget_oldest_answer();
                    }
                    pushed
                }
                // The answer to a request that its client gave up.
                None if is_answer => return,
                None => state.common.push(Arc::new(message), &self.answers),
            }
        };
        if let Some(client) = client {
            let _client_gone = client.send(event).await;
        }
    }
}

impl SessionContents {
    /// Another reader of the stream that belongs to no request.
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

    /// Makes room for the answer that was kept last, where too many are.
    fn forget_oldest_answer(&mut self) {
        let answered = |(number, stream): (&u64, &EventStream)| Some((stream.answered()?, *number));
        if self.requests.values().filter_map(EventStream::answered).count() > MAX_KEPT_ANSWERS
            && let Some((_, oldest)) = self.requests.iter().filter_map(answered).min()
        {
            self.requests.remove(&oldest);
        }
    }

    fn is_ready(&self) -> bool {
        self.service.as_ref().is_some_and(|service| service.is_ready)
    }
}

/// The request that a message belongs to.
fn origin(message: &impl GetExtensions) -> Option<RequestId> {
    message.extensions().get::<OriginatingRequestId>().map(|origin| origin.0.clone())
}

impl Transport<RoleServer> for ServedSessionTransport {
    type Error = SessionError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + 'static {
        let session = Arc::clone(&self.session);
        async move {
            session.deliver(message).await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.incoming.recv().await.map(|message| *message)
    }

    async fn close(&mut self) -> Result<(), SessionError> {
        Ok(())
    }
}
