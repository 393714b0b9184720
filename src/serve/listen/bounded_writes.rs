//! A stream whose client must keep reading.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Fails every write once a client has taken nothing for a time.
pub(super) struct BoundedWrites<T> {
    io: T,
    patience: Duration,
    blocked: Option<Pin<Box<Sleep>>>,
}

impl<T> BoundedWrites<T> {
    /// A stream whose client may take nothing for as long as `patience`.
    pub(super) fn new(io: T, patience: Duration) -> Self {
        Self { io, patience, blocked: None }
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

impl<T: AsyncWrite + Unpin> AsyncWrite for BoundedWrites<T> {
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

impl<T: AsyncRead + Unpin> AsyncRead for BoundedWrites<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}
