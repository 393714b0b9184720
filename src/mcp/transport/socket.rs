//! A transport over one connection that carries whole messages: lines on a Unix socket, and
//! WebSocket frames, which `web_socket` opens.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Mutex as StdMutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, Sink, SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::{Mutex, OnceCell};
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};
use tokio_util::sync::CancellationToken;

use crate::mcp::message::Incoming;
use crate::mcp::tracer::Tracer;
use crate::mcp::wire::{Arrival, MESSAGE_LIMIT, OutgoingFrame, Wire};
use crate::model::Error;
use crate::net::errors;

/// How long a write may wait for a server that reads nothing.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

type MessageSink = Pin<Box<dyn Sink<Bytes, Error = Error> + Send>>;

pub(super) struct Channel {
    pub(super) sink: MessageSink,
    pub(super) messages: BoxStream<'static, Result<Bytes, Error>>,
}

/// Opens the connection; asked once.
pub(super) type ChannelOpener =
    Box<dyn Fn() -> BoxFuture<'static, Result<Channel, Error>> + Send + Sync>;

/// The wire to a server behind one connection, which is opened with the first message.
pub struct SocketWire {
    open: ChannelOpener,
    channel: OnceCell<Result<OpenChannel, Error>>,
    close_reason: StdMutex<Option<Error>>,
    closing: CancellationToken,
    delimits_messages: bool,
    tracer: Tracer,
    /// What is to be known before the first message, until it was received.
    warning: StdMutex<Option<String>>,
}

struct OpenChannel {
    /// `None` once it failed: such a one must not be used again.
    sink: Mutex<Option<MessageSink>>,
    messages: Mutex<BoxStream<'static, Result<Bytes, Error>>>,
}

impl SocketWire {
    pub(super) fn new(open: ChannelOpener, delimits_messages: bool, tracer: Tracer) -> Self {
        Self {
            open,
            channel: OnceCell::new(),
            close_reason: StdMutex::default(),
            closing: CancellationToken::new(),
            delimits_messages,
            tracer,
            warning: StdMutex::default(),
        }
    }

    /// The same wire, whose first arrival is `warning`, if there is one.
    pub(super) fn warning(mut self, warning: Option<String>) -> Self {
        self.warning = StdMutex::new(warning);
        self
    }

    pub fn lines(socket: PathBuf, tracer: Tracer) -> Self {
        let open = move || {
            let socket = socket.clone();
            async move {
                let stream = UnixStream::connect(&socket)
                    .await
                    .map_err(|error| errors::no_connection_over(&error, &socket))?;
                Ok(lines_over(stream, MESSAGE_LIMIT))
            }
            .boxed()
        };
        Self::new(Box::new(open), false, tracer)
    }

    /// Lines of at most `limit` bytes over a connection that is open.
    pub fn over(stream: UnixStream, limit: usize, tracer: Tracer) -> Self {
        let stream = StdMutex::new(Some(stream));
        let open = move || {
            let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
            let channel = stream.map(|stream| lines_over(stream, limit)).ok_or_else(closed_here);
            std::future::ready(channel).boxed()
        };
        Self::new(Box::new(open), false, tracer)
    }

    async fn channel(&self) -> Result<&OpenChannel, Error> {
        let open = async {
            let Channel { sink, messages } = (self.open)().await?;
            Ok(OpenChannel { sink: Mutex::new(Some(sink)), messages: Mutex::new(messages) })
        };
        self.channel.get_or_init(|| open).await.as_ref().map_err(Clone::clone)
    }

    /// Ends the receiving; the first reason stays.
    fn closed(&self, error: Error) -> Arrival {
        let mut reason = self.close_reason.lock().unwrap_or_else(PoisonError::into_inner);
        if reason.is_none() {
            self.tracer.closed(error.message());
        }
        Arrival::Closed(reason.get_or_insert(error).clone())
    }
}

#[async_trait]
impl Wire for SocketWire {
    async fn send(&self, frame: OutgoingFrame) -> Result<(), Error> {
        let write = async {
            let channel = self.channel().await?;
            let mut slot = channel.sink.lock().await;
            let sink = slot.as_mut().ok_or_else(closed_here)?;
            // Before it is written: its answer may be here before the write returns.
            self.tracer.sent(&frame);
            let written = tokio::time::timeout(WRITE_TIMEOUT, sink.send(frame.bytes)).await;
            let written = written.unwrap_or_else(|_| {
                let limit = WRITE_TIMEOUT.as_secs();
                Err(Error::timeout(format!("it read nothing of what it was sent for {limit} s")))
            });
            if written.is_err() {
                *slot = None;
            }
            written
        };
        tokio::select! {
            biased;
            result = write => result,
            () = self.closing.cancelled() => Err(closed_here()),
        }
    }

    async fn receive(&self) -> Arrival {
        let warning = self.warning.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(warning) = warning {
            return Arrival::Warning(warning);
        }
        let next = async {
            let channel = self.channel().await?;
            let mut messages = channel.messages.lock().await;
            let ended = || Err(Error::unreachable("the server closed the connection"));
            messages.next().await.unwrap_or_else(ended)
        };
        let next = self.closing.run_until_cancelled(next).await;
        match next.unwrap_or_else(|| Err(closed_here())) {
            Ok(bytes) => {
                let incoming = Incoming::read(bytes);
                self.tracer.received(&incoming, None);
                Arrival::Message { incoming, stream_of: None }
            }
            Err(error) => self.closed(error),
        }
    }

    fn delimits_messages(&self) -> bool {
        self.delimits_messages
    }

    fn waiting_for(&self, _id: &Value) -> Option<String> {
        (!self.channel.initialized()).then(|| "the connection".to_owned())
    }

    async fn close(&self) {
        self.closing.cancel();
        if let Some(Ok(channel)) = self.channel.get() {
            let close = async {
                match &mut *channel.sink.lock().await {
                    Some(sink) => sink.close().await,
                    None => Ok(()),
                }
            };
            let _slow_server = tokio::time::timeout(CLOSE_TIMEOUT, close).await;
        }
        self.closed(Error::unreachable("ended by toolhost"));
    }
}

fn lines_over(stream: UnixStream, limit: usize) -> Channel {
    let (sink, lines) = Framed::new(stream, LinesCodec::new_with_max_length(limit)).split();
    let sink =
        sink.sink_map_err(move |error| line_error(error, limit)).with(async |bytes: Bytes| {
            String::from_utf8(bytes.into()).map_err(|error| Error::internal(error.to_string()))
        });
    let messages =
        lines.map(move |line| line.map(Bytes::from).map_err(|error| line_error(error, limit)));
    Channel { sink: Box::pin(sink), messages: messages.boxed() }
}

fn closed_here() -> Error {
    Error::unreachable("the connection is closed")
}

pub(super) fn too_large(limit: usize) -> Error {
    Error::protocol(format!("limit: a message is larger than {} MiB", limit >> 20))
}

fn line_error(error: LinesCodecError, limit: usize) -> Error {
    match error {
        LinesCodecError::MaxLineLengthExceeded => too_large(limit),
        LinesCodecError::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Error::protocol("it sent a line that is not UTF-8")
        }
        LinesCodecError::Io(error) => Error::unreachable(errors::io_text(&error)),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_message_that_is_too_large_names_the_limit_of_its_connection() {
        let limit = 2 << 20;
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let wire = SocketWire::over(ours, limit, Tracer::off());
        tokio::spawn(async move { theirs.write_all(&vec![b'x'; limit + 1]).await });
        let arrival = wire.receive().await;
        let Arrival::Closed(error) = arrival else { panic!("{arrival:?}") };
        assert_eq!(error.message(), "limit: a message is larger than 2 MiB");
    }
}
