//! Parsing YAML and JSON with comments into [`ConfigNode`] trees.
//!
//! The YAML side composes the tree from the event parser under `serde_yaml` instead of going
//! through `serde`: only events have the position of every key and value, a duplicate key can be
//! attributed to its entry instead of the whole file, and ten thousand tools load in a fraction of
//! the time.

mod json;
mod yaml;

pub use json::block_comment_length;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::node::{ConfigKey, ConfigNode, NodeValue, SourceText, TextPosition};
use crate::model::Diagnostic;

pub const MAX_DEPTH: usize = 64;

/// Maximum number of values in one file, with aliases counted once per use.
pub const MAX_NODES: usize = 400_000;

/// Parses a file's text. With a `.json` or `.jsonc` name or a leading `{` it is JSON (with comments
/// and trailing commas), anything else is YAML.
pub fn parse(source: &Arc<SourceText>, text: &str) -> Result<ConfigNode, Diagnostic> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if is_json(&source.path, text) { json::parse(source, text) } else { yaml::parse(source, text) }
}

pub fn is_json(path: &Path, text: &str) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    matches!(extension, Some("json" | "jsonc"))
        || (!matches!(extension, Some("yaml" | "yml")) && text.trim_start().starts_with('{'))
}

struct TreeBuilder {
    source: Arc<SourceText>,
    nodes: usize,
    /// The texts of keys, which are the same few in thousands of entries.
    keys: HashSet<Arc<str>>,
}

impl TreeBuilder {
    fn new(source: &Arc<SourceText>) -> Self {
        Self { source: Arc::clone(source), nodes: 0, keys: HashSet::new() }
    }

    fn node(&self, value: NodeValue, position: TextPosition) -> ConfigNode {
        ConfigNode { value, position, source: Arc::clone(&self.source) }
    }

    fn key(&mut self, text: &str, position: TextPosition) -> ConfigKey {
        let text = self.keys.get(text).cloned().unwrap_or_else(|| {
            let new: Arc<str> = text.into();
            self.keys.insert(Arc::clone(&new));
            new
        });
        ConfigKey { text, position }
    }

    /// Counts `more` values against the limits of a file.
    fn count(
        &mut self,
        more: usize,
        depth: usize,
        position: TextPosition,
    ) -> Result<(), Diagnostic> {
        self.nodes += more;
        if self.nodes > MAX_NODES {
            return self.fail(position, format!("more than {MAX_NODES} values in one file"));
        }
        if depth > MAX_DEPTH {
            return self.fail(position, format!("nested deeper than {MAX_DEPTH} levels"));
        }
        Ok(())
    }

    fn diagnostic(&self, position: TextPosition, message: impl Into<String>) -> Diagnostic {
        self.node(NodeValue::Null, position).error(message)
    }

    fn fail<T>(&self, position: TextPosition, message: impl Into<String>) -> Result<T, Diagnostic> {
        Err(self.diagnostic(position, message))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::util::clock::{Clock as _, SystemClock};

    fn tree(name: &str, text: &str) -> Result<ConfigNode, Diagnostic> {
        parse(&SourceText::new(name, text), text)
    }

    fn message(name: &str, text: &str) -> String {
        let diagnostic = tree(name, text).expect_err("should be refused");
        let location = diagnostic.location.expect("has a place");
        format!("{}:{}: {}", location.line, location.column, diagnostic.message)
    }

    #[test]
    fn keys_and_values_know_their_places() {
        let text = "tools:\n  - name: añb\n    args: [1, \"two\"]\n";
        let root = tree("t.yaml", text).unwrap();
        let entry = &root.get("tools").unwrap().as_list().unwrap()[0];
        let at = |p: TextPosition| (p.line, p.column);
        assert_eq!(at(entry.position), (2, 5));
        assert_eq!(at(entry.key("args").unwrap().position), (3, 5));
        let args = entry.get("args").unwrap().as_list().unwrap();
        assert_eq!(at(args[0].position), (3, 12));
        assert_eq!(at(args[1].position), (3, 15));
        assert_eq!(entry.get("name").unwrap().location().text.as_ref(), "  - name: añb");
    }

    #[test]
    fn the_same_tree_comes_from_both_notations() {
        let yaml = "a: [1, 2.5, true, null, x]\nb: { c: \"d\\u00e9\" }\n";
        let json = "// top\n{\"a\": [1, 2.5, true, null, \"x\",], /* mid */ \"b\": {\"c\": \"d\\u00e9\"},}\n";
        let left = tree("t.yaml", yaml).unwrap().to_json();
        assert_eq!(left, tree("t.jsonc", json).unwrap().to_json());
    }

    #[test]
    fn words_that_look_like_something_else_stay_text() {
        let root = tree(
            "t.yaml",
            "a: yes\nb: on\nc: 0755\nd: 1_000\ne: 12:30:00\nf: 1.0\ng: 18446744073709551616\nh: ~\ni:\n",
        )
        .unwrap()
        .to_json();
        insta::assert_snapshot!(root, @r#"{"a":"yes","b":"on","c":"0755","d":"1_000","e":"12:30:00","f":1.0,"g":18446744073709551616,"h":null,"i":null}"#);
    }

    #[test]
    fn merges_fill_what_is_missing() {
        let root = tree(
            "t.yaml",
            "base: &b { x: 1, y: 2 }\none: { <<: *b, y: 3 }\ntwo:\n  <<: [*b, { z: 4 }]\n",
        )
        .unwrap();
        assert_eq!(root.get("one").unwrap().to_json(), serde_json::json!({"y": 3, "x": 1}));
        assert_eq!(root.get("two").unwrap().to_json(), serde_json::json!({"x": 1, "y": 2, "z": 4}));
    }

    #[test]
    fn duplicate_keys_are_found_in_both_notations() {
        for (name, text) in [("t.yaml", "a: 1\nb: 2\na: 3\n"), ("t.json", "{\"a\":1,\n\"a\":2}")] {
            let repeated = tree(name, text).unwrap().repeated_keys();
            assert_eq!(repeated.len(), 1, "{name}");
            assert!(repeated[0].message.contains("first defined at line 1"));
        }
    }

    #[test]
    fn a_key_that_a_merged_mapping_has_twice_is_found() {
        let repeated = tree("t.yaml", "a: { <<: { x: 1, x: 2 }, y: 3 }").unwrap().repeated_keys();
        assert_eq!(repeated.len(), 1);
    }

    #[test]
    fn a_block_comment_does_not_end_where_it_begins() {
        for text in ["{/*/ x */}", "{/**/}", "{/***/}"] {
            assert!(tree("t.json", text).is_ok(), "{text}");
        }
        assert_eq!(message("t.json", "{/*/"), "1:2: unterminated comment");
    }

    #[test]
    fn what_repeats_thousands_of_times_is_read_in_linear_time() {
        let keys = |name: &str, count: u32| -> Vec<String> {
            (0..count).map(|number| format!("  {name}{number}: 1")).collect()
        };
        let (merged, own) = (keys("m", 19_000).join("\n"), keys("k", 150_000).join("\n"));
        let merging = format!("base: &b\n{merged}\nall:\n  <<: *b\n{own}\n");
        let repeating = "- {a: 1, a: 1}\n".repeat(60_000);
        let clock = SystemClock;
        let begun = clock.now();
        let root = tree("t.yaml", &merging).unwrap();
        assert_eq!(root.get("all").unwrap().entries().len(), 169_000);
        assert_eq!(tree("t.yaml", &repeating).unwrap().repeated_keys().len(), 60_000);
        assert!(clock.now() - begun < Duration::from_secs(30));
    }

    #[test]
    fn hostile_shapes_are_refused_with_a_place() {
        let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x, x]\n");
        for (next, last) in "bcdefgh".chars().zip("abcdefg".chars()) {
            let aliases = vec![format!("*{last}"); 10].join(",");
            bomb.extend([next.to_string(), format!(": &{next} [{aliases}]\n")]);
        }
        let deep = "[".repeat(10_000);
        let block: String = (0..200).flat_map(|i| [" ".repeat(i), "k:\n".to_owned()]).collect();
        insta::assert_snapshot!(message("t.yaml", &bomb), @"5:8: aliases repeat more than 20000 values");
        insta::assert_snapshot!(message("t.yaml", &deep), @"1:129: recursion limit exceeded");
        insta::assert_snapshot!(message("t.json", &deep), @"1:66: nested deeper than 64 levels");
        insta::assert_snapshot!(message("t.yaml", &block), @"66:66: nested deeper than 64 levels");
        insta::assert_snapshot!(message("t.yaml", "a: !!python/object:os.system x"), @"1:30: the tag !!python/object:os.system is not allowed here");
        insta::assert_snapshot!(message("t.yaml", "a: 1\n---\nb: 2\n"), @"3:1: a second document starts here");
        insta::assert_snapshot!(message("t.yaml", "a: *nowhere\n"), @"1:4: while parsing node, found unknown anchor");
        insta::assert_snapshot!(message("t.yaml", "a: &x [*x]\n"), @"1:8: the alias refers to a value that contains it");
        insta::assert_snapshot!(message("t.yaml", "a: [1, 2\nb: 3\n"), @"2:2: illegal placement of ':' indicator");
        insta::assert_snapshot!(message("t.yaml", "a: .inf\n"), @"1:4: .inf: infinities and NaN are not allowed here");
        insta::assert_snapshot!(message("t.yaml", "a:\n\t- b\n"), @"2:2: tabs disallowed within this context (block indentation)");
        insta::assert_snapshot!(message("t.yaml", "? [a, b]\n: c\n"), @"1:3: a key must be a string");
        insta::assert_snapshot!(message("t.json", "{\"a\": 01}"), @"1:7: '01' is not a number");
        insta::assert_snapshot!(message("t.json", "{\"a\": 1 \"b\": 2}"), @"1:9: expected ',' or '}'");
        insta::assert_snapshot!(message("t.json", "{\"a\": \"x"), @"1:7: unterminated string");
        insta::assert_snapshot!(message("t.json", "{} {}"), @"1:4: text after the end of the JSON value");
        insta::assert_snapshot!(message("t.json", "{/* open"), @"1:2: unterminated comment");
    }

    #[test]
    fn files_may_nest_64_levels_and_no_more() {
        let flow = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        for name in ["t.yaml", "t.json"] {
            assert!(tree(name, &flow(64)).is_ok(), "{name}");
            assert!(tree(name, &flow(66)).is_err(), "{name}");
        }
        let block = |levels: usize| -> String {
            (0..levels).flat_map(|i| [" ".repeat(i), "k:\n".to_owned()]).collect()
        };
        assert!(tree("t.yaml", &block(64)).is_ok());
        assert!(tree("t.yaml", &block(66)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[ -~\n\t{}\\[\\]:,&*#\"'é]{0,200}") {
            drop(tree("t.yaml", &text));
            drop(tree("t.json", &text));
        }

        #[test]
        fn json_text_means_the_same_as_serde_json_says(key in any::<String>(), text in any::<String>(), number in any::<i64>()) {
            let value = serde_json::json!({ key: [text, number, null, true, {"x": number}] });
            let shown = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(tree("t.json", &shown).unwrap().to_json(), value);
        }
    }
}
