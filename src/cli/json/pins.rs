//! The JSON of `pin` and `verify`.

use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::pins::report::ServerReport;
use crate::catalogue::pins::{PinReport, PinReportState, ToolReport};
use crate::catalogue::scan::{Finding, FindingsByTool};
use crate::util::shape::shape;

shape! {
    /// Definitions compared with their pins.
    pub PinReportJson<'a> of (report, flagged, path, outcome): (
        &'a PinReport,
        &'a FindingsByTool,
        &std::path::Path,
        Option<(bool, bool)>,
    ) {
        /// The tools: those in the catalogue, then those that are gone.
        tools: Vec<ToolReportJson<'a>> =
            report.tools.iter().map(|tool| (tool, flagged).into()).collect(),
        /// Servers whose instructions or entry changed.
        servers: Vec<ServerReportJson<'a>> = report.servers.iter().map(Into::into).collect(),
        /// How many tools are in each state.
        counts: PinCountsJson = report.into(),
        /// The file of pins.
        file: String = path.display().to_string(),
        /// Whether the file was written; `pin` only.
        #[serde(skip_serializing_if = "Option::is_none")]
        written: Option<bool> = outcome.map(|(written, _)| written),
        /// Whether changes were accepted; `pin` only.
        #[serde(skip_serializing_if = "Option::is_none")]
        accepted: Option<bool> = outcome.map(|(_, accepted)| accepted),
    }
}

shape! {
    /// A tool compared with its pin.
    pub ToolReportJson<'a> of (tool, flagged): (&'a ToolReport, &'a FindingsByTool) {
        /// Its full name.
        name: &'a str = &tool.name,
        /// The server, for MCP tools.
        server: Option<&'a str> = tool.server.as_deref(),
        /// `changed`, `gone`, `new`, `unchecked` (its server did not answer) or `same`.
        state: &'static str = tool.state.as_str(),
        /// The fingerprint that was pinned.
        pinned: Option<&'a str> = tool.pinned.as_deref(),
        /// The fingerprint it has now.
        fingerprint: Option<&'a str> = tool.now.as_deref(),
        /// The parts of the definition that changed.
        changes: Vec<ChangeJson<'a>> = tool.changes.iter().map(Into::into).collect(),
        /// Suspicious findings about the tool.
        findings: &'a [Finding] = flagged.get(&tool.name).map(Vec::as_slice).unwrap_or_default(),
    }
}

shape! {
    /// A server that differs from its pin.
    pub ServerReportJson<'a> of server: &'a ServerReport {
        /// Its name.
        name: &'a str = &server.name,
        /// The parts that changed.
        changes: Vec<ChangeJson<'a>> = server.changes.iter().map(Into::into).collect(),
    }
}

shape! {
    /// How many tools are in each state.
    pub PinCountsJson of report: &PinReport {
        changed: usize = report.count(PinReportState::Changed),
        gone: usize = report.count(PinReportState::Missing),
        new: usize = report.count(PinReportState::New),
        unchecked: usize = report.count(PinReportState::Unchecked),
        same: usize = report.count(PinReportState::Same),
    }
}

shape! {
    /// A part of a definition that changed.
    pub ChangeJson<'a> of change: &'a DefinitionChange, with {
        let hunks = change.hunks();
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
    } {
        /// Its name, such as `description`, `inputSchema` or `instructions`.
        part: &'static str = change.part,
        /// The old value; null when it is new.
        before: Option<&'a str> = change.before.as_deref(),
        /// The new value; null when it is gone.
        after: Option<&'a str> = change.after.as_deref(),
        /// The lines around the difference, each with `-`, `+` or a space in front.
        diff: Vec<String> =
            lines.map(|line| format!("{}{}", line.mark.sign(), line.text)).collect(),
    }
}
