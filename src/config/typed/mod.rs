//! Typed entries: serde over a [`ConfigNode`], with the place of every error.
//!
//! A type that derives `Deserialize` and `JsonSchema` says once which keys an entry has, what else
//! they may be called, what they take and what they are for. Reading, the warnings about unknown
//! keys, the question whether to trust an entry and the JSON Schema of the files follow from it.
//!
//! Serde stops at the first error. So that all of an entry are reported, it is read again without
//! the value that was wrong, until the rest can be read. A key without a value (`null`) is absent.

mod deserializer;
mod schema;
mod values;

use std::cell::RefCell;

use serde::Deserialize;

use self::deserializer::{NodeDeserializer, Problem};
use super::node::{ConfigKey, ConfigNode};
use crate::model::{Diagnostic, Diagnostics};

pub use schema::{Keys, canonical, names, object, words};
pub use values::{
    ByteSize, Either, Limit, Located, PlainText, Retries, Scalar, Texts, Timespan, UNBOUNDED,
};

/// How many errors of one value are reported: each costs another reading.
const MAX_ERRORS: usize = 50;

/// One attempt to read a value.
struct Attempt<'n, 's> {
    /// Values that were wrong in earlier attempts.
    skipped: &'s [&'n ConfigNode],
    /// A mapping of which several types read a part, so that no key of it is unknown here.
    shared: Option<&'n ConfigNode>,
    warnings: RefCell<Vec<Diagnostic>>,
}

impl Attempt<'_, '_> {
    fn skips(&self, node: &ConfigNode) -> bool {
        is_one_of(self.skipped, node)
    }
}

fn is_one_of(nodes: &[&ConfigNode], node: &ConfigNode) -> bool {
    nodes.iter().any(|one| std::ptr::eq(*one, node))
}

/// A warning if a key of a mapping is not one of `keys`. Keys that start with `x-` are for other
/// programs.
pub fn unknown_key(mapping: &ConfigNode, key: &ConfigKey, keys: &[&str]) -> Option<Diagnostic> {
    let is_unknown = !keys.contains(&&*key.text) && !key.text.starts_with("x-");
    is_unknown.then(|| {
        Diagnostic::warning(format!("unknown key '{}'", key.text))
            .with_suggestion(&key.text, keys.iter().copied())
            .with_location(mapping.location_of(key))
    })
}

pub fn unknown_keys(mapping: &ConfigNode, keys: &[&str]) -> impl Iterator<Item = Diagnostic> {
    mapping.entries().iter().filter_map(|(key, _)| unknown_key(mapping, key, keys))
}

/// Reads a value of one type: keys of a mapping that the type does not have are warnings.
pub fn read<'n, T: Deserialize<'n>>(node: &'n ConfigNode, diagnostics: &Diagnostics) -> Option<T> {
    read_without_errors(node, None, diagnostics)
}

/// Reads the keys of an entry that one of several types has.
pub fn read_part<'n, T: Deserialize<'n>>(
    entry: &'n ConfigNode,
    diagnostics: &Diagnostics,
) -> Option<T> {
    read_without_errors(entry, Some(entry), diagnostics)
}

/// The keys of an entry as far as they can be read. What is wrong is reported where the entry is
/// resolved.
pub fn peek<'n, T: Deserialize<'n>>(entry: &'n ConfigNode) -> Option<T> {
    read_part(entry, &Diagnostics::default())
}

/// Whether a key of a mapping has a value that could not be read, so that nothing follows from its
/// absence.
pub fn is_wrong<T>(mapping: Option<&ConfigNode>, key: &str, value: Option<&T>) -> bool {
    let written = mapping.and_then(|mapping| mapping.get(key));
    value.is_none() && written.is_some_and(|node| !node.is_null())
}

fn read_without_errors<'n, T: Deserialize<'n>>(
    node: &'n ConfigNode,
    shared: Option<&'n ConfigNode>,
    diagnostics: &Diagnostics,
) -> Option<T> {
    let mut skipped: Vec<&ConfigNode> = Vec::new();
    let mut own = Vec::new();
    let value = loop {
        let attempt = Attempt { skipped: &skipped, shared, warnings: RefCell::default() };
        let read = T::deserialize(NodeDeserializer { node, attempt: &attempt });
        let warnings = attempt.warnings.into_inner();
        let error = match read {
            Ok(value) => {
                own.extend(warnings);
                break Some(value);
            }
            Err(error) => error,
        };
        let wrong = error.node.unwrap_or(node);
        // A key that is there and wrong is not missing.
        let follows = matches!(error.problem, Problem::MissingKey(_))
            && wrong.entries().iter().any(|(_, value)| is_one_of(&skipped, value));
        if !follows {
            own.push(error.problem.diagnostic(wrong));
        }
        if std::ptr::eq(wrong, node) || is_one_of(&skipped, wrong) {
            own.extend(warnings);
            break None;
        }
        skipped.push(wrong);
        if skipped.len() == MAX_ERRORS {
            let more = Diagnostic::error("there may be more errors here: fix the others first");
            own.push(more.with_location(node.location()));
            break None;
        }
    };
    own.sort_by_key(|diagnostic| diagnostic.location.as_ref().map(|at| (at.line, at.column)));
    diagnostics.extend(own);
    value
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;
    use crate::config::node::SourceText;
    use crate::config::parse::parse;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[schemars(transform = object::<Self>)]
    struct Outer {
        /// What it
        /// is called.
        #[serde(alias = "label")]
        name: Option<Located<String>>,
        count: Option<u32>,
        wait: Option<Timespan>,
        level: Option<NoiseLevel>,
        #[serde(default)]
        patterns: Texts,
        #[serde(default)]
        inner: Vec<Inner>,
        raw: Option<ConfigNode>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[schemars(transform = object::<Self>)]
    struct Inner {
        id: String,
    }

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum NoiseLevel {
        Low,
        VeryHigh,
    }

    fn read_text(text: &str) -> (Option<Outer>, Vec<String>) {
        let root = parse(&SourceText::new("t.yaml", text), text).unwrap();
        let diagnostics = Diagnostics::default();
        let value = read(&root, &diagnostics);
        let line = |d: &Diagnostic| {
            let at = d.location.as_ref().unwrap();
            let hint = d.hint.as_deref().unwrap_or_default();
            format!("{}:{} {} {hint}", at.line, at.column, d.message).trim().to_owned()
        };
        (value, diagnostics.take().iter().map(line).collect())
    }

    #[test]
    fn what_is_right_is_read_with_its_place() {
        let (value, diagnostics) = read_text(
            "label: 5\ncount: 3\nwait: 2m\nlevel: very_high\npatterns: a*\ninner: [{ id: x }]\nraw: [1, ~]\nx-mine: 1\n",
        );
        let value = value.unwrap();
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let name = value.name.unwrap();
        assert_eq!((name.as_str(), name.location.line, name.location.column), ("5", 1, 8));
        assert_eq!((value.count, value.level), (Some(3), Some(NoiseLevel::VeryHigh)));
        assert_eq!(value.wait.unwrap().0.as_secs(), 120);
        assert_eq!((value.patterns.0.len(), value.inner[0].id.as_str()), (1, "x"));
        assert_eq!(value.raw.unwrap().to_json(), json!([1, null]));
    }

    #[test]
    fn everything_that_is_wrong_is_reported_at_once() {
        let (value, diagnostics) = read_text(
            "name: [a]\ncout: 3\ncount: -1\nwait: soon\nlevel: very_hih\npatterns: { a: b }\ninner: [{ id: [] }, {}, 7, { id: x }]\n",
        );
        insta::assert_snapshot!(diagnostics.join("\n"), @r"
        1:7 expected text, found a list
        2:1 unknown key 'cout' did you mean 'count'?
        3:8 expected a whole number, 0 or more, found a number
        4:7 expected a duration such as 30, 500ms, 30s or 2m, found text
        5:8 unknown noise level 'very_hih'; expected one of low, very_high did you mean 'very_high'?
        6:11 expected a list, found a mapping
        7:15 expected text, found a list
        7:21 'id' is missing
        7:25 expected a mapping, found a number
        ");
        assert_eq!(value.unwrap().inner.len(), 1);
        let (value, diagnostics) = read_text("[a]\n");
        assert!(value.is_none());
        assert_eq!(diagnostics, ["1:1 expected a mapping, found a list"]);
        let (value, diagnostics) = read_text("name: a\nlabel: b\n");
        assert_eq!(value.unwrap().name.unwrap().value, "a");
        assert_eq!(
            diagnostics,
            ["2:8 'name' is already set under another spelling: this one is ignored"]
        );
    }

    #[test]
    fn the_schema_has_every_spelling() {
        let schema = schemars::schema_for!(Outer).to_value();
        let about = &schema["properties"]["label"]["description"];
        assert_eq!(about, "Another spelling of 'name'. What it is called.");
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(validator.is_valid(&json!({ "label": "x", "x-mine": 1, "patterns": ["a", 1] })));
        for wrong in [json!({ "lable": "x" }), json!({ "inner": [{ "di": 1 }] })] {
            assert!(!validator.is_valid(&wrong), "{wrong}");
        }
        assert!(Keys::of::<Outer>().spellings().contains(&"label"));
    }

    #[test]
    fn of_many_wrong_values_some_are_reported() {
        let values = "  - [1]\n".repeat(5_000);
        let (value, diagnostics) = read_text(&format!("patterns:\n{values}"));
        assert!(value.is_none());
        assert_eq!(diagnostics.len(), MAX_ERRORS + 1);
        assert!(diagnostics.iter().any(|line| line.contains("there may be more errors here")));
    }
}
