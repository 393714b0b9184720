//! What a background host knows about its servers, for completion.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::unattended;
use crate::host::ToolHost;
use crate::host::request::ListScope;
use crate::model::{ServerState, ToolDefinition};
use crate::serve::background::client::HostClient;

/// Time limit for the background host's response; a person is waiting.
const HOST_TIMEOUT: Duration = Duration::from_millis(500);

/// The tools of the servers connected to the background host behind a socket; none without a host,
/// or if it is too slow for completion.
pub async fn connected_tools(socket: Option<PathBuf>) -> Vec<Arc<ToolDefinition>> {
    let Some(socket) = socket else { return Vec::new() };
    let asking = async {
        let host = ToolHost::builder().build();
        let client = HostClient::connect(&socket, "completion", unattended()).await?;
        host.attach(Arc::new(client));
        let servers = host.server_statuses().await.into_iter();
        let ready = servers.filter(|server| matches!(server.state, ServerState::Ready));
        let ready: Vec<String> = ready.map(|server| server.name).collect();
        if ready.is_empty() {
            return None;
        }
        Some(host.catalogue(&ListScope::Servers(ready)).await.tools)
    };
    let answer = tokio::time::timeout(HOST_TIMEOUT, asking).await;
    answer.ok().flatten().unwrap_or_default()
}
