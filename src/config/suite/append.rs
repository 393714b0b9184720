//! Adding calls to a suite.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{Snapshots, Suite, free_name};
use crate::config::node::{ConfigNode, NodeValue, SourceText};
use crate::config::parse::parse;
use crate::config::read;
use crate::model::{Error, ErrorKind, JsonObject};
use crate::util::atomic_file::{self, FileMode};
use crate::util::json;

/// A call that becomes a test.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTest {
    pub tool: String,
    pub args: JsonObject,
    /// The kind of its failure, if it failed.
    pub error: Option<String>,
    /// Its result, if all of it is known.
    pub result: Option<Value>,
}

/// Adds tests to the end of a suite, which is made if it is missing; the rest of the file stays as
/// it is. Results become snapshots.
pub fn append(path: &Path, tests: &[NewTest]) -> Result<(), Error> {
    let failed = |why: &dyn std::fmt::Display| {
        Error::internal(format!("cannot write {}: {why}", path.display()))
    };
    if path.is_symlink() {
        return Err(failed(&"it is a symbolic link"));
    }
    let (mut text, indent) =
        if path.exists() { existing(path)? } else { ("tests:\n".to_owned(), 2) };
    // A suite with problems is refused below.
    let old = Suite::parse(&SourceText::new(path, &text), &text).ok();
    let mut names: BTreeSet<String> =
        old.iter().flat_map(Suite::cases).map(|case| case.name.clone()).collect();
    let mut snapshots = Snapshots::of_suite(path)?;
    for test in tests {
        let name = free_name(&mut names, &test.tool);
        let expect = match (&test.error, &test.result) {
            (Some(kind), _) => json!({ "error": kind }),
            (None, result) => {
                if let Some(result) = result {
                    snapshots.set(&name, result.clone());
                }
                json!({ "snapshot": true })
            }
        };
        let keys = [
            ("name", json!(name)),
            ("tool", json!(test.tool)),
            ("args", json!(test.args)),
            ("expect", expect),
        ];
        for (at, (key, value)) in keys.into_iter().enumerate() {
            let mark = if at == 0 { "- " } else { "  " };
            let _infallible =
                writeln!(text, "{:indent$}{mark}{key}: {}", "", json::compact(&value));
        }
    }
    if let Err(problems) = Suite::parse(&SourceText::new(path, &text), &text) {
        let problem = problems.into_iter().next();
        return Err(problem.map_or_else(
            || failed(&"it would not be a suite"),
            |problem| Error::of_diagnostic(ErrorKind::Config, problem),
        ));
    }
    atomic_file::replace(path, text.as_bytes(), FileMode::Kept(0o644))
        .map_err(|why| failed(&why))?;
    snapshots.save()
}

/// The text of a suite that ends with a list of tests, and how far its items are indented.
fn existing(path: &Path) -> Result<(String, usize), Error> {
    let (source, mut text) = read::read(path, false)
        .map_err(|problem| Error::of_diagnostic(ErrorKind::Config, problem))?;
    let root = parse(&source, &text)
        .map_err(|problem| Error::of_diagnostic(ErrorKind::Config, problem))?;
    let last = root.entries().last().filter(|(key, _)| &*key.text == "tests");
    let items = last.and_then(|(_, tests)| match &tests.value {
        NodeValue::List(items) => Some(items),
        _ => None,
    });
    let column = items.and_then(|items| items.first()).map(ConfigNode::location);
    let dash = column.and_then(|place| {
        let line = place.text.trim_start();
        line.starts_with("- ").then(|| place.text.len() - line.len())
    });
    let indent = dash.ok_or_else(|| {
        Error::usage(format!("{} does not end with a list of tests", path.display()))
            .with_hint("name a new file, or move 'tests' to the end of this one")
    })?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok((text, indent))
}
