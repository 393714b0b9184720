//! The JSON of a tool: a row of `list`, and all that `inspect` shows.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::ErrorJson;
use super::stats::UsageJson;
use crate::catalogue::fingerprint;
use crate::catalogue::scan::Finding;
use crate::host::example;
use crate::host::limits::CallLimits;
use crate::host::policy::Decision;
use crate::model::{
    Annotations, CredentialUse, Origin, PinState, SourceLocation, ToolDefinition, ToolSource,
};
use crate::stats::declared_speed::ExceededSpeed;
use crate::util::confine::Coverage;
use crate::util::number::millis;

/// A tool.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToolJson<'a> {
    /// The full name: `{component}-{tool}` for tools of components and servers.
    pub name: String,
    /// The name within its component or server.
    pub tool: &'a str,
    /// The component or server it belongs to.
    pub component: Option<&'a str>,
    /// The server, for MCP tools.
    pub server: Option<&'a str>,
    /// `internal` or `mcp`.
    pub source: &'static str,
    /// The kind of provider, such as `builtin`, `command` or `storage`.
    pub kind: &'a str,
    /// The human-readable title of the tool.
    pub title: Option<&'a str>,
    /// The description of the tool.
    pub description: Option<&'a str>,
    /// The category named in its entry.
    pub category: Option<&'a str>,
    /// `instant`, `fast`, `medium` or `slow`.
    pub speed: &'static str,
    /// `native`, `sandboxed` or `external`.
    pub safety: &'static str,
    /// Whether its entry requires approval for each call.
    pub requires_approval: bool,
    /// `live`, `untrusted`, `declared`, `drifted` (differs from `provides_tools`), `changed`
    /// (differs from its pin), `unavailable` or `unchecked`.
    pub status: &'static str,
    /// The JSON Schema of its arguments.
    pub input_schema: &'a Value,
    /// The JSON Schema of its result.
    pub output_schema: Option<&'a Value>,
    /// The hints given by its server.
    pub annotations: AnnotationsJson<'a>,
    /// Time limit for one attempt in milliseconds; for MCP tools, between messages.
    pub timeout_ms: f64,
    /// How often a failed call is retried.
    pub retries: u32,
    /// `global` or `session`.
    pub scope: &'static str,
    /// The version named in its entry.
    pub version: Option<&'a str>,
    /// The hash of its definition, as stored in pins.
    pub fingerprint: String,
    /// Identifies the program, as statistics and history distinguish programs with the same name;
    /// null for tools without an entry in a file.
    pub program: Option<String>,
}

impl<'a> From<&'a ToolDefinition> for ToolJson<'a> {
    fn from(tool: &'a ToolDefinition) -> Self {
        Self {
            name: tool.name.full(),
            tool: tool.name.tool(),
            component: tool.name.component(),
            server: server(tool),
            source: tool.source.as_str(),
            kind: tool.kind,
            title: tool.title.as_deref(),
            description: tool.description.as_deref(),
            category: tool.category.as_deref(),
            speed: tool.speed.as_str(),
            safety: tool.safety.as_str(),
            requires_approval: tool.requires_approval,
            status: tool.status.as_str(),
            input_schema: &tool.input_schema,
            output_schema: tool.output_schema.as_deref(),
            annotations: (&tool.annotations).into(),
            timeout_ms: millis(CallLimits::of(tool, None, None).attempt),
            retries: tool.retries,
            scope: tool.scope.as_str(),
            version: tool.version.as_deref(),
            fingerprint: fingerprint::fingerprint(tool),
            program: tool.program(),
        }
    }
}

/// A tool that is slower than it declares to be.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct ExceededSpeedJson {
    /// The speed it declares: `instant`, `fast`, `medium` or `slow`.
    pub speed: &'static str,
    /// How long calls of such a tool may take, in milliseconds.
    pub limit_ms: f64,
    /// The 95th percentile of successful calls, in milliseconds.
    pub p95_ms: f64,
}

impl From<ExceededSpeed> for ExceededSpeedJson {
    fn from(slower: ExceededSpeed) -> Self {
        Self {
            speed: slower.speed.as_str(),
            limit_ms: millis(slower.speed.default_timeout()),
            p95_ms: millis(slower.p95),
        }
    }
}

/// The server whose tool this is; none for internal tools.
pub(super) fn server(tool: &ToolDefinition) -> Option<&str> {
    match (&tool.origin, tool.source) {
        (Origin::Server(name), _) => Some(name),
        (Origin::File(_), ToolSource::Mcp) => tool.name.component(),
        (Origin::File(_), ToolSource::Internal) | (Origin::Program, _) => None,
    }
}

/// The hints of a server about its tool, under the names of the protocol; only those it gave.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnnotationsJson<'a> {
    /// The human-readable title of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// The same call again changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches an open set of external systems (`openWorldHint`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl<'a> From<&'a Annotations> for AnnotationsJson<'a> {
    fn from(annotations: &'a Annotations) -> Self {
        Self {
            title: annotations.title.as_deref(),
            read_only_hint: annotations.read_only,
            destructive_hint: annotations.destructive,
            idempotent_hint: annotations.idempotent,
            open_world_hint: annotations.open_world,
        }
    }
}

/// A tool with everything that `inspect` finds out about it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToolDetailJson<'a> {
    #[serde(flatten)]
    tool: ToolJson<'a>,
    /// Where it is defined.
    pub origin: OriginJson<'a>,
    /// Warnings about its definition.
    pub warnings: &'a [String],
    /// What it may access: files, hosts, programs.
    pub touches: &'a [String],
    /// The handles of the credentials that its calls receive; only for tools that have some.
    #[serde(skip_serializing_if = "<[CredentialUse]>::is_empty")]
    pub credentials: &'a [CredentialUse],
    /// What its sandbox restricts and leaves open; only for tools that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<&'a Coverage>,
    /// The tools it calls; only for tools that call others.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub calls: &'a [String],
    /// Whether a call may run.
    pub decision: DecisionJson<'a>,
    /// A command line that calls it.
    pub example: String,
    /// How it compares with its pin.
    pub pin: PinStateJson<'a>,
    /// Why it cannot be called.
    pub unavailable: Option<ErrorJson<'a>>,
    /// The definition as the server sent it; only for tools of servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
    /// The statistics of its calls; null before the first call.
    pub stats: Option<UsageJson<'a>>,
    /// How much slower it is than declared; null when it is not, or when unknown.
    pub slower_than_declared: Option<ExceededSpeedJson>,
    /// Suspicious findings about the tool.
    pub findings: &'a [Finding],
}

impl<'a> ToolDetailJson<'a> {
    /// The JSON of a definition, with its approval decision, statistics and findings.
    pub fn new(
        tool: &'a ToolDefinition,
        decision: &'a Decision,
        (stats, slower): (Option<UsageJson<'a>>, Option<ExceededSpeed>),
        findings: &'a [Finding],
    ) -> Self {
        Self {
            tool: tool.into(),
            origin: (&tool.origin).into(),
            warnings: &tool.warnings,
            touches: &tool.touches,
            credentials: &tool.credentials,
            sandbox: tool.sandbox.as_deref(),
            calls: &tool.calls,
            decision: decision.into(),
            example: example::command_line(tool),
            pin: (&tool.pin_state).into(),
            unavailable: tool.unavailable_reason.as_ref().map(Into::into),
            raw: tool.raw_value(),
            stats,
            slower_than_declared: slower.map(Into::into),
            findings,
        }
    }
}

/// Where a tool is defined: in a file, by a server, or in the program itself.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OriginJson<'a> {
    /// In a configuration file.
    File(LocationJson),
    /// By an MCP server.
    Server {
        /// The name of the server.
        server: &'a str,
    },
    /// In the program.
    Program {
        /// Always true.
        program: bool,
    },
}

impl<'a> From<&'a Origin> for OriginJson<'a> {
    fn from(origin: &'a Origin) -> Self {
        match origin {
            Origin::File(place) => Self::File(place.into()),
            Origin::Server(name) => Self::Server { server: name },
            Origin::Program => Self::Program { program: true },
        }
    }
}

/// A position in a configuration file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LocationJson {
    /// The path.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

impl From<&SourceLocation> for LocationJson {
    fn from(place: &SourceLocation) -> Self {
        let file = place.file.display().to_string();
        Self { file, line: place.line, column: place.column }
    }
}

/// Whether a call may run, and why.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DecisionJson<'a> {
    /// `allow`, `ask` (a person approves first) or `deny`.
    pub action: &'static str,
    /// The rule or setting behind it.
    pub reason: &'a str,
}

impl<'a> From<&'a Decision> for DecisionJson<'a> {
    fn from(decision: &'a Decision) -> Self {
        let (action, reason) = match decision {
            Decision::Allow(reason) => ("allow", reason),
            Decision::Ask(reason) => ("ask", reason),
            Decision::Deny(reason) => ("deny", reason),
        };
        Self { action, reason }
    }
}

/// How a tool compares with its pin.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PinStateJson<'a> {
    /// `none` (not pinned), `same` or `changed`.
    pub state: &'static str,
    /// The lines that differ.
    pub difference: &'a [String],
}

impl<'a> From<&'a PinState> for PinStateJson<'a> {
    fn from(pin: &'a PinState) -> Self {
        let difference = match pin {
            PinState::Changed(error) => error.details(),
            PinState::NotPinned | PinState::Matches => &[],
        };
        Self { state: pin.as_str(), difference }
    }
}
