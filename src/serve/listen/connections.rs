//! One connection, from its first message to its last.

use rmcp::service::ServerInitializeError;
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt as _};

use crate::model::Error;
use crate::serve::catalogue_server::ServedClient;

/// Serves one client until it leaves or the server ends.
///
/// # Errors
/// When the client does not open with something MCP allows.
pub(super) async fn serve<T>(client: ServedClient, transport: T) -> Result<(), Error>
where
    T: Transport<RoleServer> + 'static,
{
    let gone = client.gone();
    let running = match client.serve_with_ct(transport, gone).await {
        Ok(running) => running,
        // A client that leaves before its first word, or after a probe, is no failure.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => return Err(Error::protocol(format!("the client did not begin: {error}"))),
    };
    match running.waiting().await {
        Ok(_) => Ok(()),
        Err(failed) => Err(Error::internal(format!("a connection ended badly: {failed}"))),
    }
}
