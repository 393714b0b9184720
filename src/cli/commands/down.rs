//! `toolhost down`: stopping background hosts.

use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};

use super::prelude::*;
use crate::assembly::host_identity;
use crate::assembly::runtime_directory::{self, RuntimeDirectory};
use crate::cli::background_host;
use crate::cli::host_sockets::{self, RunningHost};
use crate::cli::json::background::{EndedHostJson, EndedHostsJson};
use crate::util::stopped_process;

/// Stop the background host of this directory.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct DownArgs {
    /// Stop the hosts of all directories
    #[arg(long)]
    pub all: bool,
}

pub async fn run(args: &DownArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let directory = background_host::require_directory(context)?;
    let configuration = context.load();
    let own = host_identity::host_directory(&configuration, context.environment.cwd());
    let mut hosts = host_sockets::running_hosts(context.environment.as_ref()).await;
    if !args.all {
        let silent = hosts.iter().any(|host| host.status.is_none());
        // One that is too busy to report its status is known by its socket name.
        let key = if silent { directory.key() } else { None };
        let identity = key.and_then(|key| context.host_identity(&key));
        hosts.retain(|host| match &host.status {
            Some(status) => status.directory == own,
            None => identity.as_ref() == Some(&host.identity),
        });
    }
    let ended: Vec<Result<EndedHostJson, Error>> =
        join_all(hosts.iter().map(|host| end(host, &directory))).await;
    let (ended, failed): (Vec<_>, Vec<_>) = ended.into_iter().partition(Result::is_ok);
    let ended: Vec<EndedHostJson> = ended.into_iter().filter_map(Result::ok).collect();
    if matches!(format, Format::Json | Format::Yaml) {
        context.output.value(format, &EndedHostsJson { ended })?;
    } else if ended.is_empty() && failed.is_empty() {
        let of = if args.all { String::new() } else { format!(" for {}", own.display()) };
        context.output.note(format!("no background host is running{of}"));
    } else {
        for host in ended {
            let line = Line::styled(Role::Success, "ended")
                .then(Role::Plain, format!(" (pid {})", host.pid));
            context.output.note(match host.directory {
                Some(directory) => line.then(Role::Plain, " for ").then(Role::Name, directory),
                None => line,
            });
        }
    }
    failed.into_iter().find_map(Result::err).map_or(Ok(()), |error| Err(error.into()))
}

async fn end(host: &RunningHost, directory: &RuntimeDirectory) -> Result<EndedHostJson, Error> {
    use crate::host::link::HostLink as _;
    let pid = host.client.pid();
    let mut status = host.status.clone();
    if stopped_process::resume(pid) {
        status = host_sockets::ask_again(host).await;
    }
    // A missing response may mean that the host exited before writing it, or that it is of another version.
    let stopping = tokio::time::timeout(host_sockets::END_TIMEOUT, host.client.stop()).await;
    if !matches!(stopping, Ok(Ok(()))) && is_alive(host, directory) {
        terminate(pid);
    }
    match host_sockets::wait_for_end(directory, &host.identity).await {
        Ok(true) => {
            let directory = status.map(|status| status.directory.display().to_string());
            Ok(EndedHostJson { pid, directory })
        }
        Ok(false) => Err(Error::timeout(format!("the background host (pid {pid}) did not stop"))
            .with_hint(format!("kill {pid}"))),
        Err(error) => Err(Error::config(format!("cannot use the host's lock: {error}"))),
    }
}

/// Whether a host holds its lock: then the process is there, and its number is not another's.
fn is_alive(host: &RunningHost, directory: &RuntimeDirectory) -> bool {
    let lock = runtime_directory::try_lock(&directory.host_lock(&host.identity));
    matches!(lock, Ok(None))
}

/// Ends a host by a signal, which is as good as its own command.
fn terminate(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // One that is gone needs none.
    let _gone = pid.map(|pid| kill_process(pid, Signal::TERM));
}
