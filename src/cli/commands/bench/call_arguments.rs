//! The arguments of benchmark calls, from the command line and from files.
//!
//! Owns: reading all of them before anything is started.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::args::BenchArgs;
use crate::bench::targets::ArgumentInput;
use crate::cli::context::CommandContext;
use crate::cli::raw_arguments::{self, RawArguments};
use crate::host::request::CallArguments;
use crate::model::{Error, JsonObject, unreadable_file};

/// The most that is read from a file of arguments.
const MAX_BYTES: u64 = 64 << 20;

/// Reads what the command line names.
///
/// # Errors
/// A usage error that says what cannot be read, and where.
pub(super) async fn read(
    args: &BenchArgs,
    context: &CommandContext,
) -> Result<ArgumentInput, Error> {
    let cwd = context.environment.cwd();
    if let Some(file) = &args.args_lines {
        return lines(&cwd.join(file)).map(ArgumentInput::Lines);
    }
    read_words(args.words.clone(), args.args.clone(), context).await.map(ArgumentInput::Single)
}

/// Reads the words of one call.
pub(super) async fn read_words(
    words: Vec<String>,
    whole: Option<String>,
    context: &CommandContext,
) -> Result<CallArguments, Error> {
    let sources = RawArguments { words, json_option: whole, cwd: context.environment.cwd() };
    if !sources.may_block() {
        return raw_arguments::read(&sources, &mut std::io::empty());
    }
    // Stdin and named pipes may keep their reader waiting; a signal must still be heard.
    tokio::task::spawn_blocking(move || raw_arguments::read(&sources, &mut std::io::stdin()))
        .await
        .map_err(|error| Error::internal(format!("cannot read the arguments: {error}")))?
}

fn lines(path: &Path) -> Result<Vec<JsonObject>, Error> {
    let named = || format!("--args-lines: '{}'", path.display());
    let refused = |why: &str| Error::usage(format!("{}: {why}", named()));
    let mut text = String::new();
    // A person may name a pipe, whose size is unknown before it was read.
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| unreadable_file("--args-lines", path, &error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(refused("it is larger than 64 MiB"));
    }
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(Value::Object(object)) => found.push(object),
            Ok(_) => {
                let why = format!("line {} is no JSON object such as {{\"key\": 1}}", index + 1);
                return Err(refused(&why));
            }
            Err(error) => {
                return Err(refused(&format!("line {} is not valid JSON: {error}", index + 1)));
            }
        }
    }
    if found.is_empty() {
        return Err(refused("there is no line in it"));
    }
    Ok(found)
}
