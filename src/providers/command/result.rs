//! Turning a program's output and exit status into the result of the call.

use std::os::unix::process::ExitStatusExt as _;

use serde_json::{Value, json};

use super::entry::CommandOutput;
use super::run::ProgramExit;
use crate::model::{Error, ErrorPhase, ToolResult};
use crate::util::confine::LimitCause;
use crate::util::process::show_exit;

/// How much of an output is quoted in a message, in characters.
const MAX_QUOTED_CHARS: usize = 200;
const SHOWN_LINES: usize = 20;

/// Reads a finished run of the program `name`: exit 0 is success, another exit is a well-formed
/// no, a signal means that there is no result.
pub(super) fn read(
    name: &str,
    finished: ProgramExit,
    output: CommandOutput,
) -> Result<ToolResult, Error> {
    let ProgramExit { status, stdout, mut stderr, warnings, cause } = finished;
    let mut ended = format!("{name} {}", show_exit(status));
    match &cause {
        Some(LimitCause::Limit(limit)) => ended = format!("{ended} ({limit})"),
        Some(LimitCause::PossibleLimit(limits)) if status.signal().is_some() => {
            stderr.push(format!("it ran under these limits: {limits}"));
        }
        _ => {}
    }
    let over = matches!(cause, Some(LimitCause::Limit(_)));
    if status.signal().is_some() || over {
        // A program that was killed has no result, even if it wrote one.
        return Err(Error::unreachable(ended).with_phase(ErrorPhase::Call).with_details(stderr));
    }
    let mut result = if !status.success() {
        failure(&ended, &stdout, &stderr)
    } else if output == CommandOutput::Json {
        let value = json_value(&stdout).map_err(|error| {
            error.with_phase(ErrorPhase::Call).with_details(stderr.iter().cloned())
        })?;
        ToolResult::json(value)
    } else {
        ToolResult::text(text(&stdout))
    };
    result.warnings = warnings;
    if output == CommandOutput::Text && std::str::from_utf8(&stdout).is_err() {
        result.warnings.push("the output is not UTF-8: other bytes were replaced".to_owned());
    }
    let skipped = stderr.len().saturating_sub(SHOWN_LINES);
    result.meta = Some(json!({
        "exit_code": status.code(),
        "stderr": stderr.get(skipped..).unwrap_or_default(),
    }));
    Ok(result)
}

/// The output as text, without the newline that ends it.
fn text(stdout: &[u8]) -> String {
    let text = String::from_utf8_lossy(stdout);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    text.strip_suffix('\r').unwrap_or(text).to_owned()
}

fn failure(ended: &str, stdout: &[u8], stderr: &[String]) -> ToolResult {
    let last = stderr.iter().rev().map(|line| line.trim()).find(|line| !line.is_empty());
    let message = match last {
        Some(line) => format!("{ended}: {line}"),
        None => ended.to_owned(),
    };
    let mut result = ToolResult::failure(message.clone());
    result.error = Some(
        Error::tool(message).with_phase(ErrorPhase::Call).with_details(stderr.iter().cloned()),
    );
    if !stdout.is_empty() {
        // A program that says no often says why on stdout.
        result.content.push(json!({ "type": "text", "text": text(stdout) }));
    }
    result
}

fn json_value(stdout: &[u8]) -> Result<Value, Error> {
    if stdout.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::protocol("the program wrote nothing, but its output should be JSON")
            .with_hint("'output: text' in the entry takes any output"));
    }
    serde_json::from_slice(stdout).map_err(|error| {
        let text = String::from_utf8_lossy(stdout);
        let mut head: String = text.chars().take(MAX_QUOTED_CHARS).collect();
        if head.len() < text.len() {
            head.push('…');
        }
        Error::protocol(format!("the program's output is not one JSON value: {error}"))
            .with_detail(format!("it starts with: {head}"))
            .with_hint("'output: text' in the entry takes any output")
            .with_data(json!({ "output": head }))
    })
}
