//! Making a call of the past again.
//!
//! Owns: which of the kept arguments are not what was sent, because they were secret, and what
//! becomes of them; whether the tool is still what it was. Never does: read the history, call.

use serde_json::Value;

use super::ToolHost;
use crate::audit::mask::MASK;
use crate::catalogue::fingerprint;
use crate::history::HistoryEntry;
use crate::model::{Error, JsonObject};

/// How known secrets that stand inside a text are marked.
const SECRET_MARKER_PREFIX: &str = "‹secret:";

/// Whether a kept text is not what was sent. A reference of a configuration file means nothing in an
/// argument: it stands there only in place of its value.
fn is_masked(text: &str) -> bool {
    text == MASK || text.contains(SECRET_MARKER_PREFIX) || text.contains("${")
}

/// Keys and positions that lead to a value.
pub type ArgumentPath = Vec<String>;

/// Where something secret stood: what is there now must never be sent.
pub fn masked_paths(arguments: &JsonObject) -> Vec<ArgumentPath> {
    fn visit(value: &Value, path: &mut ArgumentPath, found: &mut Vec<ArgumentPath>) {
        match value {
            Value::String(text) if is_masked(text) => {
                found.push(path.clone());
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    path.push(at.to_string());
                    visit(item, path, found);
                    path.pop();
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    path.push(key.clone());
                    visit(item, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    let mut path = Vec::new();
    for (key, value) in arguments {
        path.push(key.clone());
        visit(value, &mut path, &mut found);
        path.pop();
    }
    found
}

/// Puts a secret back where it stood.
pub fn restore_secret(arguments: &mut JsonObject, path: &[String], value: String) {
    let Some((first, rest)) = path.split_first() else { return };
    let mut place = arguments.get_mut(first);
    for step in rest {
        place = place.and_then(|place| match place {
            Value::Object(map) => map.get_mut(step),
            Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
            _ => None,
        });
    }
    if let Some(place) = place {
        *place = Value::String(value);
    }
}

/// The arguments without anything that was secret, and the names of what is missing now. A list with
/// a secret in it goes as a whole: without it the others would stand at other positions.
pub fn without_masked(arguments: &JsonObject) -> (JsonObject, Vec<String>) {
    fn clean(value: &Value) -> Option<Value> {
        match value {
            Value::String(text) if is_masked(text) => None,
            Value::Array(items) => {
                items.iter().map(clean).collect::<Option<Vec<_>>>().map(Value::from)
            }
            Value::Object(map) => {
                let kept = map.iter().filter_map(|(key, item)| Some((key.clone(), clean(item)?)));
                Some(Value::Object(kept.collect()))
            }
            other => Some(other.clone()),
        }
    }
    let missing = masked_paths(arguments).iter().map(|path| path.join(".")).collect();
    let kept = arguments.iter().filter_map(|(key, value)| Some((key.clone(), clean(value)?)));
    (kept.collect(), missing)
}

impl ToolHost {
    /// Whether the tool's definition is another than when the call was made; `None` when the call
    /// does not say what it was.
    ///
    /// # Errors
    /// When the tool is not found any more, or who has it does not answer.
    pub async fn has_changed_since(&self, entry: &HistoryEntry) -> Result<Option<bool>, Error> {
        let tool = self.find(&entry.tool, &[]).await?;
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
        let found = masked_paths(&arguments);
        assert_eq!(
            found,
            [vec!["password"], vec!["auth", "list", "1", "key"], vec!["tokens", "1"], vec!["url"]]
        );
        restore_secret(&mut arguments, &found[1], "x".to_owned());
        assert_eq!(arguments["auth"]["list"][1]["key"], "x");
        assert_eq!(masked_paths(&arguments).len(), 3);
    }

    #[test]
    fn what_was_hidden_is_left_out_and_named() {
        let (kept, missing) = without_masked(&arguments());
        assert_eq!(
            Value::from(kept),
            json!({ "user": "ada", "auth": { "list": [1, { "n": 2 }] } })
        );
        assert_eq!(missing, ["password", "auth.list.1.key", "tokens.1", "url"]);
    }
}
