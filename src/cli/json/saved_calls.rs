//! The JSON of `run` without a name: the saved calls.

use crate::util::shape::shape;
use std::collections::BTreeMap;

use crate::config::saved_calls::SavedCall;

shape! {
    /// The saved calls, by name.
    pub SavedCallsJson<'a> of calls: &'a BTreeMap<String, SavedCall> {
        /// The calls, in the order of their names.
        calls: Vec<SavedCallJson<'a>> = calls.iter().map(Into::into).collect(),
    }
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
