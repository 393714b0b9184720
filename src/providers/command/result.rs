//! From what a program left behind to the result of the call.

use std::os::unix::process::ExitStatusExt as _;

use serde_json::{Value, json};

use super::entry::Output;
use super::run::Finished;
use crate::model::{Fault, Phase, ToolResult};
use crate::util::confine::Cause;
use crate::util::process::show_exit;

/// How much of an output is quoted in a message, in characters.
const QUOTED: usize = 200;
/// How many lines of stderr stand in a result.
const SHOWN_LINES: usize = 20;

/// Reads a finished run of the program `name`: exit 0 is success, another exit is a well-formed
/// no, a signal means that no answer came.
///
/// # Errors
/// When a signal ended the program, or its output is not the JSON its entry promises.
pub(super) fn read(name: &str, finished: Finished, output: Output) -> Result<ToolResult, Fault> {
    let Finished { status, stdout, mut stderr, warnings, cause } = finished;
    let mut ended = format!("{name} {}", show_exit(status));
    match &cause {
        Some(Cause::Limit(limit)) => ended = format!("{ended} ({limit})"),
        Some(Cause::Perhaps(limits)) if status.signal().is_some() => {
            stderr.push(format!("it ran under these limits: {limits}"));
        }
        _ => {}
    }
    let over = matches!(cause, Some(Cause::Limit(_)));
    if status.signal().is_some() || over {
        // A program that was ended has given no answer, whatever it wrote.
        return Err(Fault::unreachable(ended).phase(Phase::Call).details(stderr));
    }
    let mut result = if !status.success() {
        failure(&ended, &stdout, &stderr)
    } else if output == Output::Json {
        let value = json_value(&stdout)
            .map_err(|fault| fault.phase(Phase::Call).details(stderr.iter().cloned()))?;
        ToolResult::json(value)
    } else {
        ToolResult::text(text(&stdout))
    };
    result.warnings = warnings;
    if output == Output::Text && std::str::from_utf8(&stdout).is_err() {
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
    result.fault = Some(Fault::tool(message).phase(Phase::Call).details(stderr.iter().cloned()));
    if !stdout.is_empty() {
        // A program that says no often says why on stdout.
        result.content.push(json!({ "type": "text", "text": text(stdout) }));
    }
    result
}

/// The one JSON value of an output.
fn json_value(stdout: &[u8]) -> Result<Value, Fault> {
    if stdout.iter().all(u8::is_ascii_whitespace) {
        return Err(Fault::protocol("the program wrote nothing, but its output should be JSON")
            .hint("'output: text' in the entry takes any output"));
    }
    serde_json::from_slice(stdout).map_err(|error| {
        let text = String::from_utf8_lossy(stdout);
        let mut head: String = text.chars().take(QUOTED).collect();
        if head.len() < text.len() {
            head.push('…');
        }
        Fault::protocol(format!("the program's output is not one JSON value: {error}"))
            .detail(format!("it begins with: {head}"))
            .hint("'output: text' in the entry takes any output")
            .data(json!({ "output": head }))
    })
}
