//! The JSON of `run` without a name: the saved calls.

use crate::util::shape::shape;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::saved_calls::SavedCall;

/// The saved calls, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SavedCallsJson<'a> {
    /// The calls, in the order of their names.
    calls: Vec<SavedCallJson<'a>>,
}

shape! {
    /// A saved call.
    pub SavedCallJson<'a> of (key, call): (&'a String, &'a SavedCall) {
        /// The name after `run`.
        name: &'a str = key,
        /// The tool, as it was typed.
        tool: &'a str = &call.tool,
        /// The arguments of the command line that makes the call, starting with `call`.
        command: Vec<String> = call.command_words(),
    }
}

impl<'a> From<&'a BTreeMap<String, SavedCall>> for SavedCallsJson<'a> {
    fn from(calls: &'a BTreeMap<String, SavedCall>) -> Self {
        Self { calls: calls.iter().map(Into::into).collect() }
    }
}
