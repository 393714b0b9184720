//! `toolhost bench`.

mod args;
mod calls;
mod ending;
mod files;
mod live;
mod locust;
mod parse;
mod plan;
mod targets;

use std::sync::Arc;

pub use args::BenchArgs;

use crate::bench::driver::Control;
use crate::bench::environment::{BenchEnvironment, ServerIdentity, ThisMachine};
use crate::bench::findings::{Demands, Findings};
use crate::bench::report::{Report, TargetReport};
use crate::bench::run::{self, Prepared};
use crate::bench::watch::Watch;
use crate::bench::{baseline, export, json, threshold};
use crate::cli::context::{Context, Outcome, Starts};
use crate::cli::output::{Format, Label, Page};
use crate::cli::views;
use crate::host::ToolHost;
use crate::model::Fault;
use crate::util::clock::SystemClock;
use targets::Found;
use tokio_util::sync::CancellationToken;

/// Runs the command.
///
/// # Errors
/// Why a tool cannot be called at all; of a run that failed what was asked of it, what failed; of a
/// run in which no call succeeded, the commonest failure.
pub async fn run(args: &BenchArgs, context: &Context) -> Outcome {
    use Format::{Csv, Json, Markdown, Text, Yaml};
    let format = context.format(&[Text, Json, Yaml, Csv, Markdown])?;
    let plan = plan::plan(args)?;
    files::check(args, &context.environment.cwd())?;
    let demands = demands(args)?;
    let wanted = targets::wanted(args, context).await?;
    // Whatever has to be asked about is asked about before anything is started.
    let mut assembly = context.assemble(Starts::Named(&args.name, &args.server)).await?;
    for other in wanted.iter().filter(|other| other.name != args.name) {
        assembly = context.assemble(Starts::Named(&other.name, &args.server)).await?;
    }
    let abort = CancellationToken::new();
    let found = targets::found(wanted, args, context, &assembly.host, &abort, plan.seed).await?;
    if let Some(path) = &args.export_locust {
        return locust::write(path, &plan, &found, &assembly, context);
    }
    let servers: Vec<Option<String>> = found
        .iter()
        .map(|found| found.target.definition().name.component().map(str::to_owned))
        .collect();
    let prepared = found
        .into_iter()
        .map(|Found { target, arguments, weight, .. }| Prepared { target, arguments, weight })
        .collect();
    context.ask_for_time(live::GRACE);
    let environment = BenchEnvironment::before(&ThisMachine);
    let (control, watch) = (Control::default(), Watch::default());
    let work = run::run(&plan, prepared, Arc::new(SystemClock), &control, &watch);
    let stop = live::Stop { control: &control, abort: &abort };
    let report = live::watched(work, &plan, &stop, &watch, context).await?;
    let environment = BenchEnvironment {
        servers: identities(&report, &servers, &assembly.host),
        ..environment.after(&ThisMachine)
    };
    let findings = Findings::of(&report, &environment, &demands);
    // Whoever reads standard output may go away; the files are written all the same.
    let written = files::write(args, context, &report, &environment, &findings);
    match format {
        Json | Yaml => {
            context.door.value(format, &json::report(&report, &environment, &findings))?;
        }
        Csv => print(&export::csv::csv(&report), context)?,
        Markdown => print(&export::markdown::markdown(&report, &findings.comparisons), context)?,
        _ => {
            let width = context.door.width();
            context.door.page(&views::bench::page(&report, &environment, &findings, width))?;
        }
    }
    written?;
    match findings.fault().or_else(|| ending::of_failures(&report)) {
        Some(fault) => Err(fault.into()),
        None => Ok(()),
    }
}

/// Prints text of another program's form.
fn print(text: &str, context: &Context) -> Outcome {
    let mut page = Page::default();
    page.text(Label::Plain, 0, text.trim_end());
    context.door.page(&page)
}

/// What a run is held to.
fn demands(args: &BenchArgs) -> Result<Demands, Fault> {
    if args.max_regression.is_some() && args.baseline.is_none() {
        return Err(Fault::usage("--max-regression says nothing without --baseline")
            .hint("--save FILE writes what --baseline FILE reads"));
    }
    Ok(Demands {
        thresholds: threshold::parse(&args.fail_if, targets::count(args))?,
        baseline: args.baseline.as_deref().map(baseline::read).transpose()?,
        max_regression: args.max_regression,
    })
}

/// Who the servers of the tools said they are.
fn identities(report: &Report, servers: &[Option<String>], host: &ToolHost) -> Vec<ServerIdentity> {
    let known = host.servers();
    let targets = report.targets.iter().zip(servers);
    let of = |(target, server): (&TargetReport, &Option<String>)| {
        let status = known.iter().find(|status| Some(&status.name) == server.as_ref())?;
        let claim = |key: &str| {
            let info = status.server_info.as_ref()?;
            info.get(key)?.as_str().map(str::to_owned)
        };
        Some(ServerIdentity {
            tool: target.tool.clone(),
            name: claim("name"),
            version: claim("version"),
            protocol: status.protocol.clone(),
        })
    };
    targets.filter_map(of).collect()
}
