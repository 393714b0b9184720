//! The arguments of a file tool's call, in either vocabulary.
//!
//! The host checks arguments against the schema; `--no-validate` lets anything through, so each is
//! looked at again where it is used.

use serde_json::Value;

use super::operation::{DEFAULT_ENTRIES, MAX_ENTRIES};
use crate::model::{Error, JsonObject};

pub(super) struct FileArguments<'a>(pub(super) &'a JsonObject);

impl<'a> FileArguments<'a> {
    /// The value under the first of these names that is present and not null.
    fn value(&self, names: &[&'static str]) -> Option<(&'static str, &'a Value)> {
        let entry = names.iter().find_map(|name| Some((*name, self.0.get(*name)?)));
        entry.filter(|(_, value)| !value.is_null())
    }

    pub(super) fn text(&self, names: &[&'static str]) -> Result<Option<&'a str>, Error> {
        let Some((name, value)) = self.value(names) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| Error::usage(format!("'{name}' must be text")))
    }

    pub(super) fn required(&self, names: &[&'static str]) -> Result<&'a str, Error> {
        let name = names.first().copied().unwrap_or_default();
        self.text(names)?.ok_or_else(|| Error::usage(format!("'{name}' is missing")))
    }

    /// A switch; absent is off.
    pub(super) fn flag(&self, name: &'static str) -> Result<bool, Error> {
        let Some((_, value)) = self.value(&[name]) else { return Ok(false) };
        value.as_bool().ok_or_else(|| Error::usage(format!("'{name}' must be true or false")))
    }

    /// A whole number that is at least `least`.
    pub(super) fn count(&self, name: &'static str, least: u64) -> Result<Option<u64>, Error> {
        let Some((_, value)) = self.value(&[name]) else { return Ok(None) };
        let count = value.as_u64().filter(|count| *count >= least);
        count.map(Some).ok_or_else(|| {
            Error::usage(format!("'{name}' must be a whole number, {least} or more"))
        })
    }

    pub(super) fn limit(&self) -> Result<usize, Error> {
        let limit = self.count("limit", 1)?.unwrap_or(DEFAULT_ENTRIES).min(MAX_ENTRIES);
        Ok(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    pub(super) fn base64(&self) -> Result<bool, Error> {
        match self.text(&["encoding"])? {
            None | Some("text") => Ok(false),
            Some("base64") => Ok(true),
            Some(_) => Err(Error::usage("'encoding' must be text or base64")),
        }
    }
}
