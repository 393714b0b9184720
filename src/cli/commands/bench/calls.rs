//! The arguments of the calls, from the command line and from files.
//!
//! Owns: reading all of them before anything is started.

use std::path::Path;

use serde_json::Value;

use super::args::BenchArgs;
use crate::bench::arguments::typed;
use crate::bench::plan::ArgumentSource;
use crate::cli::arguments::{self, Sources};
use crate::cli::context::Context;
use crate::host::repeat::Target;
use crate::host::request::Arguments;
use crate::model::{Fault, JsonObject};

/// The most that is read from a file of arguments.
const MAX_BYTES: u64 = 64 << 20;

/// Arguments that were read and not yet looked at by a tool.
#[derive(Clone)]
pub(super) enum Given {
    /// The same for all calls.
    One(Arguments),
    /// One object for each call, from the beginning again after the last.
    Lines(Vec<JsonObject>),
}

impl Given {
    /// Reads what the command line names.
    ///
    /// # Errors
    /// A usage fault that says what cannot be read, and where.
    pub(super) async fn read(args: &BenchArgs, context: &Context) -> Result<Self, Fault> {
        let cwd = context.environment.cwd();
        if let Some(file) = &args.args_lines {
            return lines(&cwd.join(file)).map(Self::Lines);
        }
        words(args.words.clone(), args.args.clone(), context).await.map(Self::One)
    }

    /// Where the arguments of this tool's calls come from.
    ///
    /// # Errors
    /// What does not fit its schema, and placeholders that mean nothing.
    pub(super) async fn source(self, target: &Target, seed: u64) -> Result<ArgumentSource, Fault> {
        match self {
            Self::One(arguments) => typed(arguments, target, seed).await,
            Self::Lines(rows) => Ok(ArgumentSource::Rows(rows)),
        }
    }
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
    let size = std::fs::metadata(path).map_err(|error| refused(&error.to_string()))?.len();
    if size > MAX_BYTES {
        return Err(refused("it is larger than 64 MiB"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| refused(&error.to_string()))?;
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
