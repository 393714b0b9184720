//! `toolhost up`, `ps` and `down`: background hosts.

use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};

use super::call::parse_duration;
use super::prelude::*;
use crate::assembly::host_identity;
use crate::assembly::runtime_directory::{self, RuntimeDirectory};
use crate::cli::background_host::{self, HostOptions};
use crate::cli::host_sockets::{self, RunningHost};
use crate::host::link::HostLink as _;
use crate::serve::background::protocol::{HostStatus, HostedServer};
use crate::util::{stopped_process, units};

/// Start a background host that keeps servers connected.
///
/// Commands with the same configuration use its connections instead of starting servers themselves.
/// The host starts a server when the first call needs it. It asks no questions: what is not trusted
/// is not started. It exits when no call was made for the time of --idle.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct UpArgs {
    /// Exit after this time without a call, such as 10m or 2h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_idle)]
    pub idle: Duration,
    /// Stay in the foreground, for a service manager
    #[arg(long)]
    pub foreground: bool,
    /// Leave the session of the process that started it, and tell that process when it listens
    #[arg(long, hide = true, requires = "foreground")]
    pub detached: bool,
}

/// A host with an idle time of zero would exit at once.
fn parse_idle(text: &str) -> Result<Duration, Error> {
    match parse_duration(text)? {
        Duration::ZERO => {
            Err(Error::usage("the idle time must be greater than zero, such as 10m or 2h"))
        }
        idle => Ok(idle),
    }
}

pub async fn up(args: &UpArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    if args.foreground {
        let options = HostOptions { idle: args.idle, is_detached: args.detached };
        return background_host::run(options, context).await;
    }
    let environment = context.environment.as_ref();
    let directory = background_host::require_directory(context)?;
    let identity = context.require_host_identity(&directory.make_key()?)?;
    let arguments = context.global.host_arguments();
    let started =
        host_sockets::start(&arguments, environment, &directory, &identity, args.idle).await?;
    let value = StartedHostJson { started: started.is_new, host: (&started.status).into() };
    if !context.output.report(format, &value, Page::default)? {
        return Ok(());
    }
    let state = if started.is_new { "started" } else { "already running" };
    let line = done(state, "").then(Role::Plain, format!(" (pid {}) for ", started.status.pid));
    context.output.note(line.then(Role::Name, started.status.directory.display().to_string()));
    let limit = started.status.idle_limit;
    if limit != args.idle {
        let limit = units::show_span(limit);
        context.output.warn(&format!(
            "it stops after {limit} without a call, as set at its start; to change that, run \
             'toolhost down' first"
        ));
    }
    Ok(())
}

/// List background hosts.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::ROWS))]
pub struct PsArgs {}

pub async fn ps(_args: &PsArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::ROWS)?;
    let hosts = host_sockets::running_hosts(context.environment.as_ref()).await;
    let silent = hosts.iter().filter(|host| host.status.is_none()).count();
    let hosts: Vec<HostStatus> = hosts.into_iter().filter_map(|host| host.status).collect();
    let page = || present::background::table(&hosts, context.output.width());
    if context.output.report(format, &HostsJson::from(hosts.as_slice()), page)? && hosts.is_empty()
    {
        context.output.note("no background host is running");
    }
    if silent > 0 {
        let hosts = plural(silent, "background host does", "background hosts do");
        context.output.warn(&format!(
            "{hosts} not respond: another version, or overloaded; \
             'toolhost down --all' stops all"
        ));
    }
    Ok(())
}

/// Stop the background host of this directory.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct DownArgs {
    /// Stop the hosts of all directories
    #[arg(long)]
    pub all: bool,
}

pub async fn down(args: &DownArgs, context: &CommandContext) -> CommandResult {
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
    let (mut ended, mut failure) = (Vec::new(), None);
    for outcome in join_all(hosts.iter().map(|host| end(host, &directory))).await {
        match outcome {
            Ok(host) => ended.push(host),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    if matches!(format, Format::Json | Format::Yaml) {
        context.output.value(format, &EndedHostsJson { ended })?;
    } else if ended.is_empty() && failure.is_none() {
        let of = if args.all { String::new() } else { format!(" for {}", own.display()) };
        context.output.note(format!("no background host is running{of}"));
    } else {
        for EndedHostJson { pid, directory } in ended {
            let line = done("ended", "").then(Role::Plain, format!(" (pid {pid})"));
            context.output.note(match directory {
                Some(directory) => line.then(Role::Plain, " for ").then(Role::Name, directory),
                None => line,
            });
        }
    }
    conclude(failure)
}

async fn end(host: &RunningHost, directory: &RuntimeDirectory) -> Result<EndedHostJson, Error> {
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

shape! {
    /// The background hosts of this user.
    pub HostsJson<'a> of hosts: &'a [HostStatus] {
        hosts: Vec<HostJson<'a>> = hosts.iter().map(Into::into).collect(),
    }
}

shape! {
    /// A background host.
    pub HostJson<'a> of host: &'a HostStatus {
        /// The directory it was started for.
        directory: String = host.directory.display().to_string(),
        /// Its process.
        pid: u32 = host.pid,
        /// The version of the program.
        version: &'a str = &host.version,
        /// How long it has run.
        uptime_s: f64 = host.uptime.as_secs_f64(),
        /// The servers of its configuration.
        servers: Vec<HostServerJson<'a>> = host.servers.iter().map(Into::into).collect(),
        /// How many calls and lists it received.
        calls: u64 = host.calls,
        /// How many of them are running now.
        running: usize = host.running,
        /// Its resident memory, excluding its servers.
        memory_bytes: Option<u64> = host.memory,
        /// How long it stays up without a call.
        idle_limit_s: f64 = host.idle_limit.as_secs_f64(),
        /// Time left before it exits; null while a call runs.
        idle_left_s: Option<f64> = host.idle_left.map(|left| left.as_secs_f64()),
    }
}

shape! {
    /// A server of a background host.
    pub HostServerJson<'a> of server: &'a HostedServer {
        /// Its name in the configuration.
        name: &'a str = &server.name,
        /// As in `servers --json`: `idle`, `ready`, `failed`, …
        status: &'a str = &server.state,
        /// How many client sessions have their own connection; null when they share one.
        connections: Option<usize> = server.connections,
    }
}

/// The host that `up` started or found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StartedHostJson<'a> {
    /// Whether it was started just now.
    pub started: bool,
    /// The host.
    pub host: HostJson<'a>,
}

/// The hosts that `down` stopped.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EndedHostsJson {
    /// In the order of their directories.
    pub ended: Vec<EndedHostJson>,
}

/// A host that has ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EndedHostJson {
    /// The process it ran as.
    pub pid: u32,
    /// The directory it was started for; null when unknown.
    pub directory: Option<String>,
}
