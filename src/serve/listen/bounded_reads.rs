//! A stream of which a large message is read only while there is room for it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::MAX_MESSAGE;
use crate::serve::shared_room::{LARGE, MessageRoom, TakenRoom};

const PAUSE: Duration = Duration::from_millis(50);

pub(super) struct BoundedReads<T> {
    io: T,
    reading: ReadingMessage,
    /// Set while there is no room.
    paused: Option<Pin<Box<Sleep>>>,
}

#[derive(Clone, Default)]
pub(super) struct ReadingMessage(Arc<Mutex<MessageState>>);

#[derive(Default)]
struct MessageState {
    room: Option<MessageRoom>,
    bytes: usize,
    taken: Option<TakenRoom>,
}

impl ReadingMessage {
    fn state(&self) -> MutexGuard<'_, MessageState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn within(&self, room: MessageRoom) {
        self.state().room = Some(room);
    }

    pub(super) fn complete(&self) {
        let mut state = self.state();
        (state.bytes, state.taken) = (0, None);
    }
}

impl<T> BoundedReads<T> {
    pub(super) fn new(io: T) -> Self {
        Self { io, reading: ReadingMessage::default(), paused: None }
    }

    pub(super) fn reading(&self) -> ReadingMessage {
        self.reading.clone()
    }

    fn has_room(&self) -> bool {
        let mut guard = self.reading.state();
        let state = &mut *guard;
        if state.bytes <= LARGE || state.taken.is_some() {
            return true;
        }
        let Some(room) = &state.room else { return true };
        state.taken = room.try_bytes(MAX_MESSAGE);
        state.taken.is_some()
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for BoundedReads<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.has_room() {
            let timer = self.paused.get_or_insert_with(|| Box::pin(tokio::time::sleep(PAUSE)));
            std::task::ready!(timer.as_mut().poll(context));
            self.paused = None;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        self.reading.state().bytes += buffer.filled().len() - before;
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for BoundedReads<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
