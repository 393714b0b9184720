//! `toolhost history diff`: the results of two calls, compared line by line.

use crate::cli::commands::prelude::*;
use crate::cli::json::history::HistoryDiffJson;
use crate::history::compare::CallText;
use crate::history::log;
use crate::host::request::{CallOutcome, CallRequest};
use crate::model::ErrorKind;

/// Compare the results of two calls, line by line.
///
/// Structured results are compared as indented JSON. Exits with 8 if they differ.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::REPORT))]
pub struct HistoryDiffArgs {
    /// ID of the call, a unique prefix of it, or 'last'
    #[arg(add = ArgValueCompleter::new(complete::calls))]
    pub id: String,
    /// ID of the call to compare with
    #[arg(required_unless_present = "rerun", conflicts_with = "rerun",
          add = ArgValueCompleter::new(complete::calls))]
    pub other: Option<String>,
    /// Compare with a new run of the same call
    #[arg(long, visible_alias = "replay")]
    pub rerun: bool,
    /// Approve the call of --rerun without asking
    #[arg(short, long, requires = "rerun", conflicts_with = "ask_all")]
    pub yes: bool,
    /// Approve the call of --rerun and the calls it makes without asking
    #[arg(long, requires = "rerun", conflicts_with = "ask_all")]
    pub yes_nested: bool,
}

pub(super) async fn run(args: &HistoryDiffArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::REPORT)?;
    let entry = super::find_entry(&args.id, context)?;
    let now = if let Some(other) = &args.other {
        CallText::of(&super::find_entry(other, context)?)
    } else {
        let (assembly, request) = super::rerun::prepare(&entry, &[], context).await?;
        let request = CallRequest {
            assume_yes: args.yes || args.yes_nested,
            assume_yes_nested: args.yes_nested,
            ..request
        };
        self::now(&assembly.host.call(request).await?)
    };
    let then = CallText::of(&entry);
    if then.is_truncated || now.is_truncated {
        context.output.warn("results were truncated; only the stored parts were compared");
    }
    let equal = then.text == now.text;
    let hunks = then.hunks(&now);
    match format {
        Format::Json | Format::Yaml => {
            let value = HistoryDiffJson::new(&then.name, &now.name, equal, &hunks);
            context.output.value(format, &value)?;
        }
        _ if equal => context.output.note("the results are the same"),
        _ => context.output.page(&present::difference::page(&hunks, &then.name, &now.name))?,
    }
    if equal {
        return Ok(());
    }
    let message = format!("the results of {} and {} differ", then.name, now.name);
    Err(Error::new(ErrorKind::Check, message).into())
}

fn now(outcome: &CallOutcome) -> CallText {
    let kept = outcome.result.as_ref().ok().map(log::stored_result);
    let error = outcome.error().map(|error| (error.kind().as_str(), error.message()));
    CallText::new(&outcome.metadata.call_id.0, kept.as_ref(), error)
}
