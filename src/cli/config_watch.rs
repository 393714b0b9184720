//! Following changes of the configuration while a command serves it.
//!
//! Owns: noticing that files changed, or that SIGHUP asked, and telling what came of reading them.
//! Never does: decide what may take the place of what is served.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::assembly::Assembly;
use crate::assembly::pins::PinFile;
use crate::assembly::reload::{HostReloader, ReloadError, ReloadReport};
use crate::cli::context::CommandContext;
use crate::cli::output::StyledLine;
use crate::config::consent::store::TrustStore;
use crate::config::environment::Environment;
use crate::config::spec::Configuration;
use crate::model::{Diagnostic, Error};

/// How often it is looked whether a file changed. One that is still being written is waited for.
const INTERVAL: Duration = Duration::from_millis(500);
/// How many errors of a reading are told.
const MAX_ERRORS: usize = 10;

/// The files of a configuration that is served.
pub struct ConfigWatch<'a> {
    context: &'a CommandContext,
    reloader: HostReloader,
    files: Vec<PathBuf>,
    hangup: Arc<Notify>,
}

/// What is another for every change of a file, as far as the system tells without reading it.
type FileStamp = Option<(u64, u64, u64, i64, i64)>;

impl<'a> ConfigWatch<'a> {
    /// Watches the files that an assembly was read from, and takes SIGHUP.
    pub fn begin(context: &'a CommandContext, assembly: &Assembly) -> Self {
        let environment = Arc::clone(&context.environment);
        Self {
            context,
            files: watched_files(&assembly.configuration, environment.as_ref()),
            reloader: HostReloader::new(assembly, environment),
            hangup: context.take_hangup(),
        }
    }

    /// Follows the files for as long as it is polled.
    pub async fn follow(mut self) {
        let mut stamps = self.stamps();
        // What changed since they were read is seen at the first look.
        let mut has_changed = true;
        loop {
            let is_asked = tokio::select! {
                () = self.hangup.notified() => true,
                () = tokio::time::sleep(INTERVAL) => false,
            };
            let now = self.stamps();
            if !is_asked && (now != stamps || !has_changed) {
                has_changed |= now != stamps;
                stamps = now;
                continue;
            }
            self.reload(is_asked).await;
            has_changed = false;
            stamps = self.stamps();
        }
    }

    fn stamps(&self) -> Vec<FileStamp> {
        self.files.iter().map(|path| stamp(path)).collect()
    }

    async fn reload(&mut self, is_asked: bool) {
        let loaded = match self.context.read_again().await {
            Ok(loaded) => loaded,
            Err(error) => return self.refuse(&error),
        };
        self.files = watched_files(&loaded.configuration, self.context.environment.as_ref());
        match self.reloader.reload(loaded) {
            Ok(report) if report.is_empty() && !report.needs_restart && !is_asked => {}
            Ok(report) => self.tell(&report),
            Err(ReloadError::Failed(error)) => self.refuse(&error),
            Err(ReloadError::Invalid(errors)) => self.refuse_invalid(&errors),
            Err(error @ ReloadError::Untrusted(_)) => {
                self.warn(&format!(
                    "{error}: what was trusted is still served; 'toolhost trust' shows the change"
                ));
            }
        }
    }

    fn tell(&self, report: &ReloadReport) {
        self.context.output.note(&StyledLine::plain(describe(report)));
        if report.needs_restart {
            self.warn("the settings of audit, history and stats hold from the next start");
        }
    }

    fn refuse(&self, error: &Error) {
        self.warn(&format!("the configuration was not reloaded: {error}"));
    }

    fn refuse_invalid(&self, errors: &[Diagnostic]) {
        self.warn(
            "the configuration was not reloaded, and what was served is still served: it has \
             errors that it did not have before",
        );
        for error in errors.iter().take(MAX_ERRORS) {
            let place = error
                .location
                .as_ref()
                .map(|place| format!("{}:{}:{}: ", place.file.display(), place.line, place.column));
            self.warn(&format!("{}{}", place.unwrap_or_default(), error.message));
        }
        if let Some(more) = errors.len().checked_sub(MAX_ERRORS).filter(|more| *more > 0) {
            self.warn(&format!("and {more} more, see 'toolhost config check'"));
        }
    }

    fn warn(&self, words: &str) {
        self.context.output.warn(words);
    }
}

/// The files that were read, the directories where others may come to be, and what the user says
/// about them elsewhere.
fn watched_files(configuration: &Configuration, environment: &dyn Environment) -> Vec<PathBuf> {
    let read = configuration.files.iter().map(|file| file.path.clone());
    let mut files: Vec<PathBuf> = read.chain(configuration.searched.iter().cloned()).collect();
    if let Some(state) = environment.state_dir() {
        files.push(TrustStore::file(&state));
    }
    files.extend(PinFile::own(environment).map(|file| file.path));
    files
}

fn stamp(path: &Path) -> FileStamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
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
        parts.push(if report.has_new_rules { "other rules" } else { "nothing changed" }.to_owned());
    }
    format!("configuration reloaded: {}", parts.join("; "))
}
