//! `toolhost bench`: benchmarking one or several tools.

mod args;
mod export_spec;
mod files;
mod live;
mod locust;
mod plan;
mod targets;

pub use args::BenchArgs;

use tokio_util::sync::CancellationToken;

use crate::bench::json::RunJson;
use crate::bench::{AcceptanceCriteria, BenchResult, Benchmark, ExportFormat, baseline, threshold};
use crate::cli::commands::prelude::*;

pub async fn run(args: &BenchArgs, context: &CommandContext) -> CommandResult {
    use Format::{Csv, Json, Markdown, Yaml};
    let format = context.format(formats::MEASUREMENTS)?;
    let plan = plan::plan(args)?;
    files::check(args, &context.environment.cwd())?;
    let criteria = acceptance_criteria(args)?;
    let specs = targets::target_specs(args, context).await?;
    let names: Vec<String> = specs.iter().map(|target| target.name.clone()).collect();
    let starts = StartScope::Named(&names, &args.server);
    let (assembly, background) = context.assemble_beside_host(starts).await?;
    if let Some(pid) = background {
        // The host's pipes are shared, and each of its calls is recorded.
        let message = format!(
            "measured with separate servers, not through the background host (pid {pid}), whose socket, \
             records and other clients would affect the figures"
        );
        context.output.note(hint(message));
    }
    let abort = CancellationToken::new();
    let targets = targets::resolve(specs, args, context, &assembly.host, &abort).await?;
    if let (Some(path), [target]) = (&args.export_locust, targets.as_slice()) {
        return locust::write(path, &plan, target, &assembly, context);
    }
    context.request_grace_period(live::GRACE_PERIOD);
    let benchmark = Benchmark { criteria, ..Benchmark::new(plan) };
    let work = benchmark.run(&assembly.host, targets);
    let result = live::drive(work, &benchmark, &abort, context).await?;
    // Even if stdout was closed, the files are written.
    let written = files::write(args, context, &result);
    let BenchResult { report, environment, findings } = &result;
    match format {
        Json | Yaml => {
            context.output.value(format, &RunJson::from((report, environment, findings)))?;
        }
        Csv => print(&result.render(ExportFormat::Csv), context)?,
        Markdown => print(&result.render(ExportFormat::Markdown), context)?,
        _ => {
            let width = context.output.width();
            let is_whole = context.output.verbosity() > 0;
            let page = if is_whole {
                present::bench::page(report, environment, findings, width)
            } else {
                present::bench::brief(report, findings, width)
            };
            context.output.page(&page)?;
            if !is_whole && args.html.is_none() {
                context.output.note(hint("more: -v, --html FILE"));
            }
        }
    }
    written?;
    conclude(result.failure())
}

fn print(text: &str, context: &CommandContext) -> CommandResult {
    let mut page = Page::default();
    page.text(Role::Plain, 0, text.trim_end());
    context.output.page(&page)
}

fn acceptance_criteria(args: &BenchArgs) -> Result<AcceptanceCriteria, Error> {
    if args.max_regression.is_some() && args.baseline.is_none() {
        return Err(Error::usage("--max-regression requires --baseline")
            .with_hint("--save FILE writes a file for --baseline"));
    }
    Ok(AcceptanceCriteria {
        thresholds: threshold::parse(&args.fail_if, targets::count(args))?,
        baseline: args.baseline.as_deref().map(baseline::read).transpose()?,
        max_regression: args.max_regression,
    })
}
