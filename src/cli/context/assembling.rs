//! Building the host of a command, or using a background host in its place; and trust in the project:
//! when a person is asked, and where the answer is stored.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{CommandContext, StartScope};
use crate::assembly::host_identity::host_identity;
use crate::assembly::host_locator::{HostLocator, attached_front_end};
use crate::assembly::runtime_directory::RuntimeDirectory;
use crate::assembly::{self, Assembly, FrontEnd, LoadedConfiguration};
use crate::catalogue::query;
use crate::cli::answers::AnsweringInbox;
use crate::cli::host_sockets;
use crate::cli::mcp_file::{self, McpFile};
use crate::cli::progress::ProgressDisplay;
use crate::cli::prompt::{self, DialogueReply, TerminalApprover, TerminalInbox};
use crate::config::consent::TrustRequest;
use crate::config::consent::store::TrustStore;
use crate::config::spec::{Configuration, UntrustedEntry};
use crate::host::link::HostLink as _;
use crate::model::{Error, EventSink, Layer, QuestionHandler};
use crate::present::configuration::{count_diagnostics, out_of_service};
use crate::present::{messages, plural};
use crate::serve::background::client::{AttachedFrontEnd, HostClient};
use crate::util::clock::{Clock as _, SystemClock};

impl CommandContext {
    /// Reads the configuration, asks a person about the project when `starts` needs an entry of it
    /// that is not trusted yet, and builds the host.
    pub async fn assemble(&self, starts: StartScope<'_>) -> Result<Assembly, Error> {
        self.assemble_from(self.read_for(starts).await?, self.front_end()?)
    }

    /// Builds the host and reports what is wrong with its configuration.
    pub fn assemble_from(
        &self,
        loaded: LoadedConfiguration,
        front_end: FrontEnd,
    ) -> Result<Assembly, Error> {
        let assembly = self.build_from(loaded, front_end)?;
        self.report_diagnostics(&assembly.configuration)?;
        Ok(assembly)
    }

    /// Reads the configuration; a person is asked about the project when `starts` needs an entry of
    /// it that is not trusted yet.
    pub(super) async fn read_for(
        &self,
        starts: StartScope<'_>,
    ) -> Result<LoadedConfiguration, Error> {
        let mut loaded = self.read_usable()?;
        if self.ask_trust_if_needed(&loaded.configuration, starts).await? {
            loaded = self.read()?;
            if loaded.configuration.trust_request.is_some() {
                self.output
                    .warn("the project changed while the question was open: it is not trusted");
            }
        }
        Ok(loaded)
    }

    /// Reads the configuration again for a running host. It does not change what is masked in output.
    pub async fn read_again(&self) -> Result<LoadedConfiguration, Error> {
        let (options, environment) = (self.options(), Arc::clone(&self.environment));
        // A project with many files takes a while, during which calls continue.
        let reading = tokio::task::spawn_blocking(move || assembly::read(&options, &*environment));
        let failed = |why| Error::internal(format!("reading the configuration failed: {why}"));
        let loaded = reading.await.map_err(failed)??;
        Self::require_usable(&loaded.configuration)?;
        self.require_flawless(&loaded.configuration)?;
        Ok(loaded)
    }

    /// Fails if nothing may be done with the configuration as a whole.
    pub(super) fn require_usable(configuration: &Configuration) -> Result<(), Error> {
        configuration.unusable.clone().map_or(Ok(()), |why| Err(mcp_file::error(why)))
    }

    /// Reads the configuration and builds the host without reporting problems.
    pub fn build(&self) -> Result<Assembly, Error> {
        self.build_from(self.read()?, self.front_end()?)
    }

    pub(super) fn read(&self) -> Result<LoadedConfiguration, Error> {
        let loaded = assembly::read(&self.options(), &*self.environment)?;
        self.output.set_masker(loaded.masker.clone());
        Ok(loaded)
    }

    /// As [`Self::read`]; fails if nothing may be done with the configuration as a whole.
    pub fn read_usable(&self) -> Result<LoadedConfiguration, Error> {
        let loaded = self.read()?;
        Self::require_usable(&loaded.configuration)?;
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

    pub(super) fn front_end(&self) -> Result<FrontEnd, Error> {
        Ok(FrontEnd {
            approver: Arc::new(TerminalApprover::new(Arc::clone(&self.output))),
            inbox: self.inbox(),
            events: self.events(),
            traffic: self.trace_outputs.sink(&self.output)?,
        })
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
            .with_logs(self.global.rare.log_level);
        EventSink::new(move |event| progress.show(&event))
    }

    /// Does nothing without `--strict`.
    pub(super) fn require_flawless(&self, configuration: &Configuration) -> Result<(), Error> {
        let Some(first) = configuration.diagnostics.first().filter(|_| self.global.rare.strict)
        else {
            return Ok(());
        };
        Err(mcp_file::error(first.clone())
            .with_hint("--strict was given; 'toolhost config check' lists every problem"))
    }

    pub(super) fn report_diagnostics(&self, configuration: &Configuration) -> Result<(), Error> {
        let (errors, warnings) = count_diagnostics(configuration);
        if self.global.rare.insecure {
            self.output.warn("--insecure: TLS certificates are not verified in this run");
        }
        self.require_flawless(configuration)?;
        let Configuration { tools, servers, untrusted, disabled, diagnostics, .. } = configuration;
        if tools.is_empty() && servers.is_empty() && untrusted.is_empty() && disabled.is_empty() {
            // Nothing else says why there are no entries.
            for warning in diagnostics.iter().filter(|diagnostic| !diagnostic.is_error()) {
                let hint =
                    warning.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
                self.output.warn(&format!("{}{hint}", messages::located(warning)));
            }
        }
        let problem = if errors > 0 {
            let entries = out_of_service(&configuration.diagnostics);
            format!("{} out of service", plural(entries, "entry is", "entries are"))
        } else if warnings > 0 {
            format!("{} about the configuration", plural(warnings, "warning", "warnings"))
        } else {
            return Ok(());
        };
        if self.output.verbosity() > 0 {
            self.output.warn(&format!("{problem}, see 'toolhost config check'"));
        }
        Ok(())
    }
}

const MAX_NAMED: usize = 5;

impl CommandContext {
    /// As [`CommandContext::assemble`]; calls and lists are then passed on to the background host
    /// with the same configuration, when one runs. `command` is how the host's records name this run.
    pub async fn assemble_attached(
        &self,
        starts: StartScope<'_>,
        command: &str,
    ) -> Result<Assembly, Error> {
        let loaded = self.read_for(starts).await?;
        let front_end = self.front_end()?;
        let attached = attached_front_end(&front_end, &loaded.masker);
        let client = self.host_client(&loaded, starts, command, attached).await;
        let assembly = self.assemble_from(loaded, front_end)?;
        if let Some(client) = client {
            if self.output.verbosity() > 0 {
                self.output.note(format!("using the background host (pid {})", client.pid()));
            }
            assembly.host.attach(Arc::new(client));
        }
        Ok(assembly)
    }

    /// As [`CommandContext::assemble`]; with it the process of the background host that would have been
    /// used, when one runs, for a command that starts servers of its own all the same.
    pub async fn assemble_beside_host(
        &self,
        starts: StartScope<'_>,
    ) -> Result<(Assembly, Option<u32>), Error> {
        let loaded = self.read_for(starts).await?;
        let host = match self.host_locator().socket(&loaded) {
            Some(socket) => {
                HostClient::connect(&socket, "toolhost", host_sockets::unattended()).await
            }
            None => None,
        };
        Ok((self.assemble_from(loaded, self.front_end()?)?, host.map(|host| host.pid())))
    }

    /// Reads the configuration and builds the host for another front end, which asks by itself
    /// about what was never allowed. With it the socket of the background host that could answer in
    /// its place, which may not be there.
    pub fn assemble_for(&self, front_end: FrontEnd) -> Result<(Assembly, Option<PathBuf>), Error> {
        let loaded = self.read_usable()?;
        let socket = self.host_locator().socket(&loaded);
        Ok((self.assemble_from(loaded, front_end)?, socket))
    }

    pub fn host_locator(&self) -> HostLocator {
        HostLocator {
            options: self.options(),
            environment: Arc::clone(&self.environment),
            is_fresh: self.global.needs_own_servers(),
        }
    }

    /// The background host of a configuration. Starts one if a required entry asks for it and none
    /// is running.
    async fn host_client(
        &self,
        loaded: &LoadedConfiguration,
        starts: StartScope<'_>,
        command: &str,
        front_end: AttachedFrontEnd,
    ) -> Option<HostClient> {
        if self.global.needs_own_servers() {
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
        let arguments = self.global.host_arguments();
        if let Some(keep) = keep
            && !host_sockets::is_listening(&socket).await
            && let Err(error) =
                host_sockets::start(&arguments, environment, &directory, &identity, keep).await
        {
            self.output.warn(&format!("{error}; this call starts the server itself"));
        }
        HostClient::connect(&socket, command, front_end).await
    }

    pub fn identity(&self, loaded: &LoadedConfiguration, key: &[u8]) -> String {
        host_identity(loaded, &self.options(), self.environment.as_ref(), key)
    }

    /// The identity of the background host of this configuration, which is about to be started.
    /// Warns about entries the host will not serve.
    pub fn require_host_identity(&self, key: &[u8]) -> Result<String, Error> {
        let loaded = self.read_usable()?;
        self.require_flawless(&loaded.configuration)?;
        self.warn_unserved(&loaded.configuration);
        Ok(self.identity(&loaded, key))
    }

    /// The same without warnings; `None` if the configuration cannot be read.
    pub fn host_identity(&self, key: &[u8]) -> Option<String> {
        Some(self.identity(&self.read().ok()?, key))
    }

    /// Warns about entries that a background host of this configuration does not serve.
    pub fn warn_unserved(&self, configuration: &Configuration) {
        if configuration.trust_request.is_some() {
            self.output.warn(
                "this project is not trusted, so entries that need trust are not served; \
                 review them with 'toolhost trust'",
            );
        }
        let errors = configuration.diagnostics.iter().filter(|problem| problem.is_error());
        for problem in errors.take(MAX_NAMED) {
            let name = problem.entry.as_ref().map(|entry| format!("'{entry}' is out of service: "));
            self.output.warn(&format!("{}{}", name.unwrap_or_default(), problem.message));
        }
        let broken = out_of_service(&configuration.diagnostics);
        if broken > 0 {
            let entries = plural(broken, "entry is", "entries are");
            self.output.warn(&format!("{entries} out of service, see 'toolhost config check'"));
        }
    }
}

impl CommandContext {
    /// Asks about the project if a person can be asked and has not refused it before; returns
    /// whether it is now trusted.
    pub(super) async fn ask_trust_if_needed(
        &self,
        configuration: &Configuration,
        starts: StartScope<'_>,
    ) -> Result<bool, Error> {
        let Some(request) = &configuration.trust_request else { return Ok(false) };
        let profile = self.global.rare.profile.as_ref().and_then(|p| configuration.profiles.get(p));
        let is_shown = |entry: &&UntrustedEntry| {
            profile.is_none_or(|profile| query::may_show_untrusted(profile, entry))
        };
        let mut needed = assembly::untrusted_entries(configuration, starts);
        needed.retain(is_shown);
        if needed.is_empty() || request.refused_at.is_some() || !prompt::is_possible() {
            return Ok(false);
        }
        // A run that ends anyway asks no question.
        self.require_flawless(configuration)?;
        self.ask_trust(request).await
    }

    /// Asks a person about a project and stores the answer; returns whether it is trusted now.
    pub async fn ask_trust(&self, request: &TrustRequest) -> Result<bool, Error> {
        match prompt::ask_trust(Arc::clone(&self.output), request).await {
            Some(DialogueReply::Yes) => self.trust(request, false).map(|()| true),
            Some(DialogueReply::Author) => self.trust(request, true).map(|()| true),
            Some(DialogueReply::No) => {
                self.trust_store()?.refuse(request, SystemClock.unix()).map(|()| false)
            }
            Some(DialogueReply::Unanswered) | None => Ok(false),
        }
    }

    /// Writes the entries that a command added to a server file. In a project of which everything
    /// else was trusted, what the person just wrote is trusted exactly as written, unless it
    /// replaces an entry of the user's own. Returns the command that trusts the project, where that
    /// is still needed.
    pub fn write_server_file(&self, file: &McpFile) -> Result<Option<String>, Error> {
        let directory = file.path.parent().filter(|_| !file.is_own);
        let before = self.load_untrusting(directory)?;
        file.write()?;
        let after = self.load_untrusting(directory)?;
        let Some(request) = &after.trust_request else { return Ok(None) };
        let texts = |configuration: &Configuration| -> BTreeMap<PathBuf, String> {
            let files = configuration.files.iter().filter(|file| file.layer == Layer::Project);
            files.map(|file| (file.path.clone(), file.text.as_str().to_owned())).collect()
        };
        let mut expected = texts(&before);
        expected.insert(file.path.clone(), file.new.clone());
        if before.trust_request.is_some() || texts(&after) != expected || !request.only_adds() {
            return Ok(Some(request.command()));
        }
        let author = request.previous.as_ref().is_some_and(|record| record.allows_code_changes);
        self.trust(request, author)?;
        Ok(None)
    }

    /// Stores that a person trusts a project as shown in `request`.
    pub fn trust(&self, request: &TrustRequest, author: bool) -> Result<(), Error> {
        self.trust_store()?.trust(request, author, SystemClock.unix())
    }

    pub fn trust_store(&self) -> Result<TrustStore, Error> {
        TrustStore::open(self.environment.state_dir().as_deref()).map_err(mcp_file::error)
    }

    /// Tells a person who wrote a server file that its project has to be trusted first.
    pub fn note_untrusted(&self, trust_command: Option<String>) {
        if let Some(command) = trust_command {
            self.output.note(format!("review and trust the project first: {command}"));
        }
    }
}
