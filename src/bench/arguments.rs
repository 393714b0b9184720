//! The arguments of the calls of a run: the same for all, or rows of a file.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::host::load::{LoadCall, LoadTarget};
use crate::host::request::CallArguments;
use crate::model::{Error, JsonObject, unreadable_file};

const MAX_BYTES: u64 = 64 << 20;

/// Used in order, then from the start again; at least one.
#[derive(Debug, Clone)]
pub struct ArgumentRows(Vec<Arc<LoadCall>>);

impl ArgumentRows {
    pub async fn check(rows: Vec<JsonObject>, target: &LoadTarget) -> Result<Self, Error> {
        let mut calls = Vec::with_capacity(rows.len());
        for (number, row) in (1..).zip(rows) {
            let call = target.prepare(CallArguments::Object(row)).await;
            calls.push(Arc::new(call.map_err(|error| error.context(&format!("row {number}")))?));
        }
        if calls.is_empty() {
            return Err(Error::usage("there are no rows of arguments"));
        }
        Ok(Self(calls))
    }

    pub fn of_call(&self, number: u64) -> &Arc<LoadCall> {
        let at = number % self.0.len() as u64;
        &self.0[usize::try_from(at).unwrap_or_default()]
    }

    pub fn objects(&self) -> impl Iterator<Item = &JsonObject> {
        self.0.iter().map(|row| &row.call.arguments)
    }
}

impl From<LoadCall> for ArgumentRows {
    fn from(call: LoadCall) -> Self {
        Self(vec![Arc::new(call)])
    }
}

/// Reads a file with one JSON object on each line, at least one; `option` says in errors what named the file.
pub fn read_lines(option: &str, path: &Path) -> Result<Vec<JsonObject>, Error> {
    let named = || format!("{option}: '{}'", path.display());
    let refused = |why: &str| Error::usage(format!("{}: {why}", named()));
    let mut text = String::new();
    // A person may name a pipe, whose size is unknown before it was read.
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| unreadable_file(option, path, &error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(refused("it is larger than 64 MiB"));
    }
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(Value::Object(object)) => rows.push(object),
            Ok(_) => {
                let why = format!("line {} is not a JSON object such as {{\"key\": 1}}", index + 1);
                return Err(refused(&why));
            }
            Err(error) => {
                return Err(refused(&format!("line {} is not valid JSON: {error}", index + 1)));
            }
        }
    }
    if rows.is_empty() {
        return Err(refused("it has no lines"));
    }
    Ok(rows)
}
