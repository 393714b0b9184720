//! One client on standard input and output.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::stream::serve_stream;
use crate::model::Error;
use crate::serve::catalogue_server::{CatalogueServer, ServedIdentity};

/// Serves the client that started this process, until it closes standard input or `stop` fires.
pub async fn serve(
    server: &Arc<CatalogueServer>,
    is_alone: bool,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let (input, output) = rmcp::transport::stdio_pipes();
    // Behind a background host there may be several such clients.
    let session = format!("stdio-{}", Uuid::new_v4().simple());
    let identity = ServedIdentity { session, is_alone };
    serve_stream(server, identity, input, output, stop).await
}
