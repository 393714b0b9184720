//! Asking functions what they say about themselves: description and schema.

use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::answer;
use super::entry::Entry;
use super::memory::Described;
use super::runner::Runner;
use super::wire::Op;
use crate::model::{CallId, Fault, ToolContext};
use crate::util::units::show_duration;

/// How long importing a module and describing it may take.
const LIMIT: Duration = Duration::from_mins(1);

/// The typed functions of a module.
#[derive(Debug, Deserialize)]
pub(super) struct Functions {
    /// Those that become tools.
    pub(super) functions: Vec<Function>,
    /// Public ones that do not, with the reason.
    pub(super) left_out: Vec<String>,
}

/// One of them.
#[derive(Debug, Deserialize)]
pub(super) struct Function {
    /// Its name.
    pub(super) name: String,
    /// What it says.
    #[serde(flatten)]
    pub(super) described: Described,
}

/// Describes functions, all at once, and remembers what they said.
pub(super) async fn functions(
    runner: &Runner,
    wanted: &[(&Entry, &str)],
) -> Vec<Result<Described, Fault>> {
    let each = wanted
        .iter()
        .map(|(entry, function)| ask::<Described>(runner, entry, (Op::Describe, Some(function))));
    let told = join_all(each).await;
    let news: Vec<_> = wanted
        .iter()
        .zip(&told)
        .filter_map(|((entry, function), told)| {
            let key = runner.key(entry).ok()?;
            Some((key, entry.module.as_str(), *function, told.as_ref().ok()?))
        })
        .collect();
    if !news.is_empty() {
        runner.memory.remember(&news, &runner.expanded);
    }
    told
}

/// The typed functions of the module of an entry.
///
/// # Errors
/// When it cannot be imported.
pub(super) async fn module(runner: &Runner, entry: &Entry) -> Result<Functions, Fault> {
    ask(runner, entry, (Op::Functions, None)).await
}

async fn ask<T: DeserializeOwned>(
    runner: &Runner,
    entry: &Entry,
    (op, function): (Op, Option<&str>),
) -> Result<T, Fault> {
    let context = ToolContext::bare(CallId("describe".to_owned()));
    let work = runner.ask(entry, (op, function, None), &context, &entry.module);
    tokio::pin!(work);
    let reply = tokio::select! {
        reply = &mut work => reply,
        () = tokio::time::sleep(LIMIT) => {
            // Whoever hangs while it is imported would hang in the next call too: it is ended.
            context.cancel.cancel();
            let _stopped = work.await;
            Err(Fault::timeout(format!(
                "'{}' could not be imported and described within {}",
                entry.module,
                show_duration(LIMIT)
            )))
        }
    };
    let value = answer::value(reply?)?;
    serde_json::from_value(value)
        .map_err(|error| Fault::internal(format!("a description cannot be read: {error}")))
}

#[cfg(test)]
mod tests;
