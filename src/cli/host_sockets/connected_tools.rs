//! What a background host knows of its servers, for a completion.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::unattended;
use crate::host::ToolHost;
use crate::host::request::ListScope;
use crate::model::{ServerState, ToolDefinition};
use crate::serve::background::client::HostClient;

/// How long a background host may take to tell what it knows; a person waits for it.
const HOST_TIMEOUT: Duration = Duration::from_millis(500);

/// The tools of the servers that the background host behind a socket has connected; none without such a
/// host, and when it is too slow for a completion.
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
    let asked = tokio::time::timeout(HOST_TIMEOUT, asking).await;
    asked.ok().flatten().unwrap_or_default()
}
