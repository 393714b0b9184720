//! The sockets of background hosts: where they are, which hosts listen, and how a front end answers
//! requests of a host.

pub mod connected_tools;
pub mod start;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::assembly::runtime_directory::{self, RuntimeDirectory};
use crate::config::environment::Environment;
use crate::host::policy::NoApprover;
use crate::model::{EventSink, NoQuestionHandler};
use crate::serve::background::client::{AttachedFrontEnd, HostClient};
use crate::serve::background::protocol::HostStatus;

/// Time limit for the status of a host; on a busy machine it takes seconds.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for a host to stop, including its running calls and servers.
pub const END_TIMEOUT: Duration = Duration::from_secs(15);

pub struct RunningHost {
    pub client: HostClient,
    /// Its status; `None` for another version, or one that does not respond.
    pub status: Option<HostStatus>,
    /// The name of its socket without the extension.
    pub identity: String,
}

pub fn unattended() -> AttachedFrontEnd {
    AttachedFrontEnd {
        approver: Arc::new(NoApprover),
        inbox: Arc::new(NoQuestionHandler),
        events: EventSink::discard(),
    }
}

pub async fn is_listening(socket: &Path) -> bool {
    HostClient::connect(socket, "toolhost", unattended()).await.is_some()
}

pub async fn running_hosts(environment: &dyn Environment) -> Vec<RunningHost> {
    let Some(directory) = RuntimeDirectory::of(environment) else { return Vec::new() };
    let hosts = directory.sockets().into_iter().map(|socket| async move {
        let client = HostClient::connect(&socket, "toolhost ps", unattended()).await?;
        let status = tokio::time::timeout(STATUS_TIMEOUT, client.status()).await;
        let status = status.ok().and_then(Result::ok);
        let identity = socket.file_stem()?.to_str()?.to_owned();
        Some(RunningHost { client, status, identity })
    });
    let mut hosts: Vec<RunningHost> = join_all(hosts).await.into_iter().flatten().collect();
    hosts.sort_unstable_by(|a, b| {
        let directory = |host: &RunningHost| host.status.as_ref().map(|s| s.directory.clone());
        directory(a).cmp(&directory(b))
    });
    hosts
}

/// Asks again for the status of a host that did not respond before.
pub async fn ask_again(host: &RunningHost) -> Option<HostStatus> {
    host.client.forget_silence();
    tokio::time::timeout(STATUS_TIMEOUT, host.client.status()).await.ok()?.ok()
}

/// Makes all hosts check whether they still match what was trusted. One that does not has stopped,
/// with its servers, when this returns.
pub async fn recheck_hosts(environment: &dyn Environment) {
    let Some(directory) = &RuntimeDirectory::of(environment) else { return };
    let hosts = directory.sockets().into_iter().map(|socket| async move {
        let client = HostClient::connect(&socket, "toolhost trust", unattended()).await?;
        // One that does not respond checks by itself before its next call.
        let lives_on = tokio::time::timeout(STATUS_TIMEOUT, client.recheck()).await.ok()?;
        if !lives_on.unwrap_or(false) {
            let _late = wait_for_end(directory, socket.file_stem()?.to_str()?).await;
        }
        Some(())
    });
    let _told = join_all(hosts).await;
}

/// Waits until the host with this identity and everything it started has ended; returns whether it
/// has. A host holds its lock for its lifetime.
pub async fn wait_for_end(directory: &RuntimeDirectory, identity: &str) -> io::Result<bool> {
    let lock = directory.host_lock(identity);
    Ok(runtime_directory::lock_within(&lock, END_TIMEOUT).await?.is_some())
}
