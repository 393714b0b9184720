//! The context of every command: options, output, environment, and a way to build the host.
//!
//! Owns: what stays the same during a run, which configuration it reads, and what SIGHUP means. How a host is
//! built, when a background host is used and when a person is asked about the project is in `assembling`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::answers::AnswerRules;
use super::commands::config::ConsoleFile;
use super::options::GlobalOptions;
use super::output::{CommandError, Format, Output};
use super::trace::TraceOutputs;
pub use crate::assembly::StartScope;
use crate::assembly::{self, AssemblyOptions};
use crate::config::LoadRequest;
use crate::config::environment::Environment;
use crate::config::spec::{Configuration, RecordSpec};
use crate::host::ToolHost;
use crate::model::Error;
use crate::present::messages;
use crate::util::append::RecordLocation;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::regular_file;

mod assembling;

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

struct HangupListener {
    asked: Arc<Notify>,
    had_terminal: bool,
}

fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

impl CommandContext {
    /// From now on, treats SIGHUP as a request, as servers do, and notifies the command. If the
    /// terminal is closed, it still ends the run.
    pub fn take_hangup(&self) -> Arc<Notify> {
        let listener = || HangupListener { asked: Arc::default(), had_terminal: has_terminal() };
        Arc::clone(&self.hangup.get_or_init(listener).asked)
    }

    /// Passes SIGHUP to the command if it handles it; otherwise ends the run.
    pub fn hand_on_hangup(&self) -> bool {
        match self.hangup.get() {
            Some(listener) if !listener.had_terminal || has_terminal() => {
                listener.asked.notify_one();
                true
            }
            _ => false,
        }
    }
}

impl CommandContext {
    /// Reads the configuration without building a host.
    pub fn load(&self) -> Configuration {
        self.load_as(&self.load_request())
    }

    /// The same for a command that reads a record: `record` picks its settings. Warns when it is
    /// switched off, or when a project's file would set what only the user may.
    pub fn load_for_record(
        &self,
        name: &str,
        record: fn(&Configuration) -> &RecordSpec,
    ) -> Result<Configuration, Error> {
        let configuration = self.load();
        Self::require_usable(&configuration)?;
        let spec = record(&configuration);
        if !spec.enabled {
            self.output.warn(&format!("{name} switched off ('enabled: false' in tools.yaml)"));
        }
        for diagnostic in &spec.ignored {
            self.output.warn(&messages::located(diagnostic));
        }
        Ok(configuration)
    }

    /// The location of a record, as [`CommandContext::load_for_record`]; `key` is the one of its
    /// settings.
    pub fn record_location(
        &self,
        (name, key, file): (&str, &str, &str),
        record: fn(&Configuration) -> &RecordSpec,
    ) -> Result<RecordLocation, Error> {
        let configuration = self.load_for_record(&format!("the {name} is"), record)?;
        let state_dir = self.environment.state_dir();
        assembly::record_location(record(&configuration), file, state_dir.as_deref()).ok_or_else(
            || {
                Error::internal(format!("there is no home directory, so there is no {name}"))
                    .with_hint(format!("set {key}: {{ path: FILE }} in tools.yaml"))
            },
        )
    }

    /// Reads only the configuration of a directory for a review: trust not in the trust store stays an
    /// open question, and all code is compared.
    pub fn load_untrusting(&self, directory: Option<&Path>) -> Result<Configuration, Error> {
        let mut request =
            LoadRequest { trust_all: false, reviews_code: true, ..self.load_request() };
        if let Some(directory) = directory {
            let real = self.directory_of(directory).canonicalize().map_err(|why| {
                let why = regular_file::reason(&why);
                Error::usage(format!("cannot read {}: {why}", directory.display()))
            })?;
            request.project = Some(real);
        }
        Ok(self.load_as(&request))
    }

    /// A directory as named on the command line; for a configuration file, its directory.
    pub fn directory_of(&self, path: &Path) -> PathBuf {
        let cwd = self.environment.cwd();
        let whole = cwd.join(path);
        if whole.is_file() { whole.parent().map_or(cwd, Path::to_path_buf) } else { whole }
    }

    fn load_as(&self, request: &LoadRequest) -> Configuration {
        let (configuration, masker) = assembly::load(request, &*self.environment);
        self.output.set_masker(masker);
        configuration
    }

    pub fn load_request(&self) -> LoadRequest {
        self.global.load_request(self.trusts_all())
    }

    /// Whether this run trusts everything its files would start.
    pub fn trusts_all(&self) -> bool {
        self.global.trust || self.environment.var("TOOLHOST_TRUST").is_some_and(|v| v == "1")
    }

    pub fn options(&self) -> AssemblyOptions {
        self.global.assembly_options(self.trusts_all())
    }
}
