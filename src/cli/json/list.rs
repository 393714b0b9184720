//! The JSON of `list`.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::error::{DiagnosticJson, ErrorJson};
use super::tool::{ExceededSpeedJson, ToolJson};
use crate::catalogue::scan::{Finding, FindingsByTool};
use crate::catalogue::{Catalogue, ServerListing};
use crate::config::spec::UntrustedEntry;
use crate::model::{Diagnostic, ServerStatus, ToolDefinition};
use crate::stats::Usage;
use crate::stats::declared_speed::ExceededSpeed;

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
