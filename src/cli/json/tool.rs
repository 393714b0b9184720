//! The JSON of a tool: a row of `list`, the whole of `list`, and all that `inspect` shows.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::error::{DiagnosticJson, ErrorJson};
use super::stats::UsageJson;
use crate::catalogue::scan::{Finding, FindingsByTool};
use crate::catalogue::{Catalogue, ServerListing, fingerprint};
use crate::config::spec::UntrustedEntry;
use crate::host::attempt::CallLimits;
use crate::host::example;
use crate::host::policy::Decision;
use crate::model::{
    Annotations, CredentialUse, Diagnostic, Origin, PinState, ServerStatus, SourceLocation,
    ToolDefinition, ToolSchema, ToolSource,
};
use crate::stats::Usage;
use crate::stats::comparison::ExceededSpeed;
use crate::util::confine::Coverage;
use crate::util::shape::shape;
use crate::util::units::millis;

shape! {
    /// A tool.
    pub ToolJson<'a> of tool: &'a ToolDefinition {
        /// The full name: `{component}-{tool}` for tools of components and servers.
        name: String = tool.name.full(),
        /// The name within its component or server.
        tool: &'a str = tool.name.tool(),
        /// The component or server it belongs to.
        component: Option<&'a str> = tool.name.component(),
        /// The server, for MCP tools.
        server: Option<&'a str> = server(tool),
        /// `internal` or `mcp`.
        source: &'static str = tool.source.as_str(),
        /// The kind of provider, such as `builtin`, `command` or `storage`.
        kind: &'a str = &tool.kind,
        /// The human-readable title of the tool.
        title: Option<&'a str> = tool.title.as_deref(),
        /// The description of the tool.
        description: Option<&'a str> = tool.description.as_deref(),
        /// The category named in its entry.
        category: Option<&'a str> = tool.category.as_deref(),
        /// `instant`, `fast`, `medium` or `slow`.
        speed: &'static str = tool.speed.as_str(),
        /// `native`, `sandboxed` or `external`.
        safety: &'static str = tool.safety.as_str(),
        /// Whether its entry requires approval for each call.
        requires_approval: bool = tool.requires_approval,
        /// `live`, `untrusted`, `declared`, `drifted` (differs from `provides_tools`), `changed`
        /// (differs from its pin), `unavailable` or `unchecked`.
        status: &'static str = tool.status.as_str(),
        /// The JSON Schema of its arguments.
        input_schema: &'a ToolSchema = &tool.input_schema,
        /// The JSON Schema of its result.
        output_schema: Option<&'a ToolSchema> = tool.output_schema.as_ref(),
        /// The hints given by its server.
        annotations: AnnotationsJson<'a> = (&tool.annotations).into(),
        /// Time limit for one attempt in milliseconds; for MCP tools, between messages.
        timeout_ms: f64 = millis(CallLimits::of(tool, None, None).attempt),
        /// How often a failed call is retried.
        retries: u32 = tool.retries,
        /// `global` or `session`.
        scope: &'static str = tool.scope.as_str(),
        /// The version named in its entry.
        version: Option<&'a str> = tool.version.as_deref(),
        /// The hash of its definition, as stored in pins.
        fingerprint: String = fingerprint::fingerprint(tool),
        /// Identifies the program, as statistics and history distinguish programs with the same name;
        /// null for tools without an entry in a file.
        program: Option<String> = tool.program(),
    }
}

shape! {
    /// A tool that is slower than it declares to be.
    pub ExceededSpeedJson of slower: ExceededSpeed {
        /// The speed it declares: `instant`, `fast`, `medium` or `slow`.
        speed: &'static str = slower.speed.as_str(),
        /// How long calls of such a tool may take, in milliseconds.
        limit_ms: f64 = millis(slower.speed.default_timeout()),
        /// The 95th percentile of successful calls, in milliseconds.
        p95_ms: f64 = millis(slower.p95),
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

shape! {
    /// The hints of a server about its tool, under the names of the protocol; only those it gave.
    #[serde(rename_all = "camelCase")]
    pub AnnotationsJson<'a> of annotations: &'a Annotations {
        /// The human-readable title of the tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str> = annotations.title.as_deref(),
        /// It changes nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        read_only_hint: Option<bool> = annotations.read_only,
        /// It may destroy something.
        #[serde(skip_serializing_if = "Option::is_none")]
        destructive_hint: Option<bool> = annotations.destructive,
        /// The same call again changes nothing more.
        #[serde(skip_serializing_if = "Option::is_none")]
        idempotent_hint: Option<bool> = annotations.idempotent,
        /// It reaches an open set of external systems (`openWorldHint`).
        #[serde(skip_serializing_if = "Option::is_none")]
        open_world_hint: Option<bool> = annotations.open_world,
    }
}

shape! {
    /// A tool with everything that `inspect` finds out about it.
    pub ToolDetailJson<'a> of (definition, verdict, (usage, slower), suspicions): (
        &'a ToolDefinition,
        &'a Decision,
        (Option<UsageJson<'a>>, Option<ExceededSpeed>),
        &'a [Finding],
    ) {
        #[serde(flatten)]
        tool: ToolJson<'a> = definition.into(),
        /// Where it is defined.
        origin: OriginJson<'a> = (&definition.origin).into(),
        /// Warnings about its definition.
        warnings: &'a [String] = &definition.warnings,
        /// What it may access: files, hosts, programs.
        touches: &'a [String] = &definition.touches,
        /// The handles of the credentials that its calls receive; only for tools that have some.
        #[serde(skip_serializing_if = "<[CredentialUse]>::is_empty")]
        credentials: &'a [CredentialUse] = &definition.credentials,
        /// What its sandbox restricts and leaves open; only for tools that have one.
        #[serde(skip_serializing_if = "Option::is_none")]
        sandbox: Option<&'a Coverage> = definition.sandbox.as_deref(),
        /// The tools it calls; only for tools that call others.
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        calls: &'a [String] = &definition.calls,
        /// Whether a call may run.
        decision: DecisionJson<'a> = verdict.into(),
        /// A command line that calls it.
        example: String = example::command_line(definition),
        /// How it compares with its pin.
        pin: PinStateJson<'a> = (&definition.pin_state).into(),
        /// Why it cannot be called.
        unavailable: Option<ErrorJson<'a>> = definition.unavailable_reason.as_ref().map(Into::into),
        /// The definition as the server sent it; only for tools of servers.
        #[serde(skip_serializing_if = "Option::is_none")]
        raw: Option<Value> = definition.raw_value(),
        /// The statistics of its calls; null before the first call.
        stats: Option<UsageJson<'a>> = usage,
        /// How much slower it is than declared; null when it is not, or when unknown.
        slower_than_declared: Option<ExceededSpeedJson> = slower.map(Into::into),
        /// Suspicious findings about the tool.
        findings: &'a [Finding] = suspicions,
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

shape! {
    /// A position in a configuration file.
    pub LocationJson of place: &SourceLocation {
        /// The path.
        file: String = place.file.display().to_string(),
        /// The line, from 1.
        line: u32 = place.line,
        /// The column, from 1.
        column: u32 = place.column,
    }
}

shape! {
    /// Whether a call may run, and why.
    pub DecisionJson<'a> of decision: &'a Decision, with {
        let (verdict, why) = match decision {
            Decision::Allow(reason) => ("allow", reason),
            Decision::Ask(reason) => ("ask", reason),
            Decision::Deny(reason) => ("deny", reason),
        };
    } {
        /// `allow`, `ask` (a person approves first) or `deny`.
        action: &'static str = verdict,
        /// The rule or setting behind it.
        reason: &'a str = why,
    }
}

shape! {
    /// How a tool compares with its pin.
    pub PinStateJson<'a> of pin: &'a PinState {
        /// `none` (not pinned), `same` or `changed`.
        state: &'static str = pin.as_str(),
        /// The lines that differ.
        difference: &'a [String] = match pin {
            PinState::Changed(error) => error.details(),
            PinState::NotPinned | PinState::Matches => &[],
        },
    }
}

/// The unified catalogue.
#[derive(Serialize, JsonSchema)]
pub struct ListJson<'a> {
    /// The tools that match.
    tools: Vec<ListedToolJson<'a>>,
    /// The servers that were queried, and those whose entries are out of service.
    servers: Vec<ListedServerJson<'a>>,
    /// Problems with entries and definitions.
    problems: Vec<DiagnosticJson<'a>>,
}

impl<'a> ListJson<'a> {
    /// The JSON of a listing; with `flagged` each tool has its findings.
    pub fn new(
        tools: &'a [&'a ToolDefinition],
        flagged: Option<&'a FindingsByTool>,
        usages: &[Usage],
        listed: &ListedServers<'a>,
        diagnostics: impl Iterator<Item = &'a Diagnostic>,
    ) -> Self {
        let server = |server: &'a ServerListing| {
            let is_untrusted = listed.untrusted.iter().any(|entry| entry.name == server.name);
            let status = match listing_status(server) {
                "failed" if is_untrusted => "untrusted",
                status => status,
            };
            ListedServerJson {
                name: &server.name,
                status,
                error: server.error.as_ref().map(Into::into),
            }
        };
        let listed_servers = &listed.catalogue.servers;
        let broken =
            listed.broken.iter().filter(|b| listed_servers.iter().all(|s| s.name != b.name));
        let broken = broken.map(|server| ListedServerJson {
            name: &server.name,
            status: "failed",
            error: server.state.error().map(Into::into),
        });
        let usages: HashMap<&str, &Usage> =
            usages.iter().map(|usage| (usage.tool.name.as_str(), usage)).collect();
        let listed_tool = |tool: &&'a ToolDefinition| {
            let name = tool.name.full();
            let slower = usages.get(&*name).and_then(|usage| ExceededSpeed::of(tool, usage));
            ListedToolJson {
                tool: (*tool).into(),
                slower_than_declared: slower.map(Into::into),
                findings: flagged
                    .map(|flagged| flagged.get(&name).map(Vec::as_slice).unwrap_or_default()),
                unavailable: tool.unavailable_reason.as_ref().map(Into::into),
            }
        };
        Self {
            tools: tools.iter().map(listed_tool).collect(),
            servers: listed_servers.iter().map(server).chain(broken).collect(),
            problems: diagnostics.map(Into::into).collect(),
        }
    }
}

pub struct ListedServers<'a> {
    pub catalogue: &'a Catalogue,
    pub untrusted: &'a [UntrustedEntry],
    pub broken: &'a [ServerStatus],
}

/// The result of listing a server: `ok`, `partial` or `failed`.
pub(super) fn listing_status(server: &ServerListing) -> &'static str {
    match (&server.error, server.is_partial) {
        (Some(_), _) => "failed",
        (None, true) => "partial",
        (None, false) => "ok",
    }
}

/// A tool of the catalogue.
#[derive(Serialize, JsonSchema)]
struct ListedToolJson<'a> {
    #[serde(flatten)]
    tool: ToolJson<'a>,
    /// How much slower it is than declared; null when it is not, or when unknown.
    slower_than_declared: Option<ExceededSpeedJson>,
    /// What is suspicious about it; only with `--scan` or `--flagged`.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<&'a [Finding]>,
    /// Why it cannot be called; only for tools that cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<ErrorJson<'a>>,
}

/// A server that was queried for its tools.
#[derive(Serialize, JsonSchema)]
struct ListedServerJson<'a> {
    /// Its name.
    name: &'a str,
    /// `ok`, `partial`, `failed` or `untrusted`.
    status: &'static str,
    /// Why it could not be listed.
    error: Option<ErrorJson<'a>>,
}
