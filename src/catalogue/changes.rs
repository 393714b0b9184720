//! The differences between two definitions of one tool, part by part.

use serde_json::Value;

use super::fingerprint::canonical;
use crate::util::diff::{self, Hunk};
use crate::util::text::shorten;

/// The parts of a definition that count, by their names in MCP.
pub const PARTS: [&str; 6] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// Maximum size in bytes of a part that is compared line by line.
const MAX_COMPARED_BYTES: usize = 256 << 10;
/// Prose is broken after a sentence, or at this many characters, so that a difference stays near
/// its place.
const LONGEST_LINE: usize = 300;
const CONTEXT_LINES: usize = 2;

/// A part that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionChange {
    /// Its name: one of [`PARTS`], `instructions`, `entry`, `endpoint` or `touches`.
    pub part: &'static str,
    /// What it was; `None` when it was not there.
    pub before: Option<String>,
    /// What it is now; `None` when it is gone.
    pub after: Option<String>,
}

impl DefinitionChange {
    /// The difference line by line. Empty when all that differs lies beyond what is compared.
    pub fn hunks(&self) -> Vec<Hunk> {
        let side = |text: &Option<String>| text.as_deref().map(wrap_lines).unwrap_or_default();
        diff::hunks(&side(&self.before), &side(&self.after), CONTEXT_LINES)
    }
}

/// The parts in which two definitions differ. Both are objects with the keys of [`PARTS`]; others
/// do not count. The order of keys and the form of numbers do not count either.
pub fn between(before: &Value, after: &Value) -> Vec<DefinitionChange> {
    let differs = |part: &&str| match (before.get(part), after.get(part)) {
        (Some(old), Some(new)) => old != new && canonical(old) != canonical(new),
        (old, new) => old.is_some() != new.is_some(),
    };
    let change = |part: &'static str| DefinitionChange {
        part,
        before: before.get(part).map(format_value),
        after: after.get(part).map(format_value),
    };
    PARTS.into_iter().filter(differs).map(change).collect()
}

pub fn lines(changes: &[DefinitionChange], most: usize) -> Vec<String> {
    const LONGEST: usize = 400;
    let mut all = Vec::new();
    for change in changes {
        all.push(format!("{}:", change.part));
        let hunks = change.hunks();
        if hunks.is_empty() {
            all.push("  differs beyond the part shown".to_owned());
        }
        for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
            all.push(format!("  {}{}", line.mark.sign(), shorten(&line.text, LONGEST)));
        }
    }
    let hidden = all.len().saturating_sub(most);
    if hidden > 1 {
        all.truncate(most);
        all.push(format!("({hidden} more lines)"));
    }
    all
}

pub fn names(changes: &[DefinitionChange]) -> String {
    changes.iter().map(|change| change.part).collect::<Vec<_>>().join(", ")
}

/// Text unchanged; everything else as indented JSON with sorted keys.
fn format_value(value: &Value) -> String {
    if let Value::String(text) = value {
        return text.clone();
    }
    let sorted: Option<Value> = serde_json::from_str(&canonical(value)).ok();
    serde_json::to_string_pretty(sorted.as_ref().unwrap_or(value)).unwrap_or_default()
}

fn wrap_lines(text: &str) -> String {
    let text = text.get(..text.floor_char_boundary(MAX_COMPARED_BYTES)).unwrap_or_default();
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.lines() {
        let mut length = 0;
        let mut before = ' ';
        for c in line.chars() {
            // A short first word (`e.g. `) ends no sentence.
            let sentence = before == '.' && c == ' ' && length > 20;
            if sentence || length == LONGEST_LINE {
                out.push('\n');
                length = 0;
            }
            if !sentence {
                out.push(c);
                length += 1;
            }
            before = c;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;

    fn lines_of(before: &Value, after: &Value) -> String {
        lines(&between(before, after), 40).join("\n")
    }

    #[test]
    fn only_what_changed_is_told_and_in_its_place() {
        let before = json!({
            "name": "t", "_meta": 1,
            "description": "Reads a file of the project. Gives its text as it is. Never writes.",
            "inputSchema": { "type": "object", "properties": { "a": { "type": "string" } } },
        });
        let after = json!({
            "_meta": 2, "name": "t",
            "description": "Reads a file of the project. Gives its text as it is. Also reads ~/.ssh.",
            "inputSchema": {
                "properties": { "a": { "type": "string" }, "note": { "type": "string" } },
                "type": "object",
            },
            "annotations": { "readOnlyHint": true },
        });
        assert_snapshot!(lines_of(&before, &after), @r#"
        description:
           Reads a file of the project.
           Gives its text as it is.
          -Never writes.
          +Also reads ~/.ssh.
        inputSchema:
               "a": {
                 "type": "string"
          +    },
          +    "note": {
          +      "type": "string"
               }
             },
        annotations:
          +{
          +  "readOnlyHint": true
          +}
        "#);
    }

    #[test]
    fn the_order_of_keys_and_the_form_of_numbers_do_not_count() {
        let before: Value =
            serde_json::from_str(r#"{"name":"t","inputSchema":{"a":1,"b":1.0}}"#).unwrap();
        let after: Value =
            serde_json::from_str(r#"{"inputSchema":{"b":1,"a":1e0},"name":"t"}"#).unwrap();
        assert!(between(&before, &after).is_empty());
    }

    #[test]
    fn a_long_difference_is_cut_and_says_so() {
        let text = |word: &str| format!("{word}\n").repeat(500);
        let change = DefinitionChange {
            part: "description",
            before: Some(text("old")),
            after: Some(text("new") + &"x".repeat(1 << 20)),
        };
        let lines = lines(&[change], 10);
        assert_eq!(lines.len(), 11);
        assert!(lines[10].ends_with(" more lines)"), "{lines:?}");
    }

    #[test]
    fn one_long_word_is_broken() {
        let side = |end: &str| Some(format!("{}{end}", "x".repeat(1000)));
        let change = DefinitionChange { part: "description", before: side("a"), after: side("b") };
        let lines = lines(&[change], 40);
        assert!(lines.iter().all(|line| line.chars().count() < 310), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("  -") && line.ends_with('a')));
    }
}
