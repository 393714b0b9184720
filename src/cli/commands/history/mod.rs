//! `toolhost history`: listing, showing and deleting past calls.

pub mod diff;
mod rerun;

use crate::cli::commands::call_selection::CallSelection;
use crate::cli::commands::prelude::*;
use crate::cli::{records, save};
use crate::config::suite;
use crate::history::json::{HistoryCallJson, HistoryDetailJson};
use crate::history::read::{self, HistoryLookup};
use crate::history::{self, HistoryEntry};
use crate::model::CallFilter;
use crate::util::append::RecordLocation;
use crate::util::segments::{self, ReverseLines};

/// Show, rerun and compare past calls.
///
/// Calls are stored with their arguments, except secret ones, and the beginning of the result.
/// Without a subcommand, lists the newest calls first.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HistoryArgs {
    /// Which calls are listed.
    #[command(flatten)]
    pub list: HistoryListArgs,
    /// The subcommand, instead of listing.
    #[command(subcommand)]
    pub action: Option<HistoryAction>,
}

/// Which calls are listed.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::LIST))]
pub struct HistoryListArgs {
    #[command(flatten)]
    pub calls: CallSelection,
    /// Include calls of all projects, not only of the current one
    #[arg(long)]
    pub all_projects: bool,
}

/// What to do with past calls.
#[derive(Debug, Subcommand)]
pub enum HistoryAction {
    /// List calls, newest first.
    List(HistoryListArgs),
    /// Show one call: its arguments and its result.
    #[command(arg = formats::option(formats::REPORT))]
    Show {
        /// ID of the call, a unique prefix of it, or 'last' of this project
        #[arg(add = ArgValueCompleter::new(complete::calls))]
        id: String,
    },
    /// Rerun a call with the same arguments.
    #[command(visible_alias = "replay")]
    Rerun(rerun::HistoryRerunArgs),
    /// Compare the results of two calls, line by line.
    Diff(diff::HistoryDiffArgs),
    /// Save calls as tests, for 'toolhost test'.
    Save {
        /// IDs of calls, unique prefixes of them, or 'last'
        #[arg(required = true, value_name = "ID", add = ArgValueCompleter::new(complete::calls))]
        ids: Vec<String>,
        /// The file of tests, made if it is missing
        #[arg(long, required = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        as_test: PathBuf,
    },
    /// Delete the history.
    Clear {
        /// Delete without asking
        #[arg(short, long)]
        yes: bool,
    },
}

pub async fn run(args: &HistoryArgs, context: &CommandContext) -> CommandResult {
    match &args.action {
        None => list(&args.list, context),
        Some(HistoryAction::List(args)) => list(args, context),
        Some(HistoryAction::Show { id }) => show(id, context),
        Some(HistoryAction::Rerun(args)) => rerun::run(args, context).await,
        Some(HistoryAction::Diff(args)) => diff::run(args, context).await,
        Some(HistoryAction::Save { ids, as_test }) => save(ids, as_test, context),
        Some(HistoryAction::Clear { yes }) => clear(*yes, context).await,
    }
}

fn list(args: &HistoryListArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::LIST)?;
    let location = location(context)?;
    let filter = CallFilter {
        project: context.load().project().filter(|_| !args.all_projects),
        ..args.calls.filter(context.now())
    };
    let page = read::newest(lines(&location)?, &filter, args.calls.limit())
        .map_err(Error::unreadable_records)?;
    let output = &context.output;
    records::warn_unreadable_lines(output, page.damaged, &location.path);
    let all: Vec<_> = page.entries.iter().map(HistoryCallJson::from).collect();
    let names = page.entries.iter().map(|entry| &entry.id);
    let shown = || present::history::page(&page.entries, output.width());
    if output.listing(format, &all, names, shown)? && page.entries.is_empty() {
        let path = location.path.display();
        let place = filter.project.map(|root| format!(" of {root}")).unwrap_or_default();
        output.note(hint(format!("no such call{place} in {path}")));
    }
    Ok(())
}

fn show(id: &str, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let entry = find_entry(id, context)?;
    let output = &context.output;
    let page = || present::history::whole(&entry, output.width());
    output.report(format, &HistoryDetailJson::from(&entry), page)?;
    Ok(())
}

fn save(ids: &[String], path: &Path, context: &CommandContext) -> CommandResult {
    context.format(formats::TEXT)?;
    save::check_writable(&context.environment.cwd().join(path))
        .map_err(|error| error.context("--as-test"))?;
    let mut tests = Vec::new();
    for id in ids {
        let entry = find_entry(id, context)?;
        let (test, missing) = crate::host::rerun::as_test(&entry)?;
        if !missing.is_empty() {
            let names = missing.join(", ");
            context.output.warn(&format!("'{}' lacks what was secret: {names}", test.tool));
        }
        if let Some(command_end) = &entry.command_end {
            let message =
                format!("'{}' needs its server: toolhost test FILE {command_end}", test.tool);
            context.output.note(message);
        }
        tests.push(test);
    }
    suite::append(path, &tests)?;
    let count = plural(tests.len(), "test", "tests");
    let remark = format!("{count}: toolhost test {}", path.display());
    context.output.note(done("saved ", "").then(Role::Dim, remark));
    Ok(())
}

async fn clear(yes: bool, context: &CommandContext) -> CommandResult {
    context.format(formats::TEXT)?;
    let location = location(context)?;
    let files = segments::files(&location).map_err(Error::unreadable_records)?;
    let files: Vec<RecordLocation> =
        files.into_iter().filter(|file| file.path.symlink_metadata().is_ok()).collect();
    if files.is_empty() {
        context.output.note("no history to remove");
        return Ok(());
    }
    if !yes {
        let mut page = Page::from(Line::plain("The history of all calls will be removed:"));
        for file in &files {
            page.push(Line::plain(file.path.display().to_string()).indented(2));
        }
        let refusal = ("nothing was removed", "--yes removes without asking");
        prompt::require_confirmation(context.output.clone(), page, "Remove it?", refusal).await?;
    }
    for file in &files {
        std::fs::remove_file(&file.path).map_err(|error| {
            Error::internal(format!("cannot remove {}: {error}", file.path.display()))
        })?;
    }
    let count = plural(files.len(), "file", "files");
    context.output.note(format!("{count} removed"));
    Ok(())
}

fn location(context: &CommandContext) -> Result<RecordLocation, Error> {
    context.record_location(("history", "history", history::log::FILE), |all| &all.history)
}

fn lines(location: &RecordLocation) -> Result<ReverseLines, Error> {
    ReverseLines::all(location).map_err(Error::unreadable_records)
}

fn find_entry(id: &str, context: &CommandContext) -> Result<HistoryEntry, Error> {
    let location = location(context)?;
    let project = context.load().project();
    match read::find(lines(&location)?, id, project.as_deref())
        .map_err(Error::unreadable_records)?
    {
        HistoryLookup::One(entry) => Ok(*entry),
        HistoryLookup::NotFound if id == "last" => Err(match project {
            Some(root) => Error::usage(format!("there is no call of {root} in the history"))
                .with_hint("'toolhost history --all-projects' lists the calls of all projects"),
            None => Error::usage("there are no calls in the history yet"),
        }),
        HistoryLookup::NotFound => {
            Err(Error::usage(format!("there is no call '{id}' in the history"))
                .with_hint("'toolhost history' lists the newest calls"))
        }
        HistoryLookup::Ambiguous(ids) => {
            Err(Error::usage(format!("'{id}' matches several calls")).with_details(ids))
        }
    }
}
