//! The demo server: a small MCP server inside the binary.

mod eof;
mod handler;
mod notes;
mod prompts;
mod resources;
mod server;
#[cfg(test)]
mod tests;
mod tools;
mod uptime;

use rmcp::ServiceExt as _;
use rmcp::service::{QuitReason, ServerInitializeError};

use crate::model::Error;

use eof::EofReader;
pub use server::DemoServer;

/// Serves the demo set on stdin and stdout until stdin ends.
pub async fn run() -> Result<(), Error> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(input, output).await
}

/// Serves the demo set on any pair of streams until the input ends.
async fn serve<R, W>(input: R, output: W) -> Result<(), Error>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let server = DemoServer::default();
    let input = EofReader { input, ended: server.client_gone.clone() };
    let running = match server.serve((input, output)).await {
        Ok(running) => running,
        // A client that disconnects before its first message, or after a probe, is not a failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(Error::protocol(format!("the demo server stopped: {error}"))),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => {
            Err(Error::internal(format!("the demo server stopped: {error}")))
        }
        Ok(_) => Ok(()),
    }
}
