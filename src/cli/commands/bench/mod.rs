//! `toolhost bench`.

mod args;
mod calls;
mod ending;
mod files;
mod live;
mod parse;
mod plan;

use std::sync::Arc;

pub use args::BenchArgs;

use crate::bench::driver::Control;
use crate::bench::environment::{BenchEnvironment, ServerIdentity, ThisMachine};
use crate::bench::findings::{Demands, Findings};
use crate::bench::report::{Report, TargetReport};
use crate::bench::run::{self, Prepared};
use crate::bench::watch::Watch;
use crate::bench::{baseline, json, threshold};
use crate::cli::context::{Context, Outcome, Starts};
use crate::cli::output::Format;
use crate::cli::views;
use crate::host::ToolHost;
use crate::host::repeat::TargetRequest;
use crate::model::{Fault, ToolDefinition};
use crate::util::clock::SystemClock;
use calls::Given;

/// Runs the command.
///
/// # Errors
/// Why the tool cannot be called at all; of a run that failed what was asked of it, what failed; of
/// a run in which no call succeeded, the commonest failure.
pub async fn run(args: &BenchArgs, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Yaml])?;
    let plan = plan::plan(args)?;
    files::check(args, &context.environment.cwd())?;
    let demands = demands(args, 1)?;
    let given = Given::read(args, context).await?;
    let assembly = context.assemble(Starts::Named(&args.name, &args.server)).await?;
    let request = TargetRequest {
        servers: args.server.clone(),
        timeout: args.timeout,
        validate: !args.no_validate,
        allow_writes: args.allow_writes,
        ..TargetRequest::new(&args.name)
    };
    let target = assembly.host.target(&request).await?;
    for warning in target.warnings() {
        context.door.warn(warning);
    }
    if !args.allow_writes && is_silent(target.definition()) {
        let name = target.definition().name.full();
        context.door.warn(&format!("'{name}' does not say whether it is read-only"));
    }
    let arguments = given.of(&target).await?;
    let server = target.definition().name.component().map(str::to_owned);
    let prepared = Prepared { target, arguments, weight: 1.0 };
    let (control, watch) = (Control::default(), Watch::default());
    context.ask_for_time(live::GRACE);
    let environment = BenchEnvironment::before(&ThisMachine);
    let work = run::run(&plan, prepared, Arc::new(SystemClock), &control, &watch);
    let report = live::watched(work, &plan, &control, &watch, context).await?;
    let environment = BenchEnvironment {
        servers: identities(&report, &[server], &assembly.host),
        ..environment.after(&ThisMachine)
    };
    let findings = Findings::of(&report, &environment, &demands);
    // Whoever reads standard output may go away; the files are written all the same.
    let written = files::write(args, context, &report, &environment, &findings);
    match format {
        Format::Text => {
            let width = context.door.width();
            context.door.page(&views::bench::page(&report, &environment, &findings, width))?;
        }
        _ => context.door.value(format, &json::report(&report, &environment, &findings))?,
    }
    written?;
    match findings.fault().or_else(|| ending::of_failures(&report)) {
        Some(fault) => Err(fault.into()),
        None => Ok(()),
    }
}

/// What a run on so many tools is held to.
fn demands(args: &BenchArgs, targets: usize) -> Result<Demands, Fault> {
    if args.max_regression.is_some() && args.baseline.is_none() {
        return Err(Fault::usage("--max-regression says nothing without --baseline")
            .hint("--save FILE writes what --baseline FILE reads"));
    }
    Ok(Demands {
        thresholds: threshold::parse(&args.fail_if, targets)?,
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

/// Whether a tool leaves open whether it changes anything.
fn is_silent(tool: &ToolDefinition) -> bool {
    tool.annotations.read_only.is_none()
}
