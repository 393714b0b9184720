//! `toolhost stats`: usage, latencies and failures of tools.

mod blocking_statistics;
mod stats_scope;

use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::cli::complete;
use crate::cli::context::{CommandContext, CommandResult};
use crate::cli::formats;
use crate::cli::json::stats::StatsJson;
use crate::cli::output::Format;
use crate::cli::records::{Since, parse_since};
use crate::model::CallFilter;
use crate::present;
use crate::present::{Line, Page, Role, stats::StatsRows};
use crate::stats::Summary;
use crate::stats::summary::{UsageOrder, sort};
use crate::util::clock::{Clock as _, SystemClock};
use blocking_statistics::BlockingStatistics;
use stats_scope::StatsScope;

/// Show usage, latencies and failures of tools.
///
/// Counts calls of every kind, from the command line and the console. Durations are those of
/// successful calls; percentiles are accurate to 1 %. With a name, shows everything about that
/// tool.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::LIST))]
pub struct StatsArgs {
    /// Only this tool, or the tools of this server
    #[arg(add = ArgValueCompleter::new(complete::names))]
    pub name: Option<String>,
    /// Only calls since a time ago (30m, 7d) or a date (2026-11-01), rounded to a minute, beyond
    /// two days to an hour, beyond five weeks to a day
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    pub since: Option<Since>,
    /// Include calls of all projects, not only of the current one
    #[arg(long)]
    pub all_projects: bool,
    /// Sort order
    #[arg(long, value_name = "COLUMN", value_enum, default_value_t)]
    pub sort: StatsSortColumn,
    /// One row per tool or per server
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub by: StatsGrouping,
}

/// The keys that tools are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum StatsSortColumn {
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

impl StatsSortColumn {
    fn order(self) -> UsageOrder {
        match self {
            Self::Name => UsageOrder::Name,
            Self::Calls => UsageOrder::Calls,
            Self::Errors => UsageOrder::Errors,
            Self::P50 => UsageOrder::Quantile(0.5),
            Self::P95 => UsageOrder::Quantile(0.95),
            Self::P99 => UsageOrder::Quantile(0.99),
            Self::Mean => UsageOrder::Mean,
            Self::Last => UsageOrder::LastUsed,
        }
    }
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum StatsGrouping {
    /// A tool.
    #[default]
    Tool,
    /// A server; internal tools are one.
    Server,
}

impl StatsArgs {
    /// The current filter; a window relative to now moves on.
    fn filter(&self, scope: &StatsScope, project: Option<&str>, now: Duration) -> CallFilter {
        let since = self.since.map(|since| since.time(now));
        let project = project.map(str::to_owned);
        CallFilter { since, project, tools: scope.tools(), ..CallFilter::default() }
    }
}

pub async fn run(args: &StatsArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::LIST)?;
    let work = perform(args, context, format);
    // Another process may hold the store; an interrupt ends the wait.
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Ok(()),
        outcome = work => outcome,
    }
}

async fn perform(args: &StatsArgs, context: &CommandContext, format: Format) -> CommandResult {
    let mut reading = BlockingStatistics::open(context, args.all_projects)?;
    reading.refresh().await?;
    let scope = stats_scope::resolve(args.name.as_deref(), &mut reading, context).await?;
    let filter = args.filter(&scope, reading.project(), SystemClock.unix());
    let (mut summary, slices) = reading.summary(filter, scope.is_single_tool()).await?;
    sort(&mut summary.tools, args.sort.order());
    reading.print_notes();
    let output = &context.output;
    match format {
        Format::Json | Format::Yaml => {
            let is_single = summary.tools.len() == 1 && scope.is_single_tool();
            let slices = is_single.then_some(slices.as_slice());
            output.value(format, &StatsJson::new(&summary, slices))
        }
        Format::Names => output.names(summary.tools.iter().map(|usage| &usage.tool.name)),
        _ => {
            output.page(&page(args, &summary, &scope, &slices, output.width()))?;
            remark(args, &summary, &scope, reading.project().is_some(), context);
            Ok(())
        }
    }
}

/// Prints the statistics as text.
fn page(
    args: &StatsArgs,
    summary: &Summary,
    scope: &StatsScope,
    slices: &[crate::stats::summary::TimeSlice],
    width: Option<usize>,
) -> Page {
    match (summary.tools.as_slice(), args.by) {
        ([usage], StatsGrouping::Tool) if scope.is_single_tool() => {
            present::stats::detail::page(usage, slices, width)
        }
        (tools, StatsGrouping::Tool) => present::stats::table(tools, StatsRows::Tools, width),
        (_, StatsGrouping::Server) => {
            let mut servers = summary.servers();
            sort(&mut servers, args.sort.order());
            present::stats::table(&servers, StatsRows::Servers, width)
        }
    }
}

fn remark(
    args: &StatsArgs,
    summary: &Summary,
    scope: &StatsScope,
    is_of_project: bool,
    context: &CommandContext,
) {
    let output = &context.output;
    for line in present::stats::remarks(summary, &summary.tools) {
        output.note(&line);
    }
    if summary.tools.is_empty() {
        let what = match (scope, &args.name) {
            (StatsScope::All, _) | (_, None) => "no calls".to_owned(),
            (_, Some(name)) => format!("no calls of '{name}'"),
        };
        let when = if args.since.is_some() { "in this window" } else { "recorded yet" };
        let place = if is_of_project { " in this project (--all-projects: in any)" } else { "" };
        output.note(&Line::styled(Role::Dim, format!("{what} {when}{place}")));
    }
}
