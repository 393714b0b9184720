//! `toolhost pin` and `verify`: pinning tool definitions.

use std::collections::BTreeSet;

use super::prelude::*;
use crate::assembly::pin_update::PinUpdate;
use crate::assembly::pins::PinFile;
use crate::catalogue::Catalogue;
use crate::catalogue::changes::DefinitionChange;
use crate::catalogue::pins::report::ServerReport;
use crate::catalogue::pins::{PinFileContent, PinReport, PinReportState, Pins, ToolReport};
use crate::catalogue::scan::{Finding, FindingsByTool};
use crate::cli::pin_selection::PinSelection;
use crate::host::policy::Approval;
use crate::model::unreadable_file;

/// Pin tool definitions, so that a changed definition blocks calls.
///
/// New tools are pinned at once. Differences from existing pins are shown, and accepted only
/// interactively or with --yes. Pins are stored in the state directory; --file writes a file for a
/// repository, to be used with 'toolhost verify --file'.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct PinArgs {
    /// Only these tools, and the tools of these servers
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub names: Vec<String>,
    /// Only tools of this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Write this pin file instead of the one in the state directory
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Accept changes without asking
    #[arg(short, long)]
    pub yes: bool,
}

pub async fn pin(args: &PinArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let assembly = context.assemble(PinSelection::start_scope(&args.names, &args.server)).await?;
    let (file, pins) = pins(args.file.as_deref(), context, &assembly)?;
    let pins = pins.unwrap_or_else(|| {
        Pins::new(Arc::clone(assembly.host.pins().context()), PinFileContent::default())
    });
    let selection = PinSelection::resolve(&args.names, &args.server, &assembly, &pins).await?;
    let (report, catalogue) = selection.compare(&assembly, &pins, context).await;
    let open = report.count(PinReportState::Changed)
        + report.count(PinReportState::Missing)
        + report.servers.len();
    let accepted = open == 0 || args.yes || confirm_changes(&report, context).await;
    let host = &*assembly.host;
    let book = PinUpdate { host, report: &report, catalogue: &catalogue, accepted };
    let writes = accepted && open > 0 || report.count(PinReportState::New) > 0;
    if writes {
        file.change(|pinned| book.apply(pinned, file.own))?;
    }
    let none = FindingsByTool::new();
    let value = PinReportJson::from((&report, &none, &*file.path, Some((writes, accepted))));
    // A person who was asked has already seen it.
    let page = || {
        if !args.yes && accepted && open > 0 {
            return Page::default();
        }
        present::pins::page(&report, &none, context.output.width())
    };
    if context.output.report(format, &value, page)? {
        let what = present::pins::summary(&report);
        context.output.note(format!("{what}; pins: {}", file.path.display()));
    }
    if !accepted {
        let what = plural(open, "change was not accepted", "changes were not accepted");
        return Err(Error::denied(format!("{what}; those pins are unchanged"))
            .with_hint("'toolhost pin --yes' accepts what was shown")
            .into());
    }
    let answered = report.tools.iter().any(|tool| tool.now.is_some());
    let reach = selection.reach();
    let broken =
        assembly.configuration.count_broken_servers(|server| reach.includes_server(server));
    conclude(present::catalogue::verdict(&catalogue, broken, answered))
}

/// The selected pin file and its pins; `None` if it does not exist.
pub(super) fn pins(
    named: Option<&Path>,
    context: &CommandContext,
    assembly: &Assembly,
) -> Result<(PinFile, Option<Pins>), Error> {
    let pin_context = Arc::clone(assembly.host.pins().context());
    if let Some(path) = named {
        let file = PinFile::named(context.environment.cwd().join(path));
        let book = file.read()?;
        return Ok((file, book.map(|book| Pins::new(pin_context, book))));
    }
    let Some(file) = PinFile::own(&*context.environment) else {
        return Err(Error::config("there is no state directory for pins")
            .with_hint("set HOME, or use --file"));
    };
    let pins = assembly.host.pins();
    Ok((file, (!pins.is_empty()).then(|| Pins::clone(&pins))))
}

async fn confirm_changes(report: &PinReport, context: &CommandContext) -> bool {
    if !prompt::is_possible() {
        return false;
    }
    let page = present::pins::page(report, &FindingsByTool::new(), context.output.width());
    let question = "Pin all of this as it is now?";
    prompt::confirm(Arc::clone(&context.output), page, question).await == Approval::Granted
}

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
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
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

pub async fn verify(args: &VerifyArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let assembly = context.assemble(PinSelection::start_scope(&args.names, &args.server)).await?;
    let (file, pins) = pins(args.file.as_deref(), context, &assembly)?;
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
    let incomplete = match incomplete {
        None if report.tools.is_empty() => {
            entry_checks::require_files(&assembly.configuration).err()
        }
        incomplete => incomplete,
    };
    conclude(verdict(&report, args.strict_new, incomplete))
}

/// The suspicious findings about changed and new tools; with `all` about every tool.
fn flagged(report: &PinReport, catalogue: &Catalogue, all: bool) -> FindingsByTool {
    let is_due = |state| all || matches!(state, PinReportState::Changed | PinReportState::New);
    let due = report.tools.iter().filter(|tool| is_due(tool.state));
    let due: BTreeSet<&str> = due.map(|tool| tool.name.as_str()).collect();
    super::list::flagged(&catalogue.tools, |name| due.contains(name), all)
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

#[cfg(test)]
mod tests {
    use super::*;

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
