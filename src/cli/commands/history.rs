//! `toolhost history`.

mod diff;
mod replay;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use crate::assembly;
use crate::cli::complete;
use crate::cli::context::{Context, Outcome, plural};
use crate::cli::output::{Format, Label, Line, Page};
use crate::cli::prompt;
use crate::cli::records::{self, Since, parse_since};
use crate::cli::views;
use crate::history;
use crate::history::Entry;
use crate::history::read::{self, Filter, Lookup};
use crate::host::approval::Approval;
use crate::model::Fault;
use crate::util::append::Location;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::segments::{self, Backwards};

/// Show calls of the past, call again, compare results.
///
/// Every call that was made is kept with its arguments and the beginning of its result. Arguments
/// that are secret are not. Without a command the newest calls are listed, the newest first.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct HistoryArgs {
    /// Which calls are listed.
    #[command(flatten)]
    pub list: ListArgs,
    /// Something else than listing.
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// Which calls are listed.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only tools whose full name matches this pattern, with * and ?
    #[arg(long, value_name = "PATTERN", add = ArgValueCompleter::new(complete::tools))]
    pub tool: Option<String>,
    /// Not before: a time ago (30m, 7d) or a date (2026-11-01)
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    pub since: Option<Since>,
    /// Only calls that failed
    #[arg(long)]
    pub failed: bool,
    /// Only calls of this session
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The most calls to show, the newest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub limit: u32,
}

/// What to do with calls of the past.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List calls, the newest first.
    List(ListArgs),
    /// Show one call: its arguments and what it gave.
    Show {
        /// The call: its identity, a beginning that only it has, or 'last'
        #[arg(add = ArgValueCompleter::new(complete::calls))]
        id: String,
    },
    /// Call again with the same arguments.
    Replay(replay::ReplayArgs),
    /// Compare the results of two calls, line by line.
    Diff(diff::DiffArgs),
    /// Remove the history.
    Clear {
        /// Remove without asking
        #[arg(short, long)]
        yes: bool,
    },
}

/// Runs the command.
///
/// # Errors
/// An unknown call, a history that cannot be read, and whatever calling again runs into.
pub async fn run(args: &HistoryArgs, context: &Context) -> Outcome {
    match &args.action {
        None => list(&args.list, context),
        Some(Action::List(args)) => list(args, context),
        Some(Action::Show { id }) => show(id, context),
        Some(Action::Replay(args)) => replay::run(args, context).await,
        Some(Action::Diff(args)) => diff::run(args, context).await,
        Some(Action::Clear { yes }) => clear(*yes, context).await,
    }
}

fn list(args: &ListArgs, context: &Context) -> Outcome {
    use Format::{Json, Names, Table, Text, Yaml};
    let format = context.format(&[Text, Table, Json, Yaml, Names])?;
    let location = location(context)?;
    let filter = Filter {
        since: args.since.map(|since| since.unix(SystemClock.unix())),
        tool: args.tool.clone(),
        failed: args.failed.then_some(true),
        session: args.session.clone(),
    };
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let found = read::newest(lines(&location)?, &filter, limit).map_err(records::unreadable)?;
    let door = &context.door;
    records::tell_damage(door, found.damaged, &location.path);
    match format {
        Json | Yaml => {
            let all: Vec<_> = found.entries.iter().map(history::json::short).collect();
            door.value(format, &all)
        }
        Names => {
            let mut page = Page::default();
            for entry in &found.entries {
                page.push(Line::plain(&entry.id));
            }
            door.page(&page)
        }
        _ => {
            door.page(&views::history::page(&found.entries, door.width()))?;
            if found.entries.is_empty() {
                let path = location.path.display();
                door.note(&Line::of(Label::Dim, format!("no such call in {path}")));
            }
            Ok(())
        }
    }
}

fn show(id: &str, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Yaml])?;
    let entry = entry(id, context)?;
    match format {
        Format::Json | Format::Yaml => context.door.value(format, &history::json::whole(&entry)),
        _ => context.door.page(&views::history::whole(&entry, context.door.width())),
    }
}

async fn clear(yes: bool, context: &Context) -> Outcome {
    let location = location(context)?;
    let files = segments::files(&location).map_err(records::unreadable)?;
    let files: Vec<Location> =
        files.into_iter().filter(|file| file.path.symlink_metadata().is_ok()).collect();
    if files.is_empty() {
        context.door.note(&Line::plain("there is no history to remove"));
        return Ok(());
    }
    if !yes {
        let mut page = Page::from(Line::plain("The history of all calls will be removed:"));
        for file in &files {
            page.push(Line::plain(file.path.display().to_string()).indented(2));
        }
        match prompt::confirm(std::sync::Arc::clone(&context.door), page, "Remove it?").await {
            Approval::Granted => {}
            Approval::Refused => return Err(Fault::denied("nothing was removed").into()),
            Approval::Nobody => {
                return Err(Fault::denied("nothing was removed: nobody can be asked")
                    .hint("--yes removes without asking")
                    .into());
            }
        }
    }
    for file in &files {
        std::fs::remove_file(&file.path).map_err(|error| {
            Fault::internal(format!("{} cannot be removed: {error}", file.path.display()))
        })?;
    }
    let count = plural(files.len(), "file", "files");
    context.door.note(&Line::plain(format!("{count} removed")));
    Ok(())
}

/// Where the history is.
fn location(context: &Context) -> Result<Location, Fault> {
    let configuration = context.load();
    if !configuration.history.enabled {
        context.door.warn("the history is switched off (history: { enabled: false })");
    }
    let state_dir = context.environment.state_dir();
    assembly::place_of(&configuration.history, history::log::FILE, state_dir.as_deref()).ok_or_else(
        || {
            Fault::internal("there is no home directory, and so no history")
                .hint("history: { path: FILE } in tools.yaml names one")
        },
    )
}

fn lines(location: &Location) -> Result<Backwards, Fault> {
    Backwards::all(location).map_err(records::unreadable)
}

/// The call that a person means.
fn entry(id: &str, context: &Context) -> Result<Entry, Fault> {
    let location = location(context)?;
    match read::find(lines(&location)?, id).map_err(records::unreadable)? {
        Lookup::One(entry) => Ok(*entry),
        Lookup::Nothing if id == "last" => Err(Fault::usage("there is no call in the history yet")),
        Lookup::Nothing => Err(Fault::usage(format!("there is no call '{id}' in the history"))
            .hint("'toolhost history' lists the newest calls")),
        Lookup::Several(ids) => {
            Err(Fault::usage(format!("'{id}' is the beginning of several calls")).details(ids))
        }
    }
}
