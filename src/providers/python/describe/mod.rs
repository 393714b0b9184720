//! Asking an interpreter for the description and schema of functions.

use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::description_cache::FunctionDescription;
use super::entry::PythonEntry;
use super::result;
use super::runner::PythonRunner;
use super::wire::WorkerOp;
use crate::model::{CallId, Error, ToolContext};
use crate::util::units::show_duration;

/// How long importing a module and describing it may take.
const DESCRIBE_TIMEOUT: Duration = Duration::from_mins(1);

/// The typed functions of a module.
#[derive(Debug, Deserialize)]
pub(super) struct ModuleFunctions {
    /// The public functions whose arguments have type hints; they become tools.
    pub(super) functions: Vec<TypedFunction>,
    /// Public ones that do not, with the reason.
    pub(super) left_out: Vec<String>,
}

/// A function that becomes a tool.
#[derive(Debug, Deserialize)]
pub(super) struct TypedFunction {
    /// The name of the function, and the last part of the tool's.
    pub(super) name: String,
    /// Its schema and texts, made of its signature and docstring.
    #[serde(flatten)]
    pub(super) described: FunctionDescription,
}

/// Describes functions, all at once, and caches the descriptions.
pub(super) async fn functions(
    runner: &PythonRunner,
    wanted: &[(&PythonEntry, &str)],
) -> Vec<Result<FunctionDescription, Error>> {
    let each = wanted.iter().map(|(entry, function)| {
        request_description::<FunctionDescription>(
            runner,
            entry,
            (WorkerOp::Describe, Some(function)),
        )
    });
    let described = join_all(each).await;
    let news: Vec<_> = wanted
        .iter()
        .zip(&described)
        .filter_map(|((entry, function), described)| {
            let key = runner.key(entry).ok()?;
            Some((key, entry.module.as_str(), *function, described.as_ref().ok()?))
        })
        .collect();
    if !news.is_empty() {
        runner.descriptions.remember(&news, &runner.expanded);
    }
    described
}

/// The typed functions of the module of an entry.
///
/// # Errors
/// When it cannot be imported.
pub(super) async fn module(
    runner: &PythonRunner,
    entry: &PythonEntry,
) -> Result<ModuleFunctions, Error> {
    request_description(runner, entry, (WorkerOp::Functions, None)).await
}

async fn request_description<T: DeserializeOwned>(
    runner: &PythonRunner,
    entry: &PythonEntry,
    (op, function): (WorkerOp, Option<&str>),
) -> Result<T, Error> {
    let context = ToolContext::empty(CallId("describe".to_owned()));
    let work = runner.request(entry, (op, function, None), &context, &entry.module);
    tokio::pin!(work);
    let reply = tokio::select! {
        reply = &mut work => reply,
        () = tokio::time::sleep(DESCRIBE_TIMEOUT) => {
            // A module that hangs while it is imported would hang in the next call too: it is
            // ended.
            context.cancel.cancel();
            let _stopped = work.await;
            Err(Error::timeout(format!(
                "'{}' could not be imported and described within {}",
                entry.module,
                show_duration(DESCRIBE_TIMEOUT)
            )))
        }
    };
    let value = result::value(reply?)?;
    serde_json::from_value(value)
        .map_err(|error| Error::internal(format!("a description cannot be read: {error}")))
}

#[cfg(test)]
mod tests;
