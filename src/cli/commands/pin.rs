//! `toolhost pin`: pinning tool definitions.

use super::prelude::*;
use crate::assembly::Assembly;
use crate::assembly::pin_update::PinUpdate;
use crate::assembly::pins::PinFile;
use crate::catalogue::pins::{PinFileContent, PinReport, PinReportState, Pins};
use crate::catalogue::scan::FindingsByTool;
use crate::cli::json::pins::PinReportJson;
use crate::cli::pin_selection::PinSelection;
use crate::host::approval::Approval;

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
    #[arg(long, value_name = "NAME", value_parser = server_target::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Write this pin file instead of the one in the state directory
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Accept changes without asking
    #[arg(short, long)]
    pub yes: bool,
}

pub async fn run(args: &PinArgs, context: &CommandContext) -> CommandResult {
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
