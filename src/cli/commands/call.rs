//! `toolhost call`: calling one tool.

use std::slice::from_ref;

use super::call_output::{self, PrintOptions};
use super::prelude::*;
use crate::cli::answers::AnswerRules;
use crate::cli::call_context::{self, ContextArg};
use crate::cli::curl;
use crate::cli::json::call::{CallJson, DryRunJson};
use crate::config::saved_calls::{SavedCall, SavedCalls};
use crate::host::request::{CallOutcome, CallRequest};
use crate::model::check_name;
use crate::util::{text, units};

/// Call a tool.
///
/// Only the result is written to stdout. Arguments are validated against the tool's schema before
/// anything is sent. Exits with 3 when the tool reports an error.
#[derive(Debug, Default, Args)]
#[command(after_help = ARGUMENTS_HELP)]
#[command(arg = formats::option(formats::RESULT), arg = ad_hoc::command())]
pub struct CallArgs {
    /// Tool to call: its full name, or its bare name if that is unique
    #[arg(add = ArgValueCompleter::new(complete::tools))]
    pub name: String,
    /// key=value, key:=json, key=@file, or one object: '{"key": 1}'
    #[arg(value_name = "ARGS", add = ArgValueCompleter::new(complete::arguments))]
    pub words: Vec<String>,
    /// All arguments as one JSON object; @FILE reads a file, - reads stdin
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub args: Option<String>,
    /// Only look for the tool on this server (repeatable)
    #[arg(long, value_name = "NAME", value_parser = ad_hoc::server(), add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Time limit for the whole call, such as 500ms, 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub timeout: Option<Duration>,
    /// Time limit without a sign of progress from the server
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = parse_timeout)]
    pub idle_timeout: Option<Duration>,
    /// Number of retries, if the tool is marked safe to repeat
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    pub retries: Option<u32>,
    /// Approve the call without asking
    #[arg(short, long, conflicts_with = "ask_all")]
    pub yes: bool,
    /// Approve the call and the calls it makes without asking
    #[arg(long, hide_short_help = true, conflicts_with = "ask_all")]
    pub yes_nested: bool,
    /// Show what would be sent or started, without doing it
    #[arg(long)]
    pub dry_run: bool,
    /// Print the curl command that sends the same request, without sending it
    #[arg(long, conflicts_with = "dry_run")]
    pub as_curl: bool,
    /// Apply a jq expression to the result
    #[arg(long, value_name = "EXPR")]
    pub query: Option<String>,
    /// Save the result to this file; multiple blocks go to FILE-1, FILE-2, …
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Answer the server's questions from a file of rules, or with 'defaults' or 'decline'
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub answers: Option<PathBuf>,
    /// Skip validation of arguments and result
    #[arg(long, hide_short_help = true)]
    pub no_validate: bool,
    /// Context of the call, KEY=VALUE or KEY:=JSON (see --help; repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = call_context::parse)]
    pub context: Vec<ContextArg>,
    /// Session the call belongs to
    #[arg(long, hide_short_help = true, value_name = "ID")]
    pub session: Option<String>,
    /// Save the call under this name, for 'toolhost run NAME'
    #[arg(long, value_name = "NAME")]
    pub save_as: Option<String>,
    /// Exit with 0 even if the tool reports an error
    #[arg(long)]
    pub ignore_tool_error: bool,
}

const ARGUMENTS_HELP: &str = "\
How arguments are written:
  key=value     converted only as the tool's schema requires: 12 stays text for a string
  key:=json     raw JSON
  key=@file     the contents of a file: text, or base64 of other bytes and where the schema says
                so (key:=@file for JSON in a file)
  key=@@text    text that starts with @
  '{\"key\": 1}'  all arguments as one object, as with --args

Context:
  user_id=NAME    the user the call is made for (TOOLHOST_USER)
  traceparent=ID  W3C trace context (TRACEPARENT), optionally with tracestate=LIST
  KEY=VALUE       a variable listed in context_env of the tool's entry
  KEY:=JSON       metadata, sent to MCP servers in _meta";

pub(super) fn parse_duration(text: &str) -> Result<Duration, Error> {
    units::duration(text).ok_or_else(|| Error::usage("expected a time such as 500ms, 30s or 2m"))
}

pub(super) fn parse_timeout(text: &str) -> Result<Duration, Error> {
    match parse_duration(text)? {
        Duration::ZERO => Err(Error::usage("the time limit must be greater than zero")),
        duration => Ok(duration),
    }
}

impl CallArgs {
    fn print_options(&self) -> PrintOptions<'_> {
        PrintOptions {
            query: self.query.as_deref(),
            save: self.save.as_deref(),
            ignores_tool_error: self.ignore_tool_error,
        }
    }
}

pub async fn run(args: &CallArgs, context: &CommandContext) -> CommandResult {
    let format = context.format(formats::RESULT)?;
    args.print_options().check()?;
    if let Some(name) = &args.save_as {
        check_save_as(name, context)?;
    }
    if let Some(given) = &args.answers {
        context.set_answers(AnswerRules::read(given)?);
    }
    let request = request(args, context).await?;
    let starts = StartScope::Named(from_ref(&args.name), &args.server);
    let outcome = if args.dry_run || args.as_curl {
        let assembly = context.assemble(starts).await?;
        perform(args, context, format, &assembly, request).await
    } else {
        let outcome = match context.assemble_attached(starts, "toolhost call").await {
            Ok(assembly) => assembly.host.call(request).await,
            Err(error) => Err(error),
        };
        report(args, context, format, outcome)
    };
    match (&args.save_as, &outcome) {
        (_, Err(CommandError::OutputClosed)) | (None, _) => outcome,
        (_, Err(CommandError::Failed(error))) if error.kind() == ErrorKind::Usage => outcome,
        // A call that was dispatched is saved even if the tool reported an error.
        (Some(name), _) => save_as(name, args, context).and(outcome),
    }
}

fn check_save_as(name: &str, context: &CommandContext) -> Result<(), Error> {
    if context.global.ad_hoc.is_some() {
        return Err(Error::usage("--save-as does not work with an ad-hoc server")
            .with_hint("add the server to mcp.yaml: toolhost add NAME -- COMMAND"));
    }
    check_name(name).map_err(|error| Error::usage(format!("cannot save the call: {error}")))
}

fn save_as(name: &str, args: &CallArgs, context: &CommandContext) -> CommandResult {
    let call = SavedCall {
        tool: args.name.clone(),
        words: args.words.clone(),
        args: args.args.clone(),
        server: args.server.clone(),
        timeout_ms: args.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        retries: args.retries,
        query: args.query.clone(),
    };
    let mut calls = SavedCalls::open(context.environment.config_dir().as_deref())?;
    let place = calls.save(name, call)?.map_or("", |_before| "in place of an earlier call ");
    let remark = format!("{place}as '{name}': toolhost run {name}");
    context.output.note(done("saved ", "").then(Role::Dim, remark));
    Ok(())
}

/// Makes the call, or shows what it would send, and prints the result.
pub(super) async fn perform(
    args: &CallArgs,
    context: &CommandContext,
    format: Format,
    assembly: &Assembly,
    request: CallRequest,
) -> CommandResult {
    if args.dry_run || args.as_curl {
        let dry_run = assembly.host.dry_run(&request).await?;
        for warning in &dry_run.warnings {
            context.output.warn(warning);
        }
        if args.as_curl {
            let command = curl::command(assembly, &request.arguments, &dry_run)?;
            return context.output.raw(format!("{}\n", text::safe(&command)).as_bytes());
        }
        let page = || present::outcome::preview(&dry_run);
        context.output.report(format, &DryRunJson::from(&dry_run), page)?;
        return Ok(());
    }
    report(args, context, format, assembly.host.call(request).await)
}

/// Prints the result of a call; with JSON or YAML also of one that was not dispatched.
fn report(
    args: &CallArgs,
    context: &CommandContext,
    format: Format,
    outcome: Result<CallOutcome, Error>,
) -> CommandResult {
    match outcome {
        Ok(outcome) => {
            call_output::print(args.print_options(), &context.output, format, &outcome)?;
            let is_ignored =
                |error: &&Error| args.ignore_tool_error && error.kind() == ErrorKind::Tool;
            conclude(outcome.error().filter(|error| !is_ignored(error)).cloned())
        }
        Err(error) => {
            if matches!(format, Format::Json | Format::Yaml) && args.query.is_none() {
                context.output.value(format, &CallJson::undispatched(&args.name, &error))?;
            }
            Err(error.into())
        }
    }
}

async fn request(args: &CallArgs, context: &CommandContext) -> Result<CallRequest, Error> {
    let arguments = read_arguments(&args.words, args.args.as_ref(), context).await?;
    let mut request = CallRequest::new(&args.name, arguments);
    request.servers.clone_from(&args.server);
    request.timeout = args.timeout;
    request.idle_timeout = args.idle_timeout;
    request.retries = args.retries;
    request.validate = !args.no_validate;
    request.assume_yes = args.yes || args.yes_nested;
    request.assume_yes_nested = args.yes_nested;
    call_context::apply(&args.context, &mut request)?;
    request.session.clone_from(&args.session);
    request.keeps_session = args.session.is_some();
    request.cancel = context.cancel.clone();
    Ok(request)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::*;
    use crate::cli::args::{Cli, CliCommand};

    fn args(words: &[&str]) -> CallArgs {
        let all = ["toolhost", "call", "t"].iter().chain(words);
        match Cli::try_parse_from(all).unwrap().command {
            Some(CliCommand::Call(args)) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flags_are_checked_before_anything_runs() {
        for words in [
            &["--timeout", "0"][..],
            &["--timeout", "soon"],
            &["--retries", "-1"],
            &["--context", "novalue"],
            &["--context", "=x"],
            &["--context", "k:=not json"],
        ] {
            let all = ["toolhost", "call", "t"].iter().chain(words);
            assert!(Cli::try_parse_from(all).is_err(), "{words:?}");
        }
        assert_eq!(args(&["--timeout", "500ms"]).timeout, Some(Duration::from_millis(500)));
        assert_eq!(args(&["--args", "-"]).args.as_deref(), Some("-"));
        assert_eq!(
            args(&["--context", "A=b=c", "--context", "n:=[1]"]).context,
            [
                ContextArg::Text("A".to_owned(), "b=c".to_owned()),
                ContextArg::Json("n".to_owned(), json!([1])),
            ]
        );
    }
}
