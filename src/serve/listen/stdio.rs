//! One client on standard input and output.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::connections;
use super::line_stream::{LineSink, LineSource};
use super::text_transport::TextTransport;
use crate::model::Error;
use crate::serve::catalogue_server::{CatalogueServer, ServedIdentity};

/// Serves the client that started this process, until it closes standard input or `stop` fires.
///
/// # Errors
/// When the client does not open with something MCP allows.
pub async fn serve(
    server: &Arc<CatalogueServer>,
    is_alone: bool,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let client = server.connect(ServedIdentity { session: "stdio".to_owned(), is_alone });
    let gone = client.gone();
    let transport = TextTransport::new(LineSource::new(input), LineSink(output), gone);
    connections::serve(client, transport, stop).await
}
