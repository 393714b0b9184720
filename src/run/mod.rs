//! One run of the program: parses, dispatches, and turns a failure into text and an exit code.
//!
//! Owns: the sequence of steps, signals, and the bounded shutdown of every run. Never does: know
//! what a command does.

mod console;

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::assembly;
use crate::cli::args::{self, Cli, CliCommand};
use crate::cli::context::{CommandContext, CommandResult};
use crate::cli::output::streams::OutputOptions;
use crate::cli::output::{CommandError, Format, Output};
use crate::cli::signals::{NextSignal, Signals, ignore_file_size_signal};
use crate::cli::{ad_hoc, complete, grammar, log};
use crate::config::environment::{Environment, ProcessEnvironment};
use crate::model::{Error, ErrorKind, Signal};
use crate::util::{confine, orphans};

/// How long a command may take to stop once told to: notifying a server, printing what there
/// is.
const CANCEL_GRACE_PERIOD: Duration = Duration::from_secs(1);
const MAX_GRACE_PERIOD: Duration = Duration::from_secs(5);
/// How long a command that requested more time may still print after a second signal.
const ABORT_GRACE_PERIOD: Duration = Duration::from_millis(500);
/// How long everything that was started may take to end. Providers have their own shorter limits;
/// this one applies if one of them fails.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(6);

/// Runs the program with the arguments of the process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let environment: Arc<dyn Environment> = Arc::new(ProcessEnvironment);
    if let Some(why) = confine::become_program_if_requested(&arguments) {
        let output = Output::new(OutputOptions::default(), &*environment);
        let error = Error::denied(format!("the sandbox could not be set up: {why}"));
        return report_outcome(&output, Err(error.into()));
    }
    // Without it a run still works, until it reaches the limit.
    let _unguarded = ignore_file_size_signal();
    let plain = OutputOptions { json: args::requests_json(&arguments), ..OutputOptions::default() };
    match complete::complete_if_requested(&arguments, &*environment) {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(stop) => return report_outcome(&Output::new(plain, &*environment), Err(stop)),
    }
    let mut cli = match grammar::parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let output = Output::new(plain, &*environment);
            let outcome = grammar::print_parse_error(&error, &output);
            return report_outcome(&output, outcome);
        }
    };
    let output = Arc::new(Output::new(cli.global.output_options(), &*environment));
    let outcome = match ad_hoc::take_server(&mut cli) {
        Ok(()) => dispatch_unwound(cli, Arc::clone(&output), environment),
        Err(error) => Err(error.into()),
    };
    report_outcome(&output, outcome)
}

fn report_outcome(output: &Output, outcome: CommandResult) -> ExitCode {
    match outcome {
        Ok(()) | Err(CommandError::OutputClosed) => {
            output.clear_status();
            ExitCode::SUCCESS
        }
        Err(CommandError::Failed(error)) => {
            output.error(&error);
            ExitCode::from(error.kind().exit_code())
        }
    }
}

/// A panic has printed where it was; it ends with the exit code of a bug.
fn dispatch_unwound(
    cli: Cli,
    output: Arc<Output>,
    environment: Arc<dyn Environment>,
) -> CommandResult {
    catch_unwind(AssertUnwindSafe(|| dispatch(cli, output, environment))).unwrap_or_else(|_| {
        Err(Error::internal("a bug in toolhost ended this command")
            .with_hint("please report the message above")
            .into())
    })
}

fn dispatch(cli: Cli, output: Arc<Output>, environment: Arc<dyn Environment>) -> CommandResult {
    let mut context = CommandContext::new(cli.global, output, environment);
    context.console_file = Some(console::FILE);
    log::start(&context, cli.command.is_none() && console::is_possible(&context))?;
    tracing::debug!(version = env!("CARGO_PKG_VERSION"), pid = std::process::id(), "started");
    let outcome = run_in_context(cli.command, &context);
    match &outcome {
        Err(CommandError::Failed(error)) => tracing::debug!(
            kind = error.kind().as_str(),
            exit = error.kind().exit_code(),
            "ended with an error"
        ),
        Ok(()) | Err(CommandError::OutputClosed) => tracing::debug!(exit = 0, "ended"),
    }
    outcome
}

fn run_in_context(command: Option<CliCommand>, context: &CommandContext) -> CommandResult {
    match command {
        None if console::is_possible(context) => console::run(context),
        None => {
            if context.global.format() != Format::Json {
                context.output.stderr_page(&args::short_help());
            }
            Err(Error::usage("no command was given").into())
        }
        Some(command) => block_on_command(command, context),
    }
}

/// Runs a command that waits for something, until it ends or a signal ends it.
fn block_on_command(command: CliCommand, context: &CommandContext) -> CommandResult {
    let runtime = runtime()?;
    let outcome = runtime.block_on(Box::pin(supervise(command, context)));
    // A thread may still be reading from the terminal: a question that a signal cancelled.
    runtime.shutdown_background();
    outcome
}

/// One thread is enough for a program that mostly waits.
fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    try_resources()
        .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build())
        .map_err(|error| Error::internal(format!("cannot start the async runtime: {error}")))
}

/// Tries what the runtime needs and panics without: six descriptors, and a thread for what blocks.
fn try_resources() -> io::Result<()> {
    let _descriptors = [UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?];
    let _ended = std::thread::Builder::new().spawn(|| ())?.join();
    Ok(())
}

async fn supervise(command: CliCommand, context: &CommandContext) -> CommandResult {
    let mut signals = Signals::new()
        .map_err(|error| Error::internal(format!("cannot wait for signals: {error}")))?;
    let work = Box::pin(command.run(context));
    let (outcome, stopped) = run_until_signal(work, &mut signals, context).await;
    let at_once = matches!(stopped, Some(SignalStop { is_immediate: true, .. }));
    let late = shut_down(context, &mut signals, at_once).await;
    match stopped.map(|stopped| stopped.by).or(late) {
        Some(signal) => Err(interrupted(signal).into()),
        None => outcome,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SignalStop {
    by: Signal,
    /// A second signal came: the run no longer waits for anything.
    is_immediate: bool,
}

/// Waits for `work`. A signal tells it to stop and gives it a grace period; a second one, or the
/// end of that period, drops it. Work that requested time may print its results before that.
async fn run_until_signal(
    mut work: impl Future<Output = CommandResult> + Unpin,
    signals: &mut impl NextSignal,
    context: &CommandContext,
) -> (CommandResult, Option<SignalStop>) {
    let by = loop {
        tokio::select! {
            outcome = &mut work => return (outcome, None),
            signal = signals.next() => match signal {
                Signal::Hangup if context.hand_on_hangup() => {}
                signal => break signal,
            },
        }
    };
    context.cancel.cancel();
    let requested = context.grace_period();
    let grace = requested.map_or(CANCEL_GRACE_PERIOD, |grace| grace.min(MAX_GRACE_PERIOD));
    let at_once = tokio::select! {
        outcome = tokio::time::timeout(grace, &mut work) => match outcome {
            Ok(outcome) => return (outcome, Some(SignalStop { by, is_immediate: false })),
            Err(_elapsed) => false,
        },
        _ = signals.next() => true,
    };
    let outcome = if requested.is_some() {
        context.abort.cancel();
        tokio::time::timeout(ABORT_GRACE_PERIOD, work).await.unwrap_or(Ok(()))
    } else {
        Ok(())
    };
    (outcome, Some(SignalStop { by, is_immediate: at_once }))
}

/// Stops everything that was started; a signal meanwhile stops it immediately. Dropping the host
/// kills any remaining processes.
async fn shut_down(
    context: &CommandContext,
    signals: &mut impl NextSignal,
    at_once: bool,
) -> Option<Signal> {
    let host = context.take_host()?;
    let mut late = None;
    if !at_once {
        tokio::select! {
            _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, assembly::close(&host)) => {}
            signal = signals.next() => late = Some(signal),
        }
    }
    drop(host);
    // Killing the group does not reach processes that left it.
    for pid in orphans::kill_all().await {
        context.output.warn(&format!("the process {pid} was left behind: it cannot be killed"));
    }
    late
}

fn interrupted(signal: Signal) -> Error {
    let name = match signal {
        Signal::Hangup => "SIGHUP",
        Signal::Interrupt => "SIGINT",
        Signal::Terminate => "SIGTERM",
    };
    Error::new(ErrorKind::Interrupted(signal), format!("interrupted by {name}"))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::cli::options::GlobalOptions;
    use crate::config::environment::FixedEnvironment;

    /// Signals that come at once, one after the other, and then no more.
    struct Script(VecDeque<Signal>);

    impl NextSignal for Script {
        async fn next(&mut self) -> Signal {
            match self.0.pop_front() {
                Some(signal) => signal,
                None => std::future::pending().await,
            }
        }
    }

    fn context() -> CommandContext {
        let environment = FixedEnvironment::default();
        let output = Output::new(OutputOptions::default(), &environment);
        CommandContext::new(GlobalOptions::default(), Arc::new(output), Arc::new(environment))
    }

    fn heeded(
        signals: &[Signal],
        context: &CommandContext,
        work: impl Future<Output = CommandResult>,
    ) -> (CommandResult, Option<SignalStop>) {
        let mut signals = Script(signals.iter().copied().collect());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run_until_signal(std::pin::pin!(work), &mut signals, context))
    }

    #[test]
    fn work_without_a_signal_ends_as_it_ends() {
        let (outcome, stopped) = heeded(&[], &context(), async { Err(Error::tool("no").into()) });
        assert!(
            matches!(outcome, Err(CommandError::Failed(error)) if error.kind() == ErrorKind::Tool)
        );
        assert_eq!(stopped, None);
    }

    #[test]
    fn a_signal_cancels_the_work_and_lets_it_end() {
        let context = context();
        let (outcome, stopped) = heeded(&[Signal::Terminate], &context, async {
            context.cancel.cancelled().await;
            Err(Error::tool("stopped in an orderly way").into())
        });
        assert!(matches!(outcome, Err(CommandError::Failed(_))), "the work was not waited for");
        assert_eq!(stopped, Some(SignalStop { by: Signal::Terminate, is_immediate: false }));
    }

    #[test]
    fn work_that_takes_a_hangup_goes_on_and_is_ended_by_another_signal() {
        let context = context();
        let _hangup = context.take_hangup();
        let (_, stopped) = heeded(&[Signal::Hangup, Signal::Terminate], &context, async {
            context.cancel.cancelled().await;
            Ok(())
        });
        assert_eq!(stopped, Some(SignalStop { by: Signal::Terminate, is_immediate: false }));
    }

    #[test]
    fn a_second_signal_drops_work_that_does_not_listen() {
        let signals = [Signal::Interrupt, Signal::Interrupt];
        let (_, stopped) = heeded(&signals, &context(), std::future::pending());
        assert_eq!(stopped, Some(SignalStop { by: Signal::Interrupt, is_immediate: true }));
    }

    #[test]
    fn work_that_asked_for_time_has_last_words_after_a_second_signal() {
        let context = context();
        context.request_grace_period(MAX_GRACE_PERIOD);
        let (outcome, stopped) = heeded(&[Signal::Interrupt, Signal::Terminate], &context, async {
            context.abort.cancelled().await;
            Err(Error::tool("my last words").into())
        });
        assert!(matches!(outcome, Err(CommandError::Failed(_))), "nobody listened");
        assert_eq!(stopped, Some(SignalStop { by: Signal::Interrupt, is_immediate: true }));
    }

    #[test]
    fn each_signal_has_its_code() {
        for (signal, code) in
            [(Signal::Hangup, 129), (Signal::Interrupt, 130), (Signal::Terminate, 143)]
        {
            assert_eq!(interrupted(signal).kind().exit_code(), code);
        }
    }
}
