//! Repeating a recorded call.

use serde_json::Value;

use super::ToolHost;
use super::request::LookupScope;
use super::validate::{ValuePath, ValuePathSegment};
use crate::audit::mask::MASK;
use crate::catalogue::fingerprint;
use crate::config::suite::NewTest;
use crate::history::HistoryEntry;
use crate::model::{Error, JsonObject};

const SECRET_MARKER_PREFIX: &str = "‹secret:";

/// Whether a kept text is not what was sent. A reference of a configuration file means nothing in
/// an argument: it only stands for its value.
fn is_masked(text: &str) -> bool {
    text == MASK || text.contains(SECRET_MARKER_PREFIX) || text.contains("${")
}

/// The places of arguments that were masked when they were recorded: what stands there now must never
/// be sent.
pub fn masked_paths(arguments: &JsonObject) -> Vec<ValuePath> {
    fn visit(value: &Value, path: ValuePath, masked: &mut Vec<ValuePath>) {
        match value {
            Value::String(text) if is_masked(text) => masked.push(path),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    visit(item, path.index(index), masked);
                }
            }
            Value::Object(map) => {
                for (key, member) in map {
                    visit(member, path.key(key), masked);
                }
            }
            _ => {}
        }
    }
    let mut masked = Vec::new();
    for (key, value) in arguments {
        visit(value, ValuePath::default().key(key), &mut masked);
    }
    masked
}

/// Puts a secret back at its place. Without that place nothing changes.
pub fn restore_secret(arguments: &mut JsonObject, path: &ValuePath, secret: String) {
    let Some((ValuePathSegment::Key(first), rest)) = path.0.split_first() else { return };
    let place = rest.iter().try_fold(arguments.get_mut(first), |place, step| {
        let place = place?;
        Some(match step {
            ValuePathSegment::Key(key) => place.get_mut(key),
            ValuePathSegment::Index(index) => place.get_mut(index),
        })
    });
    if let Some(Some(place)) = place {
        *place = Value::String(secret);
    }
}

/// The arguments without anything that was secret, and the names of what is missing now. A list
/// with a list with a secret in it is removed as a whole: removing only the secret would shift the
/// other elements.
pub fn without_masked(arguments: &JsonObject) -> (JsonObject, Vec<String>) {
    fn clean(value: &Value) -> Option<Value> {
        match value {
            Value::String(text) if is_masked(text) => None,
            Value::Array(items) => {
                items.iter().map(clean).collect::<Option<Vec<_>>>().map(Value::from)
            }
            Value::Object(map) => {
                let clear = map.iter().filter_map(|(key, item)| Some((key.clone(), clean(item)?)));
                Some(Value::Object(clear.collect()))
            }
            other => Some(other.clone()),
        }
    }
    let missing = masked_paths(arguments).iter().map(ValuePath::dotted).collect();
    let clear = arguments.iter().filter_map(|(key, value)| Some((key.clone(), clean(value)?)));
    (clear.collect(), missing)
}

/// A call as a test, and the arguments that are missing because they were secret.
///
/// # Errors
/// When its arguments were too large to keep.
pub fn as_test(entry: &HistoryEntry) -> Result<(NewTest, Vec<String>), Error> {
    let arguments = entry.arguments.as_ref().ok_or_else(|| {
        Error::usage(format!("the arguments of the call {} were too large to keep", entry.id))
    })?;
    let (args, missing) = without_masked(arguments);
    let whole = entry.result.as_ref().filter(|result| !result.cut);
    let test = NewTest {
        tool: entry.tool.clone(),
        args,
        error: entry.error.as_ref().map(|error| error.kind.clone()),
        result: whole.map(|result| match &result.output {
            Value::String(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into())
            }
            output => output.clone(),
        }),
    };
    Ok((test, missing))
}

impl ToolHost {
    /// Whether the tool's definition is another than when the call was made; `None` when the call
    /// does not say what it was.
    ///
    /// # Errors
    /// When the tool no longer exists, or its server does not respond.
    #[doc(hidden)] // for the program's own commands
    pub async fn has_changed_since(&self, entry: &HistoryEntry) -> Result<Option<bool>, Error> {
        let tool = self.find(&entry.tool, &LookupScope::default()).await?;
        let now = fingerprint::fingerprint(&tool);
        Ok(entry.fingerprint.as_ref().map(|then| *then != now))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments() -> JsonObject {
        let value = json!({
            "user": "ada",
            "password": MASK,
            "auth": { "list": [1, { "key": "Bearer ‹secret:TOKEN›", "n": 2 }] },
            "tokens": ["a", MASK],
            "url": "${BASE}/x",
        });
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn what_was_hidden_is_found_and_put_back() {
        let mut arguments = arguments();
        let paths = masked_paths(&arguments);
        let dotted: Vec<String> = paths.iter().map(ValuePath::dotted).collect();
        assert_eq!(dotted, ["password", "auth.list.1.key", "tokens.1", "url"]);
        restore_secret(&mut arguments, &paths[1], "x".to_owned());
        assert_eq!(arguments["auth"]["list"][1]["key"], "x");
        assert_eq!(masked_paths(&arguments).len(), 3);
    }

    #[test]
    fn what_was_hidden_is_left_out_and_named() {
        let (clear, missing) = without_masked(&arguments());
        assert_eq!(
            Value::from(clear),
            json!({ "user": "ada", "auth": { "list": [1, { "n": 2 }] } })
        );
        assert_eq!(missing, ["password", "auth.list.1.key", "tokens.1", "url"]);
    }
}
