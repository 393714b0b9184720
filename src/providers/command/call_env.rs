//! The environment of a command: built from an explicit list of names.

use std::collections::BTreeMap;

use super::entry::{CommandEntry, CommandInput, variable};
use crate::config::variables::call_may_set;
use crate::model::{Error, JsonObject, ToolContext, TraceContext};
use crate::providers::program_env::is_variable;
use crate::providers::template::value_text;
use crate::util::process::EVENTS_FD;

/// Adds the arguments of the call as `TOOLHOST_ARG_…`, for entries with `input: env`.
pub(super) fn add_arguments(
    env: &mut BTreeMap<String, String>,
    entry: &CommandEntry,
    arguments: &JsonObject,
) -> Result<(), Error> {
    if entry.input != CommandInput::Env {
        return Ok(());
    }
    for (name, value) in arguments {
        let Some(value) = value_text(value) else { continue };
        if value.contains('\0') {
            return Err(Error::usage(format!("'{name}' contains a NUL byte"))
                .with_hint("an environment variable cannot contain one"));
        }
        env.insert(variable(name), value);
    }
    Ok(())
}

/// Adds what the call's context says: the session, the user, the trace, the
/// caller's directory, the caller's variables.
pub(super) fn add_context(
    env: &mut BTreeMap<String, String>,
    context: &ToolContext,
) -> Result<(), Error> {
    for (name, value) in &context.environment {
        if !is_variable(name) || value.contains('\0') {
            return Err(Error::usage(format!("'{name}' cannot be an environment variable")));
        }
        if !call_may_set(name, std::slice::from_ref(name)) {
            return Err(Error::usage(format!("'{name}' cannot be set by a call"))
                .with_hint("it may decide which code runs: set it under 'env' in the entry"));
        }
        env.insert(name.clone(), value.clone());
    }
    let cwd = context.cwd.to_string_lossy();
    for (name, value) in [
        ("TOOLHOST_CALL_ID", &*context.call_id.0),
        ("TOOLHOST_SESSION_ID", &context.session_id),
        ("TOOLHOST_CWD", &cwd),
    ] {
        env.insert(name.to_owned(), value.replace('\0', ""));
    }
    let trace = context.trace.as_ref();
    for (name, value) in [
        ("TOOLHOST_USER", context.user_id.as_deref()),
        ("TRACEPARENT", trace.map(TraceContext::traceparent)),
        ("TRACESTATE", trace.and_then(TraceContext::tracestate)),
    ] {
        env.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    }
    if !context.metadata.is_empty() {
        let metadata = serde_json::Value::Object(context.metadata.clone()).to_string();
        env.insert("TOOLHOST_CONTEXT".to_owned(), metadata);
    }
    env.insert("TOOLHOST_EVENTS_FD".to_owned(), EVENTS_FD.to_string());
    Ok(())
}
