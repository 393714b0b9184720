//! Building the host of a command.

use std::sync::Arc;

use super::{CommandContext, StartScope};
use crate::assembly::{self, Assembly, FrontEnd, LoadedConfiguration};
use crate::cli::answers::AnsweringInbox;
use crate::cli::mcp_file;
use crate::cli::progress::ProgressDisplay;
use crate::cli::prompt::{TerminalApprover, TerminalInbox};
use crate::config::spec::Configuration;
use crate::model::{Error, EventSink, QuestionHandler};
use crate::present::{
    configuration::{count_diagnostics, out_of_service},
    messages, plural,
};
use crate::util::clock::SystemClock;

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
