//! Suites of tests: files of calls and of what is expected of them (`toolhost test`).

mod append;
mod snapshots;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::node::{ConfigNode, SourceText};
use super::parse::parse;
use super::read;
use super::typed::{self, Limit, Located, Texts, Timespan};
use crate::model::{Diagnostic, Diagnostics, ErrorKind, SourceLocation};
use crate::util::jq;

pub use append::{NewTest, append};
pub use snapshots::{Snapshots, masked};

const MAX_CALLS: u64 = 1_000_000;

/// A suite whose keys are checked.
#[derive(Debug)]
pub struct Suite {
    pub setup: Vec<TestCase>,
    pub tests: Vec<TestCase>,
    pub cleanup: Vec<TestCase>,
}

/// A call and what is expected of it.
#[derive(Debug)]
pub struct TestCase {
    /// Unique in its suite.
    pub name: String,
    pub tool: String,
    pub args: Value,
    /// An expression over the results of earlier calls whose result is added to the arguments.
    pub args_jq: Option<String>,
    pub servers: Vec<String>,
    pub timeout: Option<Duration>,
    pub expect: Expectations,
    pub location: SourceLocation,
}

/// A file of tests.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(transform = typed::object::<Self>)]
struct SuiteKeys {
    /// Calls that are made before the tests. When one fails, no test is run.
    setup: Option<Vec<Located<TestKeys>>>,
    /// Calls, and what is expected of them.
    tests: Option<Vec<Located<TestKeys>>>,
    /// Calls that are made after the tests, whatever came of them.
    cleanup: Option<Vec<Located<TestKeys>>>,
}

/// A call and what is expected of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "test", transform = typed::object::<Self>)]
struct TestKeys {
    /// The name in reports, of its snapshot and for 'args_jq'. Default: the tool.
    name: Option<Located<String>>,
    /// The tool to call, as in 'toolhost call'.
    #[serde(alias = "call")]
    tool: Located<String>,
    /// The arguments, an object.
    #[serde(alias = "arguments")]
    args: Option<ConfigNode>,
    /// More arguments: the object that this jq expression makes of the results of earlier calls,
    /// which it finds under their names, such as '{id: .created.id}'.
    args_jq: Option<Located<String>>,
    /// Only look for the tool on these servers.
    server: Option<Texts>,
    /// The limit for the whole call.
    timeout: Option<Limit>,
    /// What is expected. Default: that the call succeeds.
    expect: Option<Expectations>,
}

/// What is expected of a call. It is expected to succeed unless 'error' or 'exit' say otherwise.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "expect", transform = typed::object::<Self>)]
pub struct Expectations {
    /// The kind of failure that is right, such as tool, usage, denied or timeout.
    pub error: Option<Located<String>>,
    /// The exit code that 'toolhost call' has for it.
    pub exit: Option<u8>,
    /// Text that is in the result, or in the message of the failure.
    pub contains: Option<Texts>,
    /// The whole result.
    pub equals: Option<ConfigNode>,
    /// jq expressions that are true of the result.
    pub jq: Option<Texts>,
    /// A JSON Schema that the result fits.
    pub schema: Option<ConfigNode>,
    /// Whether the result is compared with the one that --update saved.
    pub snapshot: Option<bool>,
    /// jq paths of values that a snapshot leaves open, such as '.items[].id'.
    pub mask: Option<Texts>,
    /// Limits on the latency of many such calls.
    pub latency: Option<LatencyLimits>,
}

/// Limits on the latency of many such calls, one after the other or several in flight.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "latency", transform = typed::object::<Self>)]
pub struct LatencyLimits {
    /// How many calls are made, at most a million. Default: 100.
    pub calls: Option<u64>,
    /// How many of them are in flight. Default: 1.
    pub in_flight: Option<u64>,
    /// What half of the calls may take.
    pub p50: Option<Timespan>,
    /// What 90 of 100 calls may take.
    pub p90: Option<Timespan>,
    /// What 95 of 100 calls may take.
    pub p95: Option<Timespan>,
    /// What 99 of 100 calls may take.
    pub p99: Option<Timespan>,
    /// What the calls may take on average.
    pub mean: Option<Timespan>,
}

impl Suite {
    /// Reads a file; nothing in it is expanded, and no other file is read.
    ///
    /// # Errors
    /// All problems: an expectation that is misspelled would never fail.
    pub fn read(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        let (source, text) = read::read(path, true).map_err(|problem| vec![problem])?;
        Self::parse(&source, &text)
    }

    fn parse(source: &Arc<SourceText>, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let root = parse(source, text).map_err(|problem| vec![problem])?;
        let problems = Diagnostics::default();
        problems.extend(root.repeated_keys());
        let keys: Option<SuiteKeys> = typed::read(&root, &problems);
        let mut names = BTreeSet::new();
        let mut cases = |keys: Option<Vec<Located<TestKeys>>>| {
            let cases = keys.into_iter().flatten();
            cases.map(|keys| case(keys, &mut names, &problems)).collect::<Vec<_>>()
        };
        let suite = keys.map(|keys| Self {
            setup: cases(keys.setup),
            tests: cases(keys.tests),
            cleanup: cases(keys.cleanup),
        });
        match suite {
            Some(suite) if problems.is_empty() && !suite.tests.is_empty() => Ok(suite),
            Some(suite) if problems.is_empty() && suite.tests.is_empty() => {
                let nothing = Diagnostic::error("the file has no tests")
                    .with_hint("write a list under 'tests', or save calls of the history")
                    .with_location(root.location());
                Err(vec![nothing])
            }
            _ => Err(problems.take()),
        }
    }

    pub fn cases(&self) -> impl Iterator<Item = &TestCase> {
        self.setup.iter().chain(&self.tests).chain(&self.cleanup)
    }
}

fn case(keys: Located<TestKeys>, names: &mut BTreeSet<String>, problems: &Diagnostics) -> TestCase {
    let Located { value: keys, location } = keys;
    let name = match keys.name {
        Some(name) if names.contains(&*name) => {
            problems.push(name.error(format!("there are two tests '{}'", name.value)));
            name.value
        }
        Some(name) => {
            names.insert(name.value.clone());
            name.value
        }
        None => free_name(names, &keys.tool),
    };
    let expect = keys.expect.unwrap_or_default();
    if let Some(kind) = &expect.error
        && ErrorKind::parse(kind).is_none()
    {
        let kinds = ErrorKind::ALL.map(ErrorKind::as_str);
        let problem = kind.error(format!("'{}' is no kind of failure", kind.value));
        let hint = format!("expected one of {}", kinds.join(", "));
        problems.push(problem.with_hint(hint).with_suggestion(kind, kinds));
    }
    if let Some(exit) = expect.exit
        && exit != 0
        && !ErrorKind::ALL.iter().any(|kind| kind.exit_code() == exit)
    {
        let problem = Diagnostic::error(format!("no call has the exit code {exit}"))
            .with_hint("expected 0 to 11, as 'toolhost call' has them, or 130");
        problems.push(problem.with_location(location.clone()));
    }
    if let Some(limits) = &expect.latency
        && !(1..=MAX_CALLS).contains(&limits.calls.unwrap_or(1))
    {
        let problem = Diagnostic::error(format!("'calls' must be from 1 to {MAX_CALLS}"));
        problems.push(problem.with_location(location.clone()));
    }
    let expressions = expect.jq.iter().flat_map(|texts| &texts.0).chain(keys.args_jq.as_deref());
    let paths = expect.mask.iter().flat_map(|texts| &texts.0);
    for expression in expressions.cloned().chain(paths.map(|path| masking(path))) {
        if let Err(why) = jq::check(&expression) {
            let problem = Diagnostic::error(format!("'{expression}': {why}"));
            problems.push(problem.with_location(location.clone()));
        }
    }
    let args = keys.args.as_ref().map_or_else(
        || Value::Object(Map::new()),
        |node| {
            problems.extend(node.as_map().err());
            node.to_json()
        },
    );
    TestCase {
        name,
        tool: keys.tool.value,
        args,
        args_jq: keys.args_jq.map(|expression| expression.value),
        servers: keys.server.unwrap_or_default().0,
        timeout: keys.timeout.map(|limit| limit.0),
        expect,
        location,
    }
}

/// The name of a tool, with a number if it is taken; it is taken from then on.
fn free_name(names: &mut BTreeSet<String>, tool: &str) -> String {
    let numbered = (2_u64..).map(|count| format!("{tool} {count}"));
    let mut candidates = std::iter::once(tool.to_owned()).chain(numbered);
    let name = candidates.find(|name| !names.contains(name)).unwrap_or_default();
    names.insert(name.clone());
    name
}

/// The expression that leaves open what is at a path, if something is there.
fn masking(path: &str) -> String {
    format!(
        "if ([{path}]? // [] | any(. != null)) then ({path} | select(. != null)) |= \"…\" else . end"
    )
}

/// The JSON Schema of suites, for editors.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<SuiteKeys>().to_value();
    schema["title"] = "toolhost: a suite of tests".into();
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Result<Suite, Vec<String>> {
        let shown = |problems: Vec<Diagnostic>| {
            problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>()
        };
        Suite::parse(&SourceText::new("s.yaml", text), text).map_err(shown)
    }

    #[test]
    fn tests_without_a_name_are_named_for_their_tool() {
        let suite = parsed("setup: [{tool: a}]\ntests: [{tool: a}, {call: a}, {name: b, tool: a}]");
        let names: Vec<_> = suite.unwrap().cases().map(|case| case.name.clone()).collect();
        assert_eq!(names, ["a", "a 2", "a 3", "b"]);
        assert!(parsed("tests: [{name: x, tool: a}, {name: x, tool: b}]").is_err());
    }

    #[test]
    fn nothing_that_would_never_fail_is_taken() {
        for text in [
            "",
            "[]",
            "tests: {}",
            "tests: [{tool: a, expect: {equal: 1}}]",
            "tests: [{tool: a, args: [1]}]",
            "tests: [{tool: a, args: x}]",
            "tests: [{tool: a, expect: {mask: ['.[']}}]",
            "tests: [{tool: a, expect: {latency: {p42: 1s}}}]",
            "tests: [{tool: a, expect: {latency: {calls: 0, p50: 1s}}}]",
            "tests: [{tool: a, expect: {latency: {calls: 1000001, p50: 1s}}}]",
            "tests: [{tool: a, expect: {exit: 77}}]",
            "tests: [{tool: a}]\ntests: [{tool: b}]",
        ] {
            assert!(!parsed(text).unwrap_err().is_empty(), "{text}");
        }
    }

    #[test]
    fn a_mask_leaves_open_what_is_there() {
        let result = json!({ "a": { "t": 1 }, "b": [{ "id": 1 }, { "id": 2 }] });
        let paths = [".a.t", ".b[].id", ".none"].map(str::to_owned);
        assert_eq!(
            masked(result, paths.iter()).unwrap(),
            json!({ "a": { "t": "…" }, "b": [{ "id": "…" }, { "id": "…" }] })
        );
    }

    #[test]
    fn calls_are_added_to_the_end_and_the_file_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.yaml");
        let test = NewTest {
            tool: "a: b # c".to_owned(),
            args: json!({ "x": "\u{202e}\n" }).as_object().unwrap().clone(),
            error: None,
            result: Some(json!(1)),
        };
        let before = "# mine\ntests:\n    - tool: one # first\n      args: {}";
        std::fs::write(&path, before).unwrap();
        append(&path, &[test.clone(), test]).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(before));
        let suite = Suite::read(&path).unwrap();
        let names: Vec<_> = suite.cases().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["one", "a: b # c", "a: b # c 2"]);
        assert_eq!(suite.tests[1].args, json!({ "x": "\u{202e}\n" }));
        assert_eq!(Snapshots::of_suite(&path).unwrap().get("a: b # c 2"), Some(&json!(1)));
    }
}
