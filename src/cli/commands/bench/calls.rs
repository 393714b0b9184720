//! The arguments of the calls, from the command line and from files.
//!
//! Owns: reading all of them before anything is started.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::args::BenchArgs;
use crate::bench::targets::Given;
use crate::cli::arguments::{self, Sources};
use crate::cli::context::Context;
use crate::host::request::Arguments;
use crate::model::{Fault, JsonObject};

/// The most that is read from a file of arguments.
const MAX_BYTES: u64 = 64 << 20;

/// Reads what the command line names.
///
/// # Errors
/// A usage fault that says what cannot be read, and where.
pub(super) async fn read(args: &BenchArgs, context: &Context) -> Result<Given, Fault> {
    let cwd = context.environment.cwd();
    if let Some(file) = &args.args_lines {
        return lines(&cwd.join(file)).map(Given::Lines);
    }
    words(args.words.clone(), args.args.clone(), context).await.map(Given::One)
}

/// Reads the words of one call.
pub(super) async fn words(
    words: Vec<String>,
    whole: Option<String>,
    context: &Context,
) -> Result<Arguments, Fault> {
    let sources = Sources { words, whole, cwd: context.environment.cwd() };
    if !sources.may_wait() {
        return arguments::read(&sources, &mut std::io::empty());
    }
    // Stdin and named pipes may keep their reader waiting; a signal must still be heard.
    tokio::task::spawn_blocking(move || arguments::read(&sources, &mut std::io::stdin()))
        .await
        .map_err(|error| Fault::internal(format!("cannot read the arguments: {error}")))?
}

fn lines(path: &Path) -> Result<Vec<JsonObject>, Fault> {
    let named = || format!("--args-lines: '{}'", path.display());
    let refused = |why: &str| Fault::usage(format!("{}: {why}", named()));
    let mut text = String::new();
    // A person may name a pipe, whose size nobody knows before it was read.
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| refused(&error.to_string()))?;
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
