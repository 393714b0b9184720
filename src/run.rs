//! One run of the program: parse, dispatch, and the one place where a failure becomes text and an
//! exit code.
//!
//! Owns: the order of things, signals, and the bounded end of every run. Never does: know what a
//! command does.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::args::{self, Cli, Command};
use crate::cli::commands::{call, completions, config, inspect, list, servers, trust};
use crate::cli::complete;
use crate::cli::context::{Context, Outcome};
use crate::cli::output::door::Wishes;
use crate::cli::output::{Door, Stop};
use crate::cli::signals::Signals;
use crate::config::environment::{Environment, ProcessEnvironment};
use crate::model::{Fault, FaultKind, Signal};
use crate::serve;
use clap::Parser as _;

/// How long a command may take to stop once it was told to: telling a server, printing what there
/// is.
const GRACE: Duration = Duration::from_secs(1);
/// How long everything that was started may take to end. Providers have shorter limits of their
/// own; this one holds when one of them is wrong.
const FAREWELL: Duration = Duration::from_secs(6);

/// Runs the program with the arguments of the process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let environment: Arc<dyn Environment> = Arc::new(ProcessEnvironment);
    let plain = Wishes { json: args::asks_for_json(&arguments), ..Wishes::default() };
    match complete::answer(&arguments, &*environment) {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(stop) => return end(&Door::new(plain, &*environment), Err(stop)),
    }
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let door = Door::new(plain, &*environment);
            let outcome = args::explain(&error, &door);
            return end(&door, outcome);
        }
    };
    let door = Arc::new(Door::new(cli.global.wishes(), &*environment));
    let outcome = dispatch(cli, Arc::clone(&door), environment);
    end(&door, outcome)
}

/// The one place where a failure becomes text and an exit code.
fn end(door: &Door, outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) | Err(Stop::ReaderGone) => {
            door.clear_transient();
            ExitCode::SUCCESS
        }
        Err(Stop::Fault(fault)) => {
            door.fault(&fault);
            ExitCode::from(fault.kind().exit_code())
        }
    }
}

fn dispatch(cli: Cli, door: Arc<Door>, environment: Arc<dyn Environment>) -> Outcome {
    let context = Context::new(cli.global, door, environment);
    match cli.command {
        None => {
            context.door.tell(&args::short_help());
            Err(Fault::usage("no command was given").into())
        }
        Some(Command::Completions(args)) => completions::run(&args, &context),
        Some(Command::Config(args)) => config::run(&args, &context),
        Some(command) => wait(command, &context),
    }
}

/// Runs a command that waits for something, until it ends or a signal ends it.
fn wait(command: Command, context: &Context) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::internal(format!("cannot wait for anything: {error}")))?;
    let outcome = runtime.block_on(supervise(command, context));
    // A thread may still be reading from the terminal: a question that a signal made pointless.
    runtime.shutdown_background();
    outcome
}

async fn supervise(command: Command, context: &Context) -> Outcome {
    let mut signals = Signals::new()
        .map_err(|error| Fault::internal(format!("cannot wait for signals: {error}")))?;
    let (outcome, signal) = {
        let mut work = Box::pin(perform(command, context));
        tokio::select! {
            outcome = &mut work => (outcome, None),
            signal = signals.next() => {
                context.cancel.cancel();
                // A second signal or the end of the grace drops the work where it stands.
                tokio::select! {
                    outcome = tokio::time::timeout(GRACE, &mut work) => {
                        let outcome = outcome.unwrap_or(Ok(()));
                        (outcome, Some((signal, false)))
                    }
                    _ = signals.next() => (Ok(()), Some((signal, true))),
                }
            }
        }
    };
    let at_once = signal.is_some_and(|(_, twice)| twice);
    let ended = farewell(context, &mut signals, at_once).await;
    match signal.map(|(signal, _)| signal).or(ended) {
        Some(signal) => Err(interrupted(signal).into()),
        None => outcome,
    }
}

/// Ends everything that was started; a signal during that ends it at once. Dropping the host
/// kills whatever is left.
async fn farewell(context: &Context, signals: &mut Signals, at_once: bool) -> Option<Signal> {
    let host = context.take_host()?;
    if at_once {
        return None;
    }
    tokio::select! {
        _ = tokio::time::timeout(FAREWELL, host.close()) => None,
        signal = signals.next() => Some(signal),
    }
}

async fn perform(command: Command, context: &Context) -> Outcome {
    match command {
        Command::List(args) => list::run(&args, context).await,
        Command::Inspect(args) => inspect::run(&args, context).await,
        Command::Call(args) => call::run(&args, context).await,
        Command::Servers(args) => servers::run(&args, context).await,
        Command::Trust(args) => trust::run(&args, context).await,
        Command::DemoServer => Ok(serve::demo::run().await?),
        Command::Completions(args) => completions::run(&args, context),
        Command::Config(args) => config::run(&args, context),
    }
}

fn interrupted(signal: Signal) -> Fault {
    let name = match signal {
        Signal::Hangup => "SIGHUP",
        Signal::Interrupt => "SIGINT",
        Signal::Terminate => "SIGTERM",
    };
    Fault::new(FaultKind::Interrupted(signal), format!("interrupted by {name}"))
}
