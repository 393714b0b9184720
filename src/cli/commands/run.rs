//! `toolhost run`: a saved call.

use std::collections::BTreeMap;

use super::call::{self, CallArgs};
use super::prelude::*;
use crate::config::saved_calls::{SavedCall, SavedCalls};
use crate::util::text::shell_quoted;

/// Run a call saved with 'call --save-as NAME'.
///
/// The call is validated and may need approval like any other. Without a name, lists the saved
/// calls.
#[derive(Debug, Args)]
#[command(arg = formats::option(formats::SAVED))]
pub struct RunArgs {
    /// Name of the saved call
    #[arg(add = ArgValueCompleter::new(complete::saved_calls))]
    pub name: Option<String>,
    /// Arguments that replace saved ones: key=value, key:=json, key=@file
    #[arg(value_name = "ARGS", add = ArgValueCompleter::new(complete::arguments))]
    pub words: Vec<String>,
    /// Time limit, such as 500ms, 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = call::parse_timeout)]
    pub timeout: Option<Duration>,
    /// Approve the call without asking
    #[arg(short, long, conflicts_with = "ask_all")]
    pub yes: bool,
    /// Show what would be sent or started, without doing it
    #[arg(long)]
    pub dry_run: bool,
    /// Apply a jq expression to the result
    #[arg(long, value_name = "EXPR")]
    pub query: Option<String>,
    /// Save the result to this file
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Delete the saved call
    #[arg(long, requires = "name", conflicts_with_all = ["words", "dry_run", "save"])]
    pub remove: bool,
}

pub async fn run(args: &RunArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::SAVED)?;
    let mut saved = SavedCalls::open(context.environment.config_dir().as_deref())?;
    let Some(name) = &args.name else { return list(&saved, context, format) };
    if args.remove {
        saved.remove(name)?;
        context.output.note(done("removed ", name));
        return Ok(());
    }
    let kept = saved.get(name)?;
    if let (Some(_), Some(word)) = (&kept.args, args.words.first()) {
        return Err(Error::usage(format!("'{word}' cannot replace a part of --args"))
            .with_hint("save the call with key=value arguments")
            .into());
    }
    let call = CallArgs {
        name: kept.tool.clone(),
        words: kept.words_with(&args.words),
        args: kept.args.clone(),
        server: kept.server.clone(),
        timeout: args.timeout.or_else(|| kept.timeout()),
        retries: kept.retries,
        query: args.query.clone().or_else(|| kept.query.clone()),
        yes: args.yes,
        dry_run: args.dry_run,
        save: args.save.clone(),
        ..CallArgs::default()
    };
    call::run(&call, context).await
}

fn list(saved: &SavedCalls, context: &CommandContext, format: Format) -> CommandResult {
    let columns = [TableColumn::new("NAME"), TableColumn::new("CALL").shrinks_to(20)];
    let mut table = Table::new(columns);
    for (name, call) in &saved.calls {
        let command = shell_quoted(&call.command_words());
        table.row([Line::styled(Role::Name, name), Line::plain(command)]);
    }
    let (output, value) = (&context.output, SavedCallsJson::from(&saved.calls));
    let page = || table.layout(output.width());
    if output.listing(format, &value, saved.calls.keys(), page)? && saved.calls.is_empty() {
        output.note("no saved calls; save one: toolhost call NAME [ARGS] --save-as NAME");
    }
    Ok(())
}

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
