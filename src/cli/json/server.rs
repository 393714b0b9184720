//! The JSON of `servers`, and of `inspect` for a server.

use crate::util::shape::shape;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::ErrorJson;
use super::tool::LocationJson;
use crate::catalogue::pins::{PinReport, PinReportState};
use crate::catalogue::scan::Finding;
use crate::config::spec::ProtocolChoice;
use crate::model::{CredentialUse, Era, PastError, ServerPermissions, ServerStatus};
use crate::present::server_entry::{ServerEntryView, credentials, pinned_count, state};
use crate::util::confine::Coverage;
use crate::util::timestamp::rfc3339;
use crate::util::units::millis;

shape! {
    /// The servers.
    pub ServersJson<'a> of servers: &'a [ServerStatus] {
        servers: Vec<ServerJson<'a>> = servers.iter().map(Into::into).collect(),
    }
}

shape! {
    /// A server, with everything known about it.
    pub ServerJson<'a> of server: &'a ServerStatus {
        /// Its name in the configuration.
        name: &'a str = &server.name,
        /// The description of its entry.
        description: Option<&'a str> = server.description.as_deref(),
        /// `idle`, `starting`, `ready`, `failed`, `untrusted` or `closed`.
        status: &'static str = server.state.as_str(),
        /// `legacy` or `modern`.
        era: Option<&'static str> = server.era.map(Era::as_str),
        /// The protocol version in use.
        protocol: Option<&'a str> = server.protocol.as_deref(),
        /// The versions that the server claims to support.
        supported_versions: &'a [String] = &server.supported_versions,
        /// The transport, such as `stdio` or `http`.
        transport: &'a str = &server.transport,
        /// Its command line or address.
        endpoint: &'a str = &server.endpoint,
        /// The confinement of its process, one item per line.
        confinement: &'a [String] = &server.confinement,
        /// What its sandbox restricts and leaves open.
        sandbox: Option<&'a Coverage> = server.sandbox.as_ref(),
        /// Its process.
        pid: Option<u32> = server.pid,
        /// Its resident memory, in bytes.
        memory_bytes: Option<u64> = server.memory,
        /// How long connecting took.
        connect_ms: Option<f64> = server.connect.map(millis),
        /// How long the last ping took.
        ping_ms: Option<f64> = server.ping.map(millis),
        /// How many tools it offers.
        tools: Option<usize> = server.tools,
        /// What its entry permits it to offer and use; null means no restriction.
        permissions: &'a ServerPermissions = &server.permissions,
        /// The handles of the credentials it receives.
        credential_handles: &'a [CredentialUse] = &server.credentials,
        /// How many resources it offers.
        resources: Option<usize> = server.resources,
        /// How many prompts it offers.
        prompts: Option<usize> = server.prompts,
        /// The name and version it reports.
        server_info: Option<&'a Value> = server.server_info.as_ref(),
        /// The capabilities that it reports.
        capabilities: Option<&'a Value> = server.capabilities.as_ref(),
        /// Its instructions for models.
        instructions: Option<&'a str> = server.instructions.as_deref(),
        /// How often it was started.
        starts: u32 = server.starts,
        /// How long it has been running.
        uptime_ms: Option<f64> = server.uptime.map(millis),
        /// The last failure, even if resolved.
        last_error: Option<PastErrorJson<'a>> = server.last_error.as_ref().map(Into::into),
        /// Its `routing_weight`.
        weight: Option<f64> = server.weight,
        /// How many client sessions have their own connection; null when they share one.
        connections: Option<usize> = server.connections,
        /// Warnings about the server.
        warnings: &'a [String] = &server.warnings,
        /// The last lines of its standard error.
        stderr: &'a [String] = &server.stderr_tail,
        /// Why it is not working now.
        error: Option<ErrorJson<'a>> = server.state.error().map(Into::into),
    }
}

shape! {
    /// A failure that occurred earlier.
    pub PastErrorJson<'a> of past: &'a PastError {
        /// When it happened (RFC 3339).
        time: String = rfc3339(past.at.as_secs_f64()),
        /// The error that occurred.
        error: ErrorJson<'a> = (&past.error).into(),
    }
}

/// A server with its entry: what the file says about it and the state of its pins.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerDetailJson<'a> {
    /// What is known about the server.
    #[serde(flatten)]
    pub server: ServerJson<'a>,
    /// Its entry; omitted for servers without their own entry.
    #[serde(flatten)]
    pub entry: Option<ServerEntryJson<'a>>,
}

shape! {
    /// The entry of a server.
    pub ServerEntryJson<'a> of view: &'a ServerEntryView<'a>, with {
        let spec = view.spec;
    } {
        /// Where it is defined.
        origin: LocationJson = (&spec.location).into(),
        /// Whether its project is trusted: always true, since untrusted entries are not resolved.
        trusted: bool = true,
        /// `auto`, `legacy` or `2026-07-28`.
        protocol_choice: &'static str = match spec.protocol {
            ProtocolChoice::Auto => "auto",
            ProtocolChoice::Legacy => "legacy",
            ProtocolChoice::Modern => "2026-07-28",
        },
        /// A description of its authentication; never a secret.
        credentials: Option<String> = credentials(spec),
        /// Time limit between messages from the server, if set in the entry.
        timeout_ms: Option<f64> = spec.timeout.map(millis),
        /// Time limit for a whole call, if set in the entry.
        max_total_ms: Option<f64> = spec.max_total.map(millis),
        /// Time limit for starting, if set in the entry.
        start_timeout_ms: Option<f64> = spec.start_timeout.map(millis),
        /// How long a background host keeps it idle, if set in the entry.
        keep_ms: Option<f64> = spec.keep.map(millis),
        /// Whether all clients of a host use one connection.
        shared: bool = spec.is_shared,
        /// How often a failed call is retried, for tools marked safe to repeat.
        retries: u32 = spec.retries,
        /// Whether each call requires approval.
        requires_approval: bool = spec.requires_approval,
        /// Its share of calls when several servers offer a tool; below 1 it is a backup.
        routing_weight: Option<f64> = spec.routing_weight,
        /// The only tools that are listed.
        include: Option<&'a [String]> = spec.include.as_deref(),
        /// The tools, prompts and resources that are not listed.
        exclude: &'a [String] = &spec.exclude,
        /// The roots that are sent to it.
        roots: Vec<&'a str> = spec.roots.iter().map(|root| root.uri.as_str()).collect(),
        /// How many tools the entry declares.
        declares: usize = spec.provides_tools.len(),
        /// Whether it is under development.
        dev: bool = spec.is_dev,
        /// What happens when a changed tool is called: `block`, `warn` or `allow`.
        drift: &'static str = spec.drift().as_str(),
        /// Comparison of its tools with their pins; null without pins.
        pins: Option<ServerPinsJson> = view.pins.map(Into::into),
        /// How many of its tools have findings above the level of a note.
        flagged_tools: usize = view.flagged,
        /// Suspicious findings about its instructions.
        findings: &'a [Finding] = view.instructions,
    }
}

shape! {
    /// How the tools of a server compare with their pins.
    pub ServerPinsJson of report: &PinReport {
        /// `none`, `same` or `changed`.
        state: &'static str = state(report),
        /// Tools with a pin.
        pinned: usize = pinned_count(report),
        /// Tools that differ from their pins.
        changed: usize = report.count(PinReportState::Changed),
        /// Pinned tools that are no longer listed.
        gone: usize = report.count(PinReportState::Missing),
        /// Tools without a pin.
        new: usize = report.count(PinReportState::New),
    }
}
