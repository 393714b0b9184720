//! The JSON of `pin` and `verify`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::pins::report::ServerReport;
use crate::catalogue::pins::{PinReport, PinReportState, ToolReport};
use crate::catalogue::scan::{Finding, FindingsByTool};

/// Definitions compared with their pins.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PinReportJson<'a> {
    /// The tools: those in the catalogue, then those that are gone.
    tools: Vec<ToolReportJson<'a>>,
    /// Servers whose instructions or entry changed.
    servers: Vec<ServerReportJson<'a>>,
    /// How many tools are in each state.
    counts: PinCountsJson,
    /// The file of pins.
    file: String,
    /// Whether the file was written; `pin` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<bool>,
    /// Whether changes were accepted; `pin` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<bool>,
}

impl<'a> PinReportJson<'a> {
    /// The JSON of a comparison with the pins of `file`.
    pub fn new(report: &'a PinReport, flagged: &'a FindingsByTool, file: &std::path::Path) -> Self {
        let tool = |tool: &'a ToolReport| ToolReportJson {
            name: &tool.name,
            server: tool.server.as_deref(),
            state: tool.state.as_str(),
            pinned: tool.pinned.as_deref(),
            fingerprint: tool.now.as_deref(),
            changes: tool.changes.iter().map(Into::into).collect(),
            findings: flagged.get(&tool.name).map(Vec::as_slice).unwrap_or_default(),
        };
        let server = |server: &'a ServerReport| ServerReportJson {
            name: &server.name,
            changes: server.changes.iter().map(Into::into).collect(),
        };
        Self {
            tools: report.tools.iter().map(tool).collect(),
            servers: report.servers.iter().map(server).collect(),
            counts: PinCountsJson {
                changed: report.count(PinReportState::Changed),
                gone: report.count(PinReportState::Missing),
                new: report.count(PinReportState::New),
                unchecked: report.count(PinReportState::Unchecked),
                same: report.count(PinReportState::Same),
            },
            file: file.display().to_string(),
            written: None,
            accepted: None,
        }
    }

    /// Adds the result of `pin`: whether it wrote the file, and whether changes were accepted.
    #[must_use]
    pub fn with_result(self, written: bool, accepted: bool) -> Self {
        Self { written: Some(written), accepted: Some(accepted), ..self }
    }
}

/// A tool compared with its pin.
#[derive(Debug, Serialize, JsonSchema)]
struct ToolReportJson<'a> {
    /// Its full name.
    name: &'a str,
    /// The server, for MCP tools.
    server: Option<&'a str>,
    /// `changed`, `gone`, `new`, `unchecked` (its server did not answer) or `same`.
    state: &'static str,
    /// The fingerprint that was pinned.
    pinned: Option<&'a str>,
    /// The fingerprint it has now.
    fingerprint: Option<&'a str>,
    /// The parts of the definition that changed.
    changes: Vec<ChangeJson<'a>>,
    /// Suspicious findings about the tool.
    findings: &'a [Finding],
}

/// A server that differs from its pin.
#[derive(Debug, Serialize, JsonSchema)]
struct ServerReportJson<'a> {
    /// Its name.
    name: &'a str,
    /// The parts that changed.
    changes: Vec<ChangeJson<'a>>,
}

/// How many tools are in each state.
#[derive(Debug, Serialize, JsonSchema)]
struct PinCountsJson {
    changed: usize,
    gone: usize,
    new: usize,
    unchecked: usize,
    same: usize,
}

/// A part of a definition that changed.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangeJson<'a> {
    /// Its name, such as `description`, `inputSchema` or `instructions`.
    part: &'static str,
    /// The old value; null when it is new.
    before: Option<&'a str>,
    /// The new value; null when it is gone.
    after: Option<&'a str>,
    /// The lines around the difference, each with `-`, `+` or a space in front.
    diff: Vec<String>,
}

impl<'a> From<&'a DefinitionChange> for ChangeJson<'a> {
    fn from(change: &'a DefinitionChange) -> Self {
        let hunks = change.hunks();
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        Self {
            part: change.part,
            before: change.before.as_deref(),
            after: change.after.as_deref(),
            diff: lines.map(|line| format!("{}{}", line.mark.sign(), line.text)).collect(),
        }
    }
}
