//! Detecting the end of stdin while calls are still running.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// A reader that fires a token at the end of its input.
pub(super) struct EofReader<R> {
    pub(super) input: R,
    pub(super) ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EofReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.input).poll_read(context, buffer);
        let nothing = buffer.remaining() > 0 && buffer.filled().len() == before;
        if matches!(&polled, Poll::Ready(result) if result.is_err() || nothing) {
            self.ended.cancel();
        }
        polled
    }
}
