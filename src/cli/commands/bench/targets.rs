//! The tools of a run, as the command line names them.

use std::sync::Arc;

use super::args::BenchArgs;
use super::calls;
use crate::bench::targets::{self, Found, Given, Terms, Wanted};
use crate::cli::context::Context;
use crate::host::ToolHost;
use crate::model::Fault;
use crate::util::clock::{Clock, SystemClock};
use tokio_util::sync::CancellationToken;

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
    let given = calls::read(args, context).await?;
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
    let terms = Terms {
        servers: args.server.clone(),
        timeout: args.timeout,
        is_unchecked: args.no_validate,
        allow_writes: args.allow_writes || args.yes_nested,
        assume_yes_nested: args.yes_nested,
        inspect_every: args.check_every,
        seed,
        cancel: cancel.clone(),
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    targets::find(wanted, &terms, host, &clock, |warning| context.door.warn(warning)).await
}
