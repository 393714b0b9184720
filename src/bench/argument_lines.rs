//! Files of arguments: one JSON object on each line.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use crate::model::{Error, JsonObject, unreadable_file};

const MAX_BYTES: u64 = 64 << 20;

/// Reads the objects of a file, at least one; `option` says in errors what named the file.
pub fn read(option: &str, path: &Path) -> Result<Vec<JsonObject>, Error> {
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
