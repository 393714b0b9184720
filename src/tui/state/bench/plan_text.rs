//! Texts in the plan of a benchmark: arguments, the calls of a mix, words for a shell.

use serde_json::Value;

use crate::bench::mix::MixSpec;
use crate::model::{Error, JsonObject};
use crate::tui::event::bench::{BenchArguments, BenchRunTarget};

/// The object that a text is; no text is an empty one.
pub(super) fn object(text: &str) -> Result<JsonObject, Error> {
    if text.is_empty() {
        return Ok(JsonObject::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Error::usage("the arguments must be a JSON object such as {\"key\": 1}")),
        Err(error) => Err(Error::usage(format!("the arguments are not valid JSON: {error}"))
            .with_hint(
                "write them as {\"key\": 1}; {{seq}} and {{int 1 9}} vary from call to call",
            )),
    }
}

/// The calls of a mix: those between semicolons that are not inside of their JSON.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    let is_end = move |c: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match c {
            '\\' if is_quoted => is_escaped = !was_escaped,
            '"' if !was_escaped => is_quoted = !is_quoted,
            '{' | '[' if !is_quoted => depth += 1,
            '}' | ']' if !is_quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ';' && depth == 0 && !is_quoted
    };
    text.split(is_end).map(str::trim).filter(|part| !part.is_empty())
}

/// The further tools of a mix.
pub(super) fn mixed(text: &str) -> Result<Vec<BenchRunTarget>, Error> {
    let target = |part: &str| {
        let spec = part.parse::<MixSpec>().map_err(|_| {
            Error::usage(format!("'{part}': expected a weight, a tool and its arguments as JSON"))
                .with_hint("for several tools, write 2 notes-get {\"key\": \"milk\"}; 1 clock")
        })?;
        let arguments = BenchArguments::Single(object(&spec.words.join(" "))?);
        Ok(BenchRunTarget { tool: spec.name, arguments, weight: spec.weight })
    };
    parts(text).map(target).collect()
}

/// A word as a shell takes it for itself.
pub(super) fn shell_quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
