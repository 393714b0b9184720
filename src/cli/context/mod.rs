//! The context of every command: options, output, environment, and a way to build the host.
//!
//! Owns: what stays the same during a run. How its configuration is read is in `loading`, how a host is
//! built in `assembling`, when a background host is used in `attaching`, and when a person is asked
//! about the project in `trusting`, and what SIGHUP means in `hangup`.

mod assembling;
mod attaching;
mod hangup;
mod loading;
mod trusting;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::answers::AnswerRules;
use super::commands::config::ConsoleFile;
use super::options::GlobalOptions;
use super::output::{CommandError, Format, Output};
use super::trace::TraceOutputs;
use crate::config::environment::Environment;
use crate::host::ToolHost;
use crate::model::Error;
use crate::util::clock::{Clock as _, SystemClock};

use hangup::HangupListener;

pub use crate::assembly::StartScope;

pub struct CommandContext {
    pub global: GlobalOptions,
    pub output: Arc<Output>,
    pub environment: Arc<dyn Environment>,
    /// What `config` shows of the console; `None` in tests.
    pub console_file: Option<ConsoleFile>,
    pub cancel: CancellationToken,
    /// Fires when a second signal asks the command to stop at once, if it requested time.
    pub abort: CancellationToken,
    /// How long the command may take to end after the first signal, if it requested time.
    grace_period: OnceLock<Duration>,
    /// Where the traffic of servers goes.
    pub trace_outputs: TraceOutputs,
    answers: OnceLock<Arc<AnswerRules>>,
    host: Mutex<Option<Arc<ToolHost>>>,
    hangup: OnceLock<HangupListener>,
}

impl CommandContext {
    pub fn new(
        global: GlobalOptions,
        output: Arc<Output>,
        environment: Arc<dyn Environment>,
    ) -> Self {
        Self {
            trace_outputs: TraceOutputs::new(&global, &output),
            global,
            output,
            environment,
            console_file: None,
            cancel: CancellationToken::new(),
            abort: CancellationToken::new(),
            grace_period: OnceLock::new(),
            answers: OnceLock::new(),
            host: Mutex::default(),
            hangup: OnceLock::new(),
        }
    }

    /// Requests this much time after the first signal, for a command that still has output then.
    /// Such a command is also notified of a second signal, and has a moment for final output.
    pub fn request_grace_period(&self, grace: Duration) {
        let _asked_before = self.grace_period.set(grace);
    }

    pub fn grace_period(&self) -> Option<Duration> {
        self.grace_period.get().copied()
    }

    /// Sets the rules that answer servers' questions first. To be called once, before the host is built.
    pub fn set_answers(&self, answers: AnswerRules) {
        let _said_before = self.answers.set(Arc::new(answers));
    }

    /// For commands that pass a server's bytes to a client unchanged: these must not reach a terminal.
    pub fn require_piped_stdout(&self, command: &str) -> Result<(), Error> {
        if !self.output.is_terminal() {
            return Ok(());
        }
        let what = format!("{command} talks to a client on stdout, but stdout is a terminal");
        Err(Error::usage(what).with_hint(
            "have a client start it as a server; to see a server's traffic: toolhost trace SERVER",
        ))
    }

    pub fn keep_host(&self, host: Arc<ToolHost>) {
        *self.host.lock().unwrap_or_else(PoisonError::into_inner) = Some(host);
    }

    pub fn take_host(&self) -> Option<Arc<ToolHost>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn format(&self, supported: &[Format]) -> Result<Format, Error> {
        let format = self.global.format();
        if supported.contains(&format) {
            return Ok(format);
        }
        let names: Vec<&str> = supported.iter().map(|format| format.as_str()).collect();
        Err(Error::usage(format!("this command has no {} output", format.as_str()))
            .with_hint(format!("supported formats: {}", names.join(", "))))
    }

    /// The time since the Unix epoch.
    #[expect(clippy::unused_self, reason = "the context is what commands take the time from")]
    pub fn now(&self) -> Duration {
        SystemClock.unix()
    }
}

pub type CommandResult = Result<(), CommandError>;
