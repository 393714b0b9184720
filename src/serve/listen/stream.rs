//! One client on a pair of streams: one message per line.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::connections;
use super::line_stream::{LineSink, LineSource};
use super::text_transport::TextTransport;
use crate::model::Error;
use crate::serve::catalogue_server::{CatalogueServer, ServedIdentity};

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
    let (client, lines) = (server.connect(identity), LineSource::new(input));
    let transport = TextTransport::new(lines, LineSink(output), client.messages(), client.gone());
    Box::pin(connections::serve(client, transport, stop)).await
}
