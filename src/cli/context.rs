//! What every command is given: options, output, environment, and a way to build the host.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::ad_hoc::AdHocServer;
use super::answers::{AnswerRules, AnsweringInbox};
use super::host_sockets::{self, runtime_directory::RuntimeDirectory};
use super::named_files;
use super::options::GlobalOptions;
use super::output::{CommandError, Format, Output, StyledLine, plural};
use super::progress::ProgressDisplay;
use super::prompt::{self, TerminalApprover, TerminalInbox, TrustAnswer};
use super::trace::TraceOutputs;
use super::views::configuration::{count_diagnostics, out_of_service};
use crate::assembly::host_identity::host_identity;
use crate::assembly::{self, Assembly, AssemblyOptions, FrontEnd, LoadedConfiguration};
use crate::catalogue::query;
use crate::config::LoadRequest;
use crate::config::consent::TrustRequest;
use crate::config::consent::store::TrustStore;
use crate::config::environment::Environment;
use crate::config::spec::{Configuration, UntrustedEntry};
use crate::host::ToolHost;
use crate::host::link::HostLink as _;
use crate::model::{Error, EventSink, QuestionHandler};
use crate::serve::background::client::HostClient;
use crate::util::clock::{Clock as _, SystemClock};
use crate::util::regular_file;

pub use crate::assembly::StartScope;

/// What every command is given.
pub struct CommandContext {
    /// Options of every command.
    pub global: GlobalOptions,
    /// Where everything is written.
    pub output: Arc<Output>,
    /// Variables and directories.
    pub environment: Arc<dyn Environment>,
    /// Fires when a signal asks the command to stop.
    pub cancel: CancellationToken,
    /// Fires when a second signal asks the command to stop at once, if it asked for time.
    pub abort: CancellationToken,
    /// How long the command may take to end after the first signal, if it asked for time.
    grace_period: OnceLock<Duration>,
    /// Who looks at the wires of servers.
    pub trace_outputs: TraceOutputs,
    /// Answers to servers' questions that were given with the command.
    answers: OnceLock<Arc<AnswerRules>>,
    /// The host that was built last, so that it can be closed however the command ends.
    host: Mutex<Option<Arc<ToolHost>>>,
    /// Told of SIGHUP, once a command takes that for more than the end of its terminal.
    hangup: OnceLock<HangupListener>,
}

/// Who is told of SIGHUP.
struct HangupListener {
    asked: Arc<Notify>,
    had_terminal: bool,
}

/// Whether this process has a terminal that is still there.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

impl CommandContext {
    /// The context of one run.
    pub fn new(
        global: GlobalOptions,
        output: Arc<Output>,
        environment: Arc<dyn Environment>,
    ) -> Self {
        let (cancel, hurry) = (CancellationToken::new(), CancellationToken::new());
        let watchers = TraceOutputs::new(&global, &output);
        let (answers, grace, host) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Self {
            global,
            output,
            environment,
            cancel,
            abort: hurry,
            grace_period: grace,
            trace_outputs: watchers,
            answers,
            host,
            hangup: OnceLock::new(),
        }
    }

    /// Takes SIGHUP for a request from now on, as servers do, and tells of it. When the terminal of
    /// the run goes away it ends the run as ever.
    pub fn take_hangup(&self) -> Arc<Notify> {
        let listener = || HangupListener { asked: Arc::default(), had_terminal: has_terminal() };
        Arc::clone(&self.hangup.get_or_init(listener).asked)
    }

    /// Hands SIGHUP to the command, if it takes it; otherwise it ends the run.
    pub fn hand_on_hangup(&self) -> bool {
        match self.hangup.get() {
            Some(listener) if !listener.had_terminal || has_terminal() => {
                listener.asked.notify_one();
                true
            }
            _ => false,
        }
    }

    /// Asks for so much time after the first signal, for a command that has something to tell even
    /// then. Such a command is also told of a second one, and has a moment for its last words.
    pub fn request_grace_period(&self, grace: Duration) {
        let _asked_before = self.grace_period.set(grace);
    }

    /// The time that was asked for.
    pub fn grace_period(&self) -> Option<Duration> {
        self.grace_period.get().copied()
    }

    /// Answers what servers ask by these rules first. To be said once, before the host is built.
    pub fn set_answers(&self, answers: AnswerRules) {
        let _said_before = self.answers.set(Arc::new(answers));
    }

    /// For commands that hand a server's bytes to a client as they are: nothing of that may reach a
    /// terminal.
    ///
    /// # Errors
    /// A usage error when standard output is a terminal.
    pub fn require_piped_stdout(&self, command: &str) -> Result<(), Error> {
        if !self.output.is_terminal() {
            return Ok(());
        }
        let what = format!("{command} speaks to a client, and standard output is a terminal");
        Err(Error::usage(what).with_hint(
            "let a client start it as its server; to see a server's wire: toolhost trace SERVER",
        ))
    }

    /// Registers the host that is closed when the command ends.
    pub fn keep_host(&self, host: Arc<ToolHost>) {
        *self.host.lock().unwrap_or_else(PoisonError::into_inner) = Some(host);
    }

    /// The host that was built, to be closed.
    pub fn take_host(&self) -> Option<Arc<ToolHost>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The format asked for, when the command knows it.
    ///
    /// # Errors
    /// A usage error that lists the formats the command knows.
    pub fn format(&self, known: &[Format]) -> Result<Format, Error> {
        let format = self.global.format();
        if known.contains(&format) {
            return Ok(format);
        }
        let words: Vec<&str> = known.iter().map(|format| format.as_str()).collect();
        Err(Error::usage(format!("this command has no {} output", format.as_str()))
            .with_hint(format!("it can print {}", words.join(", "))))
    }

    /// Reads the configuration, asks a person about the project when `starts` needs an entry of it
    /// that is not trusted yet, and builds the host.
    ///
    /// # Errors
    /// What is wrong with the configuration as a whole, and with `--strict` any problem in it.
    pub async fn assemble(&self, starts: StartScope<'_>) -> Result<Assembly, Error> {
        let loaded = self.read_for(starts).await?;
        let assembly = self.build_from(loaded, self.front_end()?)?;
        self.report_diagnostics(&assembly.configuration)?;
        Ok(assembly)
    }

    /// As [`CommandContext::assemble`]; calls and lists are then passed on to the background host
    /// with the same configuration, when one runs. `command` is how the host's records name this run.
    ///
    /// # Errors
    /// As [`CommandContext::assemble`].
    pub async fn assemble_attached(
        &self,
        starts: StartScope<'_>,
        command: &str,
    ) -> Result<Assembly, Error> {
        let loaded = self.read_for(starts).await?;
        let socket = self.host_socket(&loaded, starts).await;
        let front_end = self.front_end()?;
        let assembly = self.build_from(loaded, front_end.clone())?;
        self.report_diagnostics(&assembly.configuration)?;
        if let Some(socket) = socket {
            let front_end = host_sockets::attached_front_end(&front_end, &assembly.masker);
            if let Some(client) = HostClient::connect(&socket, command, front_end).await {
                if self.output.verbosity() > 0 {
                    let words = format!("using the background host (pid {})", client.pid());
                    self.output.note(&StyledLine::plain(words));
                }
                assembly.host.attach(Arc::new(client));
            }
        }
        Ok(assembly)
    }

    /// Where the background host of a configuration listens. One is started when an entry that is
    /// needed asks for it. A run that looks at the wires of servers, or asks for their log lines, needs
    /// servers of its own.
    async fn host_socket(
        &self,
        loaded: &LoadedConfiguration,
        starts: StartScope<'_>,
    ) -> Option<PathBuf> {
        let global = &self.global;
        let needs_own_servers =
            global.trace.is_some() || global.trace_save.is_some() || global.log_level.is_some();
        // A server that is in no file belongs to this run alone.
        if global.fresh || needs_own_servers || global.ad_hoc.is_some() {
            return None;
        }
        let environment = self.environment.as_ref();
        let directory = RuntimeDirectory::of(environment)?;
        let keep = assembly::keep(&loaded.configuration, starts);
        let key = match keep {
            Some(_) => directory.make_key().ok()?,
            None => directory.key()?,
        };
        let identity = self.identity(loaded, &key);
        let socket = directory.socket(&identity);
        if let Some(keep) = keep
            && !host_sockets::is_listening(&socket).await
            && let Err(error) =
                host_sockets::start::start(global, environment, &directory, &identity, keep).await
        {
            self.output.warn(&format!("{error}; the call starts its server itself"));
        }
        socket.exists().then_some(socket)
    }

    fn identity(&self, loaded: &LoadedConfiguration, key: &[u8]) -> String {
        host_identity(loaded, &self.options(), self.environment.as_ref(), key)
    }

    /// Reads the configuration and builds the host of a background process, which asks no person. With
    /// it the identity under which it is found.
    ///
    /// # Errors
    /// What is wrong with the configuration as a whole, and with `--strict` any problem in it.
    pub fn assemble_host(
        &self,
        front_end: FrontEnd,
        key: &[u8],
    ) -> Result<(Assembly, String), Error> {
        let loaded = self.read()?;
        self.require_readable(&loaded.configuration)?;
        let identity = self.identity(&loaded, key);
        let assembly = self.build_from(loaded, front_end)?;
        self.report_diagnostics(&assembly.configuration)?;
        Ok((assembly, identity))
    }

    /// The identity of the background host of this configuration.
    ///
    /// # Errors
    /// As [`CommandContext::assemble_host`].
    pub fn require_host_identity(&self, key: &[u8]) -> Result<String, Error> {
        let loaded = self.read()?;
        self.require_readable(&loaded.configuration)?;
        self.require_flawless(&loaded.configuration)?;
        Ok(self.identity(&loaded, key))
    }

    /// Reads the configuration of a host that runs already. Nothing that is shown is masked by it.
    ///
    /// # Errors
    /// What is wrong with the configuration as a whole, and with `--strict` any problem in it.
    pub async fn read_again(&self) -> Result<LoadedConfiguration, Error> {
        let (options, environment) = (self.options(), Arc::clone(&self.environment));
        // A project of many files takes a while, in which calls go on.
        let reading = tokio::task::spawn_blocking(move || assembly::read(&options, &*environment));
        let failed = |why| Error::internal(format!("reading the configuration failed: {why}"));
        let loaded = reading.await.map_err(failed)??;
        self.require_readable(&loaded.configuration)?;
        self.require_flawless(&loaded.configuration)?;
        Ok(loaded)
    }

    /// Reads the configuration; a person is asked about the project when `starts` needs an entry of
    /// it that is not trusted yet.
    async fn read_for(&self, starts: StartScope<'_>) -> Result<LoadedConfiguration, Error> {
        let mut loaded = self.read()?;
        self.require_readable(&loaded.configuration)?;
        if self.ask_trust_if_needed(&loaded.configuration, starts).await? {
            loaded = self.read()?;
            if loaded.configuration.trust_request.is_some() {
                self.output.warn("the project changed while the question stood; it is not trusted");
            }
        }
        Ok(loaded)
    }

    /// Asks about the project when a person can be asked and did not refuse it before; whether it is
    /// trusted since.
    async fn ask_trust_if_needed(
        &self,
        configuration: &Configuration,
        starts: StartScope<'_>,
    ) -> Result<bool, Error> {
        let Some(request) = &configuration.trust_request else { return Ok(false) };
        let profile = self.global.profile.as_ref().and_then(|p| configuration.profiles.get(p));
        let is_shown = |entry: &&UntrustedEntry| {
            profile.is_none_or(|profile| query::may_show_untrusted(profile, entry))
        };
        let mut needed = assembly::untrusted_entries(configuration, starts);
        needed.retain(is_shown);
        if needed.is_empty() || request.was_refused || !prompt::is_possible() {
            return Ok(false);
        }
        // A run that ends anyway asks no question.
        self.require_flawless(configuration)?;
        self.ask_trust(request).await
    }

    /// Ends when a file that was named on the command line cannot be read.
    fn require_readable(&self, configuration: &Configuration) -> Result<(), Error> {
        let (request, cwd) = (self.load_request(), self.environment.cwd());
        named_files::require_readable(&request, &cwd, configuration)
    }

    /// Reads the configuration and builds the host for another front end, which asks by itself
    /// about what was never allowed.
    ///
    /// # Errors
    /// What is wrong with the configuration as a whole, and with `--strict` any problem in it.
    pub fn assemble_for(&self, front_end: FrontEnd) -> Result<Assembly, Error> {
        let loaded = self.read()?;
        self.require_readable(&loaded.configuration)?;
        let assembly = self.build_from(loaded, front_end)?;
        self.report_diagnostics(&assembly.configuration)?;
        Ok(assembly)
    }

    /// Asks a person about a project and remembers the answer; whether it is trusted now.
    ///
    /// # Errors
    /// When the answer cannot be kept.
    pub async fn ask_trust(&self, request: &TrustRequest) -> Result<bool, Error> {
        match prompt::ask_trust(Arc::clone(&self.output), request).await {
            TrustAnswer::Trusted => self.trust(request, false).map(|()| true),
            TrustAnswer::Author => self.trust(request, true).map(|()| true),
            TrustAnswer::Refused => self.trust_store()?.refuse(request).map(|()| false),
            TrustAnswer::Unavailable => Ok(false),
        }
    }

    /// Reads the configuration and builds the host without reporting problems.
    ///
    /// # Errors
    /// What is wrong with the configuration as a whole.
    pub fn build(&self) -> Result<Assembly, Error> {
        self.build_from(self.read()?, self.front_end()?)
    }

    fn read(&self) -> Result<LoadedConfiguration, Error> {
        let loaded = assembly::read(&self.options(), &*self.environment)?;
        self.output.set_masker(loaded.masker.clone());
        Ok(loaded)
    }

    fn build_from(
        &self,
        loaded: LoadedConfiguration,
        front_end: FrontEnd,
    ) -> Result<Assembly, Error> {
        let assembly = assembly::build(loaded, &self.options(), &self.environment, front_end)?;
        self.keep_host(Arc::clone(&assembly.host));
        Ok(assembly)
    }

    /// The terminal as a front end, with whatever looks at the wires.
    fn front_end(&self) -> Result<FrontEnd, Error> {
        Ok(FrontEnd {
            approver: Arc::new(TerminalApprover::new(Arc::clone(&self.output))),
            inbox: self.inbox(),
            events: self.events(),
            traffic: self.trace_outputs.sink(&self.output)?,
        })
    }

    /// Remembers that a person trusts a project as `request` shows it.
    ///
    /// # Errors
    /// When the trust store cannot be used.
    pub fn trust(&self, request: &TrustRequest, author: bool) -> Result<(), Error> {
        self.trust_store()?.trust(request, author, SystemClock.unix())
    }

    /// The record of what was trusted.
    ///
    /// # Errors
    /// When it cannot be read, or others may write to it.
    pub fn trust_store(&self) -> Result<TrustStore, Error> {
        TrustStore::open(self.environment.state_dir().as_deref()).map_err(|problem| {
            let error = Error::config(problem.message);
            match problem.hint {
                Some(hint) => error.with_hint(hint),
                None => error,
            }
        })
    }

    /// Reads the configuration alone.
    pub fn load(&self) -> Configuration {
        self.load_as(&self.load_request())
    }

    /// Reads the configuration of a directory alone, with the question of trust open that is not
    /// answered in the trust store.
    ///
    /// # Errors
    /// When the directory is not there, or holds no project.
    pub fn load_untrusting(&self, directory: Option<&Path>) -> Result<Configuration, Error> {
        let mut request = LoadRequest { trust_all: false, ..self.load_request() };
        if let Some(directory) = directory {
            let cwd = self.environment.cwd();
            let whole = cwd.join(directory);
            let whole =
                if whole.is_file() { whole.parent().map_or(cwd, Path::to_path_buf) } else { whole };
            let real = whole.canonicalize().map_err(|why| {
                let why = regular_file::reason(&why);
                Error::usage(format!("cannot read {}: {why}", directory.display()))
            })?;
            request.project = Some(real);
        }
        Ok(self.load_as(&request))
    }

    fn load_as(&self, request: &LoadRequest) -> Configuration {
        let (configuration, masker) = assembly::load(request, &*self.environment);
        self.output.set_masker(masker);
        configuration
    }

    /// The time since the Unix epoch.
    pub fn now(&self) -> Duration {
        SystemClock.unix()
    }

    /// Which configuration files to load.
    pub fn load_request(&self) -> LoadRequest {
        LoadRequest {
            tools: self.global.tools.clone(),
            servers: self.global.mcp.clone(),
            inline_tools: self
                .global
                .tools_module
                .iter()
                .map(|m| assembly::tools_module_file(m))
                .collect(),
            inline_servers: self.global.ad_hoc.iter().map(AdHocServer::file).collect(),
            trust_all: self.trusts_all(),
            ..LoadRequest::default()
        }
    }

    /// Whether this run trusts whatever its files would start.
    pub fn trusts_all(&self) -> bool {
        self.global.trust || self.environment.var("TOOLHOST_TRUST").is_some_and(|v| v == "1")
    }

    /// The options of the command line that concern the whole host.
    pub fn options(&self) -> AssemblyOptions {
        AssemblyOptions {
            files: self.load_request(),
            profile: self.global.profile.clone(),
            insecure: self.global.insecure,
            require_record: self.global.require_record,
            ask_all: self.global.ask_all,
            log_level: match (self.global.log_level, self.global.verbose) {
                (Some(level), _) => Some(level.as_str()),
                (None, 0) => None,
                (None, 1) => Some("info"),
                (None, _) => Some("debug"),
            },
        }
    }

    fn inbox(&self) -> Arc<dyn QuestionHandler> {
        let person = Arc::new(TerminalInbox::new(Arc::clone(&self.output)));
        match self.answers.get() {
            Some(answers) => Arc::new(AnsweringInbox {
                answers: Arc::clone(answers),
                next: person,
                output: Arc::clone(&self.output),
            }),
            None => person,
        }
    }

    fn events(&self) -> EventSink {
        let progress = ProgressDisplay::new(Arc::clone(&self.output), Arc::new(SystemClock))
            .with_logs(self.global.log_level.is_some());
        EventSink::new(move |event| progress.show(&event))
    }

    /// Does nothing without `--strict`.
    ///
    /// # Errors
    /// With `--strict`, the first problem of the configuration.
    fn require_flawless(&self, configuration: &Configuration) -> Result<(), Error> {
        let Some(first) = configuration.diagnostics.first().filter(|_| self.global.strict) else {
            return Ok(());
        };
        let error = Error::config(first.message.clone())
            .with_hint("--strict was given; 'toolhost config check' lists every problem");
        Err(match &first.location {
            Some(location) => error.with_location(location.clone()),
            None => error,
        })
    }

    /// Writes one line about problems in the files.
    ///
    /// # Errors
    /// As [`CommandContext::require_flawless`].
    fn report_diagnostics(&self, configuration: &Configuration) -> Result<(), Error> {
        let (errors, warnings) = count_diagnostics(configuration);
        if self.global.insecure {
            self.output.warn("--insecure: TLS certificates are not verified in this run");
        }
        self.require_flawless(configuration)?;
        if errors > 0 && self.output.verbosity() > 0 {
            self.output.warn(&format!(
                "{} out of service, see 'toolhost config check'",
                plural(out_of_service(&configuration.diagnostics), "entry is", "entries are")
            ));
        } else if warnings > 0 && self.output.verbosity() > 0 {
            self.output.warn(&format!(
                "{} about the configuration, see 'toolhost config check'",
                plural(warnings, "remark", "remarks")
            ));
        }
        Ok(())
    }
}

/// The result of a command.
pub type CommandResult = Result<(), CommandError>;
