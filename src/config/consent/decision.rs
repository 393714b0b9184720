//! Deciding whether the loaded files may act, once and before anything is resolved: the stored record of a
//! trusted project, and the proof that nothing acts without, a [`Grant`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bundle::Bundle;
use super::effect::KindDescriptor;
use super::seal::{EntryFiles, Hashing, Seal};
use super::store::TrustStore;
use super::survey::{self, EntryKey, EntrySurvey, UserEntryName, UserEntryNames};
use super::trust_request::TrustRequest;
use super::written_credentials::WrittenCredentials;
use crate::config::discover::{FileRole, LoadRequest};
use crate::config::environment::Environment;
use crate::config::sources::SourceFile;
use crate::model::{Diagnostic, Layer};

/// What may act, and what the user would have to be asked.
#[derive(Debug, Default)]
pub struct Consent {
    /// For the files of the project; `None` until the user has agreed.
    project: Option<Grant>,
    root: PathBuf,
    harmless: BTreeSet<EntryKey>,
    seals: BTreeMap<EntryKey, Seal>,
    user_names: UserEntryNames,
    /// The position of each entry in the open question.
    request_index: HashMap<String, usize>,
    /// The open question; `None` when no consent is needed.
    pub request: Option<TrustRequest>,
    /// Problems with the trust store.
    pub diagnostics: Vec<Diagnostic>,
}

impl Consent {
    /// The grant for a file; `None` while the project it belongs to is untrusted.
    pub(in crate::config) fn grant(&self, file: &SourceFile) -> Option<Grant> {
        if file.is_project() { self.project.clone() } else { Some(Grant::own()) }
    }

    /// Whether an entry of a project has no effects, so that it acts without consent.
    pub(in crate::config) fn is_harmless(&self, role: FileRole, name: &str) -> bool {
        self.harmless.contains(&(role, name.to_owned()))
    }

    /// What must be unchanged when an entry of a project starts something.
    pub(in crate::config) fn seal(&self, role: FileRole, name: &str) -> Seal {
        self.seals.get(&(role, name.to_owned())).cloned().unwrap_or_default()
    }

    /// What an entry that may not act yet would do, in lines for people.
    pub(in crate::config) fn effects_of(&self, name: &str) -> Vec<String> {
        let records = self.request.as_ref().map(|request| &request.bundle.entries);
        let index = self.request_index.get(name).copied();
        let record = records.zip(index).and_then(|(records, index)| records.get(index));
        record.map(|record| record.lines.clone()).unwrap_or_default()
    }

    /// The location of the user's entry that `name` would replace, unless a stored answer covered
    /// that.
    pub(in crate::config) fn user_entry_location(
        &self,
        name: &str,
        is_component: bool,
    ) -> Option<String> {
        let replaces = |own: &&UserEntryName| {
            self.project.as_ref().is_some_and(|grant| grant.may_replace(&own.name))
        };
        let own = self.user_names.conflicts(name, is_component).find(|own| !replaces(own))?;
        Some(format!("'{}' ({})", own.name, own.describe_location()))
    }

    /// The stored answer that allows the project to act.
    pub(in crate::config) fn record(&self) -> Option<&Arc<ProjectRecord>> {
        self.project.as_ref()?.record()
    }

    /// The root of the project, links resolved; empty without a project.
    pub(in crate::config) fn root(&self) -> &std::path::Path {
        &self.root
    }
}

/// Decides about the files of a load. With `trust_all` of the request, a project acts in this run
/// without asking, but does not replace any entry of the user.
pub(in crate::config) fn decide(
    files: &[SourceFile],
    kinds: &[KindDescriptor],
    environment: &dyn Environment,
    request: &LoadRequest,
) -> Consent {
    let project: Vec<&SourceFile> = files.iter().filter(|file| file.is_project()).collect();
    if project.is_empty() {
        return Consent::default();
    }
    let users = files.iter().filter(|file| file.candidate.layer == Layer::User);
    let own = UserEntryNames::of(users);
    let credentials = WrittenCredentials::of(files);
    let mut survey = survey::survey(&project, kinds, environment, &own, &credentials);
    let mut consent = Consent { root: survey.root.clone(), user_names: own, ..Consent::default() };
    if request.trust_all {
        consent.project = Some(Grant::for_this_run());
        return consent;
    }
    if !survey.needs_consent {
        consent.harmless = survey.harmless;
        return consent;
    }
    let mut store_error = None;
    let store = TrustStore::open(environment.state_dir().as_deref()).unwrap_or_else(|diagnostic| {
        store_error = Some(diagnostic.message.clone());
        consent.diagnostics.push(diagnostic);
        TrustStore::default()
    });
    let previous = store.project(&survey.root).cloned();
    let mut hashing = Hashing::new(previous.as_deref().map(|record| &record.bundle));
    survey.bind(&mut hashing);
    let covering = |survey: &EntrySurvey| {
        previous.as_ref().filter(|record| survey.bundle.differences(record).is_empty())
    };
    if request.reviews_code || covering(&survey).is_none() {
        let unlisted =
            survey::list_loaded_code(&mut survey, &project, kinds, environment, &mut hashing);
        consent.diagnostics.extend(unlisted);
    }
    if let Some(record) = covering(&survey) {
        consent.seals = seals(&survey, record);
        consent.project = Some(Grant::stored(Arc::clone(record)));
        return consent;
    }
    let refused_at = store.refused_at(&survey.root, &survey.bundle.digest()).map(str::to_owned);
    consent.harmless = survey.harmless;
    let names = survey.bundle.entries.iter().map(|entry| entry.name.clone());
    consent.request_index = names.enumerate().map(|(index, name)| (name, index)).collect();
    let EntrySurvey { root, bundle, .. } = survey;
    consent.request = Some(TrustRequest { root, bundle, previous, refused_at, store_error });
    consent
}

fn seals(survey: &EntrySurvey, record: &Arc<ProjectRecord>) -> BTreeMap<EntryKey, Seal> {
    let manifest = Arc::new(record.bundle.manifest());
    let seal =
        |files: &EntryFiles| Seal::new(Arc::clone(record), files.clone(), Arc::clone(&manifest));
    survey.starts.iter().map(|(key, files)| (key.clone(), seal(files))).collect()
}

/// Proof that the user agreed to a file. Only this module's parent creates one, and it is the only
/// way to get an `Expander`: without it no code can replace a reference by its value.
#[derive(Debug, Clone)]
pub struct Grant(GrantBasis);

#[derive(Debug, Clone)]
enum GrantBasis {
    /// The user wrote or named the file, or it is the embedded default.
    UserOwned,
    /// `--trust` or `TOOLHOST_TRUST=1`: this run, without the right to replace anything.
    ThisRun,
    Stored(Arc<ProjectRecord>),
}

impl Grant {
    /// For files that the user wrote or named, and for the embedded default.
    pub(in crate::config) fn own() -> Self {
        Self(GrantBasis::UserOwned)
    }

    /// For tests of other modules, whose entries need no consent.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        Self::own()
    }

    pub(super) fn for_this_run() -> Self {
        Self(GrantBasis::ThisRun)
    }

    pub(super) fn stored(record: Arc<ProjectRecord>) -> Self {
        Self(GrantBasis::Stored(record))
    }

    /// Whether an entry of a project may replace the user's own entry `name`.
    pub fn may_replace(&self, name: &str) -> bool {
        match &self.0 {
            GrantBasis::UserOwned => true,
            GrantBasis::ThisRun => false,
            GrantBasis::Stored(record) => {
                record.bundle.replaced_names.iter().any(|replaced| replaced == name)
            }
        }
    }

    /// The stored answer this is based on, if any.
    pub(super) fn record(&self) -> Option<&Arc<ProjectRecord>> {
        match &self.0 {
            GrantBasis::Stored(record) => Some(record),
            GrantBasis::UserOwned | GrantBasis::ThisRun => None,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectRecord {
    pub root: PathBuf,
    /// When the user agreed, as RFC 3339 in UTC.
    #[serde(rename = "when")]
    pub trusted_at: String,
    /// Whether code below the root may change without asking: its author said so.
    #[serde(rename = "author", default)]
    pub allows_code_changes: bool,
    pub bundle: Bundle,
}
