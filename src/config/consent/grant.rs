//! The proof type for trusted files: without a [`Grant`] a file cannot act.

use std::sync::Arc;

use super::project_record::ProjectRecord;

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
