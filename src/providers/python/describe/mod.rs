//! Asking an interpreter for the description and schema of functions.

use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::description_cache::FunctionDescription;
use super::entry::{PythonEntry, Selection};
use super::result;
use super::runner::PythonRunner;
use super::wire::{WorkerOp, WorkerTarget};
use crate::model::{CallId, Error, ToolContext};
use crate::util::units::show_duration;

/// How long importing a module and describing it may take.
const DESCRIBE_TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Debug, Deserialize)]
pub(super) struct OfferedTools {
    /// Definitions, typed functions or methods; they become tools.
    pub(super) functions: Vec<OfferedTool>,
    /// Public ones that do not, with the reason.
    pub(super) left_out: Vec<String>,
}

/// A definition, function or method that becomes a tool.
#[derive(Debug, Deserialize)]
pub(super) struct OfferedTool {
    /// The tool's name or the last part of it; empty for a class that is one tool.
    pub(super) name: String,
    /// Its schema and texts, made of its signature and docstring.
    #[serde(flatten)]
    pub(super) described: FunctionDescription,
    #[serde(flatten)]
    pub(super) said: DefinitionAttributes,
}

/// What the author of a definition may say beside name, description and schema. Nothing of it was
/// checked.
#[derive(Debug, Default, Deserialize)]
pub(super) struct DefinitionAttributes {
    pub(super) title: Option<Value>,
    pub(super) category: Option<Value>,
    pub(super) speed: Option<Value>,
    pub(super) safety: Option<Value>,
    pub(super) scope: Option<Value>,
    pub(super) version: Option<Value>,
    pub(super) timeout: Option<Value>,
    pub(super) retries: Option<Value>,
    pub(super) requires_approval: Option<Value>,
    pub(super) output_schema: Option<Value>,
}

pub(super) async fn functions(
    runner: &PythonRunner,
    targets: &[(&PythonEntry, &str)],
) -> Vec<Result<FunctionDescription, Error>> {
    let each = targets.iter().map(|(entry, function)| {
        request_description::<FunctionDescription>(
            runner,
            entry,
            (WorkerOp::Describe, WorkerTarget::Function(function)),
        )
    });
    let described = join_all(each).await;
    let news: Vec<_> = targets
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

/// The tools of the module or the class of an entry.
pub(super) async fn offered(
    runner: &PythonRunner,
    entry: &PythonEntry,
) -> Result<OfferedTools, Error> {
    let what = match &entry.selection {
        Selection::Class(class) => (WorkerOp::Methods, WorkerTarget::Class(class, None)),
        Selection::Function(_) | Selection::Offered => (WorkerOp::Functions, WorkerTarget::Module),
    };
    request_description(runner, entry, what).await
}

async fn request_description<T: DeserializeOwned>(
    runner: &PythonRunner,
    entry: &PythonEntry,
    (op, target): (WorkerOp, WorkerTarget<'_>),
) -> Result<T, Error> {
    let context = ToolContext::empty(CallId("describe".to_owned()));
    let work = runner.request(entry, (op, target, None), &context, &entry.module);
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
