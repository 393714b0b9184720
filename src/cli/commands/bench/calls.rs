//! The arguments of the calls, from the command line and from files.
//!
//! Owns: reading all of them before anything is started, and checking each against the tool's
//! schema before the first call is made.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::args::BenchArgs;
use crate::bench::driver;
use crate::bench::plan::ArgumentSource;
use crate::cli::arguments::{self, Sources};
use crate::cli::context::Context;
use crate::host::repeat::Target;
use crate::host::request::Arguments;
use crate::model::{Fault, JsonObject};
use crate::provider::repeat::Payload;

/// The most that is read from a file of arguments.
const MAX_BYTES: u64 = 64 << 20;

/// Arguments that were read and not yet looked at by a tool.
#[derive(Clone)]
pub(super) enum Given {
    /// The same for all calls.
    One(Arguments),
    /// One object for each call, from the beginning again after the last: the line of each.
    Lines(Vec<(usize, JsonObject)>),
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

    /// The arguments as the tool wants them.
    ///
    /// # Errors
    /// What does not fit its schema.
    pub(super) async fn of(self, target: &Target) -> Result<InTurn, Fault> {
        let mut payloads = Vec::new();
        match self {
            Self::One(arguments) => payloads.push(Arc::new(target.payload(arguments).await?)),
            Self::Lines(lines) => {
                for (number, object) in lines {
                    let payload = target.payload(Arguments::Object(object)).await;
                    let payload = payload.map_err(|fault| {
                        fault.hint(format!("it is line {number} of the file of --args-lines"))
                    })?;
                    payloads.push(Arc::new(payload));
                }
            }
        }
        Ok(InTurn(payloads))
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

fn lines(path: &Path) -> Result<Vec<(usize, JsonObject)>, Fault> {
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
            Ok(Value::Object(object)) => found.push((index + 1, object)),
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

/// One after the other, and from the beginning again; at least one.
pub(super) struct InTurn(Vec<Arc<Payload>>);

impl InTurn {
    /// The same, to be written down.
    pub(super) fn source(&self) -> ArgumentSource {
        match self.0.as_slice() {
            [one] => ArgumentSource::One(one.object.clone()),
            rows => ArgumentSource::Rows(rows.iter().map(|row| row.object.clone()).collect()),
        }
    }
}

impl driver::Arguments for InTurn {
    fn of(&mut self, ticket: u64) -> Arc<Payload> {
        let count = self.0.len() as u64;
        let at = usize::try_from(ticket % count.max(1)).unwrap_or_default();
        Arc::clone(&self.0[at])
    }
}
