//! The sockets of background hosts: where they lie, which hosts listen, and how a front end answers
//! what comes from one.

pub mod connected_tools;
pub mod locator;
pub mod remembered_host;
pub mod runtime_directory;
pub mod start;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::assembly::FrontEnd;
use crate::audit::Masker;
use crate::config::environment::Environment;
use crate::host::approval::NoApprover;
use crate::host::questions::QuestionQueue;
use crate::model::{EventSink, NoQuestionHandler};
use crate::serve::background::client::{AttachedFrontEnd, HostClient};
use crate::serve::background::protocol::HostStatus;
use runtime_directory::RuntimeDirectory;

/// How long a host may take to say what it is; on a busy machine that is seconds.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a host may take to end, its running calls and its servers included.
pub const END_TIMEOUT: Duration = Duration::from_secs(15);

/// A host that runs.
pub struct RunningHost {
    /// The connection to it.
    pub client: HostClient,
    /// What it says of itself; `None` for one of another version, or one that does not answer.
    pub status: Option<HostStatus>,
    /// The name of its socket without the ending.
    pub identity: String,
}

/// The way in which a front end answers what comes from a host.
pub fn attached_front_end(front_end: &FrontEnd, masker: &Masker) -> AttachedFrontEnd {
    // One person is asked one thing at a time here, too.
    let inbox = QuestionQueue::new(Arc::clone(&front_end.inbox), masker.clone());
    AttachedFrontEnd {
        approver: Arc::clone(&front_end.approver),
        inbox: Arc::new(inbox),
        events: masker.events(front_end.events.clone()),
    }
}

/// A front end without a person.
pub fn unattended() -> AttachedFrontEnd {
    AttachedFrontEnd {
        approver: Arc::new(NoApprover),
        inbox: Arc::new(NoQuestionHandler),
        events: EventSink::discard(),
    }
}

/// Whether a host of this user listens there.
pub async fn is_listening(socket: &Path) -> bool {
    HostClient::connect(socket, "toolhost", unattended()).await.is_some()
}

/// All hosts of this user, by their directories.
pub async fn running_hosts(environment: &dyn Environment) -> Vec<RunningHost> {
    let Some(directory) = RuntimeDirectory::of(environment) else { return Vec::new() };
    let found = directory.sockets().into_iter().map(|socket| async move {
        let client = HostClient::connect(&socket, "toolhost ps", unattended()).await?;
        let status = tokio::time::timeout(STATUS_TIMEOUT, client.status()).await;
        let status = status.ok().and_then(Result::ok);
        let identity = socket.file_stem()?.to_str()?.to_owned();
        Some(RunningHost { client, status, identity })
    });
    let mut hosts: Vec<RunningHost> = join_all(found).await.into_iter().flatten().collect();
    hosts.sort_by(|a, b| {
        let directory = |host: &RunningHost| host.status.as_ref().map(|s| s.directory.clone());
        directory(a).cmp(&directory(b))
    });
    hosts
}

/// What a host says of itself that did not answer before and may do so now.
pub async fn ask_again(host: &RunningHost) -> Option<HostStatus> {
    host.client.forget_silence();
    tokio::time::timeout(STATUS_TIMEOUT, host.client.status()).await.ok()?.ok()
}

/// Lets all hosts look whether they are still what was trusted. One that is not has ended, with its
/// servers, when this returns.
pub async fn recheck_hosts(environment: &dyn Environment) {
    let Some(directory) = &RuntimeDirectory::of(environment) else { return };
    let told = directory.sockets().into_iter().map(|socket| async move {
        let client = HostClient::connect(&socket, "toolhost trust", unattended()).await?;
        // One that does not answer looks for itself before its next call.
        let lives_on = tokio::time::timeout(STATUS_TIMEOUT, client.recheck()).await.ok()?;
        if !lives_on.unwrap_or(false) {
            let _late = wait_for_end(directory, socket.file_stem()?.to_str()?).await;
        }
        Some(())
    });
    let _told = join_all(told).await;
}

/// Waits until the host with this identity has ended, with all that it started; whether it has. A
/// host holds its lock as long as it lives.
///
/// # Errors
/// When the lock cannot be used.
pub async fn wait_for_end(directory: &RuntimeDirectory, identity: &str) -> io::Result<bool> {
    let lock = directory.host_lock(identity);
    Ok(runtime_directory::lock_within(&lock, END_TIMEOUT).await?.is_some())
}
