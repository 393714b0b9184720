//! Background hosts as a front end sees them: where their sockets are and which listen, starting one,
//! answering its requests, and what it knows about its servers.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::assembly::runtime_directory::{self, RuntimeDirectory};
use crate::config::environment::Environment;
use crate::host::ToolHost;
use crate::host::policy::NoApprover;
use crate::host::request::ListScope;
use crate::model::{Error, ErrorPhase, EventSink, NoQuestionHandler, ServerState, ToolDefinition};
use crate::serve::background::client::{AttachedFrontEnd, HostClient};
use crate::serve::background::protocol::HostStatus;
use crate::util::{orphans, private_file};

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

const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Number of last log lines shown if a host does not start.
const LOG_LINES: usize = 5;

pub struct StartedHost {
    pub status: HostStatus,
    pub is_new: bool,
}

/// Starts the host with this identity unless it is already running, with the `arguments` that
/// determine its configuration. Concurrent starts result in one host.
pub async fn start(
    arguments: &[OsString],
    environment: &dyn Environment,
    directory: &RuntimeDirectory,
    identity: &str,
    idle: Duration,
) -> Result<StartedHost, Error> {
    let lock = runtime_directory::lock_within(&directory.start_lock(identity), START_TIMEOUT).await;
    let _lock = lock
        .map_err(|error| Error::config(format!("cannot lock the host's start: {error}")))?
        .ok_or_else(|| Error::timeout("another process is still starting this host"))?;
    if let Some(status) = status_of(&directory.socket(identity)).await {
        return Ok(StartedHost { status, is_new: false });
    }
    let log = log_path(environment, identity);
    let mut child = spawn(arguments, environment, idle, log.as_deref())?;
    child.id().into_iter().for_each(orphans::leave_running);
    let output = child.stdout.take().map(BufReader::new);
    let mut line = String::new();
    let listening = async {
        match output {
            Some(mut output) => output.read_line(&mut line).await.is_ok_and(|read| read > 0),
            None => false,
        }
    };
    let is_up = tokio::time::timeout(START_TIMEOUT, listening).await.unwrap_or(false);
    if is_up && let Some(status) = status_of(&directory.socket(identity)).await {
        return Ok(StartedHost { status, is_new: true });
    }
    let _ended_already = child.start_kill();
    let error = Error::unreachable("the background host did not start");
    let error =
        error.with_phase(ErrorPhase::Start).with_hint("'toolhost up --foreground' shows why");
    Err(error.with_details(log.map(|path| last_lines(&path)).unwrap_or_default()))
}

async fn status_of(socket: &Path) -> Option<HostStatus> {
    let client = HostClient::connect(socket, "toolhost up", unattended()).await?;
    client.status().await.ok()
}

/// The log of a host; `None` if there is no directory for it.
fn log_path(environment: &dyn Environment, identity: &str) -> Option<PathBuf> {
    Some(environment.state_dir()?.join("hosts").join(format!("{identity}.log")))
}

fn last_lines(path: &Path) -> Vec<String> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(LOG_LINES);
    lines.into_iter().skip(skipped).map(str::to_owned).collect()
}

/// Starts this program as a host in its own session. It prints one line when it listens.
fn spawn(
    arguments: &[OsString],
    environment: &dyn Environment,
    idle: Duration,
    log: Option<&Path>,
) -> Result<tokio::process::Child, Error> {
    let failed = |why: String| Error::unreachable(format!("cannot start a background host: {why}"));
    let program = environment.executable();
    let program =
        program.ok_or_else(|| failed("cannot find the toolhost executable".to_owned()))?;
    let errors = match log {
        Some(path) => Stdio::from(new_log(path).map_err(|error| failed(error.to_string()))?),
        None => Stdio::null(),
    };
    let mut command = tokio::process::Command::new(program);
    command.args(arguments);
    let idle = OsString::from(format!("{}ms", idle.as_millis()));
    command.args([OsString::from("up"), "--foreground".into(), "--detached".into()]);
    command.arg("--idle").arg(idle);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).kill_on_drop(false);
    command.spawn().map_err(|error| failed(error.to_string()))
}

fn new_log(path: &Path) -> std::io::Result<File> {
    if let Some(parent) = path.parent() {
        private_file::make_own_directory(parent)?;
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    private_file::create_new(path)
}
