//! `toolhost dispatch`: running the tool calls of a model.

use std::io::Read as _;

use futures_util::{StreamExt as _, stream};

use super::export::{MODEL_FORMATS, chosen_format};
use super::prelude::*;
use crate::formats::{ExportedCatalogue, ModelFormat, RequestedCall};
use crate::host::attempt::MAX_PARALLEL_CALLS;

/// Maximum size of the response in bytes.
const MAX_RESPONSE: u64 = 16 << 20;

/// Run the tool calls in a model's response and print the messages to send back.
///
/// Reads the model's response from stdin. Its calls run concurrently, under the same rules as any
/// call, and the results are printed as a JSON array in the order of the calls. The result of a
/// failed call is its error, for the model to read: the exit code is 0 as long as every call has a
/// result.
#[derive(Debug, Args)]
pub struct DispatchArgs {
    /// Format of the response
    #[arg(long, value_parser = choice(MODEL_FORMATS), required_unless_present = "model")]
    pub format: Option<ModelFormat>,
    /// Model that wrote the response, instead of --format
    #[arg(long, value_name = "NAME", conflicts_with = "format")]
    pub model: Option<String>,
    /// Approve calls without asking
    #[arg(short = 'y', long)]
    pub yes: bool,
    /// Session the calls belong to
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

pub async fn run(args: &DispatchArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let dialect = chosen_format(args.format, args.model.as_deref())?;
    let response = read_response().await?;
    let calls = dialect.requested_calls(&response).map_err(|error| {
        Error::usage(error.to_string())
            .with_hint("pass the complete response of the model, and its format")
    })?;
    let names: Vec<String> = calls.iter().map(|call| call.name.clone()).collect();
    let assembly =
        context.assemble_attached(StartScope::Named(&names, &[]), "toolhost dispatch").await?;
    let exported = exported_names(&assembly.host, dialect, &calls).await;
    let answers = stream::iter(calls)
        .map(|call| async {
            let answer = assembly.host.answer_model(&exported, &call, |request| {
                request.assume_yes = args.yes;
                request.session.clone_from(&args.session);
                request.keeps_session = args.session.is_some();
                request.cancel = context.cancel.clone();
            });
            let answer = answer.await;
            (call, answer)
        })
        .buffered(MAX_PARALLEL_CALLS)
        .collect::<Vec<_>>()
        .await;
    let failed = answers.iter().filter(|(_, answer)| answer.is_error).count();
    if failed > 0 {
        context.output.warn(&format!("{} returned an error", plural(failed, "call", "calls")));
    }
    context.output.value(format, &dialect.answer_messages(&answers))
}

async fn read_response() -> Result<Value, Error> {
    let fail = |why: String| Error::usage(format!("cannot read the response: {why}"));
    // Reading stdin may block; signals must still be handled.
    let read = tokio::task::spawn_blocking(|| {
        let mut text = String::new();
        std::io::stdin().take(MAX_RESPONSE + 1).read_to_string(&mut text).map(|_| text)
    });
    let text = read
        .await
        .map_err(|error| Error::internal(format!("cannot read the response: {error}")))?
        .map_err(|error| fail(error.to_string()))?;
    if text.len() as u64 > MAX_RESPONSE {
        return Err(fail(format!("it is longer than {} MiB", MAX_RESPONSE >> 20)));
    }
    serde_json::from_str(&text).map_err(|error| fail(format!("it is not JSON: {error}")))
}

/// The names the model was given. All servers are contacted only if a name may have been changed.
async fn exported_names(
    host: &ToolHost,
    dialect: ModelFormat,
    calls: &[RequestedCall],
) -> ExportedCatalogue {
    for scope in [ListScope::Declared, ListScope::Everything] {
        let catalogue = host.catalogue(&scope).await;
        let offered = host.offerable_tools(&catalogue);
        let exported = dialect.export(offered.iter().map(|tool| tool.definition.as_ref()));
        let is_complete = calls
            .iter()
            .all(|call| exported.tool(&call.name).is_some() || !call.has_changed_names());
        if is_complete || scope == ListScope::Everything {
            return exported;
        }
    }
    ExportedCatalogue::default()
}
