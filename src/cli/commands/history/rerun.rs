//! `toolhost history rerun`: repeating a recorded call.

use std::slice::from_ref;

use crate::cli::commands::call::{self, CallArgs};
use crate::cli::commands::prelude::*;
use crate::history::HistoryEntry;
use crate::host::command;
use crate::host::request::{ArgumentWord, CallRequest};
use crate::host::rerun::{masked_paths, restore_secret};
use crate::host::validate::{ValuePath, ValuePathSegment};
use crate::model::JsonObject;

/// Rerun a call with the same arguments.
///
/// The call is validated and may need approval like any other. Secret arguments are not stored; you
/// are asked for them, or give them as arguments.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::RESULT), arg = ad_hoc::command())]
pub struct HistoryRerunArgs {
    /// ID of the call or a unique prefix of it; without one, the last call of this project
    #[arg(add = ArgValueCompleter::new(complete::calls))]
    pub id: Option<String>,
    /// Arguments that replace the stored ones: key=value, key:=json, key=@file
    #[arg(value_name = "ARGS")]
    pub words: Vec<String>,
    /// Time limit, such as 500ms, 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = call::parse_timeout)]
    pub timeout: Option<Duration>,
    /// Approve the call without asking
    #[arg(short, long, conflicts_with = "ask_all")]
    pub yes: bool,
    /// Approve the call and the calls it makes without asking
    #[arg(long, conflicts_with = "ask_all")]
    pub yes_nested: bool,
    /// Show what would be sent or started, without doing it
    #[arg(long)]
    pub dry_run: bool,
}

pub(super) async fn run(args: &HistoryRerunArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::RESULT)?;
    let (id, first) = match &args.id {
        Some(id) if !id.contains('=') => (id.as_str(), None),
        first => ("last", first.clone()),
    };
    let words: Vec<String> = first.into_iter().chain(args.words.iter().cloned()).collect();
    let entry = super::find_entry(id, context)?;
    let approval = (args.yes, args.yes_nested);
    let (assembly, mut request) = prepare(&entry, &words, approval, context).await?;
    request.timeout = args.timeout;
    let args = CallArgs { name: entry.tool.clone(), dry_run: args.dry_run, ..CallArgs::default() };
    call::perform(&args, context, format, &assembly, request).await
}

pub(super) async fn prepare(
    entry: &HistoryEntry,
    words: &[String],
    (yes, yes_nested): (bool, bool),
    context: &CommandContext,
) -> Result<(Assembly, CallRequest), Error> {
    if let (Some(words), None) = (&entry.command_end, &context.global.ad_hoc) {
        let line = command::rerun(&entry.id);
        return Err(Error::usage(format!(
            "'{}' is a tool of an ad-hoc server, which must be named again",
            entry.tool
        ))
        .with_hint(format!("{line} {words}")));
    }
    let Some(recorded) = entry.arguments.clone() else {
        return Err(Error::usage(format!(
            "the arguments of this call of '{}' were too large to store",
            entry.tool
        ))
        .with_hint("call it with 'toolhost call'"));
    };
    let json = |(key, value)| ArgumentWord::Json { key, value };
    let given = match read_arguments(words, None, context).await? {
        CallArguments::Words(words) => words,
        CallArguments::Object(object) => object.into_iter().map(json).collect(),
    };
    let arguments = merge_arguments(recorded, given, context).await?;
    let starts = StartScope::Named(from_ref(&entry.tool), &[]);
    let assembly = context.assemble_attached(starts, "toolhost history rerun").await?;
    if assembly.host.has_changed_since(entry).await? == Some(true) {
        context.output.warn(&format!("the definition of '{}' changed since this call", entry.tool));
    }
    let mut request = CallRequest::new(&entry.tool, arguments);
    request.assume_yes = yes || yes_nested;
    request.assume_yes_nested = yes_nested;
    request.cancel = context.cancel.clone();
    Ok((assembly, request))
}

/// The recorded arguments with the given replacements; secret ones are asked for.
async fn merge_arguments(
    mut recorded: JsonObject,
    given: Vec<ArgumentWord>,
    context: &CommandContext,
) -> Result<CallArguments, Error> {
    for word in &given {
        recorded.shift_remove(word.key());
    }
    let mut answered = Vec::new();
    let hidden = masked_paths(&recorded);
    if !hidden.is_empty() && !prompt::is_possible() {
        let names: Vec<String> = hidden.iter().map(ValuePath::dotted).collect();
        return Err(Error::denied(format!(
            "secret arguments were not stored, and no person can be asked: {}",
            names.join(", ")
        ))
        .with_hint(format!("pass them as arguments: {}=…", first_key(&hidden))));
    }
    for path in hidden {
        let name = path.dotted();
        let answer = prompt::ask_secret(&context.output, &name, &context.cancel).await;
        let Some(value) = answer else {
            return Err(Error::denied(format!("the secret argument '{name}' was not given")));
        };
        match path.0.as_slice() {
            // As text, so that the schema decides its type.
            [ValuePathSegment::Key(key)] => {
                recorded.shift_remove(key);
                answered.push(ArgumentWord::Text { key: key.clone(), value });
            }
            _ => restore_secret(&mut recorded, &path, value),
        }
    }
    let json = |(key, value)| ArgumentWord::Json { key, value };
    Ok(CallArguments::Words(recorded.into_iter().map(json).chain(answered).chain(given).collect()))
}

fn first_key(paths: &[ValuePath]) -> String {
    paths.first().and_then(|path| path.0.first()).map_or_else(String::new, |step| match step {
        ValuePathSegment::Key(key) => key.clone(),
        ValuePathSegment::Index(index) => index.to_string(),
    })
}
