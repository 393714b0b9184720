//! The JSON of `list`.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::error::{DiagnosticJson, ErrorJson};
use super::pins::FindingsByTool;
use super::tool::{ExceededSpeedJson, ToolJson};
use crate::catalogue::scan::Finding;
use crate::catalogue::{Catalogue, ServerListing};
use crate::config::spec::UntrustedEntry;
use crate::model::{Diagnostic, ToolDefinition};
use crate::stats::Usage;
use crate::stats::declared_speed::ExceededSpeed;

/// The unified catalogue.
#[derive(Serialize, JsonSchema)]
pub struct ListJson<'a> {
    /// The tools that match.
    #[schemars(with = "Vec<ListedToolJson<'a>>")]
    tools: ListedTools<'a>,
    /// The servers that were asked.
    servers: Vec<ListedServerJson<'a>>,
    /// What is wrong with entries and definitions.
    problems: Vec<DiagnosticJson<'a>>,
}

impl<'a> ListJson<'a> {
    /// The JSON of what was listed; with `flagged` each tool has its findings.
    pub fn new(
        tools: &'a [&'a ToolDefinition],
        flagged: Option<&'a FindingsByTool>,
        usages: &'a [Usage],
        catalogue: &'a Catalogue,
        untrusted: &[UntrustedEntry],
        diagnostics: impl Iterator<Item = &'a Diagnostic>,
    ) -> Self {
        let server = |server: &'a ServerListing| {
            let is_untrusted = untrusted.iter().any(|entry| entry.name == server.name);
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
        Self {
            tools: ListedTools { tools, flagged, usages },
            servers: catalogue.servers.iter().map(server).collect(),
            problems: diagnostics.map(Into::into).collect(),
        }
    }
}

/// What became of listing a server: `ok`, `partial` or `failed`.
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
    /// That it is slower than it declares to be; null when it is not, or that is not known.
    slower_than_declared: Option<ExceededSpeedJson>,
    /// What is suspicious about it; only with `--scan` or `--flagged`.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<&'a [Finding]>,
}

/// Tools that become JSON one at a time: a tree of twenty thousand of them takes more memory than
/// everything else.
struct ListedTools<'a> {
    tools: &'a [&'a ToolDefinition],
    flagged: Option<&'a FindingsByTool>,
    usages: &'a [Usage],
}

impl Serialize for ListedTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let usages: HashMap<&str, &Usage> =
            self.usages.iter().map(|usage| (usage.tool.name.as_str(), usage)).collect();
        serializer.collect_seq(self.tools.iter().map(|tool| {
            ListedToolJson {
                slower_than_declared: usages
                    .get(tool.name.full().as_str())
                    .and_then(|usage| ExceededSpeed::of(tool, usage))
                    .map(Into::into),
                findings: self.flagged.map(|flagged| {
                    flagged.get(&tool.name.full()).map(Vec::as_slice).unwrap_or_default()
                }),
                tool: (*tool).into(),
            }
        }))
    }
}

/// A server that was asked for its tools.
#[derive(Serialize, JsonSchema)]
struct ListedServerJson<'a> {
    /// Its name.
    name: &'a str,
    /// `ok`, `partial`, `failed` or `untrusted`.
    status: &'static str,
    /// Why it could not be listed.
    error: Option<ErrorJson<'a>>,
}
