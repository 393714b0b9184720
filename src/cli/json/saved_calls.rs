//! The JSON of `run` without a name: the saved calls.

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

/// A saved call.
#[derive(Debug, Serialize, JsonSchema)]
struct SavedCallJson<'a> {
    /// The name after `run`.
    name: &'a str,
    /// The tool, as it was typed.
    tool: &'a str,
    /// The arguments of the command line that makes the call, starting with `call`.
    command: Vec<String>,
}

impl<'a> From<&'a BTreeMap<String, SavedCall>> for SavedCallsJson<'a> {
    fn from(calls: &'a BTreeMap<String, SavedCall>) -> Self {
        let call = |(name, call): (&'a String, &'a SavedCall)| SavedCallJson {
            name,
            tool: &call.tool,
            command: call.command_words(),
        };
        Self { calls: calls.iter().map(call).collect() }
    }
}
