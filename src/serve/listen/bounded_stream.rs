//! A stream whose client must keep reading, and of which a large message is read only while there is
//! room for it.
//!
//! How far a client may run ahead of its responses.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ConstString as _, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    SubscriptionsListenRequestMethod,
};
use rmcp::service::RxJsonRpcMessage;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Sleep;

use super::MAX_MESSAGE;
use crate::serve::shared_room::{LARGE, MessageRoom, TakenRoom};
use crate::util::lock::lock;

/// The time between two looks for room.
const PAUSE: Duration = Duration::from_millis(50);

/// Fails every write once a client has taken nothing for a time.
pub(super) struct BoundedStream<T> {
    io: T,
    patience: Duration,
    blocked: Option<Pin<Box<Sleep>>>,
    reading: ReadingMessage,
    /// Set while there is no room.
    paused: Option<Pin<Box<Sleep>>>,
}

/// What is read of the present message. Only one that is `within` a room waits for it.
#[derive(Clone, Default)]
pub(super) struct ReadingMessage(Arc<Mutex<MessageState>>);

#[derive(Default)]
struct MessageState {
    room: Option<MessageRoom>,
    bytes: usize,
    taken: Option<TakenRoom>,
}

impl ReadingMessage {
    pub(super) fn within(&self, room: MessageRoom) {
        lock(&self.0).room = Some(room);
    }

    pub(super) fn complete(&self) {
        let mut state = lock(&self.0);
        (state.bytes, state.taken) = (0, None);
    }

    fn has_room(&self) -> bool {
        let state = &mut *lock(&self.0);
        let Some(room) = state.room.as_ref().filter(|_| state.bytes > LARGE) else { return true };
        if state.taken.is_none() {
            state.taken = room.try_bytes(MAX_MESSAGE);
        }
        state.taken.is_some()
    }
}

impl<T> BoundedStream<T> {
    /// A stream whose client may take nothing for as long as `patience`.
    pub(super) fn new(io: T, patience: Duration) -> Self {
        Self { io, patience, blocked: None, reading: ReadingMessage::default(), paused: None }
    }

    pub(super) fn reading(&self) -> ReadingMessage {
        self.reading.clone()
    }

    fn bound<R>(
        &mut self,
        written: Poll<io::Result<R>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.blocked = None;
            return written;
        }
        let patience = self.patience;
        let timer = self.blocked.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        // It stays elapsed: there is no second wait for a client that timed out.
        timer.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for BoundedStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.bound(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        self.bound(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.io).poll_shutdown(context);
        self.bound(ended, context)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for BoundedStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.reading.has_room() {
            let timer = self.paused.get_or_insert_with(|| Box::pin(tokio::time::sleep(PAUSE)));
            ready!(timer.as_mut().poll(context));
            self.paused = None;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        lock(&self.reading.0).bytes += buffer.filled().len() - before;
        read
    }
}

/// How many requests of one client may be without an answer; calls have a bound of their own below.
pub(super) const MAX_UNANSWERED: usize = 320;
/// How many messages wait for a client to read before nothing more is read of it.
const MAX_UNSENT: usize = 16;

/// What one client is still to be sent.
#[derive(Default)]
pub(super) struct Backlog {
    state: Mutex<BacklogState>,
    sent: Notify,
}

#[derive(Default)]
struct BacklogState {
    /// Each, and whether it is answered soon: a subscription is when it ends.
    unanswered: HashMap<RequestId, bool>,
    unsent: usize,
}

/// A message that waits until the client reads. Dropped when it was sent, or will not be.
pub(super) struct UnsentMessage {
    backlog: Arc<Backlog>,
    answers: Option<RequestId>,
}

impl Backlog {
    /// Waits until the client has read enough for something more to be read of it.
    pub(super) async fn room(&self) {
        loop {
            let sent = self.sent.notified();
            if lock(&self.state).unsent < MAX_UNSENT {
                return;
            }
            sent.await;
        }
    }

    /// Waits until everything that was asked is answered, and read.
    pub(super) async fn answered(&self) {
        loop {
            let sent = self.sent.notified();
            let is_answered = {
                let state = lock(&self.state);
                state.unsent == 0 && !state.unanswered.values().any(|is_soon| *is_soon)
            };
            if is_answered {
                return;
            }
            sent.await;
        }
    }

    /// Counts a message that was read; `false` for a request more than there may be.
    pub(super) fn admit(&self, message: &RxJsonRpcMessage<RoleServer>) -> bool {
        let mut state = lock(&self.state);
        match message {
            JsonRpcMessage::Request(request) => {
                let has_room = state.unanswered.len() < MAX_UNANSWERED;
                has_room && {
                    let is_soon =
                        request.request.method() != SubscriptionsListenRequestMethod::VALUE;
                    state.unanswered.insert(request.id.clone(), is_soon);
                    true
                }
            }
            // What its client gave up is not answered.
            JsonRpcMessage::Notification(sent) => {
                if let ClientNotification::CancelledNotification(cancelled) = &sent.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    state.unanswered.remove(id);
                }
                true
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => true,
        }
    }

    pub(super) fn add(self: &Arc<Self>, message: &ServerJsonRpcMessage) -> UnsentMessage {
        self.add_answer(match message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        })
    }

    pub(super) fn add_answer(self: &Arc<Self>, answers: Option<RequestId>) -> UnsentMessage {
        lock(&self.state).unsent += 1;
        UnsentMessage { backlog: Arc::clone(self), answers }
    }
}

impl Drop for UnsentMessage {
    fn drop(&mut self) {
        let mut state = lock(&self.backlog.state);
        state.unsent -= 1;
        if let Some(id) = &self.answers {
            state.unanswered.remove(id);
        }
        drop(state);
        self.backlog.sent.notify_waiters();
    }
}
