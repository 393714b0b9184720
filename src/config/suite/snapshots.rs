//! What tests got when a person last looked: a JSON file beside the suite.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Suite, masking};
use crate::model::{Error, unreadable_file};
use crate::util::atomic_file::{self, FileMode};
use crate::util::jq::{self, JqError};
use crate::util::{json, regular_file};

const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug)]
pub struct Snapshots {
    pub path: PathBuf,
    results: BTreeMap<String, Value>,
}

impl Snapshots {
    /// Those of a suite: `smoke.yaml` has `smoke.snapshots.json`.
    pub fn of_suite(suite: &Path) -> Result<Self, Error> {
        let path = suite.with_extension("snapshots.json");
        if !path.exists() {
            return Ok(Self { path, results: BTreeMap::new() });
        }
        let bytes = regular_file::bytes(&path, MAX_BYTES)
            .map_err(|why| unreadable_file("snapshots", &path, &why))?;
        let results = serde_json::from_slice(&bytes).map_err(|why| {
            Error::config(format!("{} is damaged: {why}", path.display()))
                .with_hint("move it away; 'toolhost test --update' makes it again")
        })?;
        Ok(Self { path, results })
    }

    pub fn get(&self, test: &str) -> Option<&Value> {
        self.results.get(test)
    }

    pub fn set(&mut self, test: &str, result: Value) {
        self.results.insert(test.to_owned(), result);
    }

    /// Forgets those of tests that are no longer there.
    pub fn retain(&mut self, suite: &Suite) {
        self.results.retain(|name, _| suite.cases().any(|case| case.name == *name));
    }

    /// Writes the file. A link in its place is refused: the suite may be somebody else's.
    pub fn save(&self) -> Result<(), Error> {
        let failed = |why: &dyn std::fmt::Display| {
            Error::internal(format!("cannot write {}: {why}", self.path.display()))
        };
        if self.path.is_symlink() {
            return Err(failed(&"it is a symbolic link"));
        }
        let text = json::pretty(&self.results) + "\n";
        atomic_file::replace(&self.path, text.as_bytes(), FileMode::Kept(0o644))
            .map_err(|why| failed(&why))
    }
}

/// A result without what is left open.
pub fn masked<'p>(
    result: Value,
    mut paths: impl Iterator<Item = &'p String>,
) -> Result<Value, JqError> {
    paths.try_fold(result, |result, path| {
        Ok(jq::query(&masking(path), &result)?.into_iter().next().unwrap_or_default())
    })
}
