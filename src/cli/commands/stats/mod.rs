//! `toolhost stats`: usage, latencies and failures of tools.
//!
//! Resolving a name to tools with recorded calls.

use crate::catalogue::naming;
use crate::cli::commands::prelude::*;
use crate::cli::json::stats::StatsJson;
use crate::cli::records::{Since, parse_since};
use crate::model::{CallFilter, ToolName};
use crate::present::stats::StatsRows;
use crate::present::stats::detail::slices_in;
use crate::stats::count::ToolKey;
use crate::stats::summary::{UsageOrder, sort};
use crate::stats::{ReadBudget, Statistics, Summary};

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
    /// Only calls since a time ago (30m, 7d) or a date (2026-11-01)
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    pub since: Option<Since>,
    /// Include calls of all projects, not only of the current one
    #[arg(long)]
    pub all_projects: bool,
    /// Sort order
    #[arg(long, value_name = "COLUMN", value_parser = choice(SORT_COLUMNS), default_value = "calls")]
    pub sort: UsageOrder,
    /// One row per tool or per server
    #[arg(long, value_name = "WHAT", value_parser = choice(ROWS), default_value = "tool")]
    pub by: StatsRows,
}

const SORT_COLUMNS: &[Choice<UsageOrder>] = &[
    ("name", "", UsageOrder::Name),
    ("calls", "", UsageOrder::Calls),
    ("errors", "", UsageOrder::Errors),
    ("p50", "", UsageOrder::Quantile(0.5)),
    ("p95", "", UsageOrder::Quantile(0.95)),
    ("p99", "", UsageOrder::Quantile(0.99)),
    ("mean", "", UsageOrder::Mean),
    ("last", "", UsageOrder::LastUsed),
];
const ROWS: &[Choice<StatsRows>] = &[
    ("tool", "A tool", StatsRows::Tools),
    ("server", "A server; internal tools are one", StatsRows::Servers),
];

pub async fn run(args: &StatsArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::LIST)?;
    let work = perform(args, context, format);
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Ok(()),
        outcome = work => outcome,
    }
}

async fn perform(args: &StatsArgs, context: &CommandContext, format: Format) -> CommandResult {
    let output = &context.output;
    let now = context.now();
    let (statistics, project) = open(context)?;
    let project = project.filter(|_| !args.all_projects);
    let has_name = args.name.is_some();
    let (statistics, called) =
        on_thread(
            statistics,
            move |statistics| {
                if has_name { statistics.tools() } else { Vec::new() }
            },
        )
        .await?;
    let scope = resolve(args.name.as_deref(), called, project.as_deref(), context).await?;
    let is_of_project = project.is_some();
    let (is_single, most) = (scope.is_single, slices_in(output.width()));
    let since = args.since.map(|since| since.time(now));
    let filter = CallFilter { since, project, tools: scope.tools, ..CallFilter::default() };
    let (_, (mut summary, slices)) = on_thread(statistics, move |statistics| {
        let summary = statistics.summary(&filter, now);
        let slices =
            if is_single { statistics.time_series(&filter, now, most) } else { Vec::new() };
        (summary, slices)
    })
    .await?;
    sort(&mut summary.tools, args.sort);
    let is_alone = summary.tools.len() == 1 && is_single;
    let value = StatsJson::from((&summary, is_alone.then_some(slices.as_slice())));
    let names = summary.tools.iter().map(|usage| &usage.tool.name);
    let page = || match (summary.tools.as_slice(), args.by) {
        ([usage], StatsRows::Tools) if is_single => {
            present::stats::detail::page(usage, &slices, output.width())
        }
        (tools, StatsRows::Tools) => present::stats::table(tools, args.by, output.width()),
        (_, StatsRows::Servers) => {
            let mut servers = summary.servers();
            sort(&mut servers, args.sort);
            present::stats::table(&servers, args.by, output.width())
        }
    };
    if output.listing(format, &value, names, page)? {
        remark(args, &summary, is_of_project, context);
    }
    Ok(())
}

/// The statistics, and the project of the working directory.
fn open(context: &CommandContext) -> Result<(Statistics, Option<String>), Error> {
    let configuration = context.load_for_record("the statistics are", |all| &all.stats)?;
    let spec = &configuration.stats;
    let state_dir = context.environment.state_dir();
    let place = assembly::stats_place(spec, state_dir.as_deref()).ok_or_else(|| {
        Error::internal("there is no home directory, so there are no statistics")
            .with_hint("set stats: { path: FILE } in tools.yaml")
    })?;
    let store = spec.path.clone().or_else(|| Some(state_dir?.join("stats.db")));
    if let Some(store) = store.filter(|store| *store != place.path && store.exists()) {
        let store = store.display();
        let notice = format!("{store}, where earlier versions counted calls, is not read any more");
        context.output.warn(&notice);
    }
    let statistics = Statistics::new(place, ReadBudget::Everything);
    Ok((statistics, configuration.project()))
}

/// The tools that made 95 % of the project's calls in the last 30 days, most used first.
pub(super) async fn mostly_used(context: &CommandContext) -> Result<Vec<String>, Error> {
    let now = context.now();
    let (statistics, project) = open(context)?;
    let (_, mut summary) = on_thread(statistics, move |statistics| {
        let since = Some(now.saturating_sub(Duration::from_hours(30 * 24)));
        statistics.summary(&CallFilter { since, project, ..CallFilter::default() }, now)
    })
    .await?;
    sort(&mut summary.tools, UsageOrder::Calls);
    let total: u64 = summary.tools.iter().map(|usage| usage.counts.calls()).sum();
    let mut counted = 0;
    let mostly = summary.tools.into_iter().take_while(|usage| {
        let is_needed = counted * 100 < total * 95;
        counted += usage.counts.calls();
        is_needed
    });
    Ok(mostly.map(|usage| usage.tool.name).collect())
}

/// Reads the statistics on their own thread, so that the command still handles signals.
async fn on_thread<T: Send + 'static>(
    mut statistics: Statistics,
    work: impl FnOnce(&Statistics) -> T + Send + 'static,
) -> Result<(Statistics, T), Error> {
    let working = tokio::task::spawn_blocking(move || {
        statistics.refresh()?;
        let done = work(&statistics);
        Ok((statistics, done))
    });
    working.await.map_err(|_| Error::internal("the thread that reads statistics ended early"))?
}

fn remark(args: &StatsArgs, summary: &Summary, is_of_project: bool, context: &CommandContext) {
    for line in present::stats::remarks(summary, &summary.tools) {
        context.output.note(line);
    }
    if summary.tools.is_empty() {
        let of = args.name.as_ref().map(|name| format!(" of '{name}'")).unwrap_or_default();
        let when = if args.since.is_some() { "in this window" } else { "recorded yet" };
        let place = if is_of_project { " in this project (--all-projects: in any)" } else { "" };
        context.output.note(hint(format!("no calls{of} {when}{place}")));
    }
}

/// Which tools are shown.
#[derive(Debug, Default, PartialEq, Eq)]
struct StatsScope {
    /// Their full names; `None` is all.
    pub tools: Option<Vec<String>>,
    /// Whether it is a single tool, so that everything about it is shown. It may never have been
    /// called.
    pub is_single: bool,
}

impl StatsScope {
    fn tool(name: String) -> Self {
        Self { tools: Some(vec![name]), is_single: true }
    }

    fn server(tools: Vec<String>) -> Self {
        Self { tools: Some(tools), is_single: false }
    }
}

/// Resolves a name among the tools that were `called`. Another is found in the catalogue of declared
/// tools, without starting anything.
async fn resolve(
    name: Option<&str>,
    mut called: Vec<ToolKey>,
    project: Option<&str>,
    context: &CommandContext,
) -> Result<StatsScope, Error> {
    let Some(name) = name else { return Ok(StatsScope::default()) };
    let filter = CallFilter { project: project.map(str::to_owned), ..CallFilter::default() };
    called.retain(|tool| tool.is_wanted(&filter));
    if let Some(meant) = find_called(name, &called)? {
        return Ok(meant);
    }
    let assembly = context.build()?;
    let declared = assembly.host.catalogue(&ListScope::Declared).await.tools;
    let mut names: Vec<ToolName> = declared.into_iter().map(|tool| tool.name.clone()).collect();
    if let [tool] = naming::resolve(name, &names, |name| name)[..] {
        return Ok(StatsScope::tool(tool.full()));
    }
    if assembly.host.servers().iter().any(|server| server.name == name) {
        return Ok(StatsScope::server(Vec::new()));
    }
    names.extend(called.iter().map(tool_name));
    let hint = naming::did_you_mean(name, &names.iter().collect::<Vec<_>>())
        .unwrap_or_else(|| "'toolhost stats' shows all tools that were called".to_owned());
    Err(Error::usage(format!("no calls of '{name}' recorded")).with_hint(hint))
}

/// Resolves a name among the tools that were called; `None` if it matches none.
fn find_called(name: &str, called: &[ToolKey]) -> Result<Option<StatsScope>, Error> {
    let names: Vec<ToolName> = called.iter().map(tool_name).collect();
    let meant = naming::resolve(name, &names, |name| name);
    let mut full: Vec<String> = meant.into_iter().map(ToolName::full).collect();
    full.dedup();
    let resolved = match full.as_slice() {
        [one] => Some(one.clone()),
        [_, ..] => {
            let error = Error::usage(format!("several tools are named '{name}'"));
            return Err(error.with_details(full));
        }
        [] => {
            let of_server = called.iter().filter(|tool| tool.server.as_deref() == Some(name));
            let mut tools: Vec<String> = of_server.map(|tool| tool.name.clone()).collect();
            tools.dedup();
            if !tools.is_empty() {
                return Ok(Some(StatsScope::server(tools)));
            }
            // For tools of components, only the full name is stored.
            let plain = name.replace("__", "-").replace(['.', '/', ':'], "-");
            called.iter().find(|tool| tool.name == plain).map(|tool| tool.name.clone())
        }
    };
    Ok(resolved.map(StatsScope::tool))
}

fn tool_name(tool: &ToolKey) -> ToolName {
    let parts = tool
        .server
        .as_deref()
        .and_then(|server| Some((server, tool.name.strip_prefix(server)?.strip_prefix('-')?)));
    match parts {
        Some((server, own)) => ToolName::of(server, own),
        None => ToolName::plain(&tool.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_tool_or_a_server_however_it_is_written() {
        let tool = |name: &str, server: Option<&str>| ToolKey {
            name: name.into(),
            server: server.map(str::to_owned),
            ..ToolKey::default()
        };
        let called = [
            tool("calculator", None),
            tool("git-log", Some("git")),
            tool("git-show", Some("git")),
            tool("notes-read", None),
            tool("web-log", Some("web")),
        ];
        let find = |name: &str| find_called(name, &called).unwrap();
        let one = |name: &str| Some(StatsScope::tool(name.to_owned()));
        assert_eq!(find("calculator"), one("calculator"));
        for written in ["git-log", "git.log", "git/log", "git__log"] {
            assert_eq!(find(written), one("git-log"), "{written}");
        }
        assert_eq!(find("show"), one("git-show"));
        assert_eq!(find("notes.read"), one("notes-read"));
        assert_eq!(
            find("git"),
            Some(StatsScope::server(vec!["git-log".into(), "git-show".into()]))
        );
        assert_eq!(find("nothing"), None);
        assert!(find_called("log", &called).unwrap_err().message().contains("several"));
    }
}
