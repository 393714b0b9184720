//! One client on a pair of streams: one message per line.

use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::text_transport::{TextError, TextSink, TextTransport};
use super::{MAX_MESSAGE, accept};
use crate::model::Error;
use crate::serve::catalogue_server::{CatalogueServer, ServedIdentity};
use crate::serve::shared_room::MessageRoom;

/// Less than what a client waits before it ends a server that does not end.
const PARTING: Duration = Duration::from_secs(1);

/// Serves the client that started this process, until it closes standard input or `stop` fires.
pub async fn serve_stdio(
    server: &Arc<CatalogueServer>,
    is_alone: bool,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let (input, output) = rmcp::transport::stdio_pipes();
    // Behind a background host there may be several such clients.
    let session = format!("stdio-{}", Uuid::new_v4().simple());
    let client = server.connect(ServedIdentity { session, is_alone });
    // A pipe ends with the last request that was written into it.
    let transport =
        lines(input, output, server.messages.clone(), client.gone.clone()).with_parting(PARTING);
    Box::pin(accept::serve(client, transport, stop)).await
}

/// Serves the client at the other end of a pair of streams, until it closes them or `stop` fires and
/// its calls have ended.
pub async fn serve_stream<R, W>(
    server: &Arc<CatalogueServer>,
    identity: ServedIdentity,
    input: R,
    output: W,
    stop: &CancellationToken,
) -> Result<(), Error>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let client = server.connect(identity);
    let transport = lines(input, output, server.messages.clone(), client.gone.clone());
    Box::pin(accept::serve(client, transport, stop)).await
}

/// A connection of one message per line, which takes `room` and fires `gone` when its client leaves.
pub(in crate::serve) fn lines<R, W>(
    input: R,
    output: W,
    room: MessageRoom,
    gone: CancellationToken,
) -> TextTransport
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let lines = FramedRead::new(input, LinesCodec::new_with_max_length(MAX_MESSAGE));
    let texts = lines.filter_map(|line| {
        ready(match line {
            Ok(line) if line.trim().is_empty() => None,
            Ok(line) => Some(Ok(line)),
            Err(LinesCodecError::MaxLineLengthExceeded) => Some(Err(TextError::TooLong)),
            Err(LinesCodecError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Some(Err(TextError::NotText))
            }
            // Nothing follows: its client is gone.
            Err(LinesCodecError::Io(_)) => None,
        })
    });
    TextTransport::new(texts, LineSink(output), room, gone)
}

struct LineSink<W>(W);

#[async_trait]
impl<W: AsyncWrite + Send + Unpin> TextSink for LineSink<W> {
    async fn send(&mut self, mut text: String) -> io::Result<()> {
        text.push('\n');
        self.0.write_all(text.as_bytes()).await?;
        self.0.flush().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.0.shutdown().await
    }
}
