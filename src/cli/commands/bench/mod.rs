//! `toolhost bench`.

mod args;
mod calls;
mod ending;
mod live;
mod parse;
mod plan;

use std::sync::Arc;

pub use args::BenchArgs;

use crate::bench::driver::Control;
use crate::bench::run::{self, Prepared};
use crate::bench::watch::Watch;
use crate::cli::context::{Context, Outcome, Starts};
use crate::cli::output::Format;
use crate::cli::views;
use crate::host::repeat::TargetRequest;
use crate::model::ToolDefinition;
use crate::util::clock::SystemClock;
use calls::Given;

/// Runs the command.
///
/// # Errors
/// Why the tool cannot be called at all, and of a run in which no call succeeded the commonest
/// failure.
pub async fn run(args: &BenchArgs, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Yaml])?;
    let plan = plan::plan(args)?;
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
    let prepared = Prepared { target, arguments, weight: 1.0 };
    let (control, watch) = (Control::default(), Watch::default());
    context.ask_for_time(live::GRACE);
    let work = run::run(&plan, prepared, Arc::new(SystemClock), &control, &watch);
    let report = live::watched(work, &plan, &control, &watch, context).await?;
    match format {
        Format::Text => context.door.page(&views::bench::page(&report, context.door.width()))?,
        _ => context.door.value(format, &views::bench::json(&report))?,
    }
    match ending::of_failures(&report) {
        Some(fault) => Err(fault.into()),
        None => Ok(()),
    }
}

/// Whether a tool leaves open whether it changes anything.
fn is_silent(tool: &ToolDefinition) -> bool {
    tool.annotations.read_only.is_none()
}
