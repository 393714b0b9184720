//! `toolhost bench`: benchmarking one or several tools, with a live display that a key or a signal ends, and
//! the files of its result.

use tokio_util::sync::CancellationToken;

use crate::bench::json::RunJson;
use crate::bench::snapshot::BenchSnapshot;
use crate::bench::{AcceptanceCriteria, BenchResult, Benchmark, ExportFormat, baseline, threshold};
use crate::cli::commands::prelude::*;
use crate::cli::save;
use crate::present::bench::live;
use crate::util::clock::{Clock, SystemClock};
pub use args::BenchArgs;

mod args;
mod plan;

pub async fn run(args: &BenchArgs, context: &CommandContext) -> CommandResult {
    use Format::{Csv, Json, Markdown, Yaml};
    let format = context.format(formats::MEASUREMENTS)?;
    let plan = plan::plan(args)?;
    check(args, &context.environment.cwd())?;
    let criteria = acceptance_criteria(args)?;
    let specs = plan::target_specs(args, context).await?;
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
    let targets = plan::resolve(specs, args, context, &assembly.host, &abort).await?;
    if let (Some(path), [target]) = (&args.export_locust, targets.as_slice()) {
        return plan::write(path, &plan, target, &assembly, context);
    }
    context.request_grace_period(GRACE_PERIOD);
    let benchmark = Benchmark { criteria, ..Benchmark::new(plan) };
    let work = benchmark.run(&assembly.host, targets);
    let result = drive(work, &benchmark, &abort, context).await?;
    // Even if stdout was closed, the files are written.
    let written = write(args, context, &result);
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
        thresholds: threshold::parse(&args.fail_if, plan::count(args))?,
        baseline: args.baseline.as_deref().map(baseline::read).transpose()?,
        max_regression: args.max_regression,
    })
}

const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
const LOG_INTERVAL: Duration = Duration::from_secs(5);
/// How long to wait for responses after a signal.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(800);
/// Grace period of a run after a signal: waiting for responses, and the report.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Drives a run to its report and shows it live. The first signal stops new calls and waits briefly
/// for responses; the second one ends the run at once, with `abort`.
async fn drive(
    run: impl Future<Output = Result<BenchResult, Error>>,
    benchmark: &Benchmark,
    abort: &CancellationToken,
    context: &CommandContext,
) -> Result<BenchResult, Error> {
    let plan = &benchmark.plan;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let output = &context.output;
    let paints = output.can_repaint();
    let mut looks = tokio::time::interval(if paints { REDRAW_INTERVAL } else { LOG_INTERVAL });
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // There is nothing to show at the start.
    looks.reset();
    let stopped = async {
        context.cancel.cancelled().await;
        benchmark.control.stop();
        tokio::select! {
            () = context.abort.cancelled() => {}
            () = tokio::time::sleep(DRAIN_TIMEOUT) => {}
        }
        abort.cancel();
        std::future::pending::<()>().await;
    };
    let (mut run, mut stopped) = (std::pin::pin!(run), std::pin::pin!(stopped));
    loop {
        tokio::select! {
            report = &mut run => return report,
            () = &mut stopped => {}
            _ = looks.tick() => {
                let seen = BenchSnapshot::capture(&benchmark.monitor, plan, clock.now());
                if paints {
                    let width = output.stderr_width().unwrap_or(80);
                    output.status_page(&live::block(&seen, plan, width));
                } else if !output.has_json_errors() {
                    output.note(live::line(&seen));
                }
            }
        }
    }
}

/// The files to write: the option that names each, and the form of the report in it.
fn files(args: &BenchArgs) -> Vec<(&'static str, &PathBuf, Option<ExportFormat>)> {
    let single = [
        ("--save", &args.save, Some(ExportFormat::Json)),
        ("--html", &args.html, Some(ExportFormat::Html)),
        ("--export-locust", &args.export_locust, None),
    ];
    let single =
        single.into_iter().filter_map(|(option, path, form)| Some((option, path.as_ref()?, form)));
    let exports = args.export.iter().map(|export| ("--export", &export.path, Some(export.form)));
    single.chain(exports).collect()
}

/// Makes sure that every file can be written, before anything is started.
fn check(args: &BenchArgs, cwd: &Path) -> Result<(), Error> {
    let mut earlier: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path, _) in files(args) {
        let path = cwd.join(path);
        if let Some((other, _)) = earlier.iter().find(|(_, other)| *other == path) {
            let what = format!("{other} and {option} both name '{}'", path.display());
            return Err(Error::usage(what).with_hint("use a different file for each"));
        }
        save::check_writable(&path)
            .map_err(|error| Error::usage(format!("{option}: {}", error.message())))?;
        earlier.push((option, path));
    }
    let is_picture = |page: &&PathBuf| page.extension().is_some_and(|e| e == "svg");
    if let Some(page) = args.html.as_ref().filter(is_picture) {
        let what = format!("'{}' is to be an HTML page, not an SVG picture", page.display());
        return Err(Error::usage(what).with_hint("name it .html: the plots are in the page"));
    }
    Ok(())
}

fn write(args: &BenchArgs, context: &CommandContext, result: &BenchResult) -> Result<(), Error> {
    let mut outcome = Ok(());
    for (_, path, form) in files(args) {
        let written = form.map(|form| write_one(path, &result.render(form), context));
        outcome = outcome.and(written.unwrap_or(Ok(())));
    }
    outcome
}

fn write_one(path: &Path, text: &str, context: &CommandContext) -> Result<(), Error> {
    save::write(&context.environment.cwd().join(path), text.as_bytes())?;
    context.output.note(Line::plain("saved ").then(Role::Name, path.display().to_string()));
    Ok(())
}
