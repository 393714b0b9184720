//! The JSON of `up`, `ps` and `down`.

use crate::util::shape::shape;
use schemars::JsonSchema;
use serde::Serialize;

use crate::host::breakpoints::{Breakpoint, BreakpointList};
use crate::model::HoldPoint;
use crate::present;
use crate::serve::background::protocol::{HostStatus, HostedServer};

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

shape! {
    /// The rules of a background host that stop calls.
    pub BreakpointsJson<'a> of list: &'a BreakpointList {
        /// All rules, in their order: of those about a call the first counts.
        breakpoints: Vec<BreakpointJson<'a>> = list.rules.iter().map(Into::into).collect(),
        /// How many rules were removed.
        removed: usize = list.removed,
        /// How many consoles are attached; without one nothing stops.
        consoles: usize = list.consoles,
    }
}

shape! {
    /// A rule that stops calls.
    pub BreakpointJson<'a> of rule: &'a Breakpoint {
        /// The pattern of the names of tools.
        pattern: &'a str = &rule.pattern,
        /// How the names of clients begin; null for all.
        client: Option<&'a str> = rule.client.as_deref(),
        /// Where it stops a call.
        on: HoldPoint = rule.on,
        /// How long a call waits.
        limit_s: f64 = rule.limit.as_secs_f64(),
        /// What becomes of the call after that: `refuse` or `continue`.
        then: &'static str = present::breakpoint::then(rule),
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

impl<'a> StartedHostJson<'a> {
    pub fn new(is_new: bool, host: &'a HostStatus) -> Self {
        Self { started: is_new, host: host.into() }
    }
}
