//! Reloading a changed configuration while a command serves it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::assembly::host_locator::attached_front_end;
use crate::assembly::pins::PinFile;
use crate::assembly::reload::{HostReloader, NewErrors, ReloadError, ReloadReport};
use crate::assembly::{Assembly, FrontEnd};
use crate::audit::Masker;
use crate::cli::context::CommandContext;
use crate::config::consent::store::TrustStore;
use crate::config::environment::Environment;
use crate::config::spec::Configuration;
use crate::config::watched_files::WatchedFiles;
use crate::host::ToolHost;
use crate::model::{Diagnostic, Error};
use crate::present::messages;
use crate::serve::background::client::HostClient;

/// Poll interval of the files. A file that is still being written is waited for.
const INTERVAL: Duration = Duration::from_millis(500);
const MAX_ERRORS: usize = 10;
const MAX_NAMES: usize = 3;

pub struct ConfigWatch<'a> {
    context: &'a CommandContext,
    reloader: HostReloader,
    host: Arc<ToolHost>,
    masker: Masker,
    front_end: FrontEnd,
    /// Where the background host of the served configuration listens.
    socket: Option<PathBuf>,
    files: WatchedFiles,
    /// Whether changes are only reported: consent for this run was given to the files as they were.
    waits_to_be_asked: bool,
    hangup: Arc<Notify>,
}

impl<'a> ConfigWatch<'a> {
    /// Watches the files of an assembly, handles SIGHUP, and uses the background host behind
    /// `socket` until the files say something else.
    pub fn begin(
        context: &'a CommandContext,
        assembly: &Assembly,
        socket: Option<PathBuf>,
        front_end: FrontEnd,
    ) -> Self {
        let environment = Arc::clone(&context.environment);
        let watch = Self {
            context,
            host: Arc::clone(&assembly.host),
            masker: assembly.masker.clone(),
            front_end,
            socket,
            files: watched_files(&assembly.configuration, environment.as_ref()),
            waits_to_be_asked: assembly.configuration.is_agreed_for_run,
            reloader: HostReloader::new(assembly, environment),
            hangup: context.take_hangup(),
        };
        watch.attach();
        watch
    }

    /// Has the background host make the calls while one listens; otherwise this process makes them.
    fn attach(&self) {
        let Some(socket) = &self.socket else { return self.host.detach() };
        let front_end = attached_front_end(&self.front_end, &self.masker);
        self.host.attach(Arc::new(HostClient::at(socket.clone(), "toolhost serve", front_end)));
    }

    pub async fn follow(mut self) {
        // Changes between the load and the first poll are picked up by the first poll.
        let mut has_changed = !self.waits_to_be_asked;
        loop {
            let is_asked = tokio::select! {
                () = self.hangup.notified() => true,
                () = tokio::time::sleep(INTERVAL) => false,
            };
            let now = self.files.looked_at_again();
            let before = std::mem::replace(&mut self.files, now);
            let is_still = self.files.changed_since(&before).next().is_none();
            if is_asked || (has_changed && is_still) {
                self.reload(is_asked).await;
                has_changed = false;
            } else if self.waits_to_be_asked && !is_still {
                self.tell_to_ask(&before);
            } else {
                has_changed |= !is_still;
            }
        }
    }

    /// Otherwise any program that can write such a file could have toolhost start anything.
    fn tell_to_ask(&self, before: &WatchedFiles) {
        let name = |path: &Path| path.display().to_string();
        let mut changed: Vec<String> = self.files.changed_since(before).map(name).collect();
        // Long warnings are truncated, and the instruction is at the end.
        if let Some(more) = changed.len().checked_sub(MAX_NAMES).filter(|more| *more > 0) {
            changed.truncate(MAX_NAMES);
            changed.push(format!("{more} more"));
        }
        self.warn(&format!(
            "{} changed, but the previous configuration is still served: with --trust, or with files \
             given as options, it is reloaded only on request: kill -HUP {}",
            changed.join(", "),
            std::process::id(),
        ));
    }

    async fn reload(&mut self, is_asked: bool) {
        let loaded = match self.context.read_again().await {
            Ok(loaded) => loaded,
            Err(error) => return self.refuse(&error),
        };
        let files = watched_files(&loaded.configuration, self.context.environment.as_ref());
        // Changes made while it was read are picked up by the next poll.
        self.files = files.with_state_of(&self.files);
        let socket = self.context.host_locator().socket(&loaded);
        match self.reloader.reload(loaded, NewErrors::Refused) {
            Ok(report) => {
                if self.socket != socket {
                    self.socket = socket;
                    self.attach();
                }
                if !report.is_empty() || report.needs_restart || is_asked {
                    self.context.output.note(describe(&report));
                }
                if report.needs_restart {
                    self.warn("changed audit, history and stats settings apply after a restart");
                }
            }
            Err(ReloadError::Failed(error)) => self.refuse(&error),
            Err(ReloadError::Invalid(errors)) => self.refuse_invalid(&errors),
            Err(error @ ReloadError::Untrusted(_)) => {
                self.warn(&format!(
                    "{error}: the trusted version is still served; 'toolhost trust' shows the change"
                ));
            }
        }
    }

    fn refuse(&self, error: &Error) {
        match error.location() {
            Some(place) => self
                .refuse_invalid(&[Diagnostic::error(error.message()).with_location(place.clone())]),
            None => self.warn(&format!("the configuration was not reloaded: {error}")),
        }
    }

    fn refuse_invalid(&self, errors: &[Diagnostic]) {
        self.warn(
            "the configuration was not reloaded, because it has new errors; the previous one is \
             still served",
        );
        for error in errors.iter().take(MAX_ERRORS) {
            self.warn(&messages::located(error));
        }
        if let Some(more) = errors.len().checked_sub(MAX_ERRORS).filter(|more| *more > 0) {
            self.warn(&format!("and {more} more, see 'toolhost config check'"));
        }
    }

    fn warn(&self, message: &str) {
        self.context.output.warn(message);
    }
}

fn watched_files(configuration: &Configuration, environment: &dyn Environment) -> WatchedFiles {
    let trust = environment.state_dir().map(|state| TrustStore::file(&state));
    let pins = PinFile::own(environment).map(|file| file.path);
    WatchedFiles::of(configuration, trust.into_iter().chain(pins))
}

fn describe(report: &ReloadReport) -> String {
    let mut parts: Vec<String> = Vec::new();
    let lists =
        [("added", &report.added), ("changed", &report.changed), ("removed", &report.removed)];
    for (word, names) in lists {
        if !names.is_empty() {
            parts.push(format!("{word} {}", names.join(", ")));
        }
    }
    if parts.is_empty() {
        parts.push(
            if report.has_new_rules { "rules changed" } else { "nothing changed" }.to_owned(),
        );
    }
    format!("configuration reloaded: {}", parts.join("; "))
}
