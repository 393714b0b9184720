//! `toolhost history diff`: the results of two calls, compared line by line.

use crate::cli::commands::prelude::*;
use crate::history::compare::CallText;
use crate::history::log;
use crate::host::request::CallOutcome;
use crate::util::diff::{DiffLine, DiffMark, Hunk};

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
    #[arg(conflicts_with = "rerun", add = ArgValueCompleter::new(complete::calls))]
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
    if args.other.is_none() && !args.rerun {
        return Err(Error::usage(format!("there is no call to compare '{}' with", args.id))
            .with_hint("name another call, or compare with a new run of the same one: --rerun")
            .into());
    }
    let entry = super::find_entry(&args.id, context)?;
    let now = if let Some(other) = &args.other {
        CallText::of(&super::find_entry(other, context)?)
    } else {
        let approval = (args.yes, args.yes_nested);
        let (assembly, request) = super::rerun::prepare(&entry, &[], approval, context).await?;
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
            let value = HistoryDiffJson::from((&then, &now, &hunks[..]));
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

shape! {
    /// The results of two calls, compared.
    pub HistoryDiffJson<'a> of (first, second, hunks): (
        &'a CallText,
        &'a CallText,
        &'a [Hunk],
    ), with {
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
    } {
        /// The first call.
        a: &'a str = &first.name,
        /// The call it is compared with.
        b: &'a str = &second.name,
        /// Whether the results are the same.
        equal: bool = first.text == second.text,
        /// The lines that differ.
        differences: Vec<DifferenceJson<'a>> =
            lines.filter(|line| line.mark != DiffMark::Same).map(Into::into).collect(),
    }
}

shape! {
    /// A line that is in only one of the two texts.
    pub DifferenceJson<'a> of line: &'a DiffLine {
        /// `-`: only the first has it; `+`: only the second.
        op: String = line.mark.sign().to_string(),
        /// The line.
        line: &'a str = &line.text,
        /// Its line number in the first text, from 1.
        old_line: Option<usize> = line.old,
        /// Its line number in the second text, from 1.
        new_line: Option<usize> = line.new,
    }
}
