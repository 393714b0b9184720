//! Which environment variables a call passes to its tool.

use std::collections::BTreeMap;

use crate::config::references::{call_may_set, is_set_by_toolhost, is_setting};
use crate::model::{Error, ToolDefinition};

pub(super) fn check(
    environment: &BTreeMap<String, String>,
    tool: &ToolDefinition,
) -> Result<(), Error> {
    let refused = environment.keys().find(|name| !call_may_set(name, &tool.context_env));
    let Some(name) = refused else { return Ok(()) };
    let error = Error::usage(format!("'{name}' cannot be set by a call of '{}'", tool.name));
    Err(if is_set_by_toolhost(name) {
        error.with_hint(
            "toolhost sets it: --session names the session, --context user_id=NAME the user",
        )
    } else if !is_setting(name) {
        error.with_hint(format!(
            "by its name it may decide which code runs: set it under 'env' in the entry, or \
             declare one such as APP_ID in 'context_env'; --context {name}:=JSON is metadata"
        ))
    } else {
        error.with_hint(format!(
            "declare it in the entry: 'context_env: [{name}]'; --context {name}:=JSON is metadata"
        ))
    })
}

/// Leaves out what the entry of the tool does not declare.
pub(super) fn retain(environment: &mut BTreeMap<String, String>, tool: &ToolDefinition) {
    environment.retain(|name, _| call_may_set(name, &tool.context_env));
}
