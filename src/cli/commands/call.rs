//! `toolhost call`.

use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::Value;

use crate::assembly::Assembly;
use crate::cli::ad_hoc::ServerCommandArgs;
use crate::cli::answers::AnswerRules;
use crate::cli::call_context::{self, ContextArg};
use crate::cli::complete;
use crate::cli::context::{CommandContext, CommandResult, StartScope};
use crate::cli::formats;
use crate::cli::json::call::{CallJson, DryRunJson};
use crate::cli::output::content::{self, ContentPayload};
use crate::cli::output::plural;
use crate::cli::output::table::{Table, TableColumn};
use crate::cli::output::{CommandError, Format, Output, SpanStyle, StyledLine, StyledPage};
use crate::cli::raw_arguments::{self, RawArguments};
use crate::cli::save;
use crate::cli::views;
use crate::config::saved_calls::{SavedCall, SavedCalls};
use crate::host::request::{CallOutcome, CallRequest};
use crate::model::{Error, ErrorKind, ToolResult};
use crate::util::json;
use crate::util::{jq, units};

/// Call a tool.
///
/// The result goes to standard output and nothing else does. A tool that says no ends with exit
/// code 3; nothing is sent before the arguments fit the tool's schema.
#[derive(Debug, Default, Args)]
#[command(after_help = ARGUMENTS_HELP)]
#[command(arg = formats::option(formats::RESULT))]
pub struct CallArgs {
    /// The tool: its full name, or its bare name when only one tool has it
    #[arg(add = ArgValueCompleter::new(complete::tools))]
    pub name: String,
    /// key=value, key:=json, key=@file, or one object: '{"key": 1}'
    #[arg(value_name = "ARGS", add = ArgValueCompleter::new(complete::arguments))]
    pub words: Vec<String>,
    /// All arguments as one JSON object; @FILE reads a file, - standard input
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub args: Option<String>,
    /// Look for the tool at this server only; repeatable
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::servers))]
    pub server: Vec<String>,
    /// Give the whole call up after this time, such as 500ms, 30s or 2m
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub timeout: Option<Duration>,
    /// Give up when a server is silent for this time; its progress begins it anew
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub idle_timeout: Option<Duration>,
    /// Repeat a failed attempt this often, if the tool is marked safe to repeat
    #[arg(long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(0..=100))]
    pub retries: Option<u32>,
    /// Approve the call without being asked
    #[arg(short, long, conflicts_with = "ask_all")]
    pub yes: bool,
    /// Approve the call, and the calls it makes, without being asked
    #[arg(long, conflicts_with = "ask_all")]
    pub yes_nested: bool,
    /// Show what would be sent or started, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print what this jq expression makes of the result
    #[arg(long, value_name = "EXPR")]
    pub query: Option<String>,
    /// Write the result to this file; several blocks become FILE-1, FILE-2
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Answer what the server asks: a file of rules, defaults or decline
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub answers: Option<PathBuf>,
    /// Send the arguments as they are, and accept any result
    #[arg(long)]
    pub no_validate: bool,
    /// What the call carries beside its arguments, KEY=VALUE or KEY:=JSON (see below); repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = call_context::parse)]
    pub context: Vec<ContextArg>,
    /// The session the call belongs to
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Keep the call under this name, for 'toolhost run NAME'
    #[arg(long, value_name = "NAME")]
    pub save_as: Option<String>,
    /// Exit with 0 although the tool says no
    #[arg(long)]
    pub ignore_tool_error: bool,
    /// A server that is in no file.
    #[command(flatten)]
    pub target: ServerCommandArgs,
}

const ARGUMENTS_HELP: &str = "\
Arguments:
  key=value     converted only as the tool's schema says: 12 stays text where it wants text
  key:=json     raw JSON
  key=@file     the content of a file (key:=@file for JSON in a file)
  key=@@text    text that starts with @
  '{\"key\": 1}'  all arguments as one object, as with --args

Context:
  user_id=NAME    on whose behalf the call is made (TOOLHOST_USER)
  traceparent=ID  its place in a W3C trace (TRACEPARENT), with tracestate=LIST beside it
  KEY=VALUE       a variable that the tool's entry declares in context_env
  KEY:=JSON       metadata, which reaches MCP servers in _meta";

/// Why a value of an option is not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ParseOptionError {
    /// A limit of zero.
    #[error("no call can end in no time")]
    NoTime,
    /// A background host that would never be there.
    #[error("a host needs some time, such as 10m or 2h")]
    NoIdleTime,
    /// Not a duration.
    #[error("expected a time such as 500ms, 30s or 2m")]
    Duration,
    /// A round of `--watch` that would follow the last one at once.
    #[error("at least {}", units::show_duration(*.0))]
    TooShort(Duration),
    /// Not a key with a value.
    #[error("expected KEY=VALUE")]
    Pair,
}

/// Reads the limit of a call.
///
/// # Errors
/// What is understood instead.
pub(super) fn parse_timeout(text: &str) -> Result<Duration, ParseOptionError> {
    match units::duration(text) {
        Some(Duration::ZERO) => Err(ParseOptionError::NoTime),
        Some(duration) => Ok(duration),
        None => Err(ParseOptionError::Duration),
    }
}

/// Runs the command.
///
/// # Errors
/// Why nothing was dispatched, what the call failed with, or why its result cannot be written.
pub async fn run(args: &CallArgs, context: &CommandContext) -> CommandResult {
    let format = format(context)?;
    if let Some(path) = &args.save {
        save::check(path)?;
    }
    if let Some(filter) = &args.query {
        check_filter(filter)?;
    }
    if let Some(given) = &args.answers {
        context.set_answers(AnswerRules::read(given)?);
    }
    let request = request(args, context).await?;
    let starts = StartScope::Named(from_ref(&args.name), &args.server);
    let assembly = if args.dry_run {
        context.assemble(starts).await?
    } else {
        context.assemble_attached(starts, "toolhost call").await?
    };
    let outcome = perform(args, context, format, &assembly, request).await;
    match (&args.save_as, &outcome) {
        (Some(name), Ok(())) => save_as(name, args, context).and(outcome),
        // What was dispatched is worth keeping, whatever the tool said.
        (Some(name), Err(CommandError::Failed(error))) if error.kind() != ErrorKind::Usage => {
            save_as(name, args, context).and(outcome)
        }
        _ => outcome,
    }
}

/// Keeps the words of the call.
fn save_as(name: &str, args: &CallArgs, context: &CommandContext) -> CommandResult {
    if context.global.ad_hoc.is_some() {
        return Err(Error::usage("--save-as is for tools of the files")
            .with_hint("write the server into one: toolhost add NAME -- COMMAND")
            .into());
    }
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
    let place = calls.save(name, call)?.map_or("", |_before| "in the place of an earlier one ");
    let saved = StyledLine::styled(SpanStyle::Success, "saved ")
        .then(SpanStyle::Dim, format!("{place}as '{name}': toolhost run {name}"));
    context.output.note(&saved);
    Ok(())
}

/// The format of a result.
///
/// # Errors
/// When it is none that a result can be printed in.
pub(super) fn format(context: &CommandContext) -> Result<Format, Error> {
    context.format(formats::RESULT)
}

/// Makes the call, or shows what it would send, and prints what came.
///
/// # Errors
/// Why nothing was dispatched, what the call failed with, or why its result cannot be written.
pub(super) async fn perform(
    args: &CallArgs,
    context: &CommandContext,
    format: Format,
    assembly: &Assembly,
    request: CallRequest,
) -> CommandResult {
    if args.dry_run {
        let rehearsal = assembly.host.dry_run(&request).await?;
        for warning in &rehearsal.warnings {
            context.output.warn(warning);
        }
        return match format {
            Format::Json | Format::Yaml => {
                context.output.value(format, &DryRunJson::from(&rehearsal))
            }
            _ => context.output.page(&views::outcome::preview(&rehearsal)),
        };
    }
    let outcome = assembly.host.call(request).await?;
    print(args, &context.output, format, &outcome)?;
    match outcome.error() {
        Some(error) if args.ignore_tool_error && error.kind() == ErrorKind::Tool => Ok(()),
        Some(error) => Err(error.clone().into()),
        None => Ok(()),
    }
}

async fn request(args: &CallArgs, context: &CommandContext) -> Result<CallRequest, Error> {
    let sources = RawArguments {
        words: args.words.clone(),
        json_option: args.args.clone(),
        cwd: context.environment.cwd(),
    };
    // Stdin and named pipes may keep their reader waiting; a signal must still be heard.
    let arguments = if sources.may_block() {
        tokio::task::spawn_blocking(move || raw_arguments::read(&sources, &mut std::io::stdin()))
            .await
            .map_err(|error| Error::internal(format!("cannot read the arguments: {error}")))??
    } else {
        raw_arguments::read(&sources, &mut std::io::empty())?
    };
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

/// Writes the outcome of a call that was dispatched. Its error is the caller's business.
fn print(args: &CallArgs, output: &Output, format: Format, outcome: &CallOutcome) -> CommandResult {
    let result = outcome.result.as_ref().ok();
    let warnings = result.map(|result| result.warnings.as_slice()).unwrap_or_default();
    let shown = if output.verbosity() > 0 { warnings.len() } else { 1 };
    for warning in warnings.iter().take(shown) {
        output.warn(warning);
    }
    if let Some(hidden @ 1..) = warnings.len().checked_sub(shown) {
        // A noisy server says the same at each call.
        let count = plural(hidden, "more warning", "more warnings");
        output.note(&StyledLine::styled(SpanStyle::Dim, format!("{count}, -v shows all")));
    }
    views::outcome::note_routing(output, outcome.metadata.routing.as_ref());
    let filtered = match (&args.query, result) {
        // What a tool says when it fails is not what the expression was written for.
        (Some(filter), Some(result)) if result.success => Some(filter_result(filter, result)?),
        _ => None,
    };
    if let (Some(path), Some(result)) = (&args.save, result) {
        save_result(path, output, result, filtered.as_deref())?;
    }
    match (format, filtered) {
        (Format::Json | Format::Yaml, Some(values)) => {
            values.iter().try_for_each(|value| output.value(format, value))
        }
        (Format::Json | Format::Yaml, None) => output.value(format, &CallJson::from(outcome)),
        _ if args.save.is_some() => Ok(()),
        (Format::Raw, Some(values)) => output.raw(&lines(&values)),
        (Format::Raw, None) => result.map_or(Ok(()), |result| {
            let payloads = payloads(result)?;
            output.raw(&payloads.into_iter().flat_map(|p| p.bytes).collect::<Vec<u8>>())
        }),
        (Format::Table, values) => {
            let values =
                values.unwrap_or_else(|| result.map(content::filter_input).into_iter().collect());
            output.page(&rows(&values, output.width()))
        }
        (_, Some(values)) => {
            let mut page = StyledPage::default();
            page.text(
                SpanStyle::Plain,
                0,
                String::from_utf8_lossy(&lines(&values)).trim_end_matches('\n'),
            );
            if values.is_empty() {
                page = StyledPage::default();
            }
            output.page(&page)
        }
        (_, None) => result.map_or(Ok(()), |result| {
            // Where a person sees both streams, the words of a refusal are printed once.
            let said = output.is_terminal()
                && !args.ignore_tool_error
                && outcome.error().is_some_and(|error| repeats_result(error, result));
            if said { Ok(()) } else { output.page(&content::page(result, output.verbosity() > 0)) }
        }),
    }
}

/// Whether the `error:` line will say exactly what the result says.
fn repeats_result(error: &Error, result: &ToolResult) -> bool {
    result.structured.is_none()
        && result.output.as_str().is_some_and(|text| text.trim() == error.message().trim())
}

/// Checks an expression before the call is made: it is compiled and never run.
pub(super) fn check_filter(filter: &str) -> Result<(), Error> {
    // The line break ends a comment of the expression.
    let idle = format!("if false then ({filter}\n) else empty end");
    let Err(wrapped) = jq::query(&idle, &Value::Null) else { return Ok(()) };
    // The expression's own message points into what was typed.
    let why = jq::query(filter, &Value::Null).err().unwrap_or(wrapped);
    Err(Error::usage(format!("--query: {why}")))
}

pub(super) fn filter_result(filter: &str, result: &ToolResult) -> Result<Vec<Value>, CommandError> {
    jq::query(filter, &content::filter_input(result)).map_err(|why| {
        Error::usage(format!("--query: {why}"))
            .with_hint("the call was made; --json prints its whole result")
            .into()
    })
}

pub(super) fn payloads(result: &ToolResult) -> Result<Vec<ContentPayload>, Error> {
    content::payloads(result).map_err(|block| {
        Error::protocol(format!("block {block} of the result is not valid base64"))
            .with_hint("--json prints the result as it came")
    })
}

/// One line for each value: text as it is, everything else as JSON.
pub(super) fn lines(values: &[Value]) -> Vec<u8> {
    let mut text = String::new();
    for value in values {
        match value {
            Value::String(value) => text.push_str(value),
            other => text.push_str(&json::pretty(other)),
        }
        text.push('\n');
    }
    text.into_bytes()
}

pub(super) fn save_result(
    path: &Path,
    output: &Output,
    result: &ToolResult,
    filtered: Option<&[Value]>,
) -> Result<(), CommandError> {
    let payloads = match filtered {
        Some(values) => {
            vec![ContentPayload { bytes: lines(values), media_type: "application/json".to_owned() }]
        }
        None => payloads(result)?,
    };
    if payloads.is_empty() {
        output.warn("the result has nothing to save");
    }
    let kinds: Vec<&str> = payloads.iter().map(|p| p.media_type.as_str()).collect();
    for (target, payload) in save::output_paths(path, &kinds).iter().zip(&payloads) {
        save::write(target, &payload.bytes)?;
        let size = units::show_size(payload.bytes.len() as u64);
        output.note(
            &StyledLine::plain("saved ")
                .then(SpanStyle::Name, target.display().to_string())
                .then(SpanStyle::Dim, format!(" ({}, {size})", payload.media_type)),
        );
    }
    Ok(())
}

/// Objects as rows, their keys as columns; anything else as one column.
fn rows(values: &[Value], width: Option<usize>) -> StyledPage {
    let items: Vec<&Value> = match values {
        [Value::Array(items)] => items.iter().collect(),
        values => values.iter().collect(),
    };
    let mut keys: Vec<&str> = Vec::new();
    for key in items.iter().filter_map(|item| item.as_object()).flat_map(|map| map.keys()) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let cell = |value: Option<&Value>| match value {
        None | Some(Value::Null) => StyledLine::default(),
        Some(Value::String(text)) => StyledLine::plain(text),
        Some(other) => StyledLine::plain(json::compact(other)),
    };
    if keys.is_empty() {
        let mut page = StyledPage::default();
        for item in items {
            page.push(cell(Some(item)));
        }
        return page;
    }
    let mut table = Table::new(keys.iter().map(|key| TableColumn::new(key).shrinks_to(8)));
    for item in &items {
        let map = item.as_object();
        table.row(keys.iter().enumerate().map(|(index, key)| match map {
            Some(map) => cell(map.get(*key)),
            None if index == 0 => cell(Some(item)),
            None => StyledLine::default(),
        }));
    }
    table.layout(width)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use clap::Parser as _;
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::cli::args::{Cli, CliCommand};
    use crate::cli::output::LineRenderer;
    use crate::cli::output::streams::OutputOptions;
    use crate::cli::output::streams::tests::captured;
    use crate::model::{CallId, CallMetadata, Origin, ToolDefinition, ToolName, ToolSource};

    fn args(words: &[&str]) -> CallArgs {
        let all = ["toolhost", "call", "t"].iter().chain(words);
        match Cli::try_parse_from(all).unwrap().command {
            Some(CliCommand::Call(args)) => *args,
            other => panic!("{other:?}"),
        }
    }

    fn outcome(result: ToolResult) -> CallOutcome {
        let origin = Origin::Server("s".to_owned());
        CallOutcome {
            definition: Arc::new(ToolDefinition::new(
                ToolName::plain("t"),
                ToolSource::Mcp,
                "mcp",
                origin,
            )),
            result: Ok(result),
            metadata: CallMetadata {
                call_id: CallId("1".to_owned()),
                duration: Duration::from_millis(1),
                person_wait: Duration::ZERO,
                connect: None,
                attempts: 1,
                protocol: None,
                routing: None,
                host_pid: None,
            },
        }
    }

    fn printed(words: &[&str], format: Format, result: ToolResult) -> (String, String) {
        let (output, out, err) = captured(OutputOptions::default(), false);
        print(&args(words), &output, format, &outcome(result)).unwrap();
        (out.text(), err.text())
    }

    #[test]
    fn a_result_goes_to_stdout_and_warnings_to_stderr() {
        let result = ToolResult { warnings: vec!["odd".to_owned()], ..ToolResult::text("hi") };
        assert_eq!(
            printed(&[], Format::Text, result),
            ("hi\n".to_owned(), "warning: odd\n".to_owned())
        );
    }

    #[test]
    fn many_warnings_are_counted() {
        let result = || ToolResult {
            warnings: ["one", "two", "three"].map(str::to_owned).to_vec(),
            ..ToolResult::text("hi")
        };
        assert_eq!(
            printed(&[], Format::Text, result()).1,
            "warning: one\n2 more warnings, -v shows all\n"
        );
        let (output, _, err) =
            captured(OutputOptions { verbose: 1, ..OutputOptions::default() }, false);
        print(&args(&[]), &output, Format::Text, &outcome(result())).unwrap();
        assert_eq!(err.text(), "warning: one\nwarning: two\nwarning: three\n");
    }

    #[test]
    fn raw_is_byte_exact() {
        let result = ToolResult::text("a\u{1b}[0m\nb");
        assert_eq!(printed(&[], Format::Raw, result).0, "a\u{1b}[0m\nb");
    }

    #[test]
    fn the_words_of_a_refusal_are_printed_once() {
        let on_a_terminal = |words: &[&str]| {
            let (output, out, _) = captured(OutputOptions::default(), true);
            print(&args(words), &output, Format::Text, &outcome(ToolResult::failure("no")))
                .unwrap();
            out.text()
        };
        assert_eq!(on_a_terminal(&[]), "");
        assert_eq!(on_a_terminal(&["--ignore-tool-error"]), "no\n");
        assert_eq!(printed(&[], Format::Text, ToolResult::failure("no")).0, "no\n");
        let mut more = ToolResult::failure("no");
        more.output = json!("no\nand why");
        more.content = vec![json!({ "type": "text", "text": "no\nand why" })];
        assert_eq!(printed(&[], Format::Text, more).0, "no\nand why\n");
    }

    #[test]
    fn an_expression_is_checked_without_running_it() {
        for filter in [".a", "error(\"only when it runs\")", "def f: 1; f", ".a # comment", "keys"]
        {
            assert!(check_filter(filter).is_ok(), "{filter}");
        }
        for filter in [".[", "", "nonsense(1)", ". |"] {
            let error = check_filter(filter).unwrap_err();
            assert_eq!(error.kind().exit_code(), 2, "{filter}");
            assert!(!error.message().contains("if false"), "{error}");
        }
    }

    #[test]
    fn rows_are_made_of_objects() {
        let values = [json!([{ "id": 1, "name": "a" }, { "id": 22, "tags": ["x"] }, "odd"])];
        assert_snapshot!(LineRenderer::default().page(&rows(&values, Some(40))), @r#"
        id   name  tags
        1    a
        22         ["x"]
        odd
        "#);
        assert_eq!(LineRenderer::default().page(&rows(&[json!([1, "b"])], None)), "1\nb\n");
    }

    #[test]
    fn results_are_saved_as_bytes_under_the_users_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pic.png");
        let result = ToolResult {
            success: true,
            content: vec![
                json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw==" }),
                json!({ "type": "resource",
                        "resource": { "uri": "file:///etc/passwd", "text": "x" } }),
            ],
            ..ToolResult::default()
        };
        let (out, err) = printed(&["--save", path.to_str().unwrap()], Format::Text, result);
        assert_eq!(out, "");
        assert!(err.contains("pic-1.png (image/png, 4 B)"), "{err}");
        assert_eq!(std::fs::read(dir.path().join("pic-1.png")).unwrap(), b"\x89PNG");
        assert_eq!(std::fs::read(dir.path().join("pic-2.txt")).unwrap(), b"x");
    }

    #[test]
    fn binary_data_that_is_none_is_the_servers_error() {
        let result = ToolResult {
            content: vec![json!({ "type": "image", "data": "%%%" })],
            ..ToolResult::default()
        };
        let (output, _, _) = captured(OutputOptions::default(), false);
        let stop = print(&args(&[]), &output, Format::Raw, &outcome(result)).unwrap_err();
        assert!(matches!(stop, CommandError::Failed(error) if error.kind().exit_code() == 10));
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
