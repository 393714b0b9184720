//! The JSON of `up`, `ps` and `down`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::serve::background::protocol::HostStatus;

/// The background hosts of this user.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HostsJson<'a> {
    hosts: Vec<HostJson<'a>>,
}

/// A background host.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HostJson<'a> {
    /// The directory it was started for.
    pub directory: String,
    /// Its process.
    pub pid: u32,
    /// The version of the program.
    pub version: &'a str,
    /// How long it has run.
    pub uptime_s: f64,
    /// The servers of its configuration.
    pub servers: Vec<HostServerJson<'a>>,
    /// How many calls and lists it received.
    pub calls: u64,
    /// How many of them are running now.
    pub running: usize,
    /// Its resident memory, excluding its servers.
    pub memory_bytes: Option<u64>,
    /// How long it stays up without a call.
    pub idle_limit_s: f64,
    /// Time left before it exits; null while a call runs.
    pub idle_left_s: Option<f64>,
}

/// A server of a background host.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HostServerJson<'a> {
    /// Its name in the configuration.
    pub name: &'a str,
    /// As in `servers --json`: `idle`, `ready`, `failed`, …
    pub status: &'a str,
    /// How many client sessions have their own connection; null when they share one.
    pub connections: Option<usize>,
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

impl<'a> From<&'a [HostStatus]> for HostsJson<'a> {
    fn from(hosts: &'a [HostStatus]) -> Self {
        Self { hosts: hosts.iter().map(Into::into).collect() }
    }
}

impl<'a> From<&'a HostStatus> for HostJson<'a> {
    fn from(host: &'a HostStatus) -> Self {
        let servers = host.servers.iter();
        Self {
            directory: host.directory.display().to_string(),
            pid: host.pid,
            version: &host.version,
            uptime_s: host.uptime.as_secs_f64(),
            servers: servers
                .map(|server| HostServerJson {
                    name: &server.name,
                    status: &server.state,
                    connections: server.connections,
                })
                .collect(),
            calls: host.calls,
            running: host.running,
            memory_bytes: host.memory,
            idle_limit_s: host.idle_limit.as_secs_f64(),
            idle_left_s: host.idle_left.map(|left| left.as_secs_f64()),
        }
    }
}

impl<'a> StartedHostJson<'a> {
    pub fn new(is_new: bool, host: &'a HostStatus) -> Self {
        Self { started: is_new, host: host.into() }
    }
}
