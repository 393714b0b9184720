//! Stand-in for the record of what a person allowed.
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::spec::TrustRequest;
use crate::model::{Fault, Problem};

/// One thing that was allowed.
#[derive(Debug, Clone)]
pub struct Allowed {
    /// The hash of the content.
    pub key: String,
    /// The entry's name, for people.
    pub name: String,
    /// The file it stands in.
    pub file: PathBuf,
    /// What was shown.
    pub lines: Vec<String>,
    /// When, as RFC 3339.
    pub when: String,
}

/// Everything that was allowed.
#[derive(Debug, Default)]
pub struct TrustStore {
    allowed: Vec<Allowed>,
}

impl TrustStore {
    /// Opens the record.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(_state_dir: Option<&Path>) -> Result<Self, Problem> {
        Ok(Self::default())
    }

    /// Everything that was allowed, oldest first.
    pub fn list(&self) -> &[Allowed] {
        &self.allowed
    }

    /// Remembers that a person allowed `requests`.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn allow(&mut self, _requests: &[TrustRequest], _now: Duration) -> Result<(), Fault> {
        Ok(())
    }

    /// Takes back what was allowed.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn revoke(&mut self, _word: &str) -> Result<Vec<Allowed>, Fault> {
        Ok(Vec::new())
    }
}
