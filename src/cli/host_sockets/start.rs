//! Starting a host in the background.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::unattended;
use crate::assembly::runtime_directory::{self, RuntimeDirectory};
use crate::config::environment::Environment;
use crate::model::{Error, ErrorPhase};
use crate::serve::background::client::HostClient;
use crate::serve::background::protocol::HostStatus;
use crate::util::{orphans, private_file};

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
