//! A request body that reports when it is sent, so that a retry is known to be safe.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// Hears that a request is on its way: a connection stands, and the request's head was written.
pub type DepartureListener = Box<dyn FnOnce() + Send + Sync>;

/// The body of a request, or its absence.
#[derive(Default)]
pub struct PostedBody {
    bytes: Option<Bytes>,
    listener: Option<DepartureListener>,
}

impl PostedBody {
    pub fn new(bytes: Bytes, listener: Option<DepartureListener>) -> Self {
        Self { bytes: Some(bytes), listener }
    }
}

impl Body for PostedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(listener) = self.listener.take() {
            listener();
        }
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
