//! `builtin.text`: counting words and transforming text.

use serde_json::json;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthChar as _;

use super::{BuiltinFunction, FunctionBody, input};
use crate::model::ToolResult;

pub(super) const COUNT: BuiltinFunction = BuiltinFunction {
    module: "builtin.text",
    name: "count",
    aliases: &[],
    title: "Count text",
    description: "Counts the bytes, characters, words and lines of a text.",
    input: || {
        let text = json!({ "type": "string", "examples": ["Hello, world"] });
        input(&[("text", text)], &["text"])
    },
    output: Some(|| {
        let count = json!({ "type": "integer", "minimum": 0 });
        json!({
            "type": "object",
            "properties": { "bytes": count, "characters": count, "words": count, "lines": count },
            "required": ["bytes", "characters", "words", "lines"],
            "additionalProperties": false,
        })
    }),
    idempotent: true,
    run: FunctionBody::Sync(|_, arguments| {
        let text = arguments.text("text")?;
        Ok(ToolResult::json(json!({
            "bytes": text.len(),
            "characters": text.graphemes(true).count(),
            "words": text.split_whitespace().count(),
            "lines": text.lines().count(),
        })))
    }),
};

type Operation = fn(&str) -> String;

/// What the argument `operation` of `transform` may be, and what it does.
const OPERATIONS: [(&str, Operation); 12] = [
    ("upper", str::to_uppercase),
    ("lower", str::to_lowercase),
    ("title", title),
    ("trim", |text| text.trim().to_owned()),
    ("reverse", |text| text.graphemes(true).rev().collect()),
    ("slug", slug),
    ("collapse", |text| text.split_whitespace().collect::<Vec<_>>().join(" ")),
    ("sort_lines", |text| by_lines(text, |lines| lines.sort_unstable())),
    ("unique_lines", |text| by_lines(text, unique)),
    ("reverse_lines", |text| by_lines(text, |lines| lines.reverse())),
    ("number_lines", |text| by_lines(text, |lines| number(lines))),
    ("trim_lines", |text| {
        by_lines(text, |lines| lines.iter_mut().for_each(|line| *line = line.trim().to_owned()))
    }),
];

pub(super) const TRANSFORM: BuiltinFunction = BuiltinFunction {
    module: "builtin.text",
    name: "transform",
    aliases: &[],
    title: "Transform text",
    description: "Changes a text: upper, lower, title, trim, reverse, slug, collapse (runs of \
                  white space), and by lines sort, unique, reverse, number or trim.",
    input: || {
        let text = json!({ "type": "string", "examples": ["Hello, world"] });
        let operation = json!({ "type": "string", "enum": OPERATIONS.map(|(name, _)| name) });
        input(&[("text", text), ("operation", operation)], &["text", "operation"])
    },
    output: None,
    idempotent: true,
    run: FunctionBody::Sync(|_, arguments| {
        // Without validation a missing operation would silently be the first one.
        arguments.text("operation")?;
        let operation = arguments.word("operation", &OPERATIONS.map(|(name, _)| name))?;
        Ok(ToolResult::text(transform(arguments.text("text")?, operation)))
    }),
};

fn transform(text: &str, operation: &str) -> String {
    let known = OPERATIONS.iter().find(|(name, _)| *name == operation);
    known.map(|(_, transform)| transform(text)).unwrap_or_default()
}

fn by_lines(text: &str, change: impl FnOnce(&mut Vec<String>)) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    let end = if text.ends_with('\n') { "\n" } else { "" };
    lines.join("\n") + end
}

fn unique(lines: &mut Vec<String>) {
    let mut unique = std::collections::HashSet::new();
    lines.retain(|line| unique.insert(line.clone()));
}

fn number(lines: &mut [String]) {
    let width = lines.len().to_string().len();
    for (at, line) in lines.iter_mut().enumerate() {
        *line = format!("{:>width$}  {line}", at + 1);
    }
}

/// The first letter of each word large, the others small; an apostrophe does not start a word.
fn title(text: &str) -> String {
    let mut inside = false;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside = c.is_alphanumeric() || (inside && matches!(c, '\'' | '’')) || c.width() == Some(0);
    }
    out
}

/// Letters and digits in lower case, everything between them as one dash.
fn slug(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') && c.width() != Some(0) {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_operation() {
        for (operation, text, expected) in [
            ("upper", "straße", "STRASSE"),
            ("lower", "ÀB", "àb"),
            ("title", "it's a small WORLD", "It's A Small World"),
            ("trim", " a b ", "a b"),
            ("reverse", "abc", "cba"),
            ("slug", "  Hello, Wörld! No. 5 ", "hello-wörld-no-5"),
            ("collapse", " a \n b\tc ", "a b c"),
            ("sort_lines", "b\na\n", "a\nb\n"),
            ("unique_lines", "a\nb\na", "a\nb"),
            ("reverse_lines", "a\nb", "b\na"),
            ("number_lines", "a\nb", "1  a\n2  b"),
            ("trim_lines", " a \n b", "a\nb"),
        ] {
            assert_eq!(transform(text, operation), expected, "{operation}");
        }
    }

    #[test]
    fn reversing_keeps_characters_whole() {
        assert_eq!(transform("e\u{301}a", "reverse"), "ae\u{301}");
        assert_eq!(transform("a👩‍👩‍👧b", "reverse"), "b👩‍👩‍👧a");
        assert_eq!(transform("🇩🇪🇫🇷", "reverse"), "🇫🇷🇩🇪");
        assert_eq!(transform("👍🏽x", "reverse"), "x👍🏽");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_in_reversing(text in any::<String>()) {
            let sorted = |text: &str| { let mut all: Vec<char> = text.chars().collect(); all.sort_unstable(); all };
            prop_assert_eq!(sorted(&transform(&text, "reverse")), sorted(&text));
        }

        #[test]
        fn no_operation_panics(text in any::<String>(), at in 0..OPERATIONS.len()) {
            transform(&text, OPERATIONS[at].0);
        }
    }
}
