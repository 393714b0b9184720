//! `toolhost bench`.

mod args;
mod calls;
mod files;
mod live;
mod locust;
mod parse;
mod plan;
mod targets;

use std::sync::Arc;

pub use args::BenchArgs;

use crate::bench::account::{Account, Form};
use crate::bench::driver::Control;
use crate::bench::environment::{BenchEnvironment, ThisMachine};
use crate::bench::findings::{Demands, Findings};
use crate::bench::targets::{identities, prepared, servers};
use crate::bench::watch::Watch;
use crate::bench::{baseline, json, run, threshold};
use crate::cli::context::{Context, Outcome, Starts};
use crate::cli::output::{Format, Label, Page};
use crate::cli::views;
use crate::model::Fault;
use crate::util::clock::SystemClock;
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
    let servers = servers(&found);
    context.ask_for_time(live::GRACE);
    let environment = BenchEnvironment::before(&ThisMachine);
    let (control, watch) = (Control::default(), Watch::default());
    let work = run::run(&plan, prepared(found), Arc::new(SystemClock), &control, &watch);
    let stop = live::Stop { control: &control, abort: &abort };
    let report = live::watched(work, &plan, &stop, &watch, context).await?;
    let environment = BenchEnvironment {
        servers: identities(&report, &servers, &assembly.host),
        ..environment.after(&ThisMachine)
    };
    let findings = Findings::of(&report, &environment, &demands);
    let account = Account { report, environment, findings };
    // Whoever reads standard output may go away; the files are written all the same.
    let written = files::write(args, context, &account);
    let Account { report, environment, findings } = &account;
    match format {
        Json | Yaml => context.door.value(format, &json::report(report, environment, findings))?,
        Csv => print(&account.text(Form::Csv), context)?,
        Markdown => print(&account.text(Form::Markdown), context)?,
        _ => {
            let width = context.door.width();
            context.door.page(&views::bench::page(report, environment, findings, width))?;
        }
    }
    written?;
    match account.fault() {
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
