//! One run of the program: parse, dispatch, and the one place where a failure becomes text and an
//! exit code.
//!
//! Owns: the order of things, signals, and the bounded end of every run. Never does: know what a
//! command does.

mod console;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::assembly;
use crate::cli::args::{self, Cli, Command};
use crate::cli::commands::{
    audit, auth, bench, call, complete as values, completions, config, history, inspect, list, pin,
    prompts, record, replay, resources, servers, stats, trace, trust, verify,
};
use crate::cli::complete;
use crate::cli::context::{Context, Outcome};
use crate::cli::grammar;
use crate::cli::output::door::Wishes;
use crate::cli::output::{Door, Format, Stop};
use crate::cli::signals::{NextSignal, Signals, survive_file_limit};
use crate::config::environment::{Environment, ProcessEnvironment};
use crate::model::{Fault, FaultKind, Signal};
use crate::serve;
use crate::util::orphans;

/// How long a command may take to stop once it was told to: telling a server, printing what there
/// is.
const GRACE: Duration = Duration::from_secs(1);
/// The most of it that a command may ask for.
const LONGEST_GRACE: Duration = Duration::from_secs(5);
/// How long a command that asked for time may take to say its last words after a second signal.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long everything that was started may take to end. Providers have shorter limits of their
/// own; this one holds when one of them is wrong.
const FAREWELL: Duration = Duration::from_secs(6);

/// Runs the program with the arguments of the process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let environment: Arc<dyn Environment> = Arc::new(ProcessEnvironment);
    // Without it a run works all the same, until it meets the limit.
    let _unguarded = survive_file_limit();
    let plain = Wishes { json: args::asks_for_json(&arguments), ..Wishes::default() };
    match complete::answer(&arguments, &*environment) {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(stop) => return end(&Door::new(plain, &*environment), Err(stop)),
    }
    let cli = match grammar::parse(&arguments) {
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
        None if console::is_possible(&context) => console::run(&context),
        None => {
            if context.global.format() != Format::Json {
                context.door.tell(&args::short_help());
            }
            Err(Fault::usage("no command was given").into())
        }
        Some(Command::Completions(args)) => completions::run(&args, &context),
        Some(Command::Config(args)) => config::run(&args, &context),
        Some(command) => wait(command, &context),
    }
}

/// Runs a command that waits for something, until it ends or a signal ends it.
fn wait(command: Command, context: &Context) -> Outcome {
    let runtime = runtime()?;
    let outcome = runtime.block_on(Box::pin(supervise(command, context)));
    // A thread may still be reading from the terminal: a question that a signal made pointless.
    runtime.shutdown_background();
    outcome
}

/// One thread is enough for whoever mostly waits.
fn runtime() -> Result<tokio::runtime::Runtime, Fault> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::internal(format!("cannot wait for anything: {error}")))
}

async fn supervise(command: Command, context: &Context) -> Outcome {
    let mut signals = Signals::new()
        .map_err(|error| Fault::internal(format!("cannot wait for signals: {error}")))?;
    let work = Box::pin(perform(command, context));
    let (outcome, stopped) = heed(work, &mut signals, context).await;
    let at_once = matches!(stopped, Some(Stopped { at_once: true, .. }));
    let late = farewell(context, &mut signals, at_once).await;
    match stopped.map(|stopped| stopped.by).or(late) {
        Some(signal) => Err(interrupted(signal).into()),
        None => outcome,
    }
}

/// That a signal ended the work, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stopped {
    by: Signal,
    /// A second signal came: nothing is waited for any more.
    at_once: bool,
}

/// How a command is told to end, and how long it may take.
trait Ending {
    /// Says that it is to end; how long it may take, if it asked for time.
    fn cancel(&self) -> Option<Duration>;
    /// Says that it is to end at once.
    fn hurry(&self);
}

impl Ending for Context {
    fn cancel(&self) -> Option<Duration> {
        self.cancel.cancel();
        self.grace()
    }

    fn hurry(&self) {
        self.hurry.cancel();
    }
}

/// Waits for `work`. A signal tells it to end and gives it a moment; a second one, or the end of
/// that moment, drops it where it stands. Work that asked for time has last words before that.
async fn heed(
    mut work: impl Future<Output = Outcome> + Unpin,
    signals: &mut impl NextSignal,
    ending: &impl Ending,
) -> (Outcome, Option<Stopped>) {
    let by = tokio::select! {
        outcome = &mut work => return (outcome, None),
        signal = signals.next() => signal,
    };
    let asked = ending.cancel();
    let grace = asked.map_or(GRACE, |asked| asked.min(LONGEST_GRACE));
    let at_once = tokio::select! {
        outcome = tokio::time::timeout(grace, &mut work) => match outcome {
            Ok(outcome) => return (outcome, Some(Stopped { by, at_once: false })),
            Err(_elapsed) => false,
        },
        _ = signals.next() => true,
    };
    let outcome = if asked.is_some() {
        ending.hurry();
        tokio::time::timeout(LAST_WORDS, work).await.unwrap_or(Ok(()))
    } else {
        Ok(())
    };
    (outcome, Some(Stopped { by, at_once }))
}

/// Ends everything that was started; a signal during that ends it at once. Dropping the host
/// kills whatever is left.
async fn farewell(
    context: &Context,
    signals: &mut impl NextSignal,
    at_once: bool,
) -> Option<Signal> {
    let host = context.take_host()?;
    let mut late = None;
    if !at_once {
        tokio::select! {
            _ = tokio::time::timeout(FAREWELL, assembly::close(&host)) => {}
            signal = signals.next() => late = Some(signal),
        }
    }
    drop(host);
    // Who left its group is not reached by a kill of the group.
    for pid in orphans::end().await {
        context.door.warn(&format!("the process {pid} was left behind: it cannot be killed"));
    }
    late
}

async fn perform(command: Command, context: &Context) -> Outcome {
    match command {
        Command::List(args) => list::run(&args, context).await,
        Command::Inspect(args) => inspect::run(&args, context).await,
        Command::Call(args) => call::run(&args, context).await,
        Command::Bench(args) => bench::run(&args, context).await,
        Command::Servers(args) => servers::run(&args, context).await,
        Command::Resources(args) => resources::run(&args, context).await,
        Command::Prompts(args) => prompts::run(&args, context).await,
        Command::Complete(args) => values::run(&args, context).await,
        Command::Trace(args) => trace::run(&args, context).await,
        Command::Record(args) => record::run(&args, context).await,
        Command::Replay(args) => replay::run(&args, context).await,
        Command::History(args) => history::run(&args, context).await,
        Command::Stats(args) => stats::run(&args, context).await,
        Command::Audit(args) => audit::run(&args, context).await,
        Command::Pin(args) => pin::run(&args, context).await,
        Command::Verify(args) => verify::run(&args, context).await,
        Command::Trust(args) => trust::run(&args, context).await,
        Command::Auth(args) => auth::run(&args, context).await,
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio_util::sync::CancellationToken;

    use super::*;

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

    #[derive(Clone, Default)]
    struct Told {
        cancel: CancellationToken,
        hurry: CancellationToken,
        grace: Option<Duration>,
    }

    impl Ending for Told {
        fn cancel(&self) -> Option<Duration> {
            self.cancel.cancel();
            self.grace
        }

        fn hurry(&self) {
            self.hurry.cancel();
        }
    }

    fn heeded(
        signals: &[Signal],
        work: impl AsyncFnOnce(CancellationToken) -> Outcome,
    ) -> (Outcome, Option<Stopped>) {
        heeded_with(signals, &Told::default(), async |told| work(told.cancel).await)
    }

    fn heeded_with(
        signals: &[Signal],
        told: &Told,
        work: impl AsyncFnOnce(Told) -> Outcome,
    ) -> (Outcome, Option<Stopped>) {
        let mut signals = Script(signals.iter().copied().collect());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let work = Box::pin(work(told.clone()));
        runtime.block_on(heed(work, &mut signals, told))
    }

    #[test]
    fn work_without_a_signal_ends_as_it_ends() {
        let (outcome, stopped) = heeded(&[], async |_| Err(Fault::tool("no").into()));
        assert!(matches!(outcome, Err(Stop::Fault(fault)) if fault.kind() == FaultKind::Tool));
        assert_eq!(stopped, None);
    }

    #[test]
    fn a_signal_cancels_the_work_and_lets_it_end() {
        let (outcome, stopped) = heeded(&[Signal::Terminate], async |cancel| {
            cancel.cancelled().await;
            Err(Fault::tool("stopped in an orderly way").into())
        });
        assert!(matches!(outcome, Err(Stop::Fault(_))), "the work was not waited for");
        assert_eq!(stopped, Some(Stopped { by: Signal::Terminate, at_once: false }));
    }

    #[test]
    fn a_second_signal_drops_work_that_does_not_listen() {
        let (_, stopped) =
            heeded(&[Signal::Interrupt, Signal::Interrupt], async |_| std::future::pending().await);
        assert_eq!(stopped, Some(Stopped { by: Signal::Interrupt, at_once: true }));
    }

    #[test]
    fn work_that_asked_for_time_has_last_words_after_a_second_signal() {
        let told = Told { grace: Some(LONGEST_GRACE), ..Told::default() };
        let (outcome, stopped) =
            heeded_with(&[Signal::Interrupt, Signal::Terminate], &told, async |told| {
                told.hurry.cancelled().await;
                Err(Fault::tool("my last words").into())
            });
        assert!(matches!(outcome, Err(Stop::Fault(_))), "nobody listened");
        assert_eq!(stopped, Some(Stopped { by: Signal::Interrupt, at_once: true }));
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
