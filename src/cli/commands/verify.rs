//! `toolhost verify`: comparing tools with their pins.

use std::collections::BTreeSet;

use super::prelude::*;
use crate::catalogue::Catalogue;
use crate::catalogue::pins::{PinReport, PinReportState};
use crate::catalogue::scan::FindingsByTool;
use crate::catalogue::scan::{self, ToolNameIndex};
use crate::cli::json::pins::PinReportJson;
use crate::cli::pin_selection::PinSelection;
use crate::model::{ErrorKind, unreadable_file};

/// Compare tool definitions with their pins and show the differences.
///
/// Exits with 8 if a pinned tool changed or is gone, and with 11 if a server with pins could not be
/// checked. New tools are reported.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct VerifyArgs {
    /// Only these tools, and the tools of these servers
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub names: Vec<String>,
    /// Only tools of this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = server_target::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Compare with this pin file instead of the one in the state directory
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Also fail for tools without a pin
    #[arg(long)]
    pub strict_new: bool,
    /// Report suspicious findings about every tool, not only changed and new ones
    #[arg(long)]
    pub scan: bool,
}

pub async fn run(args: &VerifyArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let assembly = context.assemble(PinSelection::start_scope(&args.names, &args.server)).await?;
    let (file, pins) = super::pin::pins(args.file.as_deref(), context, &assembly)?;
    let Some(pins) = pins else {
        let (error, command) = match &args.file {
            Some(path) => (
                unreadable_file("--file", path, &"there is no such file"),
                format!("toolhost pin --file {}", path.display()),
            ),
            None => (
                Error::usage("nothing is pinned for this configuration"),
                "toolhost pin".to_owned(),
            ),
        };
        return Err(error.with_hint(format!("'{command}' pins the tools as they are now")).into());
    };
    let selection = PinSelection::resolve(&args.names, &args.server, &assembly, &pins).await?;
    let (report, mut catalogue) = selection.compare(&assembly, &pins, context).await;
    let flagged = flagged(&report, &catalogue, args.scan);
    let value = PinReportJson::from((&report, &flagged, &*file.path, None));
    let page = || present::pins::page(&report, &flagged, context.output.width());
    if context.output.report(format, &value, page)? {
        context.output.note(present::pins::summary(&report));
    }
    // A failed server matters only if it has pins or was asked for by name.
    let matters = |name: &str| {
        args.strict_new || pins.server(name).is_some() || selection.includes_server(name)
    };
    catalogue.servers.retain(|server| matters(&server.name));
    let answered = report.tools.iter().any(|tool| tool.now.is_some());
    let broken = assembly.configuration.count_broken_servers(matters);
    let incomplete = present::catalogue::verdict(&catalogue, broken, answered);
    conclude(verdict(&report, args.strict_new, incomplete))
}

/// The suspicious findings about changed and new tools; with `all` about every tool.
fn flagged(report: &PinReport, catalogue: &Catalogue, all: bool) -> FindingsByTool {
    let due = |state: PinReportState| {
        all || matches!(state, PinReportState::Changed | PinReportState::New)
    };
    let names: BTreeSet<&str> =
        report.tools.iter().filter(|t| due(t.state)).map(|tool| tool.name.as_str()).collect();
    let neighbours = ToolNameIndex::of(&catalogue.tools);
    let due = catalogue.tools.iter().filter(|tool| names.contains(tool.name.full().as_str()));
    let flagged = due.map(|tool| {
        let mut findings = scan::scan(tool, &neighbours);
        // Notes are included only with `all`.
        findings.retain(|finding| all || finding.severity > scan::FindingSeverity::Low);
        (tool.name.full(), findings)
    });
    flagged.filter(|(_, findings)| !findings.is_empty()).collect()
}

/// The error of a comparison, if any. Differences take precedence over servers that could not be
/// checked, if anything could be checked.
fn verdict(report: &PinReport, strict_new: bool, incomplete: Option<Error>) -> Option<Error> {
    let mut counts = Vec::new();
    for (state, one, many) in [
        (PinReportState::Changed, "tool changed", "tools changed"),
        (PinReportState::Missing, "tool is gone", "tools are gone"),
    ] {
        let count = report.count(state);
        if count > 0 {
            counts.push(plural(count, one, many));
        }
    }
    if strict_new && report.count(PinReportState::New) > 0 {
        counts.push(plural(report.count(PinReportState::New), "tool is new", "tools are new"));
    }
    if counts.is_empty() && !report.servers.is_empty() {
        counts.push(plural(report.servers.len(), "server changed", "servers changed"));
    }
    let answered = report.tools.iter().any(|tool| tool.now.is_some());
    if counts.is_empty() || (incomplete.is_some() && !answered) {
        return incomplete;
    }
    let error = Error::new(ErrorKind::Check, counts.join(", "))
        .with_hint("'toolhost pin' accepts the current state");
    Some(match incomplete {
        None => error,
        Some(other) => error
            .with_detail(other.message().to_owned())
            .with_details(other.details().iter().cloned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::pins::ToolReport;

    fn report(states: &[PinReportState]) -> PinReport {
        let tool = |state: &PinReportState| ToolReport {
            name: "s-t".to_owned(),
            server: Some("s".to_owned()),
            state: *state,
            pinned: None,
            now: Some("sha256:0".to_owned()),
            changes: Vec::new(),
        };
        PinReport { tools: states.iter().map(tool).collect(), ..PinReport::default() }
    }

    fn code(states: &[PinReportState], strict: bool, incomplete: Option<Error>) -> u8 {
        verdict(&report(states), strict, incomplete).map_or(0, |error| error.kind().exit_code())
    }

    #[test]
    fn a_difference_outweighs_an_incomplete_check() {
        let partial = || Some(Error::partial("1 of 2 servers could not be listed"));
        assert_eq!(code(&[PinReportState::Same, PinReportState::New], false, None), 0);
        assert_eq!(code(&[PinReportState::Same, PinReportState::New], true, None), 8);
        assert_eq!(code(&[PinReportState::Changed], false, None), 8);
        assert_eq!(code(&[PinReportState::Missing], false, partial()), 8);
        assert_eq!(code(&[PinReportState::Same], false, partial()), 11);
        assert_eq!(code(&[], false, Some(Error::unreachable("exited"))), 4);
    }
}
