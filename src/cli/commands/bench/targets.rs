//! The tools of a run, from the command line to what can be called.
//!
//! Owns: which tools there are, with which arguments and weights; that each may be called so often.

use std::sync::Arc;

use super::args::BenchArgs;
use super::calls::{self, Given};
use crate::bench::arguments;
use crate::bench::driver::Arguments;
use crate::bench::plan::ArgumentSource;
use crate::cli::context::Context;
use crate::host::ToolHost;
use crate::host::repeat::{Target, TargetRequest};
use crate::model::Fault;
use crate::util::clock::SystemClock;
use tokio_util::sync::CancellationToken;

/// A tool as it was asked for.
pub(super) struct Wanted {
    /// The name as typed.
    pub(super) name: String,
    given: Given,
    weight: f64,
}

/// A tool that was found, with checked arguments.
pub(super) struct Found {
    /// The tool.
    pub(super) target: Target,
    /// Where its arguments come from.
    pub(super) source: ArgumentSource,
    /// Its arguments, checked.
    pub(super) arguments: Box<dyn Arguments>,
    /// How often it is chosen among several.
    pub(super) weight: f64,
}

/// How many tools a command line names.
pub(super) fn count(args: &BenchArgs) -> usize {
    1 + usize::from(args.vs.is_some()) + args.mix.len()
}

/// All tools of the command line, the first one first.
///
/// # Errors
/// A usage fault of arguments that cannot be read.
pub(super) async fn wanted(args: &BenchArgs, context: &Context) -> Result<Vec<Wanted>, Fault> {
    if args.args.as_deref() == Some("-") && args.vs_args.as_deref() == Some("-") {
        return Err(Fault::usage("--args - and --vs-args - cannot both read standard input"));
    }
    let given = Given::read(args, context).await?;
    let mut all = vec![Wanted { name: args.name.clone(), given, weight: 1.0 }];
    if let Some(name) = &args.vs {
        let given = match &args.vs_args {
            Some(whole) => Given::One(
                calls::words(Vec::new(), Some(whole.clone()), context)
                    .await
                    .map_err(|fault| Fault::usage(format!("--vs-args: {}", fault.message())))?,
            ),
            None => all[0].given.clone(),
        };
        all.push(Wanted { name: name.clone(), given, weight: 1.0 });
    }
    for mixed in &args.mix {
        let words = calls::words(mixed.words.clone(), None, context)
            .await
            .map_err(|fault| Fault::usage(format!("--mix {}: {}", mixed.name, fault.message())))?;
        let given = Given::One(words);
        all.push(Wanted { name: mixed.name.clone(), given, weight: mixed.weight });
    }
    Ok(all)
}

/// Finds each tool and makes sure that it may be called so often; `cancel` will end the run at once.
///
/// # Errors
/// As for a call of each; and what is refused without --allow-writes.
pub(super) async fn found(
    wanted: Vec<Wanted>,
    args: &BenchArgs,
    context: &Context,
    host: &ToolHost,
    cancel: &CancellationToken,
    seed: u64,
) -> Result<Vec<Found>, Fault> {
    let mut all = Vec::with_capacity(wanted.len());
    for Wanted { name, given, weight } in wanted {
        let request = TargetRequest {
            servers: args.server.clone(),
            timeout: args.timeout,
            validate: !args.no_validate,
            allow_writes: args.allow_writes,
            inspect_every: args.check_every,
            cancel: cancel.clone(),
            ..TargetRequest::new(&name)
        };
        let target = host.target(&request).await?;
        for warning in target.warnings() {
            context.door.warn(warning);
        }
        let tool = target.definition();
        if !args.allow_writes && tool.annotations.read_only.is_none() {
            let name = tool.name.full();
            context.door.warn(&format!("'{name}' does not say whether it is read-only"));
        }
        let source = given.source(&target, seed).await?;
        let clock = Arc::new(SystemClock);
        let arguments = arguments::ready(source.clone(), &target, seed, clock).await?;
        all.push(Found { target, source, arguments, weight });
    }
    Ok(all)
}
