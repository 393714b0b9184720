//! The JSON of `servers`, and of `inspect` for a server.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::ErrorJson;
use super::tool::LocationJson;
use crate::catalogue::pins::PinReportState;
use crate::catalogue::scan::Finding;
use crate::config::spec::ProtocolChoice;
use crate::model::{CredentialUse, Era, ServerPermissions, ServerStatus};
use crate::present::server_entry::{ServerEntryView, credentials, pinned_count, state};
use crate::util::confine::Coverage;
use crate::util::number::millis;
use crate::util::timestamp::rfc3339;

/// The servers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServersJson<'a> {
    servers: Vec<ServerJson<'a>>,
}

impl<'a> From<&'a [ServerStatus]> for ServersJson<'a> {
    fn from(servers: &'a [ServerStatus]) -> Self {
        Self { servers: servers.iter().map(Into::into).collect() }
    }
}

/// A server, with everything known about it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerJson<'a> {
    /// Its name in the configuration.
    pub name: &'a str,
    /// The description of its entry.
    pub description: Option<&'a str>,
    /// `idle`, `starting`, `ready`, `failed`, `untrusted` or `closed`.
    pub status: &'static str,
    /// `legacy` or `modern`.
    pub era: Option<&'static str>,
    /// The protocol version in use.
    pub protocol: Option<&'a str>,
    /// The versions that the server claims to support.
    pub supported_versions: &'a [String],
    /// The transport, such as `stdio` or `http`.
    pub transport: &'static str,
    /// Its command line or address.
    pub endpoint: &'a str,
    /// The confinement of its process, one item per line.
    pub confinement: &'a [String],
    /// What its sandbox restricts and leaves open.
    pub sandbox: Option<&'a Coverage>,
    /// Its process.
    pub pid: Option<u32>,
    /// Its resident memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// How long connecting took.
    pub connect_ms: Option<f64>,
    /// How long the last ping took.
    pub ping_ms: Option<f64>,
    /// How many tools it offers.
    pub tools: Option<usize>,
    /// What its entry permits it to offer and use; null means no restriction.
    pub permissions: &'a ServerPermissions,
    /// The handles of the credentials it receives.
    pub credential_handles: &'a [CredentialUse],
    /// How many resources it offers.
    pub resources: Option<usize>,
    /// How many prompts it offers.
    pub prompts: Option<usize>,
    /// The name and version it reports.
    pub server_info: Option<&'a Value>,
    /// The capabilities that it reports.
    pub capabilities: Option<&'a Value>,
    /// Its instructions for models.
    pub instructions: Option<&'a str>,
    /// How often it was started.
    pub starts: u32,
    /// How long it has been running.
    pub uptime_ms: Option<f64>,
    /// The last failure, even if resolved.
    pub last_error: Option<PastErrorJson<'a>>,
    /// Its `routing_weight`.
    pub weight: Option<f64>,
    /// How many client sessions have their own connection; null when they share one.
    pub connections: Option<usize>,
    /// Warnings about the server.
    pub warnings: &'a [String],
    /// The last lines of its standard error.
    pub stderr: &'a [String],
    /// Why it is not working now.
    pub error: Option<ErrorJson<'a>>,
}

/// A failure that occurred earlier.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PastErrorJson<'a> {
    /// When it happened (RFC 3339).
    pub time: String,
    /// The error that occurred.
    pub error: ErrorJson<'a>,
}

impl<'a> From<&'a ServerStatus> for ServerJson<'a> {
    fn from(server: &'a ServerStatus) -> Self {
        Self {
            name: &server.name,
            description: server.description.as_deref(),
            status: server.state.as_str(),
            era: server.era.map(Era::as_str),
            protocol: server.protocol.as_deref(),
            supported_versions: &server.supported_versions,
            transport: server.transport,
            endpoint: &server.endpoint,
            confinement: &server.confinement,
            permissions: &server.permissions,
            credential_handles: &server.credentials,
            sandbox: server.sandbox.as_ref(),
            pid: server.pid,
            memory_bytes: server.memory,
            connect_ms: server.connect.map(millis),
            ping_ms: server.ping.map(millis),
            tools: server.tools,
            resources: server.resources,
            prompts: server.prompts,
            server_info: server.server_info.as_ref(),
            capabilities: server.capabilities.as_ref(),
            instructions: server.instructions.as_deref(),
            starts: server.starts,
            uptime_ms: server.uptime.map(millis),
            last_error: server.last_error.as_ref().map(|past| PastErrorJson {
                time: rfc3339(past.at.as_secs_f64()),
                error: (&past.error).into(),
            }),
            weight: server.weight,
            connections: server.connections,
            warnings: &server.warnings,
            stderr: &server.stderr_tail,
            error: server.state.error().map(Into::into),
        }
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

/// The entry of a server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerEntryJson<'a> {
    /// Where it is defined.
    pub origin: LocationJson,
    /// Whether its project is trusted: always true, since untrusted entries are not resolved.
    pub trusted: bool,
    /// `auto`, `legacy` or `2026-07-28`.
    pub protocol_choice: &'static str,
    /// A description of its authentication; never a secret.
    pub credentials: Option<String>,
    /// Time limit between messages from the server, if set in the entry.
    pub timeout_ms: Option<f64>,
    /// Time limit for a whole call, if set in the entry.
    pub max_total_ms: Option<f64>,
    /// Time limit for starting, if set in the entry.
    pub start_timeout_ms: Option<f64>,
    /// How long a background host keeps it idle, if set in the entry.
    pub keep_ms: Option<f64>,
    /// Whether all clients of a host use one connection.
    pub shared: bool,
    /// How often a failed call is retried, for tools marked safe to repeat.
    pub retries: u32,
    /// Whether each call requires approval.
    pub requires_approval: bool,
    /// Its share of calls when several servers offer a tool; below 1 it is a backup.
    pub routing_weight: Option<f64>,
    /// The only tools that are listed.
    pub include: Option<&'a [String]>,
    /// The tools, prompts and resources that are not listed.
    pub exclude: &'a [String],
    /// The roots that are sent to it.
    pub roots: Vec<&'a str>,
    /// How many tools the entry declares.
    pub declares: usize,
    /// Whether it is under development.
    pub dev: bool,
    /// What happens when a changed tool is called: `block`, `warn` or `allow`.
    pub drift: &'static str,
    /// Comparison of its tools with their pins; null without pins.
    pub pins: Option<ServerPinsJson>,
    /// How many of its tools have findings above the level of a note.
    pub flagged_tools: usize,
    /// Suspicious findings about its instructions.
    pub findings: &'a [Finding],
}

impl<'a> From<&'a ServerEntryView<'a>> for ServerEntryJson<'a> {
    fn from(view: &'a ServerEntryView<'a>) -> Self {
        let spec = view.spec;
        Self {
            origin: (&spec.location).into(),
            trusted: true,
            protocol_choice: match spec.protocol {
                ProtocolChoice::Auto => "auto",
                ProtocolChoice::Legacy => "legacy",
                ProtocolChoice::Modern => "2026-07-28",
            },
            credentials: credentials(spec),
            timeout_ms: spec.timeout.map(millis),
            max_total_ms: spec.max_total.map(millis),
            start_timeout_ms: spec.start_timeout.map(millis),
            keep_ms: spec.keep.map(millis),
            shared: spec.is_shared,
            retries: spec.retries,
            requires_approval: spec.requires_approval,
            routing_weight: spec.routing_weight,
            include: spec.include.as_deref(),
            exclude: &spec.exclude,
            roots: spec.roots.iter().map(|root| root.uri.as_str()).collect(),
            declares: spec.provides_tools.len(),
            dev: spec.is_dev,
            drift: spec.drift().as_str(),
            pins: view.pins.map(|report| ServerPinsJson {
                state: state(report),
                pinned: pinned_count(report),
                changed: report.count(PinReportState::Changed),
                gone: report.count(PinReportState::Missing),
                new: report.count(PinReportState::New),
            }),
            flagged_tools: view.flagged,
            findings: view.instructions,
        }
    }
}

/// How the tools of a server compare with their pins.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerPinsJson {
    /// `none`, `same` or `changed`.
    pub state: &'static str,
    /// Tools with a pin.
    pub pinned: usize,
    /// Tools that differ from their pins.
    pub changed: usize,
    /// Pinned tools that are no longer listed.
    pub gone: usize,
    /// Tools without a pin.
    pub new: usize,
}
