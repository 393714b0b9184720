//! `toolhost stats`.

mod export;
mod name;
mod reading;
mod reset;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::cli::complete;
use crate::cli::context::{Context, Outcome};
use crate::cli::output::{Format, Label, Line, Page};
use crate::cli::records::{Since, parse_since};
use crate::cli::views;
use crate::cli::views::stats::Rows;
use crate::model::Fault;
use crate::stats::summary::{Order, sort};
use crate::stats::{Query, Summary};
use crate::util::clock::{Clock as _, SystemClock};
use name::Meant;
use reading::Reading;

/// Show how often tools are used, how fast they are and how they fail.
///
/// Every call of every kind is counted, whoever makes it. Durations are of calls that went well;
/// percentiles are exact to a hundredth. With a name everything about that tool is shown.
#[derive(Debug, Args)]
pub struct StatsArgs {
    /// Only this tool, or the tools of this server
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub name: Option<String>,
    /// Not before: a time ago (30m, 7d) or a date (2026-11-01); a window begins with a whole minute,
    /// after two days with a whole hour, after five weeks with a whole day
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    pub since: Option<Since>,
    /// In which order: by name, most calls, most errors, slowest, or used last
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t)]
    pub sort: Column,
    /// One row for each tool, or for each server
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub by: By,
    /// Go on as calls are made, until interrupted
    #[arg(short, long)]
    pub watch: bool,
    /// Write to this file: JSON, or a table when its name ends in .csv; - is standard output
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with = "watch")]
    pub export: Option<PathBuf>,
    /// Forget what was counted, of this tool or of all
    #[arg(long, conflicts_with_all = ["watch", "export", "since"])]
    pub reset: bool,
    /// Forget without asking
    #[arg(short, long, requires = "reset")]
    pub yes: bool,
}

/// What tools are put in order by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[expect(missing_docs, reason = "the names are all there is to say")]
pub enum Column {
    Name,
    #[default]
    Calls,
    Errors,
    P50,
    P95,
    P99,
    Mean,
    Last,
}

impl Column {
    fn order(self) -> Order {
        match self {
            Self::Name => Order::Name,
            Self::Calls => Order::Calls,
            Self::Errors => Order::Errors,
            Self::P50 => Order::Quantile(0.5),
            Self::P95 => Order::Quantile(0.95),
            Self::P99 => Order::Quantile(0.99),
            Self::Mean => Order::Mean,
            Self::Last => Order::Last,
        }
    }
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum By {
    /// A tool.
    #[default]
    Tool,
    /// A server; internal tools are one.
    Server,
}

impl StatsArgs {
    /// What is asked now; a window that begins some time ago moves on.
    fn query(&self, meant: &Meant, now: Duration) -> Query {
        let since = self
            .since
            .map(|since| Duration::try_from_secs_f64(since.unix(now).max(0.0)).unwrap_or_default());
        Query { since, tools: meant.tools() }
    }
}

/// Runs the command.
///
/// # Errors
/// An unknown name, a store that cannot be read, and stdout or a file that cannot be written.
pub async fn run(args: &StatsArgs, context: &Context) -> Outcome {
    use Format::{Json, Names, Table, Text, Yaml};
    let format = context.format(&[Text, Table, Json, Yaml, Names])?;
    if args.watch && matches!(format, Yaml | Names) {
        return Err(Fault::usage("--watch prints tables or JSON lines").into());
    }
    let work = perform(args, context, format);
    // Somebody who holds the store may make us wait: an interruption does not.
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Ok(()),
        outcome = work => outcome,
    }
}

async fn perform(args: &StatsArgs, context: &Context, format: Format) -> Outcome {
    let mut reading = Reading::open(context)?;
    reading.refresh().await?;
    let meant = name::find(args.name.as_deref(), &mut reading, context).await?;
    if args.reset {
        return reset::run(args, reading, &meant, context).await;
    }
    if args.watch {
        return watch::run(args, reading, &meant, context, format).await;
    }
    let query = args.query(&meant, SystemClock.unix());
    let (mut summary, course) = reading.summary(query, meant.is_one()).await?;
    sort(&mut summary.tools, args.sort.order());
    reading.tell();
    if let Some(file) = &args.export {
        return export::run(file, &summary, context);
    }
    let door = &context.door;
    match format {
        Format::Json | Format::Yaml => {
            let mut value = views::stats::json(&summary);
            if let ([usage], true) = (summary.tools.as_slice(), meant.is_one()) {
                value["tools"] = vec![views::stats::detail::json(usage, &course)].into();
            }
            door.value(format, &value)
        }
        Format::Names => {
            let mut page = Page::default();
            for usage in &summary.tools {
                page.push(Line::plain(&usage.tool.name));
            }
            door.page(&page)
        }
        _ => {
            door.page(&page(args, &summary, &meant, &course, door.width()))?;
            remark(args, &summary, &meant, context);
            Ok(())
        }
    }
}

/// What a person sees.
fn page(
    args: &StatsArgs,
    summary: &Summary,
    meant: &Meant,
    course: &[crate::stats::summary::Slice],
    width: Option<usize>,
) -> Page {
    match (summary.tools.as_slice(), args.by) {
        ([usage], By::Tool) if meant.is_one() => views::stats::detail::page(usage, course, width),
        (tools, By::Tool) => views::stats::table(tools, Rows::Tools, width),
        (_, By::Server) => {
            let mut servers = summary.servers();
            sort(&mut servers, args.sort.order());
            views::stats::table(&servers, Rows::Servers, width)
        }
    }
}

/// What has to be said beside it.
fn remark(args: &StatsArgs, summary: &Summary, meant: &Meant, context: &Context) {
    let door = &context.door;
    for line in views::stats::remarks(summary, &summary.tools) {
        door.note(&line);
    }
    if summary.tools.is_empty() {
        let what = match (meant, &args.name) {
            (Meant::All, _) | (_, None) => "no call".to_owned(),
            (_, Some(name)) => format!("no call of '{name}'"),
        };
        let when = if args.since.is_some() { "in this window" } else { "was counted yet" };
        door.note(&Line::of(Label::Dim, format!("{what} {when}")));
    }
}
