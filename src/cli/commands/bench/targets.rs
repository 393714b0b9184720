//! The tools of a run, as named on the command line.

use tokio_util::sync::CancellationToken;

use super::args::BenchArgs;
use crate::bench::arguments::read_lines;
use crate::bench::bench_runner::PreparedTarget;
use crate::bench::targets::{self, ArgumentInput, TargetOptions, TargetSpec};
use crate::cli::commands::prelude::*;

/// The number of targets in the report: the tools of a command line, or the steps of one tool.
pub(super) fn count(args: &BenchArgs) -> usize {
    let steps = args.concurrency.as_ref().map_or(0, |spec| spec.further.len());
    1 + steps + usize::from(args.vs.is_some())
}

pub(super) async fn target_specs(
    args: &BenchArgs,
    context: &CommandContext,
) -> Result<Vec<TargetSpec>, Error> {
    if args.args.as_deref() == Some("-") && args.vs_args.as_deref() == Some("-") {
        return Err(Error::usage("--args - and --vs-args - cannot both read standard input"));
    }
    let arguments = match &args.args_lines {
        Some(file) => {
            ArgumentInput::Lines(read_lines("--args-lines", &context.environment.cwd().join(file))?)
        }
        None => {
            ArgumentInput::Single(read_arguments(&args.words, args.args.as_ref(), context).await?)
        }
    };
    let mut all = vec![TargetSpec { name: args.name.clone(), arguments: arguments.clone() }];
    if let Some(name) = args.vs.clone() {
        let arguments = match &args.vs_args {
            Some(_) => ArgumentInput::Single(
                read_arguments(&[], args.vs_args.as_ref(), context)
                    .await
                    .map_err(|error| Error::usage(format!("--vs-args: {}", error.message())))?,
            ),
            None => arguments,
        };
        all.push(TargetSpec { name, arguments });
    }
    Ok(all)
}

/// Finds each tool and checks that it may be benchmarked; `cancel` will end the run at once.
pub(super) async fn resolve(
    specs: Vec<TargetSpec>,
    args: &BenchArgs,
    context: &CommandContext,
    host: &ToolHost,
    cancel: &CancellationToken,
) -> Result<Vec<PreparedTarget>, Error> {
    let options = TargetOptions {
        servers: args.server.clone(),
        timeout: args.timeout,
        skips_validation: args.no_validate,
        allow_writes: args.allow_writes || args.yes_nested,
        assume_yes_nested: args.yes_nested,
        inspect_every: args.check_every,
        cancel: cancel.clone(),
    };
    targets::prepare(specs, &options, host, |warning| context.output.warn(warning)).await
}
