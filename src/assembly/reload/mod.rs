//! Updates a running host to the current content of its files.

mod fingerprint;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::contents::{ProviderGroup, ProviderOwner, ProviderSources};
use super::{Assembly, LoadedConfiguration, pins, secrets};
use crate::audit::Masker;
use crate::config::environment::Environment;
use crate::config::spec::Configuration;
use crate::host::{HostContents, ToolHost};
use crate::model::{Diagnostic, Error};
use crate::provider::ToolProvider;
use fingerprint::{EntryFingerprints, Fingerprint};

/// Updates what a host offers whenever its files change.
pub struct HostReloader {
    host: Arc<ToolHost>,
    environment: Arc<dyn Environment>,
    masker: Masker,
    current: Mutex<CurrentContents>,
}

/// The reading of the files that the host was built from.
struct CurrentContents {
    sources: ProviderSources,
    entries: EntryFingerprints,
    rules: Fingerprint,
    records: Fingerprint,
    errors: BTreeSet<String>,
    is_project_trusted: bool,
}

impl CurrentContents {
    fn new(
        configuration: &Configuration,
        entries: EntryFingerprints,
        sources: ProviderSources,
        environment: &dyn Environment,
    ) -> Self {
        Self {
            sources,
            entries,
            rules: fingerprint::of_rules(configuration, environment),
            records: fingerprint::of_records(configuration),
            errors: errors(configuration).map(identity).collect(),
            is_project_trusted: configuration.trust_record.is_some(),
        }
    }

    fn superseded(&self, now: &EntryFingerprints) -> Vec<Arc<dyn ToolProvider>> {
        let lasts = |group: &&ProviderGroup| now.has_all_of(&group.owner, &self.entries);
        let groups = self.sources.groups.iter().filter(lasts);
        groups.flat_map(|group| group.providers.iter().cloned()).collect()
    }
}

/// What a reading of the files changed, by the names of entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReloadReport {
    /// Entries that are new in the files.
    pub added: Vec<String>,
    /// Entries that changed; their servers are restarted when needed.
    pub changed: Vec<String>,
    /// Entries that are no longer in the files.
    pub removed: Vec<String>,
    pub has_new_rules: bool,
    /// Whether settings of the audit log, history or statistics changed, which apply from the next
    /// start.
    pub needs_restart: bool,
    pub diagnostics: Vec<Diagnostic>,
}

impl ReloadReport {
    /// Whether the host offers exactly what it offered before.
    pub fn is_empty(&self) -> bool {
        let no_entry = self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty();
        no_entry && !self.has_new_rules
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewErrors {
    /// Reject the reload: no user is there to see the errors.
    Refused,
    Accepted,
}

/// Why a reading of the files did not replace the previous one, which stays in use.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error("the configuration has new errors")]
    Invalid(Vec<Diagnostic>),
    /// The project's files are no longer what the user trusted.
    #[error("the project in {} changed and is not trusted as it is now", .0.display())]
    Untrusted(PathBuf),
    /// Pins that cannot be used, or a host that is closed.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl HostReloader {
    pub fn new(assembly: &Assembly, environment: Arc<dyn Environment>) -> Self {
        let Assembly { host, configuration, masker, sources } = assembly;
        let entries = EntryFingerprints::of(configuration);
        let current =
            CurrentContents::new(configuration, entries, sources.clone(), environment.as_ref());
        Self {
            host: Arc::clone(host),
            environment,
            masker: masker.clone(),
            current: Mutex::new(current),
        }
    }

    pub fn needs_another_host(&self, loaded: &LoadedConfiguration) -> bool {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.records != fingerprint::of_records(&loaded.configuration)
    }

    /// Offers what `loaded` says from now on. Unchanged entries keep their connections.
    pub fn reload(
        &self,
        loaded: LoadedConfiguration,
        new_errors: NewErrors,
    ) -> Result<ReloadReport, ReloadError> {
        let outcome = self.replace_contents(loaded, new_errors);
        match &outcome {
            Ok(report) if report.is_empty() => tracing::debug!("configuration read, unchanged"),
            Ok(ReloadReport { added, changed, removed, .. }) => {
                tracing::info!(?added, ?changed, ?removed, "configuration reloaded");
            }
            Err(error) => tracing::warn!(%error, "configuration not reloaded"),
        }
        outcome
    }

    fn replace_contents(
        &self,
        loaded: LoadedConfiguration,
        accepts: NewErrors,
    ) -> Result<ReloadReport, ReloadError> {
        let LoadedConfiguration { mut configuration, profile, .. } = loaded;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // From here on everything that may be shown goes through the masker of the first reading.
        secrets::teach(&self.masker, &configuration, self.environment.as_ref());
        if current.is_project_trusted
            && let Some(request) = &configuration.trust_request
            && request.previous.is_some()
        {
            return Err(ReloadError::Untrusted(request.root.clone()));
        }
        let entries = EntryFingerprints::of(&configuration);
        let unchanged: Vec<_> = current
            .sources
            .groups
            .iter()
            .filter(|group| entries.is_same_for(&group.owner, &current.entries))
            .cloned()
            .collect();
        let sources = current.sources.build(&mut configuration, &unchanged, &self.masker);
        let new_errors: Vec<Diagnostic> = errors(&configuration)
            .filter(|diagnostic| !current.errors.contains(&identity(diagnostic)))
            .cloned()
            .collect();
        if accepts == NewErrors::Refused && !new_errors.is_empty() {
            return Err(ReloadError::Invalid(new_errors));
        }
        let environment = self.environment.as_ref();
        let now = CurrentContents::new(&configuration, entries, sources, environment);
        let mut report = now.entries.compare(&current.entries);
        report.has_new_rules = now.rules != current.rules;
        report.needs_restart = now.records != current.records;
        report.diagnostics.clone_from(&configuration.diagnostics);
        if !report.is_empty() {
            let pins = pins::load(&configuration, environment, &self.masker)
                .map_err(|error| self.masker.error(error))?;
            let superseded = current.superseded(&now.entries);
            let contents = now.sources.contents(&configuration, pins, profile);
            let contents = HostContents { superseded, ..contents };
            self.host.replace_contents(contents).map_err(Error::from)?;
        }
        *current = now;
        Ok(report)
    }
}

fn errors(configuration: &Configuration) -> impl Iterator<Item = &Diagnostic> {
    configuration.diagnostics.iter().filter(|diagnostic| diagnostic.is_error())
}

/// What makes two errors equal, regardless of their line numbers.
fn identity(diagnostic: &Diagnostic) -> String {
    let file = diagnostic.location.as_ref().map(|place| place.file.display().to_string());
    format!("{file:?} {:?} {}", diagnostic.entry, diagnostic.message)
}
