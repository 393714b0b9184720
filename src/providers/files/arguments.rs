//! The arguments of a call, in either vocabulary.
//!
//! The host checks arguments against the schema; `--no-validate` lets anything through, so each is
//! looked at again where it is used.

use serde_json::Value;

use super::table::{MOST_ENTRIES, SOME_ENTRIES};
use crate::model::{Fault, JsonObject};

/// The arguments of one call.
pub(super) struct Arguments<'a>(pub(super) &'a JsonObject);

impl<'a> Arguments<'a> {
    /// The value under the first of these names that is there and not null.
    fn value(&self, names: &[&'static str]) -> Option<(&'static str, &'a Value)> {
        let found = names.iter().find_map(|name| Some((*name, self.0.get(*name)?)));
        found.filter(|(_, value)| !value.is_null())
    }

    /// A text under one of these names, which mean the same.
    ///
    /// # Errors
    /// A usage fault when it is something else.
    pub(super) fn text(&self, names: &[&'static str]) -> Result<Option<&'a str>, Fault> {
        let Some((name, value)) = self.value(names) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| Fault::usage(format!("'{name}' has to be text")))
    }

    /// A text that has to be there.
    ///
    /// # Errors
    /// A usage fault when it is absent or something else.
    pub(super) fn required(&self, names: &[&'static str]) -> Result<&'a str, Fault> {
        let name = names.first().copied().unwrap_or_default();
        self.text(names)?.ok_or_else(|| Fault::usage(format!("'{name}' is missing")))
    }

    /// A switch; absent is off.
    ///
    /// # Errors
    /// A usage fault when it is something else.
    pub(super) fn flag(&self, name: &'static str) -> Result<bool, Fault> {
        let Some((_, value)) = self.value(&[name]) else { return Ok(false) };
        value.as_bool().ok_or_else(|| Fault::usage(format!("'{name}' has to be true or false")))
    }

    /// A whole number that is at least `least`.
    ///
    /// # Errors
    /// A usage fault when it is something else.
    pub(super) fn count(&self, name: &'static str, least: u64) -> Result<Option<u64>, Fault> {
        let Some((_, value)) = self.value(&[name]) else { return Ok(None) };
        let count = value.as_u64().filter(|count| *count >= least);
        count.map(Some).ok_or_else(|| {
            Fault::usage(format!("'{name}' has to be a whole number, {least} or more"))
        })
    }

    /// How many entries to answer with.
    ///
    /// # Errors
    /// A usage fault when it is no number of entries.
    pub(super) fn limit(&self) -> Result<usize, Fault> {
        let asked = self.count("limit", 1)?.unwrap_or(SOME_ENTRIES).min(MOST_ENTRIES);
        Ok(usize::try_from(asked).unwrap_or(usize::MAX))
    }

    /// Whether `encoding` says base64.
    ///
    /// # Errors
    /// A usage fault for an encoding that is none.
    pub(super) fn base64(&self) -> Result<bool, Fault> {
        match self.text(&["encoding"])? {
            None | Some("text") => Ok(false),
            Some("base64") => Ok(true),
            Some(_) => Err(Fault::usage("'encoding' has to be text or base64")),
        }
    }
}
